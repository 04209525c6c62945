//! The functions that ran most: what the layout made of each, and what that is expected to bring, for the report.

mod explained;
mod footprint;

use crate::before_after::BeforeAfter;
use afterlink_core::{InputAddr, OutputAddr};
use afterlink_emit::Emitted;
use afterlink_passes::dyno_stats::{self, DynoStats};
use afterlink_program::{Fragment, FuncId, Placement, Program};
use afterlink_weigh::Weights;
use footprint::Spans;
use std::collections::BTreeMap;

pub use explained::Change;
pub use footprint::Footprint;

/// How many are told.
const MOST: usize = 100;

/// A function that ran, and moved.
#[derive(Clone, Debug, serde::Serialize)]
pub struct HotFunction {
    pub name: String,
    pub address: InputAddr,
    /// Executions of its blocks, by the profile.
    pub executed_blocks: u64,
    /// Branches taken inside it during the profiled run, under the old layout and the new one.
    pub taken_before: u64,
    pub taken_after: u64,
    /// How often one of its blocks went on into the next without a jump during the profiled run.
    pub fall_throughs_before: u64,
    pub fall_throughs_after: u64,
    /// What its code that ran takes.
    pub footprint: BeforeAfter<Footprint>,
    /// What was done.
    pub done: Vec<Change>,
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

/// What a function that is to move does as the input lays it out.
pub(crate) struct Hottest {
    function: FuncId,
    stats: DynoStats,
    fall_throughs: u64,
    /// Where its code stands that ran.
    ran: Spans,
}

/// The hottest of the functions that are to move.
pub(crate) fn hottest(program: &Program, weights: &Weights, moved: &[FuncId]) -> Vec<Hottest> {
    let blocks = |id: &FuncId| weights.functions.get(*id).map_or(0, |w| w.blocks.iter().sum::<u64>());
    let mut found: Vec<(u64, FuncId)> =
        moved.iter().map(|id| (blocks(id), *id)).filter(|(n, _)| *n > 0).collect();
    found.sort_unstable_by_key(|(count, id)| (std::cmp::Reverse(*count), *id));
    found.truncate(MOST);
    let hottest = found.into_iter().map(|(_, function)| Hottest {
        function,
        stats: dyno_stats::before(program, weights, &[function]),
        fall_throughs: footprint::fall_throughs_before(program, weights, function),
        ran: Spans::before(program, weights, function),
    });
    hottest.collect()
}

/// What became of them, and what the code of all of them that ran takes.
pub(crate) fn told(
    hottest: &[Hottest],
    program: &Program,
    weights: &Weights,
    placement: &Placement,
    emitted: &Emitted,
) -> (Vec<HotFunction>, BeforeAfter<Footprint>) {
    let mut all = BeforeAfter { before: Spans::default(), after: Spans::default() };
    let mut functions = Vec::new();
    let pieces = pieces(hottest, placement, emitted);
    let folded: Vec<(FuncId, &str)> =
        program.functions.iter().filter_map(|(_, f)| Some((f.folded_into?, f.name))).collect();
    for before in hottest {
        let own = &pieces[&before.function];
        let after = Spans::after(program, weights, own);
        let told = one(before, &after, program, weights, placement, own);
        let same = folded.iter().filter(|(into, _)| *into == before.function);
        let functions_folded: Vec<String> = same.map(|(_, name)| (*name).to_owned()).collect();
        functions.push(told.with_folded(functions_folded));
        all.before.extend(&before.ran);
        all.after.extend(&after);
    }
    (functions, BeforeAfter { before: all.before.footprint(), after: all.after.footprint() })
}

/// A fragment, and where it stands.
struct Piece<'a> {
    fragment: &'a Fragment,
    address: OutputAddr,
    bytes: u64,
}

/// The fragments of each of the hottest.
fn pieces<'a>(
    hottest: &[Hottest],
    placement: &'a Placement,
    emitted: &Emitted,
) -> BTreeMap<FuncId, Vec<Piece<'a>>> {
    let mut pieces: BTreeMap<FuncId, Vec<Piece>> =
        hottest.iter().map(|before| (before.function, Vec::new())).collect();
    for (fragment, &(address, bytes)) in placement.fragments.iter().zip(&emitted.places) {
        if let Some(own) = pieces.get_mut(&fragment.function) {
            own.push(Piece { fragment, address, bytes });
        }
    }
    pieces
}

impl HotFunction {
    fn with_folded(mut self, functions: Vec<String>) -> Self {
        if !functions.is_empty() {
            self.done.push(Change::Folded { functions });
        }
        self
    }
}

fn one(
    before: &Hottest,
    ran: &Spans,
    program: &Program,
    weights: &Weights,
    placement: &Placement,
    own: &[Piece],
) -> HotFunction {
    let fragments: Vec<&Fragment> = own.iter().map(|piece| piece.fragment).collect();
    let place = |piece: &Piece| HotFragment {
        section: placement.sections[piece.fragment.section].name.clone(),
        address: piece.address,
        bytes: piece.bytes,
    };
    let mut places: Vec<HotFragment> = own.iter().map(place).collect();
    places.sort_by_key(|place| place.address);
    let function = &program.functions[before.function];
    let alone = Placement::of(fragments.iter().map(|&f| f.clone()).collect());
    HotFunction {
        name: function.name.to_owned(),
        address: function.entry(),
        executed_blocks: before.stats.executed_blocks,
        taken_before: before.stats.taken_branches,
        taken_after: dyno_stats::after(program, weights, &alone).taken_branches,
        fall_throughs_before: before.fall_throughs,
        fall_throughs_after: footprint::fall_throughs_after(weights, before.function, &fragments),
        footprint: BeforeAfter { before: before.ran.footprint(), after: ran.footprint() },
        done: explained::changes(program, weights, placement, before.function, &fragments),
        fragments: places,
    }
}
