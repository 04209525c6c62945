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
    /// Anything that has only these traits.
    Other(u8),
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
    /// Where its tables start, ascending.
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
            Value::Unset | Value::Target(_) => 0,
            Value::Address(place) if place == self.entry => ENTRY,
            Value::Address(place) if self.holds(place) => LABEL,
            Value::Address(place) if self.is_code(place) => 0,
            Value::Base(_) => SUM | SEVERAL,
            Value::Address(_) | Value::Frame(_) | Value::Word(_) | Value::Entry(_) => SUM,
            Value::Other(traits) => traits,
        }
    }

    /// Whether a value is a label that an instruction of the function has made, and nothing else.
    pub fn is_made(&self, value: Value) -> bool {
        self.traits(value) == LABEL
    }

    /// What holds if either value may be there.
    pub fn join(&self, a: Value, b: Value) -> Value {
        match (a, b) {
            (Value::Unset, value) | (value, Value::Unset) => value,
            _ if a == b => a,
            (Value::Address(base) | Value::Base(base), other)
            | (other, Value::Address(base) | Value::Base(base))
                if self.may_be_base(base, other) =>
            {
                Value::Base(base)
            }
            // Invariant: what was a table's address once does not become one again, so that joining comes to an end.
            _ => {
                let several = [a, b].iter().any(|v| self.is_base(*v)).then_some(SEVERAL);
                Value::Other(self.traits(a) | self.traits(b) | several.unwrap_or(0))
            }
        }
    }

    fn is_base(&self, value: Value) -> bool {
        matches!(value, Value::Address(place) | Value::Base(place) if self.bases.binary_search(&place).is_ok())
    }

    /// Whether a register that holds `other` where control only seems to come from may be taken to hold the table at `base`.
    fn may_be_base(&self, base: u64, other: Value) -> bool {
        let is_same = other == Value::Address(base) || other == Value::Base(base);
        let is_another = !is_same && self.is_base(other);
        self.is_base(Value::Address(base))
            && !is_another
            && (is_same || self.traits(other) & (LABEL | ENTRY | SEVERAL) == 0)
    }
}
