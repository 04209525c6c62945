//! What a register or a word of the stack frame may hold, as far as it matters to where a jump leads.

use crate::input::ranges::holds;

/// It may be the address of a place inside the function.
pub(super) const LABEL: u8 = 1;
/// It may be the function's own address.
pub(super) const ENTRY: u8 = 2;
/// It may be the result of arithmetic, or no address at all.
pub(super) const SUM: u8 = 4;
/// It may have come from other code, as an argument or a result.
pub(super) const GIVEN: u8 = 8;
/// It may have come from memory.
const LOADED: u8 = 16;
/// It may be several things, of which one is the address of a table.
const SEVERAL: u8 = 32;
/// It may be a place that a table's entry leads to.
pub(super) const TARGET: u8 = 64;
/// What may be the address of a table and may be something else: of that it is no longer known what it is.
const TABLE_AMONG: u8 = SEVERAL | SUM | GIVEN | LOADED | TARGET;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Value {
    /// No control has come here yet.
    #[default]
    Unset,
    /// The stack pointer at the function's entry plus this.
    Frame(i64),
    /// This address.
    Address(u64),
    /// Four bytes of the table at this address, filled up with zeroes.
    Word(u64),
    /// The same with its sign.
    Entry(u64),
    /// An entry of the table at this address with the address added.
    Target(u64),
    /// The address of a table of this function, or, where control only seems to come from behind a call that does not
    /// return, anything but a label. No table's entry is added to anything but the table's address, so what is done with such
    /// an address tells that it is one.
    Base(u64),
    /// The same of several tables: a bit for each, by its place in [`Own::bases`].
    Among(u64),
    /// An entry of one of these with that table's address added.
    TargetAmong(u64),
    /// Anything that has only these traits.
    Other(u8),
}

impl Value {
    /// Whether it has come from memory or from other code as it is, and nowhere else.
    pub fn is_from_others(self) -> bool {
        matches!(self, Self::Other(traits) if traits & !(GIVEN | LOADED) == 0)
    }
}

/// A pointer that something stored.
pub(super) const STORED: Value = Value::Other(LOADED);

/// Which addresses are the function's own.
pub(super) struct Own {
    pub entry: u64,
    /// Ascending.
    pub ranges: Vec<(u64, u64)>,
    /// All sections of code.
    pub code: Vec<(u64, u64)>,
    /// Where its tables start, outside of it, ascending.
    pub bases: Vec<u64>,
}

impl Own {
    pub fn holds(&self, address: u64) -> bool {
        holds(&self.ranges, address)
    }

    pub fn is_label(&self, address: u64) -> bool {
        address != self.entry && self.holds(address)
    }

    pub fn is_code(&self, address: u64) -> bool {
        holds(&self.code, address)
    }

    pub fn traits(&self, value: Value) -> u8 {
        match value {
            Value::Unset => 0,
            Value::Target(_) | Value::TargetAmong(_) => TARGET,
            Value::Address(place) if place == self.entry => ENTRY,
            Value::Address(place) if self.holds(place) => LABEL,
            Value::Address(place) if self.is_code(place) => 0,
            Value::Base(_) | Value::Among(_) => TABLE_AMONG,
            Value::Address(_) | Value::Frame(_) | Value::Word(_) | Value::Entry(_) => SUM,
            Value::Other(traits) => traits,
        }
    }

    /// Whether a value is a label that an instruction of the function has made, and nothing else.
    pub fn is_made(&self, value: Value) -> bool {
        self.traits(value) == LABEL
    }

    /// What holds if either value may be there. Of any number of values the same comes out in whichever order, and however often each
    /// is joined in: what was joined in once adds nothing any more.
    pub fn join(&self, a: Value, b: Value) -> Value {
        match (a, b) {
            (Value::Unset, value) | (value, Value::Unset) => value,
            _ if a == b => a,
            _ if let (Some(some), Some(others)) = (self.tables_of(a), self.tables_of(b))
                && some != others =>
            {
                Value::Among(some | others)
            }
            (Value::Among(_), other) | (other, Value::Among(_)) if self.may_be_address(other) => {
                if a == other { b } else { a }
            }
            (Value::Address(base) | Value::Base(base), other)
            | (other, Value::Address(base) | Value::Base(base))
                if self.may_be_base(base, other) =>
            {
                Value::Base(base)
            }
            // Invariant: what was a table's address once does not become one again, so that joining comes to an end.
            _ => {
                let several = [a, b].iter().any(|v| self.is_base(*v)).then_some(TABLE_AMONG);
                Value::Other(self.traits(a) | self.traits(b) | several.unwrap_or(0))
            }
        }
    }

    /// Joins `new` into what is known of a place, if anything is; says whether that has become more.
    pub fn join_states(&self, old: &mut Option<Box<[Value]>>, new: &[Value]) -> bool {
        let Some(old) = old else {
            *old = Some(new.into());
            return true;
        };
        let mut is_more = false;
        for (old, &new) in old.iter_mut().zip(new) {
            if *old != new {
                let joined = self.join(*old, new);
                is_more |= joined != *old;
                *old = joined;
            }
        }
        is_more
    }

    /// The tables of which a value may be the address, a bit for each, if it is one. Only the first 64 tables are told apart.
    fn tables_of(&self, value: Value) -> Option<u64> {
        match value {
            Value::Address(place) | Value::Base(place) => {
                let table = self.bases.binary_search(&place).ok()?;
                1u64.checked_shl(table as u32)
            }
            Value::Among(tables) => Some(tables),
            _ => None,
        }
    }

    /// Where tables start, of those with a bit.
    pub fn tables(&self, bits: u64) -> impl Iterator<Item = u64> {
        self.bases
            .iter()
            .enumerate()
            .filter(move |(i, _)| *i < 64 && bits >> i & 1 == 1)
            .map(|(_, &base)| base)
    }

    fn is_base(&self, value: Value) -> bool {
        match value {
            Value::Address(place) | Value::Base(place) => self.bases.binary_search(&place).is_ok(),
            Value::Among(_) => true,
            _ => false,
        }
    }

    /// Whether a register that holds `other` where control only seems to come from may be taken to hold the table at `base`.
    fn may_be_base(&self, base: u64, other: Value) -> bool {
        let is_same = other == Value::Address(base) || other == Value::Base(base);
        self.is_base(Value::Address(base)) && (is_same || self.may_be_address(other))
    }

    /// Whether a register that holds this, which is no table's address, may be taken to hold one.
    fn may_be_address(&self, value: Value) -> bool {
        !self.is_base(value) && self.traits(value) & (LABEL | ENTRY | SEVERAL) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a function with many tables.
    fn own() -> Own {
        let (ranges, code) = (vec![(0x1000, 0x1100)], vec![(0x1000, 0x2000)]);
        Own { entry: 0x1000, ranges, code, bases: (0x3000..0x3000 + 70 * 16).step_by(16).collect() }
    }

    /// All sorts of values, two of each.
    fn values() -> Vec<Value> {
        let addresses =
            [0x1000, 0x1010, 0x1020, 0x1800, 0x1900, 0x3000, 0x3010, 0x3020, 0x3440, 0x3450, 0x5000, 0x6000];
        let words = [0x3000, 0x3010, 0x3440].into_iter();
        let of_tables =
            words.flat_map(|t| [Value::Word(t), Value::Entry(t), Value::Target(t), Value::Base(t)]);
        let several =
            [Value::Among(0b11), Value::Among(0b101), Value::Among(0b110), Value::TargetAmong(0b11)];
        let addresses = addresses.into_iter().map(Value::Address);
        let others = (0..128).map(Value::Other);
        let first = [Value::Unset, Value::Frame(0), Value::Frame(8)];
        first.into_iter().chain(addresses).chain(of_tables).chain(several).chain(others).collect()
    }

    #[test]
    fn joining_does_not_ask_for_the_order() {
        let (own, values) = (own(), values());
        for &a in &values {
            assert_eq!(own.join(a, a), a);
            for &b in &values {
                let both = own.join(a, b);
                assert_eq!(both, own.join(b, a), "{a:?} {b:?}");
                assert_eq!(own.join(both, b), both, "{a:?} {b:?}");
                for &c in &values {
                    assert_eq!(own.join(both, c), own.join(a, own.join(b, c)), "{a:?} {b:?} {c:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_joined_in_is_not_forgotten() {
        let (own, values) = (own(), values());
        for &a in &values {
            for &b in &values {
                let both = own.join(a, b);
                let is_there = |v: Value| v == both || own.traits(v) & !own.traits(both) == 0;
                assert!(is_there(a) && is_there(b), "{a:?} {b:?} {both:?}");
            }
        }
    }
}
