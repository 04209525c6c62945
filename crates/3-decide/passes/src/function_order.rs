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

/// Puts the functions in order.
fn arrange(job: &OrderJob, parts: &mut Vec<Parts>) {
    let OrderJob { program, weights, options } = job;
    let order = match options.order_functions {
        FunctionOrder::Cdsort => {
            let graph = call_graph(program, weights, parts);
            by_heat(&graph, cdsort::order_functions(&graph, &CdSortParams::default()))
        }
        FunctionOrder::Hfsort => {
            let graph = call_graph(program, weights, parts);
            by_heat(&graph, hfsort::order_functions(&graph, &HfSortParams::default()))
        }
        FunctionOrder::Input => random::input_order(parts.len()),
        FunctionOrder::Reverse => random::reverse_order(parts.len()),
        FunctionOrder::Random => {
            let names: Vec<&str> = parts.iter().map(|p| program.functions[p.function].name).collect();
            random::keyed_order(&names, options.seed)
        }
    };
    let mut unordered: Vec<Option<Parts>> = std::mem::take(parts).into_iter().map(Some).collect();
    // Invariant: an order names each function once.
    parts.extend(order.into_iter().map(|i| unordered[i as usize].take().expect("an order is a permutation")));
}

/// Functions that ran first, the others behind them in input order.
fn by_heat(graph: &CallGraph, order: Vec<u32>) -> Vec<u32> {
    let ran = |&i: &u32| graph.samples[i as usize] > 0;
    let mut cold: Vec<u32> = order.iter().copied().filter(|i| !ran(i)).collect();
    cold.sort_unstable();
    order.into_iter().filter(ran).chain(cold).collect()
}

/// Calls between the hot parts.
fn call_graph(program: &Program, weights: &Weights, parts: &[Parts]) -> CallGraph {
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
        let mut starts = vec![0u32; function.blocks.len()];
        let mut size = 0u32;
        for block in &part.hot {
            starts[block.index()] = size;
            size += flow.sizes[block.index()];
        }
        graph.sizes.push(size);
        graph.samples.push(own.entries.max(own.block(BlockId(0))));
        for call in &own.calls {
            let callee = node[call.callee.index()];
            if callee != u32::MAX && callee != i as u32 {
                let caller_offset = starts[call.block.index()] + call.offset;
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
