//! Puts planned counters into a function: counters in blocks, blocks on edges, and the order of all blocks.

use crate::plan::{CounterPlace, falls_into};
use crate::targets::TargetPlace;
use afterlink_core::index::Id;
use afterlink_isa::CounterForm;
use afterlink_program::{Block, BlockId, Chunk, Fragment, FuncId, Function, SectionId, Target, Terminator};

/// Alignment of functions.
const ALIGNMENT: u32 = 16;

/// A function's blocks in the order in which they will be written: those of its first range, those of the others. Each block knows its neighbours,
/// so that added ones are put in without a search.
pub(crate) struct Order {
    /// By block.
    places: Vec<Place>,
    /// The first and the last block of each part.
    ends: [Option<(BlockId, BlockId)>; 2],
}

/// Where a block stands.
struct Place {
    part: usize,
    before: Option<BlockId>,
    behind: Option<BlockId>,
}

impl Order {
    /// The input's.
    pub fn of_input(function: &Function) -> Self {
        let mut order = Self { places: Vec::with_capacity(function.blocks.len()), ends: [None; 2] };
        for (id, block) in function.blocks.iter() {
            order.append(usize::from(!function.ranges[0].contains(block.input)), id);
        }
        order
    }

    /// The fragments to write, without the empty ones.
    pub fn into_fragments(self, function: FuncId) -> [Option<Fragment>; 2] {
        let blocks = |part: usize| {
            let first = self.ends[part].map(|(first, _)| first);
            std::iter::successors(first, |block| self.places[block.index()].behind).collect::<Vec<_>>()
        };
        let fragment = |section, blocks: Vec<BlockId>, alignment| {
            (!blocks.is_empty())
                .then_some(Fragment { alignment, ..Fragment::packed(function, section, blocks) })
        };
        [fragment(SectionId::HOT, blocks(0), ALIGNMENT), fragment(SectionId::COLD, blocks(1), 1)]
    }

    /// Puts an added block where it costs least: behind a block that falls into it; before its target, if nothing
    /// falls into that one; else behind everything.
    fn insert(&mut self, function: &Function, added: BlockId, from: BlockId, to: BlockId, falls: bool) {
        let Place { part, behind, .. } = self.places[from.index()];
        if falls {
            return self.put(added, part, (Some(from), behind));
        }
        let free = |before: &BlockId| {
            let terminator = function.blocks[*before].terminator;
            use Terminator as T;
            matches!(terminator, T::Jump(_) | T::Indirect { .. } | T::Stop(_) | T::LastCall(_))
        };
        let target = &self.places[to.index()];
        match target.before.filter(free) {
            Some(before) => self.put(added, target.part, (Some(before), Some(to))),
            None => self.append(part, added),
        }
    }

    fn append(&mut self, part: usize, block: BlockId) {
        let last = self.ends[part].map(|(_, last)| last);
        self.put(block, part, (last, None));
    }

    /// Puts a block between two neighbours.
    fn put(&mut self, block: BlockId, part: usize, (before, behind): (Option<BlockId>, Option<BlockId>)) {
        // Invariant: blocks come in the order of their numbers.
        debug_assert_eq!(block.index(), self.places.len(), "the next block");
        self.places.push(Place { part, before, behind });
        if let Some(before) = before {
            self.places[before.index()].behind = Some(block);
        }
        if let Some(behind) = behind {
            self.places[behind.index()].before = Some(block);
        }
        let (first, last) = self.ends[part].unwrap_or((block, block));
        let first = if before.is_none() { block } else { first };
        let last = if behind.is_none() { block } else { last };
        self.ends[part] = Some((first, last));
    }
}

/// Code that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counter {
    pub block: BlockId,
    /// Where in the block's body it stands: before the byte at this offset.
    pub offset: u32,
    /// Which counter it adds to.
    pub index: u32,
    pub form: CounterForm,
}

/// The numbers from which on a function's counters, and its indirect calls with counted targets, are numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct First {
    pub counter: u32,
    pub site: u32,
}

/// Puts in counters, and in front of `targets` what counts these. Gives the counters in order of place.
pub(crate) fn insert(
    function: &mut Function,
    places: &[CounterPlace],
    targets: &[TargetPlace],
    first: First,
    order: &mut Order,
) -> Vec<Counter> {
    let mut counters = Vec::with_capacity(places.len());
    for (index, place) in (first.counter..).zip(places) {
        let (block, offset) = match *place {
            CounterPlace::Block(block, site) => (block, site.offset),
            CounterPlace::Between { from, to, .. } => {
                let falls = falls_into(function, from, to);
                let added = add_between(function, from, to);
                order.insert(function, added, from, to, falls);
                (added, 0)
            }
        };
        counters.push(Counter { block, offset, index, form: place.form() });
    }
    counters.sort_by_key(|c| (c.block.index(), c.offset));
    let counting =
        counters.iter().map(|c| (c.block, c.offset, Chunk::Counter { index: c.index, form: c.form }));
    let sites = (first.site..).zip(targets).map(|(site, place)| {
        (place.block, place.call, Chunk::Targets { site, call: place.call, code: place.code })
    });
    let mut added: Vec<(BlockId, u32, Chunk)> = counting.chain(sites).collect();
    // What counts targets stands right in front of the call: the order of equal places stays.
    added.sort_by_key(|(block, offset, _)| (block.index(), *offset));
    for of_block in added.chunk_by(|a, b| a.0 == b.0) {
        function.insert_counters(of_block[0].0, of_block.iter().map(|(_, offset, chunk)| (*offset, *chunk)));
    }
    counters
}

/// Adds an empty block between two, and leads the first one's terminator to it.
fn add_between(function: &mut Function, from: BlockId, to: BlockId) -> BlockId {
    let falls = falls_into(function, from, to);
    // Where it falls through, the block is written behind `from`; then it must not look like one that
    // nothing falls out of.
    let terminator = if falls { Terminator::FallThrough(to) } else { Terminator::Jump(Target::Block(to)) };
    let input = function.blocks[to].input;
    let added = function.blocks.push(Block::empty(input, terminator));
    match &mut function.blocks[from].terminator {
        Terminator::FallThrough(next) => *next = added,
        Terminator::Jump(target) => *target = Target::Block(added),
        Terminator::Branch { taken, next, .. } | Terminator::ShortBranch { taken, next, .. } => {
            // Both ways may lead to the same block.
            if *taken == Target::Block(to) {
                *taken = Target::Block(added);
            }
            if *next == to {
                *next = added;
            }
        }
        // Invariant: only direct edges are split.
        Terminator::Indirect { .. } | Terminator::Stop(_) | Terminator::LastCall(_) => {
            unreachable!("the edge is direct")
        }
    }
    added
}

#[cfg(test)]
mod tests;
