//! Where the output says that code went, and which places of both files correspond.

pub(crate) mod flow;
pub(crate) mod places;
