//! The names of a profile, each stored once; records hold a [`NameId`].
//!
//! While a profile is built, [`NameIndex`] finds a name's id by hashing (with a key that differs from run to run,
//! so that no file can be made to collide; the hash decides nothing that is seen). A finished [`NameTable`] is
//! sorted, so an id's order is the name's order and a name is found by binary search.

use afterlink_core::{define_index, index::Id};
use std::hash::{BuildHasher, RandomState};

define_index!(
    /// A name in a [`NameTable`].
    NameId,
    "name"
);

/// How many names a profile can hold: a [`Location`](crate::Location) gives two bits of an id away.
pub(crate) const MAX_NAMES: usize = 1 << 30;

/// Byte strings in one allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameTable {
    bytes: Vec<u8>,
    /// Where each name ends in `bytes`; it starts where the one before ends.
    ends: Vec<usize>,
}

impl NameTable {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The name, as the symbol table has it: not escaped, and not always UTF-8.
    #[inline]
    pub fn get(&self, id: NameId) -> &[u8] {
        let i = id.index();
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start..self.ends[i]]
    }

    /// All names, by ascending id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (NameId, &[u8])> {
        (0..self.len()).map(|i| (NameId::from_index(i), self.get(NameId::from_index(i))))
    }

    /// Finds `name` by binary search: only a finished profile's table is sorted.
    pub(crate) fn find_sorted(&self, name: &[u8]) -> Option<NameId> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(NameId::from_index(middle)).cmp(name) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(NameId::from_index(middle)),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    fn push(&mut self, name: &[u8]) -> NameId {
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len());
        NameId::from_index(self.len() - 1)
    }

    /// The same names in ascending order, and for each old id the new one.
    pub(crate) fn into_sorted(self) -> (Self, Vec<NameId>) {
        let mut order: Vec<NameId> = (0..self.len()).map(NameId::from_index).collect();
        if order.is_sorted_by_key(|&id| self.get(id)) {
            return (self, order);
        }
        order.sort_unstable_by_key(|&id| self.get(id));
        let mut sorted =
            Self { bytes: Vec::with_capacity(self.bytes.len()), ends: Vec::with_capacity(self.ends.len()) };
        let mut new_ids = vec![NameId(0); self.len()];
        for id in order {
            new_ids[id.index()] = sorted.push(self.get(id));
        }
        (sorted, new_ids)
    }
}

/// A table that grows, with a hash index into it.
#[derive(Debug, Default)]
pub(crate) struct NameIndex {
    table: NameTable,
    /// Open addressing with linear probing, a power of two long and at most half full.
    slots: Vec<Slot>,
    hasher: RandomState,
}

/// A place in the hash index. The hash is kept so that other names' bytes are not looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    hash: u32,
    /// An id plus one, or 0 in a free slot.
    id: u32,
}

impl NameIndex {
    pub(crate) fn table(&self) -> &NameTable {
        &self.table
    }

    pub(crate) fn into_table(self) -> NameTable {
        self.table
    }

    /// The id of `name`, which is added if it is new; `None` when the table is full.
    pub(crate) fn intern(&mut self, name: &[u8]) -> Option<NameId> {
        if self.slots.len() < (self.table.len() + 1) * 2 {
            self.grow();
        }
        let hash = self.hasher.hash_one(name) as u32;
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at].id != 0 {
            let slot = self.slots[at];
            if slot.hash == hash && self.table.get(NameId(slot.id - 1)) == name {
                return Some(NameId(slot.id - 1));
            }
            at = (at + 1) & mask;
        }
        if self.table.len() >= MAX_NAMES {
            return None;
        }
        let id = self.table.push(name);
        self.slots[at] = Slot { hash, id: id.0 + 1 };
        Some(id)
    }

    fn grow(&mut self) {
        let length = (self.slots.len() * 2).max(64);
        let mut slots = vec![Slot::default(); length];
        for slot in self.slots.iter().filter(|slot| slot.id != 0) {
            let mut at = slot.hash as usize & (length - 1);
            while slots[at].id != 0 {
                at = (at + 1) & (length - 1);
            }
            slots[at] = *slot;
        }
        self.slots = slots;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn interning_agrees_with_a_set(names in proptest::collection::vec("[a-c]{0,3}", 0..200)) {
            let mut index = NameIndex::default();
            let ids: Vec<NameId> = names.iter().map(|n| index.intern(n.as_bytes()).unwrap()).collect();
            let distinct: BTreeSet<&String> = names.iter().collect();
            prop_assert_eq!(index.table().len(), distinct.len());
            let (table, new_ids) = index.into_table().into_sorted();
            prop_assert!(table.iter().map(|(_, n)| n).eq(distinct.iter().map(|n| n.as_bytes())));
            for (name, id) in names.iter().zip(ids) {
                prop_assert_eq!(table.get(new_ids[id.index()]), name.as_bytes());
                prop_assert_eq!(table.find_sorted(name.as_bytes()), Some(new_ids[id.index()]));
            }
            prop_assert_eq!(table.find_sorted(b"d"), None);
        }
    }
}
