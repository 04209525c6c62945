//! What could break if a function moved although everything that names it is known: each file knows one way, and refuses the
//! functions that it may be true of.

pub(crate) mod absolute_symbols;
pub(crate) mod checked_calls;
pub(crate) mod columns;
pub(crate) mod computed;
pub(crate) mod faults;
pub(crate) mod moved_stack;
pub(crate) mod patched_code;
pub(crate) mod range_tables;
pub(crate) mod read_code;
pub(crate) mod restartable;
pub(crate) mod runtime_tables;
pub(crate) mod sorted_tables;
pub(crate) mod sums;
pub(crate) mod thunks;
