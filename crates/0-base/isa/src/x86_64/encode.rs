//! The branches that afterlink writes itself. Displacements count from the end of the instruction.

use crate::Condition;

/// Size of `jmp` with a one-byte displacement.
pub const JUMP_SHORT: u64 = 2;
/// Size of `jmp` with a four-byte displacement.
pub const JUMP_LONG: u64 = 5;
/// Size of a conditional jump with a one-byte displacement.
pub const BRANCH_SHORT: u64 = 2;
/// Size of a conditional jump with a four-byte displacement.
pub const BRANCH_LONG: u64 = 6;
/// Size of what [`write_short_branch`] writes around a `jrcxz` or `loop` of `len` bytes, without `len`.
pub const SHORT_BRANCH: u64 = JUMP_SHORT + JUMP_LONG;

/// Appends `jmp`; a one-byte displacement must fit if `short`.
pub fn write_jump(out: &mut Vec<u8>, short: bool, displacement: i32) {
    if short {
        out.extend_from_slice(&[0xeb, short_displacement(displacement)]);
    } else {
        out.push(0xe9);
        out.extend_from_slice(&displacement.to_le_bytes());
    }
}

/// The nops of one byte to four that Intel's manual recommends (Software Developer's Manual, volume 2, NOP).
pub const NOPS: [&[u8]; 4] = [&[0x90], &[0x66, 0x90], &[0x0f, 0x1f, 0x00], &[0x0f, 0x1f, 0x40, 0x00]];

/// Appends a conditional jump; a one-byte displacement must fit if `short`.
pub fn write_branch(out: &mut Vec<u8>, condition: Condition, short: bool, displacement: i32) {
    if short {
        out.extend_from_slice(&[0x70 | condition.0 as u8, short_displacement(displacement)]);
    } else {
        out.extend_from_slice(&[0x0f, 0x80 | condition.0 as u8]);
        out.extend_from_slice(&displacement.to_le_bytes());
    }
}

/// Appends a branch that has only a short form (`jrcxz`, `loop`; its bytes without the displacement are
/// `opcode`) so that it reaches any distance: over a jump that skips a long jump to the target.
/// `displacement` counts from the end of everything written.
pub fn write_short_branch(out: &mut Vec<u8>, opcode: &[u8], displacement: i32) {
    out.extend_from_slice(opcode);
    out.push(JUMP_SHORT as u8);
    write_jump(out, true, JUMP_LONG as i32);
    write_jump(out, false, displacement);
}

fn short_displacement(displacement: i32) -> u8 {
    // Invariant: the caller has chosen the short form because the displacement fits.
    i8::try_from(displacement).expect("a short branch reaches its target") as u8
}
