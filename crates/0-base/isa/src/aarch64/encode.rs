//! The few instructions that afterlink writes itself: padding, traps, landing marks, and jumps of any reach.
//!
//! AArch64 programs are only read today, so that nothing calls this yet; it stands here to show that what the writer needs of
//! an instruction set fits: everything takes the place where it will stand and the target, since branches differ in reach.

use super::decode::{NOP, branch_on};
use crate::{Condition, Encoding};

/// A word that stops the program when it is executed: `brk #0`.
pub const TRAP: u32 = 0xd420_0000;

/// Through `x16`, which belongs to the linker between two functions: `adrp x16, …; add x16, x16, …; br x16`.
const VENEER: [(u32, Option<Encoding>); 3] = [
    (0x9000_0010, Some(Encoding::Page21)),
    (0x9100_0210, Some(Encoding::Low12 { scale: 0 })),
    (0xd61f_0200, None),
];

/// Whether indirect branches may land on `word`: `bti` with a target, or the signing of the return address, which implies
/// `bti c`.
pub fn is_landing_mark(word: u32) -> bool {
    /// Hints 34, 36 and 38: `bti c`, `bti j`, `bti jc`.
    const BTI: [u32; 3] = [0xd503_245f, 0xd503_249f, 0xd503_24df];
    /// Hints 25 and 27: `paciasp`, `pacibsp`.
    const SIGN: [u32; 2] = [0xd503_233f, 0xd503_237f];
    BTI.contains(&word) || SIGN.contains(&word)
}

/// Appends `nop`s of `size` bytes in all.
///
/// # Panics
/// If these are no whole words.
pub fn write_padding(out: &mut Vec<u8>, size: usize) {
    assert!(size.is_multiple_of(4), "code of AArch64 is whole words");
    (0..size / 4).for_each(|_| out.extend_from_slice(&NOP.to_le_bytes()));
}

/// Appends a jump that will stand at `at`: `b`, or, up to 4 GiB away, a veneer that changes `x16`. `None` if neither reaches.
/// A function's old entry and a tail call may have either; a jump inside a function only `b`, since `x16` may hold something.
pub fn write_jump(out: &mut Vec<u8>, at: u64, target: u64) -> Option<()> {
    write_near_jump(out, at, target).or_else(|| write_veneer(out, at, target))
}

/// Appends `b`, which reaches 128 MiB.
pub fn write_near_jump(out: &mut Vec<u8>, at: u64, target: u64) -> Option<()> {
    write(out, 0x1400_0000, Encoding::Branch26, at, target)
}

fn write_veneer(out: &mut Vec<u8>, at: u64, target: u64) -> Option<()> {
    let start = out.len();
    for (i, (word, encoding)) in VENEER.into_iter().enumerate() {
        let written = match encoding {
            Some(encoding) => write(out, word, encoding, at + 4 * i as u64, target),
            None => {
                out.extend_from_slice(&word.to_le_bytes());
                Some(())
            }
        };
        if written.is_none() {
            out.truncate(start);
            return None;
        }
    }
    Some(())
}

/// Appends a conditional branch that will stand at `at`. One that does not reach (1 MiB; a test of one bit: 32 KiB) is
/// inverted, over a `b`. `None` if that does not reach either.
pub fn write_branch(out: &mut Vec<u8>, condition: Condition, at: u64, target: u64) -> Option<()> {
    let (word, encoding) = branch_on(condition);
    if write(out, word, encoding, at, target).is_some() {
        return Some(());
    }
    let start = out.len();
    let (word, encoding) = branch_on(condition.inverse());
    write(out, word, encoding, at, at + 8)?;
    let jump = write_near_jump(out, at + 4, target);
    if jump.is_none() {
        out.truncate(start);
    }
    jump
}

/// Appends `word` with its field set; nothing if that does not reach.
fn write(out: &mut Vec<u8>, word: u32, encoding: Encoding, at: u64, target: u64) -> Option<()> {
    let mut bytes = word.to_le_bytes();
    encoding.write(&mut bytes, at, target).ok()?;
    out.extend_from_slice(&bytes);
    Some(())
}
