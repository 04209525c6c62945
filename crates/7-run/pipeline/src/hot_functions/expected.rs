//! What code does under a layout while what was profiled runs again: by the profile's counts alone, and counted in the same way for the old
//! layout and the new one.

use super::explained::follows_in_input;
use super::footprint::{Footprint, Spans};
use afterlink_layout::{ExtTspParams, FlowEdge, ext_tsp_score_at};
use afterlink_passes::dyno_stats::DynoStats;
use afterlink_program::{BlockId, Fragment, FuncId, Program};
use afterlink_weigh::{FunctionWeights, Weights};
use std::ops::Range;

/// What is expected of a function, or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Expected {
    /// Conditional branches that jump, and jumps to elsewhere in the function.
    pub taken_branches: u64,
    /// How often a block goes on into the next without a jump.
    pub fall_throughs: u64,
    /// The extended travelling-salesman score at the blocks' addresses: a fall-through earns its count, a short jump a tenth of it at most.
    pub ext_tsp: f64,
    /// What the code takes that runs.
    #[serde(flatten)]
    pub footprint: Footprint,
}

/// Of many functions: what they share counts once.
#[derive(Default)]
pub(super) struct Sum {
    all: Expected,
    ran: Spans,
}

impl Sum {
    pub fn add(&mut self, one: Expected, ran: &Spans) {
        self.all.taken_branches += one.taken_branches;
        self.all.fall_throughs += one.fall_throughs;
        self.all.ext_tsp += one.ext_tsp;
        self.ran.extend(ran);
    }

    pub fn all(&self) -> Expected {
        Expected { footprint: self.ran.footprint(), ..self.all }
    }
}

/// Of a function as the input has it.
pub(super) fn before(
    program: &Program,
    weights: &Weights,
    id: FuncId,
    stats: DynoStats,
    ran: &Spans,
) -> Expected {
    let function = &program.functions[id];
    let unknown = FunctionWeights::default();
    let weights = weights.functions.get(id).unwrap_or(&unknown);
    let place = |block: BlockId| {
        let block = &function.blocks[block];
        block.input.get()..block.input_end().get()
    };
    let places: Vec<Range<u64>> = function.blocks.ids().map(place).collect();
    let on = weights.edges.iter().filter(|e| follows_in_input(function, e.from, e.to));
    Expected {
        taken_branches: stats.taken_branches,
        fall_throughs: on.map(|e| e.count).sum(),
        ext_tsp: score(weights, &places),
        footprint: ran.footprint(),
    }
}

/// Of a function in these fragments, whose blocks stand at these places.
pub(super) fn after(
    weights: &Weights,
    id: FuncId,
    stats: DynoStats,
    fragments: &[&Fragment],
    places: &[Range<u64>],
    ran: &Spans,
) -> Expected {
    let unknown = FunctionWeights::default();
    let weights = weights.functions.get(id).unwrap_or(&unknown);
    let pairs = fragments.iter().flat_map(|f| f.blocks.windows(2));
    Expected {
        taken_branches: stats.taken_branches,
        fall_throughs: pairs.map(|pair| weights.edge(pair[0], pair[1])).sum(),
        ext_tsp: if fragments.is_empty() { 0.0 } else { score(weights, places) },
        footprint: ran.footprint(),
    }
}

fn score(weights: &FunctionWeights, places: &[Range<u64>]) -> f64 {
    let edges = weights.edges.iter().map(|e| FlowEdge { from: e.from.0, to: e.to.0, count: e.count });
    let places: Vec<Range<i64>> = places.iter().map(|place| place.start as i64..place.end as i64).collect();
    // A sum of nothing is -0.
    ext_tsp_score_at(&edges.collect::<Vec<_>>(), &places, &ExtTspParams::default()).max(0.0)
}
