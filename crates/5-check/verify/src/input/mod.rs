//! What the checker finds out about the input by itself: its code as instructions, its functions, and what the
//! relocations say that the linker kept.

pub(crate) mod code;
pub(crate) mod functions;
pub(crate) mod moved_stack;
pub(crate) mod ranges;
pub(crate) mod references;
pub(crate) mod return_address;
pub(crate) mod slots;
