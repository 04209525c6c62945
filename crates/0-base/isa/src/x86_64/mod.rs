//! x86-64: decoding through `iced-x86`, encoding of the few instructions that afterlink makes itself.

mod decode;
mod encode;

pub use decode::{decode, full};
pub use encode::{
    BRANCH_LONG, BRANCH_SHORT, JUMP_LONG, JUMP_SHORT, SHORT_BRANCH, write_branch, write_jump,
    write_short_branch,
};
pub use iced_x86;

/// A byte that stops the program when it is executed.
pub const TRAP: u8 = 0xcc;

/// `endbr64`: the mark that indirect branches may land here.
pub const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

#[cfg(test)]
mod tests;
