//! Where the output says that code went, and which places of both files correspond.

pub(crate) mod contexts;
pub(crate) mod flow;
mod pieces;
pub(crate) mod places;
