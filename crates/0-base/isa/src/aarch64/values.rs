//! What registers hold, as far as addresses and jump tables go: the state at one place of a run of code, and what an
//! instruction makes of it.

use super::decode::bits;
use super::effects::{keeps_flags, written};
use crate::{Encoding, Operand, TableJump};

/// What a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A number that is not known, but that it is at most `max`. Where two registers have the same `id` they hold the same
    /// number, or (of numbers of 32 bits) the same low half.
    Other { id: u64, max: u64, is_sum: bool },
    /// The start of a page, a part of an address, and which `adrp` made it, if that is known.
    Page(u64, Option<u64>),
    /// A whole address.
    Address(u64),
    /// An entry of the table.
    Entry { table: u64, entry: u8, signed: bool, last: u64 },
    /// What an entry of a table leads to.
    Target(TableJump),
}

impl Value {
    fn max(self) -> u64 {
        match self {
            Self::Other { max, .. } => max,
            _ => u64::MAX,
        }
    }
}

/// The last comparison with a number: which value, and the number.
type Compared = Option<(u64, u64)>;

/// What all registers hold.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    registers: [Value; 31],
    compared: Compared,
}

/// Entries that no table has.
const MANY: u64 = 1 << 20;
/// Number of the stack pointer or of the register that is always zero.
const NONE: u32 = 31;

/// Ids of values: where they come from.
fn id(place: u64, register: usize, sort: u64) -> u64 {
    place << 8 | (register as u64) << 2 | sort
}
const DEFINED: u64 = 0;
const JOINED: u64 = 1;
const STALE: u64 = 2;
const UNKNOWN: u64 = 3;

/// What one instruction tells.
#[derive(Default)]
pub(super) struct Told {
    /// The whole address that its operand names, behind the place of the instruction with its page.
    pub whole: Option<(Option<u64>, u64)>,
}

impl State {
    /// Where nothing is known.
    pub fn unknown(place: u64) -> Self {
        let value =
            |register| Value::Other { id: id(place, register, UNKNOWN), max: u64::MAX, is_sum: false };
        Self { registers: std::array::from_fn(value), compared: None }
    }

    pub fn get(&self, register: u32) -> Value {
        let zero = Value::Other { id: u64::MAX, max: 0, is_sum: false };
        self.registers.get(register as usize).copied().unwrap_or(zero)
    }

    /// Takes over what `other` brings to the block `place`; whether that changed anything. From the `often`th change on,
    /// numbers may be of any size.
    pub fn join(&mut self, other: &Self, place: u64, often: bool) -> bool {
        let mut changed = false;
        for (register, (own, new)) in self.registers.iter_mut().zip(&other.registers).enumerate() {
            let joined = match (*own, *new) {
                (a, b) if a == b => a,
                (Value::Page(a, _), Value::Page(b, _)) if a == b => Value::Page(a, None),
                (Value::Other { id: a, max, is_sum }, Value::Other { id: b, max: other, is_sum: sum }) => {
                    let max = if often && other > max { u64::MAX } else { max.max(other) };
                    let id = if a == b { a } else { id(place, register, JOINED) };
                    Value::Other { id, max, is_sum: is_sum || sum }
                }
                (a, b) => {
                    let is_plain =
                        |v: &Value| matches!(v, Value::Other { is_sum: false, .. } | Value::Address(_));
                    let is_sum = ![a, b].iter().all(is_plain);
                    Value::Other { id: id(place, register, JOINED), max: u64::MAX, is_sum }
                }
            };
            changed |= joined != *own;
            *own = joined;
        }
        if self.compared != other.compared && self.compared.is_some() {
            self.compared = None;
            changed = true;
        }
        changed
    }

    /// The state where a branch on the flags by condition `code` goes, if `taken`, or else the one behind it.
    pub fn refine(&mut self, code: u32, taken: bool) {
        let Some((compared, number)) = self.compared else { return };
        let code = if taken { code } else { code ^ 1 };
        let bound = match code {
            // eq, ls
            0 | 9 => number,
            // lo
            3 => number.saturating_sub(1),
            _ => return,
        };
        for value in &mut self.registers {
            if let Value::Other { id, max, .. } = value
                && *id == compared
            {
                *max = bound.min(*max);
            }
        }
    }

    fn set(&mut self, register: u32, value: Value) {
        let Some(slot) = self.registers.get_mut(register as usize) else { return };
        *slot = value;
    }

    /// A new number that is not known.
    fn define(&mut self, register: u32, place: u64, max: u64, is_sum: bool) {
        if register == NONE {
            return;
        }
        let new = id(place, register as usize, DEFINED);
        // What this instruction made when it ran before is another number.
        for (i, value) in self.registers.iter_mut().enumerate() {
            if let Value::Other { id: old, .. } = value
                && *old == new
            {
                *old = id(place, i, STALE);
            }
        }
        if self.compared.is_some_and(|(compared, _)| compared == new) {
            self.compared = None;
        }
        self.set(register, Value::Other { id: new, max, is_sum });
    }

    /// Forgets registers.
    pub fn forget(&mut self, registers: u32, place: u64) {
        for register in (0..NONE).filter(|r| registers >> r & 1 == 1) {
            self.define(register, place, u64::MAX, false);
        }
    }

    pub fn forget_flags(&mut self) {
        self.compared = None;
    }

    /// Runs `word`, which stands at `place` and goes on behind itself.
    pub fn run(&mut self, word: u32, operand: Option<Operand>, place: u64) -> Told {
        let mut told = Told::default();
        let (rd, rn) = (bits(word, 0, 5), bits(word, 5, 5));
        let compared = self.compare(word);
        if let Some(operand) = operand {
            let base = operand.base.map(|base| self.get(u32::from(base)));
            if let Some(Value::Page(page, from)) = base {
                told.whole = Some((from, page.wrapping_add(operand.displacement as u64)));
            }
        }
        let value = self.result(word, operand, place, &told);
        match value {
            Some(Made::Value(value)) => self.set(rd, value),
            Some(Made::Number { max, is_sum }) => self.define(rd, place, max, is_sum),
            None => self.forget(written(word), place),
        }
        // An access that changes its base besides.
        if value.is_some() && written(word) >> rn & 1 == 1 && rn != rd {
            self.define(rn, place, u64::MAX, false);
        }
        match compared {
            Some(compared) => self.compared = compared,
            None if keeps_flags(word) => {}
            None => self.compared = None,
        }
        told
    }

    /// The comparison that `word` makes, if it sets the flags by one.
    fn compare(&self, word: u32) -> Option<Compared> {
        // subs with an immediate that is not shifted
        (word & 0x7fc0_0000 == 0x7100_0000).then_some(())?;
        let number = u64::from(bits(word, 10, 12));
        Some(match self.get(bits(word, 5, 5)) {
            Value::Other { id, .. } if bits(word, 5, 5) != NONE => Some((id, number)),
            _ => None,
        })
    }

    /// What `word` makes of its operands in the register of its lowest bits; `None`: anything.
    fn result(&self, word: u32, operand: Option<Operand>, place: u64, told: &Told) -> Option<Made> {
        let (rn, rm, is_wide) = (bits(word, 5, 5), bits(word, 16, 5), word >> 31 == 1);
        let number = |max| Some(Made::Number { max, is_sum: false });
        let sum = |max| Some(Made::Number { max, is_sum: true });
        if let Some(operand) = operand {
            match operand.field.encoding {
                Encoding::Page21 => {
                    return Some(Made::Value(Value::Page(operand.target(place + 4), Some(place))));
                }
                Encoding::Adr21 => return Some(Made::Value(Value::Address(operand.target(place + 4)))),
                _ => {}
            }
        }
        let low = bits(word, 10, 12);
        let shifted = if bits(word, 22, 1) == 1 { low << 12 } else { low };
        match word & 0x7f80_0000 {
            // add, sub with an immediate
            0x1100_0000 | 0x5100_0000 => {
                let is_sub = bits(word, 30, 1) == 1;
                return match (told.whole, self.get(rn)) {
                    _ if rn == NONE => number(u64::MAX),
                    (Some((_, whole)), _) => Some(Made::Value(Value::Address(whole))),
                    (_, value) if shifted == 0 && is_wide => Some(Made::Value(value)),
                    (_, Value::Address(a)) if is_wide => Some(Made::Value(Value::Address(if is_sub {
                        a.wrapping_sub(shifted.into())
                    } else {
                        a.wrapping_add(shifted.into())
                    }))),
                    (_, value) if !is_sub => sum(value.max().saturating_add(shifted.into())),
                    _ => sum(u64::MAX),
                };
            }
            // movz
            0x5280_0000 => {
                return number(u64::from(bits(word, 5, 16)) << (16 * bits(word, 21, 2)));
            }
            // ubfm: shifts right, zero extensions, bit fields
            0x5300_0000 => {
                let (from, last) = (bits(word, 16, 6), bits(word, 10, 6));
                return number(if last >= from { low_bits(last - from + 1) } else { u64::MAX });
            }
            // and with a run of low bits
            0x1200_0000 if bits(word, 16, 6) == 0 && (bits(word, 22, 1) == 1 || bits(word, 10, 6) < 32) => {
                return number(low_bits(bits(word, 10, 6) + 1));
            }
            _ => {}
        }
        // mov between registers
        if word & 0x7fe0_ffe0 == 0x2a00_03e0 {
            return match self.get(rm) {
                value if is_wide => Some(Made::Value(value)),
                Value::Other { id, max, is_sum } => {
                    Some(Made::Value(Value::Other { id, max: max.min(low_bits(32)), is_sum }))
                }
                entry @ Value::Entry { .. } => Some(Made::Value(entry)),
                _ => sum(low_bits(32)),
            };
        }
        self.sum_of_registers(word).or_else(|| self.loaded(word))
    }

    /// `add` of registers: the place that a table's entry leads to.
    fn sum_of_registers(&self, word: u32) -> Option<Made> {
        let (left, right) = (self.get(bits(word, 5, 5)), self.get(bits(word, 16, 5)));
        let extension = bits(word, 13, 3);
        let (shift, sign) = match word & 0xffe0_0000 {
            // Shifted left; of two, either may be the base.
            0x8b00_0000 => (bits(word, 10, 6), None),
            // Extended: uxtb to uxtx, sxtb to sxtx.
            0x8b20_0000 => (bits(word, 10, 3), Some((extension & 3, extension >= 4))),
            _ => return None,
        };
        let (base, entry) = match (left, right) {
            (Value::Entry { .. }, Value::Address(_)) if shift == 0 && sign.is_none() => (right, left),
            _ => (left, right),
        };
        let is_sum = Some(Made::Number { max: u64::MAX, is_sum: true });
        let (Value::Address(base), Value::Entry { table, entry, signed, last }) = (base, entry) else {
            return is_sum;
        };
        let signed = match sign {
            // An extension from the entry's own size decides; a wider one leaves it.
            Some((size, is_signed)) if entry == 1 << size => is_signed,
            Some((size, _)) if entry > 1 << size => return is_sum,
            _ => signed,
        };
        let count = (last < MANY).then(|| last + 1);
        let jump = TableJump { table, entry, signed, shift: shift as u8, base, count };
        Some(Made::Value(Value::Target(jump)))
    }

    /// Loads into general registers: entries of tables, and small numbers.
    fn loaded(&self, word: u32) -> Option<Made> {
        let (size, opcode) = (word >> 30, bits(word, 22, 2));
        let is_general = bits(word, 26, 1) == 0;
        let is_load = is_general && opcode != 0 && !(size == 3 && opcode >= 2);
        if word & 0x3a00_0000 != 0x3800_0000 || !is_load {
            return None;
        }
        let max = if opcode == 1 { low_bits(8 << size) } else { u64::MAX };
        let number = Some(Made::Number { max, is_sum: false });
        // By a register that is shifted by the entry's size.
        let by_register = word & 0x3b20_0c00 == 0x3820_0800;
        let is_scaled = bits(word, 12, 1) == 1 || size == 0;
        let Value::Address(table) = self.get(bits(word, 5, 5)) else {
            return if is_atomic(word) { None } else { number };
        };
        if !by_register || !is_scaled || size == 3 {
            return if is_atomic(word) { None } else { number };
        }
        let last = self.get(bits(word, 16, 5)).max();
        Some(Made::Value(Value::Entry { table, entry: 1 << size, signed: opcode >= 2, last }))
    }
}

/// An atomic access, or one with authentication, in the class of loads and stores by a register.
fn is_atomic(word: u32) -> bool {
    word & 0x3b20_0000 == 0x3820_0000 && bits(word, 10, 2) != 2
}

fn low_bits(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// What an instruction makes.
#[derive(Clone, Copy)]
enum Made {
    Value(Value),
    Number { max: u64, is_sum: bool },
}
