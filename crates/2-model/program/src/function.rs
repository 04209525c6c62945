//! Functions.

use crate::{Block, BlockId, Reference, Target, Terminator};
use afterlink_core::{IdVec, InputAddr, Refusal};
use afterlink_frames::{FdeId, RowId};

/// A run of input code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub start: InputAddr,
    /// Bytes.
    pub size: u64,
}

impl Range {
    pub fn end(&self) -> InputAddr {
        self.start + self.size
    }

    pub fn contains(&self, address: InputAddr) -> bool {
        address >= self.start && address < self.end()
    }
}

/// One function with its fragments.
#[derive(Clone, Debug)]
pub struct Function<'a> {
    /// The symbol's name; of several at the same place, a global one.
    pub name: &'a str,
    /// The range that starts with the entry, then the compiler's cold fragments.
    pub ranges: Vec<Range>,
    /// Block 0 is the entry; blocks of one range are in input order, ranges in the order of `ranges`, and
    /// blocks that were added come last. Empty if the code could not be decoded.
    pub blocks: IdVec<BlockId, Block>,
    /// Number of blocks that come from the input.
    pub input_blocks: u32,
    /// Position-dependent fields. Of a function with blocks: by block. They never cover a terminator that is
    /// written anew.
    pub references: Vec<Reference>,
    /// Fields of the terminators, for when the function stays in place and is patched.
    pub terminator_references: Vec<Reference>,
    pub jump_tables: Vec<JumpTable>,
    /// Blocks whose address is taken, by data or by code, ascending.
    pub labels: Vec<BlockId>,
    pub unwind: Vec<UnwindSpan>,
    /// A multiple of so many bytes must be the entry's address, a power of two: somebody may count on it.
    pub alignment: u64,
    /// Why the function is left alone.
    pub refusal: Option<Refusal>,
}

/// A table of code addresses that an indirect jump goes through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JumpTable {
    pub base: InputAddr,
    /// One block an entry.
    pub targets: Vec<BlockId>,
}

/// The unwind rows of a run of code, as one unwind entry (FDE) gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnwindSpan {
    pub range: Range,
    /// Its entry in [`Program::frames`](crate::Program::frames).
    pub fde: FdeId,
    /// Each row holds from its offset (bytes from the span's start) to the next one's.
    pub rows: Vec<(u32, RowId)>,
}

impl Function<'_> {
    pub fn entry(&self) -> InputAddr {
        self.ranges[0].start
    }

    /// Bytes of code in the input.
    pub fn size(&self) -> u64 {
        self.ranges.iter().map(|r| r.size).sum()
    }

    /// The block that starts at `address`.
    pub fn block_at(&self, address: InputAddr) -> Option<BlockId> {
        let id = self.block_covering(address)?;
        (self.blocks[id].input == address).then_some(id)
    }

    /// The block whose input bytes hold `address`.
    pub fn block_covering(&self, address: InputAddr) -> Option<BlockId> {
        let mut first = 0usize;
        let blocks = &self.blocks.as_slice()[..self.input_blocks as usize];
        for range in &self.ranges {
            let tail = &blocks[first..];
            let len = tail.partition_point(|b| range.contains(b.input));
            if range.contains(address) {
                let index = tail[..len].partition_point(|b| b.input <= address).checked_sub(1)?;
                return Some(BlockId((first + index) as u32));
            }
            first += len;
        }
        None
    }

    /// A block's position-dependent fields.
    pub fn references_of(&self, block: &Block) -> &[Reference] {
        &self.references[block.first_reference as usize..block.end_reference as usize]
    }

    /// Calls `visit` with each block that control may go to from `block` inside this function, in a fixed
    /// order, the same block perhaps more than once.
    pub fn for_each_successor(&self, block: BlockId, mut visit: impl FnMut(BlockId)) {
        let mut direct = |target: Target| {
            if let Target::Block(id) = target {
                visit(id);
            }
        };
        match self.blocks[block].terminator {
            Terminator::FallThrough(next) => direct(Target::Block(next)),
            Terminator::Jump(target) => direct(target),
            Terminator::Branch { taken, next, .. } | Terminator::ShortBranch { taken, next, .. } => {
                direct(taken);
                direct(Target::Block(next));
            }
            Terminator::Indirect { table: Some(table) } => {
                self.jump_tables[table as usize].targets.iter().for_each(|&t| visit(t));
            }
            Terminator::Indirect { table: None } => {
                let tables = self.jump_tables.iter().flat_map(|t| &t.targets);
                tables.chain(&self.labels).for_each(|&t| visit(t));
            }
            Terminator::Stop | Terminator::LastCall(_) => {}
        }
    }

    /// The unwind row that holds at an input address, with its span.
    pub fn unwind_row_at(&self, address: InputAddr) -> Option<(&UnwindSpan, RowId)> {
        let span = self.unwind.iter().find(|s| s.range.contains(address))?;
        let offset = address.since(span.range.start) as u32;
        let next = span.rows.partition_point(|(at, _)| *at <= offset);
        Some((span, span.rows.get(next.checked_sub(1)?)?.1))
    }
}
