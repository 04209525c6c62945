//! Code at its new place: the input's instructions with operands that mean the same, and in an instrumented output the
//! counters between them and the start-up code.

mod asked;
pub(crate) mod behind_faults;
pub(crate) mod blocks;
pub(crate) mod callees;
pub(crate) mod counter_sections;
pub(crate) mod counters;
mod depths;
pub(crate) mod duplicates;
pub(crate) mod entry_marks;
pub(crate) mod folded;
pub(crate) mod huge_pages;
mod in_place;
mod inlined;
pub(crate) mod liveness;
mod looked_up;
mod replaced;
mod stack_pointer;
pub(crate) mod start_up;
mod walk;
