//! AArch64: decoding of what matters to whoever moves code, by hand; `disarm64` says which other words are instructions.
//!
//! All masks are those of the Arm Architecture Reference Manual, chapter C4 (top-level encodings of A64).

mod decode;
mod effects;
mod encode;
mod follow;
mod values;

pub use decode::decode;
pub use disarm64;
pub use encode::{TRAP, is_landing_mark, write_branch, write_jump, write_near_jump, write_padding};
pub(crate) use follow::follow;

/// Bytes of every instruction.
pub const WORD: u64 = 4;

#[cfg(test)]
mod tests;
