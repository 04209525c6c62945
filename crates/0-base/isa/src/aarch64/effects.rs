//! Which general registers an instruction may change. Where the answer would need many cases it is a few registers too many,
//! never one too few.

use super::decode::bits;

/// Registers that a call may change: `x0` to `x18`, and the link register.
pub(super) const CLOBBERED_BY_CALLS: u32 = ((1 << 19) - 1) | (1 << 30);

/// One bit for each of `x0` to `x30` that `word`, which is no call, may change. Bit 31 means nothing.
pub(super) fn written(word: u32) -> u32 {
    let field = |from: u32| 1 << bits(word, from, 5);
    match bits(word, 25, 4) {
        // Data processing with an immediate.
        0b1000 | 0b1001 => field(0),
        0b1010 | 0b1011 => written_by_system(word),
        // Data processing with registers; conditional compares have no result.
        0b0101 | 0b1101 if word & 0x1fe0_0000 == 0x1a40_0000 => 0,
        0b0101 | 0b1101 => field(0),
        0b0100 | 0b0110 | 0b1100 | 0b1110 => written_by_access(word),
        // Floating point and vectors: conversions to and moves into general registers.
        0b0111 | 0b1111 => {
            let converts =
                word & 0x5f00_0000 == 0x1e00_0000 && (bits(word, 21, 1) == 0 || bits(word, 10, 6) == 0);
            let moves = word & 0x9fe0_8400 == 0x0e00_0400;
            if converts || moves { field(0) } else { 0 }
        }
        // Scalable vectors and matrices.
        _ => field(0) | field(5) | field(16),
    }
}

/// Of branches, exceptions, hints and system instructions.
fn written_by_system(word: u32) -> u32 {
    match word >> 24 {
        // The system may answer in the registers that calls may change.
        0xd4 => CLOBBERED_BY_CALLS,
        // Hints: pointer authentication works on the link register, or on `x16` and `x17`.
        0xd5 if word & 0x00ff_f01f == 0x0003_201f => 1 << 16 | 1 << 17 | 1 << 30,
        0xd5 => 1 << bits(word, 0, 5),
        _ => 0,
    }
}

/// Of loads and stores.
fn written_by_access(word: u32) -> u32 {
    let field = |from: u32| 1 << bits(word, from, 5);
    let is_vector = bits(word, 26, 1) == 1;
    let loaded = |registers: u32, loads: bool| if loads && !is_vector { registers } else { 0 };
    match word & 0x3b00_0000 {
        // Literals.
        0x1800_0000 if bits(word, 21, 1) == 0 || is_vector => loaded(field(0), true),
        // Pairs: no base is written without an offset from it before or behind.
        0x2800_0000 | 0x2900_0000 => {
            let base = if bits(word, 23, 1) == 1 { field(5) } else { 0 };
            base | loaded(field(0) | field(10), bits(word, 22, 1) == 1)
        }
        // Unsigned immediate.
        0x3900_0000 => loaded(field(0), bits(word, 22, 2) != 0),
        0x3800_0000 => {
            let loads = loaded(field(0), bits(word, 22, 2) != 0);
            match (bits(word, 21, 1), bits(word, 10, 2)) {
                // Unscaled, or as a program without privileges; register offset.
                (0, 0 | 2) | (1, 2) => loads,
                // Behind or before the access the base is changed.
                (0, _) => loads | field(5),
                // Atomics; of 64 bytes.
                (_, 0) if bits(word, 15, 1) == 1 => 0xff << bits(word, 0, 5) | field(16),
                (_, 0) => field(0) | field(16),
                // With authentication.
                _ => field(0) | field(5),
            }
        }
        // Structures of vectors.
        0x0800_0000 | 0x0900_0000 if is_vector => field(5),
        // Exclusive and ordered; compare-and-swap writes up to two registers.
        0x0800_0000 | 0x0900_0000 => field(0) | field(0) << 1 | field(16) | field(16) << 1 | field(10),
        _ => field(0) | field(5) | field(10) | field(16),
    }
}

/// Whether `word` leaves the flags alone for sure.
pub(super) fn keeps_flags(word: u32) -> bool {
    let sets = bits(word, 29, 1) == 1;
    match bits(word, 23, 6) {
        // adr, adrp; and, orr, eor (not ands); movn, movz, movk; bit fields; extr
        0b10_0000 | 0b10_0001 | 0b10_0101 | 0b10_0110 | 0b10_0111 => true,
        0b10_0100 => bits(word, 29, 2) != 3,
        // add, sub with an immediate
        0b10_0010 => !sets,
        _ => match bits(word, 24, 5) {
            // and, orr, eor of registers (not ands, bics); add, sub of registers
            0b0_1010 => bits(word, 29, 2) != 3,
            0b0_1011 => !sets,
            // Hints.
            0b1_0101 => word & 0xffff_f01f == 0xd503_201f,
            _ => word & 0x0a00_0000 == 0x0800_0000,
        },
    }
}
