//! What every station of afterlink shares: typed addresses and indices, the one error type,
//! the reasons for which a function is left alone, and the formats that travel between
//! separate runs of the tool (the address map and the counter file with its description).

pub mod addr;
pub mod address_map;
pub mod counter_description;
pub mod counter_file;
pub mod error;
pub mod index;
pub mod refusal;
pub mod varint;

pub use addr::{FileOffset, InputAddr, OutputAddr};
pub use address_map::{AddressMap, BlockMap, FragmentMap, FunctionMap};
pub use error::{Error, Result};
pub use index::IdVec;
pub use refusal::Refusal;
