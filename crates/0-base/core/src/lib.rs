//! What every station of afterlink shares: typed addresses and indices, the one error type,
//! the reasons for which a function is left alone, and the formats that travel between
//! separate runs of the tool (the address map and the counter file with its description), and the
//! numbers on which several stations must agree.

pub mod addr;
pub mod address_map;
pub mod counter_description;
pub mod counter_file;
pub mod debug_files;
pub mod error;
pub mod index;
pub mod limits;
pub mod output;
pub mod refusal;
pub mod start_table;
pub mod varint;

pub use addr::{FileOffset, InputAddr, OutputAddr};
pub use address_map::{AddressMap, BlockMap, FragmentMap, FunctionMap, Reason};
pub use debug_files::{DebugPart, DebugUnit, FileBytes, NoSplitFiles, Packaged, SplitFiles};
pub use error::{Error, Result};
pub use index::IdVec;
pub use output::{Forget, Output, Pages, Scratch, Viewed, append_all};
pub use refusal::Refusal;
pub use start_table::StartTable;
