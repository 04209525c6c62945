//! The order in which the program's pieces are written, and where to. Order is kept apart from contents: laying out never
//! touches a block.

use crate::{BlockId, DataId, FuncId, Program};
use afterlink_core::limits::{CACHE_LINE, ENTRY_ALIGNMENT, SECTION_ALIGNMENT};
use afterlink_core::{IdVec, define_index};

define_index!(
    /// Index of a new section of code. Nothing depends on which sections there are; [`SectionId::HOT`] and
    /// [`SectionId::COLD`] name the two of [`Placement::default`].
    SectionId,
    "section"
);

impl SectionId {
    pub const HOT: Self = Self(0);
    pub const COLD: Self = Self(1);
}

/// A new section of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSection {
    pub name: String,
    /// A power of two, up to 2 MiB.
    pub alignment: u64,
    /// Fragments without their function's entry are named `function.suffix`.
    pub suffix: String,
}

/// A new section of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewData {
    pub name: String,
    /// A power of two, up to 2 MiB.
    pub alignment: u64,
    pub writable: bool,
    /// Jump tables that are written into it are zeros here ([`JumpTable::place`](crate::JumpTable::place)).
    pub bytes: Vec<u8>,
}

/// A run of blocks of one function that are written one behind the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    pub function: FuncId,
    pub section: SectionId,
    pub blocks: Vec<BlockId>,
    /// Alignment of the start, a power of two.
    pub alignment: u32,
    /// Bytes to leave free before the fragment, on top of what its alignment needs.
    pub padding: u32,
    /// Whether control may run on from its end into the next fragment, where its last jump leads there: then none is written, if
    /// alignment lets the two stand side by side.
    pub runs_on: bool,
    /// For each block, at which byte of a cache line it is to start, counted from the fragment's start, if bytes are to be left free in front of
    /// it for that, where control does not go on; nothing if that is so of none.
    pub places: Vec<Option<u8>>,
}

/// Bytes from `from` to the next byte at `place` of a cache line.
pub fn to_place(from: u64, place: u64) -> u64 {
    (place % CACHE_LINE + CACHE_LINE - from % CACHE_LINE) % CACHE_LINE
}

impl Fragment {
    /// These blocks, packed.
    pub fn packed(function: FuncId, section: SectionId, blocks: Vec<BlockId>) -> Self {
        Self { function, section, blocks, alignment: 1, padding: 0, runs_on: false, places: Vec::new() }
    }

    /// Whether it starts with the function's entry.
    pub fn starts_function(&self) -> bool {
        self.blocks.first() == Some(&BlockId(0))
    }

    /// What its start is a multiple of.
    pub fn alignment_in(&self, program: &Program) -> u64 {
        let own = || program.functions[self.function].alignment.max(ENTRY_ALIGNMENT);
        let least = if self.starts_function() { own() } else { 1 };
        u64::from(self.alignment).max(least)
    }

    /// Whether nothing comes between it and the fragment behind it but what aligns that one, and how much that is hangs on no address.
    pub fn stands_beside(&self, next: &Self, program: &Program) -> bool {
        next.section == self.section
            && next.gap_before(program) == 0
            && next.alignment_in(program) <= self.alignment_in(program)
    }

    /// Bytes to leave free in front of the block at `at`, where the one before it ends `end` bytes from the fragment's start.
    pub fn gap_at(&self, at: usize, end: u32) -> u32 {
        let place = self.places.get(at).copied().flatten();
        place.map_or(0, |place| to_place(end.into(), place.into()) as u32)
    }

    /// Where it starts behind what ends there.
    pub fn start_behind(&self, end: u64, program: &Program) -> u64 {
        (end + self.gap_before(program)).next_multiple_of(self.alignment_in(program))
    }

    /// Bytes that are left free in front of it, on top of what its alignment needs.
    pub fn gap_before(&self, program: &Program) -> u64 {
        let least = if self.starts_function() { program.gap_before_entries } else { 0 };
        u64::from(self.padding).max(least)
    }
}

/// Everything that moves, in order, and the sections that it goes to.
///
/// Invariant: each block of a function occurs exactly once or the function does not occur at all, block 0 starts a
/// fragment, and fragments are in the order of their sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    pub sections: IdVec<SectionId, CodeSection>,
    pub fragments: Vec<Fragment>,
    pub data: IdVec<DataId, NewData>,
}

impl Default for Placement {
    /// Nothing moves; a section for hot code and one for cold code.
    fn default() -> Self {
        let section = |name: &str, suffix: &str| CodeSection {
            name: name.into(),
            alignment: SECTION_ALIGNMENT,
            suffix: suffix.into(),
        };
        let sections = vec![section(".text", "warm"), section(".text.cold", "cold")];
        Self { sections: sections.into(), fragments: Vec::new(), data: IdVec::new() }
    }
}

impl Placement {
    /// These fragments, in the sections of [`Placement::default`].
    pub fn of(fragments: Vec<Fragment>) -> Self {
        Self { fragments, ..Self::default() }
    }
}
