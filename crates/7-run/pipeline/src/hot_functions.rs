//! The functions that ran most: what the layout made of each, and what that is expected to bring, for the report. And what is expected of
//! all functions that moved.

mod expected;
mod explained;
mod footprint;
mod position;

use crate::before_after::BeforeAfter;
use crate::names;
use afterlink_core::index::Id;
use afterlink_core::{InputAddr, OutputAddr};
use afterlink_emit::Emitted;
use afterlink_passes::dyno_stats::{self, DynoStats};
use afterlink_program::{Fragment, FuncId, Placement, Program, Terminator};
use afterlink_weigh::Weights;
use footprint::Spans;
use position::Calls;
use std::collections::BTreeMap;
use std::ops::Range;

pub use expected::Expected;
pub use explained::{Change, Part};
pub use position::{CallPath, Neighbour, Position, Rank};

/// How many are told.
const MOST: usize = 100;

/// A function that ran, and moved.
#[derive(Clone, Debug, serde::Serialize)]
pub struct HotFunction {
    pub name: String,
    pub address: InputAddr,
    /// Executions of its blocks, by the profile.
    pub executed_blocks: u64,
    /// What it does during the profiled run, under the old layout and the new one. What runs in place of its calls is with it.
    pub expected: BeforeAfter<Expected>,
    /// What was done.
    pub done: Vec<Change>,
    /// Where it stood, where it stands, and beside whom.
    pub position: Position,
    /// What it consists of now, in the order of addresses.
    pub fragments: Vec<HotFragment>,
}

/// A part of it that stands in one piece.
#[derive(Clone, Debug, serde::Serialize)]
pub struct HotFragment {
    pub section: String,
    pub address: OutputAddr,
    pub bytes: u64,
}

/// The functions that are to move and ran, as the input lays them out.
pub(crate) struct AsItWas {
    /// The hottest first.
    functions: Vec<Hot>,
}

struct Hot {
    function: FuncId,
    stats: DynoStats,
    expected: Expected,
    /// Where its code stands that ran.
    ran: Spans,
    /// How its blocks end.
    terminators: Vec<Terminator>,
}

/// The same of one as the output has it.
struct After {
    stats: DynoStats,
    expected: Expected,
    ran: Spans,
}

impl AsItWas {
    pub fn of(program: &Program, weights: &Weights, moved: &[FuncId]) -> Self {
        let blocks = |id: &FuncId| weights.functions.get(*id).map_or(0, |w| w.blocks.iter().sum::<u64>());
        let mut found: Vec<(u64, FuncId)> =
            moved.iter().map(|id| (blocks(id), *id)).filter(|(n, _)| *n > 0).collect();
        found.sort_unstable_by_key(|(count, id)| (std::cmp::Reverse(*count), *id));
        let hot = found.into_iter().map(|(_, function)| {
            let stats = dyno_stats::before(program, weights, &[function]);
            let ran = Spans::before(program, weights, function);
            let expected = expected::before(program, weights, function, stats, &ran);
            let blocks = program.functions[function].blocks.iter();
            let terminators = blocks.map(|(_, block)| block.terminator).collect();
            Hot { function, stats, expected, ran, terminators }
        });
        Self { functions: hot.collect() }
    }

    /// What became of the hottest, and what is expected of all.
    pub fn told(
        &self,
        program: &Program,
        weights: &Weights,
        placement: &Placement,
        emitted: &Emitted,
    ) -> (Vec<HotFunction>, BeforeAfter<Expected>) {
        let now = Now::of(program, weights, placement, emitted);
        let told: Vec<FuncId> = self.functions.iter().take(MOST).map(|hot| hot.function).collect();
        let calls = Calls::of(program, weights, &told);
        let mut sums = BeforeAfter { before: expected::Sum::default(), after: expected::Sum::default() };
        let mut functions = Vec::new();
        for (rank, before) in self.functions.iter().enumerate() {
            let pieces = now.pieces.get(&before.function).map_or(&[][..], |pieces| pieces);
            let after = now.expected(before.function, pieces);
            sums.before.add(before.expected, &before.ran);
            sums.after.add(after.expected, &after.ran);
            if rank < MOST {
                functions.push(now.one(before, &after, &calls, pieces));
            }
        }
        (functions, BeforeAfter { before: sums.before.all(), after: sums.after.all() })
    }
}

/// A fragment, and where it stands.
struct Piece<'a> {
    fragment: &'a Fragment,
    /// Among all fragments.
    rank: usize,
    address: OutputAddr,
    bytes: u64,
}

/// What was written.
struct Now<'a> {
    program: &'a Program<'a>,
    weights: &'a Weights,
    placement: &'a Placement,
    /// Of each function that moved.
    pieces: BTreeMap<FuncId, Vec<Piece<'a>>>,
}

impl<'a> Now<'a> {
    fn of(
        program: &'a Program<'a>,
        weights: &'a Weights,
        placement: &'a Placement,
        emitted: &Emitted,
    ) -> Self {
        let mut pieces: BTreeMap<FuncId, Vec<Piece>> = BTreeMap::new();
        for (rank, (fragment, &(address, bytes))) in
            placement.fragments.iter().zip(&emitted.places).enumerate()
        {
            let piece = Piece { fragment, rank, address, bytes };
            pieces.entry(fragment.function).or_default().push(piece);
        }
        Self { program, weights, placement, pieces }
    }

    /// Where each block of a function stands.
    fn places(&self, id: FuncId, pieces: &[Piece]) -> Vec<Range<u64>> {
        let mut places = vec![0..0; self.program.functions[id].blocks.len()];
        for piece in pieces {
            let own = afterlink_emit::block_places(self.program, piece.fragment);
            for (block, own) in piece.fragment.blocks.iter().zip(own) {
                // Where control runs on, the last one ends without a jump.
                let place = |offset| piece.address.get() + u64::from(offset).min(piece.bytes);
                places[block.index()] = place(own.start)..place(own.end);
            }
        }
        places
    }

    fn expected(&self, id: FuncId, pieces: &[Piece]) -> After {
        let fragments: Vec<&Fragment> = pieces.iter().map(|piece| piece.fragment).collect();
        let alone = Placement::of(fragments.iter().map(|&fragment| fragment.clone()).collect());
        let stats = dyno_stats::after(self.program, self.weights, &alone);
        let places = self.places(id, pieces);
        let ran = Spans::after(self.weights, id, &places);
        let expected = expected::after(self.weights, id, stats, &fragments, &places, &ran);
        After { stats, expected, ran }
    }

    fn one(&self, before: &Hot, after: &After, calls: &Calls, pieces: &[Piece]) -> HotFunction {
        let place = |piece: &Piece| HotFragment {
            section: self.placement.sections[piece.fragment.section].name.clone(),
            address: piece.address,
            bytes: piece.bytes,
        };
        let mut fragments: Vec<HotFragment> = pieces.iter().map(place).collect();
        fragments.sort_by_key(|place| place.address);
        let function = &self.program.functions[before.function];
        HotFunction {
            name: names::shown(function.name).to_owned(),
            address: function.entry(),
            executed_blocks: before.stats.executed_blocks,
            expected: BeforeAfter { before: before.expected, after: after.expected },
            done: explained::changes(self, before, &after.stats, pieces),
            position: position::of(self, before.function, calls),
            fragments,
        }
    }
}
