//! Where the output says that code went, and which places of both files correspond.

mod added;
pub(crate) mod contexts;
pub(crate) mod flow;
mod pieces;
pub(crate) mod places;
