//! Addresses of code, wherever they stand: stored as words, as distances in jump tables, named by instructions, known to a
//! runtime by tables of its own. Each that leads into moved code must follow it, and what must not follow must not move.

pub(crate) mod absolute_symbols;
pub(crate) mod function_types;
pub(crate) mod indirect_targets;
pub(crate) mod jump_tables;
pub(crate) mod jumps;
pub(crate) mod patched_code;
pub(crate) mod pointers;
pub(crate) mod range_tables;
pub(crate) mod read_code;
pub(crate) mod relative_words;
pub(crate) mod restartable;
pub(crate) mod runtime_tables;
pub(crate) mod sorted_tables;
pub(crate) mod sums;
pub(crate) mod table_ends;
pub(crate) mod taken;
pub(crate) mod text_relocations;
pub(crate) mod unread_words;
pub(crate) mod uses;
