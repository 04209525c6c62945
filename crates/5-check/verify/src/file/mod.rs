//! The output as an ELF file: its headers, its sections and segments, and the tables that linkers, dynamic linkers and
//! debuggers read.

pub(crate) mod bb_addr_map;
pub(crate) mod debug_file;
pub(crate) mod dynamic;
pub(crate) mod dynamic_tables;
mod inlined_code;
pub(crate) mod note;
pub(crate) mod probes;
pub(crate) mod sections;
pub(crate) mod segments;
pub(crate) mod shadow_stack;
pub(crate) mod symbols;
pub(crate) mod tables;
