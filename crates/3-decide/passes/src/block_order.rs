//! The order of the blocks in each function.

use crate::pass::{OrderJob, Pass, Run};
use afterlink_layout::{ExtTspParams, FlowEdge, FlowGraph, random};
use afterlink_program::{BlockId, FuncId, Function, Terminator};
use afterlink_weigh::FunctionWeights;
use rayon::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOrder {
    /// By the extended travelling-salesman score of the profile.
    ExtTsp,
    Input,
    Reverse,
    Random,
}

pub(crate) const PASS: Pass = Pass {
    name: "block-order",
    what: "puts the blocks of each function in an order (--order-blocks)",
    by_default: true,
    off: Some("--order-blocks input"),
    has_work: |options| options.order_blocks != BlockOrder::Input,
    run: Run::Order(|job, parts| {
        parts.par_iter_mut().for_each(|parts| parts.hot = order(job, parts.function));
    }),
};

/// The order of a function's blocks; the entry comes first.
pub(crate) fn order(job: &OrderJob, id: FuncId) -> Vec<BlockId> {
    let function = &job.program.functions[id];
    let len = function.blocks.len();
    let order = match job.options.order_blocks {
        BlockOrder::ExtTsp => {
            match job.weights.functions.get(id).filter(|w| w.is_hot() && !w.inside_unknown) {
                Some(weights) => {
                    afterlink_layout::order_blocks(&flow_graph(function, weights), &ExtTspParams::default())
                }
                None => random::input_order(len),
            }
        }
        BlockOrder::Input => random::input_order(len),
        BlockOrder::Reverse => random::reverse_order_after_first(len),
        BlockOrder::Random => {
            let key = random::key_of(job.options.seed, function.name.as_bytes());
            random::random_order_after_first(len, job.options.seed, key ^ function.entry().get())
        }
    };
    order.into_iter().map(BlockId).collect()
}

/// The function's flow as the layout algorithms see it.
pub fn flow_graph(function: &Function, weights: &FunctionWeights) -> FlowGraph {
    FlowGraph {
        sizes: function
            .blocks
            .iter()
            .map(|(_, b)| function.code_size(b) + terminator_size(b.terminator))
            .collect(),
        counts: function.blocks.ids().map(|b| weights.block(b)).collect(),
        edges: weights
            .edges
            .iter()
            .map(|e| FlowEdge { from: e.from.0, to: e.to.0, count: e.count })
            .collect(),
    }
}

/// Bytes that a terminator will likely take: most branches are short.
fn terminator_size(terminator: Terminator) -> u32 {
    match terminator {
        Terminator::Branch { .. } => 2,
        Terminator::ShortBranch { .. } => 9,
        _ => 0,
    }
}
