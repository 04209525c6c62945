//! A word to [`Inst`].

use super::WORD;
use crate::{Access, Condition, Encoding, Field, Flow, Inst, Operand};

/// `nop`, which is hint 0; other hints (`bti`, `paciasp`, `yield`, …) mean something.
pub(super) const NOP: u32 = 0xd503_201f;
/// The link register, from which functions return.
const LINK: u32 = 30;
/// Conditions `al` and `nv` of `b.cond`: always.
const ALWAYS: u32 = 14;

/// Decodes the instruction at the start of `bytes`; `None` if it is none or cut off.
pub fn decode(bytes: &[u8]) -> Option<Inst> {
    let word = u32::from_le_bytes(*bytes.first_chunk()?);
    let (flow, encoding) = match direct(word) {
        Some((flow, encoding)) => (flow, Some(encoding)),
        None => (indirect(word)?, None),
    };
    let operand = if flow == Flow::Next { operand(word) } else { None };
    let flow_field = encoding.map(|encoding| Field { at: 0, encoding });
    Some(Inst { len: WORD as u8, flow, flow_field, operand, nop: word == NOP })
}

/// `count` bits from bit `from` on.
pub(super) fn bits(word: u32, from: u32, count: u32) -> u32 {
    word >> from & ((1 << count) - 1)
}

/// Jumps, branches and calls whose target stands in the word.
fn direct(word: u32) -> Option<(Flow, Encoding)> {
    let sort = word & 0x7e00_0000;
    let displacement = |encoding: Encoding| {
        // Fields count from the instruction, displacements from its end.
        let from_start = encoding.read(&word.to_le_bytes(), 0).expect("a word");
        from_start.wrapping_sub(WORD) as i64
    };
    let branch =
        |condition, encoding| Some((Flow::Branch(Condition(condition), displacement(encoding)), encoding));
    let (wide, register, inverse) = (word >> 31, bits(word, 0, 5), bits(word, 24, 1));
    match sort {
        _ if word >> 26 == 0b00_0101 => {
            Some((Flow::Jump(displacement(Encoding::Branch26)), Encoding::Branch26))
        }
        _ if word >> 26 == 0b10_0101 => {
            Some((Flow::Call(displacement(Encoding::Branch26)), Encoding::Branch26))
        }
        // b.cond, bc.cond
        _ if word >> 24 == 0x54 && bits(word, 0, 4) >= ALWAYS => {
            Some((Flow::Jump(displacement(Encoding::Branch19)), Encoding::Branch19))
        }
        _ if word >> 24 == 0x54 => branch(bits(word, 0, 5) as u16, Encoding::Branch19),
        // cbz, cbnz
        0x3400_0000 => branch((ON_REGISTER | wide << 6 | register << 1 | inverse) as u16, Encoding::Branch19),
        // tbz, tbnz
        0x3600_0000 => {
            let bit = wide << 5 | bits(word, 19, 5);
            branch((ON_BIT | bit << 6 | register << 1 | inverse) as u16, Encoding::Branch14)
        }
        _ => None,
    }
}

/// A [`Condition`] that is the zero test of a register: behind it width, register, and whether it is inverted.
const ON_REGISTER: u32 = 1 << 14;
/// A [`Condition`] that is the zero test of a bit: behind it the bit's number, the register, and whether it is inverted.
const ON_BIT: u32 = 2 << 14;

/// The branch that tests `condition`, to itself, and how its field is encoded.
pub(super) fn branch_on(condition: Condition) -> (u32, Encoding) {
    let bits16 = u32::from(condition.0);
    let (register, inverse) = (bits(bits16, 1, 5), bits16 & 1);
    match bits16 & 3 << 14 {
        0 => (0x5400_0000 | bits(bits16, 0, 5), Encoding::Branch19),
        ON_REGISTER => {
            (0x3400_0000 | bits(bits16, 6, 1) << 31 | inverse << 24 | register, Encoding::Branch19)
        }
        _ => {
            let bit = bits(bits16, 6, 6);
            let bit = (bit >> 5) << 31 | (bit & 31) << 19;
            (0x3600_0000 | bit | inverse << 24 | register, Encoding::Branch14)
        }
    }
}

/// What every other word does to control; `None` if it is no instruction.
fn indirect(word: u32) -> Option<Flow> {
    match word >> 24 {
        0xd6 | 0xd7 => return by_register(word),
        0xd4 => return exception(word),
        // udf
        0 if word < 1 << 16 => return Some(Flow::Fault),
        // Compare and branch (`cbgt`, …), which no machine has yet.
        0x74 | 0x75 | 0xf4 | 0xf5 => return None,
        _ => {}
    }
    disarm64::decoder::decode(word).map(|_| Flow::Next)
}

/// Jumps, calls and returns through a register, with pointer authentication or without.
fn by_register(word: u32) -> Option<Flow> {
    let (register, last) = (bits(word, 5, 5), bits(word, 0, 5));
    if bits(word, 16, 5) != 31 {
        return None;
    }
    // Plain, or by key A or B with a zero or an own modifier.
    let is_plain = bits(word, 10, 6) == 0 && last == 0;
    let is_signed = bits(word, 11, 5) == 1 && last == 31;
    let has_modifier = bits(word, 11, 5) == 1;
    match bits(word, 21, 4) {
        0 if is_plain || is_signed => Some(Flow::IndirectJump),
        8 if has_modifier => Some(Flow::IndirectJump),
        1 if is_plain || is_signed => Some(Flow::IndirectCall),
        9 if has_modifier => Some(Flow::IndirectCall),
        // Only to the link register is it sure to be a return.
        2 if is_plain => Some(if register == LINK { Flow::Return } else { Flow::IndirectJump }),
        2 if is_signed && register == 31 => Some(Flow::Return),
        // eret, drps: not for programs.
        4 if register == 31 && (is_plain || is_signed) => Some(Flow::Fault),
        5 if register == 31 && is_plain => Some(Flow::Fault),
        _ => None,
    }
}

/// `svc` and its kin come back. Behind `brk` a handler may go on.
fn exception(word: u32) -> Option<Flow> {
    match (bits(word, 21, 3), bits(word, 0, 5)) {
        // svc, hvc, smc
        (0, 1..=3) => Some(Flow::Next),
        // brk, hlt
        (1 | 2, 0) => Some(Flow::Fault),
        // tcancel
        (3, 0) => Some(Flow::Next),
        // dcps1 to dcps3: not for programs
        (5, 1..=3) => Some(Flow::Fault),
        _ => None,
    }
}

/// The operand that depends on a place, or may.
fn operand(word: u32) -> Option<Operand> {
    let bytes = word.to_le_bytes();
    let relative = |encoding: Encoding, from: u64, access| {
        let displacement = encoding.read(&bytes, 0).expect("a word").wrapping_sub(from) as i64;
        Some(Operand { field: Field { at: 0, encoding }, displacement, access, base: None })
    };
    match word & 0x9f00_0000 {
        0x1000_0000 => return relative(Encoding::Adr21, WORD, Access::Address),
        0x9000_0000 => return relative(Encoding::Page21, 0, Access::Address),
        _ => {}
    }
    let low = |scale: u32, access| {
        let encoding = Encoding::Low12 { scale: scale as u8 };
        let displacement = encoding.read(&bytes, 0).expect("a word") as i64;
        let base = Some(bits(word, 5, 5) as u8);
        Some(Operand { field: Field { at: 0, encoding }, displacement, access, base })
    };
    let (size, is_vector, opcode) = (word >> 30, bits(word, 26, 1) == 1, bits(word, 22, 2));
    match word & 0x3b00_0000 {
        // ldr, ldrsw, prfm (literal)
        0x1800_0000 => relative(Encoding::Branch19, WORD, Access::Load),
        // ldr, str, prfm (unsigned immediate)
        0x3900_0000 => {
            let scale = if is_vector && opcode >= 2 { 4 } else { size };
            let stores = opcode == 0 || is_vector && opcode == 2;
            low(scale, if stores { Access::Store } else { Access::Load })
        }
        // add (immediate), 64-bit and not shifted
        _ if word & 0xffc0_0000 == 0x9100_0000 => low(0, Access::Address),
        _ => None,
    }
}
