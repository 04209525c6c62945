//! The profile itself: records of counts over [`Location`]s.
//!
//! A finished [`Profile`] is canonical, so that equal profiles are equal values and are written as equal bytes:
//! names ascend, records ascend by location, and no two records are about the same thing.

use crate::name_table::{NameId, NameTable};
use serde::Serialize;

/// The largest count that fdata can hold: llvm-bolt reads counts as signed 64-bit numbers.
pub const MAX_COUNT: u64 = i64::MAX as u64;

/// What the records of a profile count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Branches taken, from one location to another: instrumentation, or samples with a branch stack (LBR).
    #[default]
    Branches,
    /// Samples at one location (`no_lbr`).
    Samples,
}

/// What the name of a location is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum LocationKind {
    /// Outside of the program: another file's name or `[unknown]`.
    Foreign = 0,
    /// A symbol of the program.
    Symbol = 1,
    /// A local symbol with its file's name; only in profiles of old tools.
    FileSymbol = 2,
}

impl LocationKind {
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        [Self::Foreign, Self::Symbol, Self::FileSymbol].get(usize::from(number)).copied()
    }

    /// Whether the location lies in the program.
    pub fn is_symbol(self) -> bool {
        self != Self::Foreign
    }
}

/// A place in code: a name and an offset. Eight bytes, as there are millions of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The name's id, shifted by two, and the kind.
    name_and_kind: u32,
    offset: u32,
}

impl Location {
    /// `offset` is in bytes from the start of the symbol.
    #[inline]
    pub fn new(kind: LocationKind, name: NameId, offset: u32) -> Self {
        // Invariant: a NameIndex gives no id of 30 bits or more.
        Self { name_and_kind: name.0 << 2 | kind as u32, offset }
    }

    #[inline]
    pub fn name(self) -> NameId {
        NameId(self.name_and_kind >> 2)
    }

    #[inline]
    pub fn kind(self) -> LocationKind {
        match self.name_and_kind & 3 {
            0 => LocationKind::Foreign,
            1 => LocationKind::Symbol,
            _ => LocationKind::FileSymbol,
        }
    }

    /// Bytes from the start of the symbol.
    #[inline]
    pub fn offset(self) -> u32 {
        self.offset
    }

    pub fn is_symbol(self) -> bool {
        self.kind().is_symbol()
    }

    /// The symbol's name, if the location lies in the program.
    pub fn symbol(self) -> Option<NameId> {
        self.is_symbol().then(|| self.name())
    }

    /// A number with the order of locations.
    #[inline]
    pub(crate) fn key(self) -> u64 {
        u64::from(self.name_and_kind) << 32 | u64::from(self.offset)
    }

    pub(crate) fn renamed(self, new_ids: &[NameId]) -> Self {
        Self::new(self.kind(), new_ids[self.name().0 as usize], self.offset)
    }
}

impl std::fmt::Debug for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}+{:x}", self.kind() as u8, self.name(), self.offset)
    }
}

/// A place in data: a name and an offset, or an address where the name is no symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataLocation {
    pub name: NameId,
    pub kind: LocationKind,
    pub offset: u64,
}

/// A branch or a call, or falling through from the last instruction of a block into the next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchRecord {
    /// The branch instruction.
    pub from: Location,
    pub to: Location,
    /// How many of `count` were mispredicted; 0 where that was not measured.
    pub mispredicts: u64,
    pub count: u64,
}

/// Samples at one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleRecord {
    pub at: Location,
    pub count: u64,
}

/// Accesses to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRecord {
    /// The instruction.
    pub at: Location,
    pub data: DataLocation,
    pub count: u64,
}

/// Counts by function name and offset. Made by [`fdata::read`](crate::fdata::read) or by a
/// [`ProfileBuilder`](crate::ProfileBuilder).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    pub(crate) kind: Kind,
    pub(crate) bolted: bool,
    pub(crate) events: Vec<Box<[u8]>>,
    pub(crate) names: NameTable,
    pub(crate) branches: Vec<BranchRecord>,
    pub(crate) samples: Vec<SampleRecord>,
    pub(crate) memory: Vec<MemoryRecord>,
}

impl Profile {
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether it was taken on a program that BOLT had already rewritten. Its locations are those of that
    /// program's input, but where BOLT had added a branch, `from` is the start of the block.
    pub fn bolted(&self) -> bool {
        self.bolted
    }

    /// The events that were sampled (`cycles`, …), ascending; only in a profile of samples.
    pub fn events(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.events.iter().map(|event| &**event)
    }

    /// The names that the records hold, ascending.
    pub fn names(&self) -> &NameTable {
        &self.names
    }

    pub fn name(&self, id: NameId) -> &[u8] {
        self.names.get(id)
    }

    pub fn find_name(&self, name: &[u8]) -> Option<NameId> {
        self.names.find_sorted(name)
    }

    /// Ascending by `from`, then `to`; empty in a profile of samples.
    pub fn branches(&self) -> &[BranchRecord] {
        &self.branches
    }

    /// The branches that leave an instruction of `name`.
    pub fn branches_from(&self, name: NameId) -> &[BranchRecord] {
        let start = self.branches.partition_point(|b| b.from.name() < name);
        let rest = &self.branches[start..];
        &rest[..rest.partition_point(|b| b.from.name() == name)]
    }

    /// Ascending by location; empty in a profile of branches.
    pub fn samples(&self) -> &[SampleRecord] {
        &self.samples
    }

    /// The samples in `name`.
    pub fn samples_in(&self, name: NameId) -> &[SampleRecord] {
        let start = self.samples.partition_point(|s| s.at.name() < name);
        let rest = &self.samples[start..];
        &rest[..rest.partition_point(|s| s.at.name() == name)]
    }

    /// Ascending by location of the instruction, then of the data.
    pub fn memory(&self) -> &[MemoryRecord] {
        &self.memory
    }

    /// Whether there is no record at all.
    pub fn is_empty(&self) -> bool {
        self.branches.is_empty() && self.samples.is_empty() && self.memory.is_empty()
    }
}
