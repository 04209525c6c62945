//! A profile: how often each branch was taken, or each address was seen, by function name and offset.
//!
//! [`fdata::read`] and [`fdata::write`] speak BOLT's text format, so that profiles travel between the two
//! tools; [`ProfileBuilder`] makes a profile from any other source; [`merge`] sums several; [`Summary`] is what
//! `profile show` tells; [`names`] knows under which names BOLT writes the functions of a program.

mod builder;
pub mod fdata;
mod merge;
mod name_table;
pub mod names;
#[cfg(feature = "parquet")]
pub mod parquet;
mod profile;
mod summary;

pub use builder::ProfileBuilder;
pub use merge::{Merger, merge};
pub use name_table::{NameId, NameTable};
pub use profile::{
    BranchRecord, DataLocation, Kind, Location, LocationKind, MAX_COUNT, MemoryRecord, Profile, SampleRecord,
};
pub use summary::{HotFunction, Percentile, Summary};
