//! Jumps through a register that may hold the address of any of several tables.
//!
//! An entry that was read through the register, and what the register holds, make a place that the same table leads to, whichever that is, as long as neither
//! has changed since. So the sum must follow in the same cut.

use super::steps::{From, Step};
use super::values::Value;

/// An entry of one of several tables, and the register that it was read through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Read {
    entry: u8,
    base: u8,
    /// As of [`Value::Among`].
    pub tables: u64,
}

impl Read {
    /// What a step reads, in this state.
    pub fn of(state: &[Value], step: Step) -> Option<Self> {
        let Step::Narrow { to, from: From::Memory(memory), signed: true } = step else { return None };
        let registers = [memory.base, memory.index.filter(|_| memory.plain)].into_iter().flatten();
        let mut starts = registers.filter_map(|register| match state[usize::from(register)] {
            Value::Among(tables) => Some((register, tables)),
            Value::Address(_) | Value::Base(_) => Some((register, 0)),
            _ => None,
        });
        let (base, tables) = starts.next()?;
        let is_one = starts.next().is_none() && tables != 0 && memory.address == 0 && to != base;
        is_one.then_some(Self { entry: to, base, tables })
    }

    /// Where a step puts the sum of the entry and the address of its table, if it makes that.
    pub fn sum(self, step: Step) -> Option<u8> {
        let (to, parts) = match step {
            Step::Add { to, from: From::Register(from) } => (to, [Some(to), Some(from)]),
            Step::Address { to, memory } if memory.plain && memory.address == 0 => {
                (to, [memory.base, memory.index])
            }
            _ => return None,
        };
        let both = [Some(self.entry), Some(self.base)];
        (parts == both || parts == [both[1], both[0]]).then_some(to)
    }

    /// Whether a step surely changes neither register.
    pub fn outlives(self, step: Step) -> bool {
        match step {
            Step::Nothing | Step::Compare { .. } | Step::Store { .. } => true,
            Step::Copy { to, .. }
            | Step::Narrow { to, .. }
            | Step::Address { to, .. }
            | Step::Add { to, .. }
            | Step::Offset { to, .. } => to != self.entry && to != self.base,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afterlink_isa::judgement::Memory;

    const BASE: u8 = 3;
    const INDEX: u8 = 1;
    const ENTRY: u8 = 2;

    fn at(base: u8, address: i64) -> From {
        From::Memory(Memory { base: Some(base), index: Some(INDEX), plain: false, address })
    }

    fn state() -> [Value; 8] {
        let mut state = [Value::Other(0); 8];
        (state[usize::from(BASE)], state[4]) = (Value::Among(0b11), Value::Base(0x3000));
        state
    }

    fn read() -> Read {
        Read::of(&state(), Step::Narrow { to: ENTRY, from: at(BASE, 0), signed: true }).unwrap()
    }

    #[test]
    fn only_entries_with_a_sign_are_read_from_where_a_table_starts() {
        let read = |to, from, signed| Read::of(&state(), Step::Narrow { to, from, signed });
        assert_eq!(read(ENTRY, at(BASE, 0), true).unwrap().tables, 0b11);
        assert_eq!(read(INDEX, at(BASE, 0), true).unwrap().tables, 0b11);
        assert_eq!(read(ENTRY, at(BASE, 0), false), None, "without a sign");
        assert_eq!(read(ENTRY, at(BASE, 4), true), None, "inside of the table");
        assert_eq!(read(ENTRY, at(4, 0), true), None, "the one table");
        assert_eq!(read(BASE, at(BASE, 0), true), None, "over the address");
        let both = Memory { base: Some(BASE), index: Some(4), plain: true, address: 0 };
        assert_eq!(read(ENTRY, From::Memory(both), true), None, "two addresses");
    }

    #[test]
    fn the_sum_is_of_the_entry_and_the_register_it_was_read_through() {
        let add = |to, from| Step::Add { to, from: From::Register(from) };
        assert_eq!(read().sum(add(ENTRY, BASE)), Some(ENTRY));
        assert_eq!(read().sum(add(BASE, ENTRY)), Some(BASE));
        assert_eq!(read().sum(add(ENTRY, 4)), None);
        assert_eq!(read().sum(add(ENTRY, ENTRY)), None);
        let address = |index, plain, address| Step::Address {
            to: 7,
            memory: Memory { base: Some(BASE), index: Some(index), plain, address },
        };
        assert_eq!(read().sum(address(ENTRY, true, 0)), Some(7));
        assert_eq!(read().sum(address(ENTRY, false, 0)), None, "a multiple of the entry");
        assert_eq!(read().sum(address(ENTRY, true, 4)), None, "behind it");
        assert_eq!(read().sum(address(INDEX, true, 0)), None);
    }

    #[test]
    fn what_changes_one_of_them_ends_it() {
        let copy = |to| Step::Copy { to, from: From::Register(7) };
        assert!(read().outlives(copy(7)) && read().outlives(Step::Nothing));
        assert!(!read().outlives(copy(ENTRY)) && !read().outlives(copy(BASE)));
        let all = [Step::Pop(7), Step::Exchange(6, 7), Step::Call { through: None }, Step::Leave];
        assert!(all.into_iter().all(|step| !read().outlives(step)));
    }
}
