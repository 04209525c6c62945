//! Functions out of pieces: blocks, operands with symbolic targets, unwind rows, and what surrounds them in the file.

pub(crate) mod blocks;
pub(crate) mod families;
pub(crate) mod landing_pads;
pub(crate) mod link;
pub(crate) mod stubs;
pub(crate) mod surroundings;
pub(crate) mod unwind;
