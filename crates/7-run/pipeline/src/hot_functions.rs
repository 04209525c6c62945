//! The functions that ran most: what the layout made of each, for the report.

use afterlink_core::{InputAddr, OutputAddr};
use afterlink_emit::Emitted;
use afterlink_passes::dyno_stats::{self, DynoStats};
use afterlink_program::{Fragment, FuncId, Placement, Program};
use afterlink_weigh::Weights;

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

/// The hottest of the functions that are to move, with what they do as the input lays them out.
pub(crate) fn hottest(program: &Program, weights: &Weights, moved: &[FuncId]) -> Vec<(FuncId, DynoStats)> {
    let blocks = |id: &FuncId| weights.functions.get(*id).map_or(0, |w| w.blocks.iter().sum::<u64>());
    let mut found: Vec<(u64, FuncId)> =
        moved.iter().map(|id| (blocks(id), *id)).filter(|(n, _)| *n > 0).collect();
    found.sort_unstable_by_key(|(count, id)| (std::cmp::Reverse(*count), *id));
    found.truncate(MOST);
    found.into_iter().map(|(_, id)| (id, dyno_stats::before(program, weights, &[id]))).collect()
}

/// What became of them.
pub(crate) fn told(
    hottest: &[(FuncId, DynoStats)],
    program: &Program,
    weights: &Weights,
    placement: &Placement,
    emitted: &Emitted,
) -> Vec<HotFunction> {
    let told = hottest.iter().map(|(id, before)| {
        let own = || placement.fragments.iter().enumerate().filter(|(_, fragment)| fragment.function == *id);
        let fragments: Vec<Fragment> = own().map(|(_, fragment)| fragment.clone()).collect();
        let mut places: Vec<HotFragment> = own()
            .map(|(index, fragment)| HotFragment {
                section: placement.sections[fragment.section].name.clone(),
                address: emitted.places[index].0,
                bytes: emitted.places[index].1,
            })
            .collect();
        places.sort_by_key(|place| place.address);
        let function = &program.functions[*id];
        HotFunction {
            name: function.name.to_owned(),
            address: function.entry(),
            executed_blocks: before.executed_blocks,
            taken_before: before.taken_branches,
            taken_after: dyno_stats::after(program, weights, &Placement::of(fragments)).taken_branches,
            fragments: places,
        }
    });
    told.collect()
}
