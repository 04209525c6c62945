//! The order of the functions, and so of all fragments.

use crate::Parts;
use crate::block_order::flow_graph;
use crate::pass::{OrderJob, Pass, Run};
use afterlink_core::index::Id;
use afterlink_layout::hfsort::HfSortParams;
use afterlink_layout::{CallArc, CallGraph, CdSortParams, cdsort, hfsort, random};
use afterlink_program::{BlockId, Program};
use afterlink_weigh::{FunctionWeights, Weights};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionOrder {
    /// Cache-directed sort.
    Cdsort,
    /// Call-chain clustering (C3).
    Hfsort,
    Input,
    Reverse,
    Random,
}

pub(crate) const PASS: Pass = Pass {
    name: "function-order",
    what: "puts functions in an order (--order-functions)",
    by_default: true,
    off: Some("--order-functions input"),
    has_work: |options| options.order_functions != FunctionOrder::Input,
    run: Run::Order(arrange),
};

/// Puts the functions in order, and their warm parts in one of their own: what hardly ran here may be what another run does all the
/// time, so it should stand beside what it runs with, too.
fn arrange(job: &OrderJob, parts: &mut Vec<Parts>) {
    let order = order(job, parts, |parts| &parts.hot);
    for (rank, i) in (0..).zip(self::order(job, parts, |parts| &parts.warm)) {
        parts[i as usize].warm_rank = rank;
    }
    let mut unordered: Vec<Option<Parts>> = std::mem::take(parts).into_iter().map(Some).collect();
    // Invariant: an order names each function once.
    parts.extend(order.into_iter().map(|i| unordered[i as usize].take().expect("an order is a permutation")));
}

/// The order of the parts that `of` names, one of each function.
fn order(job: &OrderJob, parts: &[Parts], of: fn(&Parts) -> &[BlockId]) -> Vec<u32> {
    let OrderJob { program, weights, options } = job;
    match options.order_functions {
        FunctionOrder::Cdsort => {
            let graph = call_graph(program, weights, parts, of);
            by_heat(&graph, cdsort::order_functions(&graph, &CdSortParams::default()))
        }
        FunctionOrder::Hfsort => {
            let graph = call_graph(program, weights, parts, of);
            by_heat(&graph, hfsort::order_functions(&graph, &HfSortParams::default()))
        }
        FunctionOrder::Input => random::input_order(parts.len()),
        FunctionOrder::Reverse => random::reverse_order(parts.len()),
        FunctionOrder::Random => {
            let names: Vec<&str> = parts.iter().map(|p| program.functions[p.function].name).collect();
            random::keyed_order(&names, options.seed)
        }
    }
}

/// Functions that ran first, the others behind them in input order.
fn by_heat(graph: &CallGraph, order: Vec<u32>) -> Vec<u32> {
    let ran = |&i: &u32| graph.samples[i as usize] > 0;
    let mut cold: Vec<u32> = order.iter().copied().filter(|i| !ran(i)).collect();
    cold.sort_unstable();
    order.into_iter().filter(ran).chain(cold).collect()
}

/// Calls between the parts that `of` names.
fn call_graph(
    program: &Program,
    weights: &Weights,
    parts: &[Parts],
    of: fn(&Parts) -> &[BlockId],
) -> CallGraph {
    let mut node = vec![u32::MAX; program.functions.len()];
    for (i, part) in parts.iter().enumerate() {
        node[part.function.index()] = i as u32;
    }
    let mut graph = CallGraph::default();
    for (i, part) in parts.iter().enumerate() {
        let unknown = FunctionWeights::default();
        let own = weights.functions.get(part.function).unwrap_or(&unknown);
        let function = &program.functions[part.function];
        let flow = flow_graph(function, own);
        let mut starts = vec![None; function.blocks.len()];
        let (mut size, mut most) = (0u32, 0);
        for block in of(part) {
            starts[block.index()] = Some(size);
            size += flow.sizes[block.index()];
            most = most.max(own.block(*block));
        }
        graph.sizes.push(size);
        // A part runs no more often than its function is entered: how often its loops go round is no matter of order.
        graph.samples.push(own.entries.max(own.block(BlockId(0))).min(most));
        for call in &own.calls {
            let callee = node[call.callee.index()];
            let start = starts[call.block.index()].filter(|_| callee != u32::MAX && callee != i as u32);
            if let Some(start) = start {
                let caller_offset = start + call.offset;
                graph.arcs.push(CallArc {
                    caller: i as u32,
                    callee,
                    count: call.count,
                    caller_offset,
                    callee_offset: 0,
                });
            }
        }
    }
    graph
}
