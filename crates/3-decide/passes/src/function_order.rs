//! The order of the functions, and so of all fragments.

use crate::LayoutOptions;
use crate::block_order::flow_graph;
use crate::splitting::Parts;
use afterlink_core::index::Id;
use afterlink_layout::hfsort::HfSortParams;
use afterlink_layout::{CallArc, CallGraph, CdSortParams, cdsort, hfsort, random};
use afterlink_program::{BlockId, Fragment, Part, Placement, Program};
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

/// Puts the parts in order.
pub(crate) fn arrange(
    program: &Program,
    weights: &Weights,
    parts: Vec<Parts>,
    options: &LayoutOptions,
) -> Placement {
    let order = match options.order_functions {
        FunctionOrder::Cdsort => {
            let graph = call_graph(program, weights, &parts);
            by_heat(&graph, cdsort::order_functions(&graph, &CdSortParams::default()))
        }
        FunctionOrder::Hfsort => {
            let graph = call_graph(program, weights, &parts);
            by_heat(&graph, hfsort::order_functions(&graph, &HfSortParams::default()))
        }
        FunctionOrder::Input => random::input_order(parts.len()),
        FunctionOrder::Reverse => random::reverse_order(parts.len()),
        FunctionOrder::Random => {
            let names: Vec<&str> = parts.iter().map(|p| program.functions[p.function].name).collect();
            random::keyed_order(&names, options.seed)
        }
    };
    let fragment = |function, part: Part, blocks: &[BlockId]| {
        // Cold code is packed: nobody waits for it.
        let alignment = if part == Part::Hot { options.function_alignment } else { 1 };
        let fragment = Fragment { function, part, blocks: blocks.to_vec(), alignment, padding: 0 };
        (!blocks.is_empty()).then_some(fragment)
    };
    let ordered = || order.iter().map(|&i| &parts[i as usize]);
    let hot = ordered().filter_map(|p| fragment(p.function, Part::Hot, &p.hot));
    let warm = ordered().filter_map(|p| fragment(p.function, Part::Hot, &p.warm));
    let cold = ordered().filter_map(|p| fragment(p.function, Part::Cold, &p.cold));
    Placement { fragments: hot.chain(warm).chain(cold).collect(), counters: Vec::new() }
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
