//! The counts of the old build, laid onto the pairs in the new one, and what is between them inferred.

use super::features::Content;
use super::{BlockPairs, Build, inverse};
use crate::conservation::{MOST, exit, falls_to};
use crate::inference::{Evidence, Observed, infer as infer_flow};
use afterlink_analyze::flow::FlowGraph;
use afterlink_core::index::Id;
use afterlink_program::{
    Basis, BlockId, CallWeight, EdgeWeight, FuncId, Function, FunctionWeights, Program, Role, Target,
    Terminator, Weights,
};

/// What it costs to contradict a count by one execution; and where a block, or a way between two blocks, has a pair that never ran.
const COUNTED: i64 = 150;
const NEVER_RAN: i64 = 100;
/// A way that the old build lacked, though it had both of its ends.
const NEW_WAY: i64 = 20;
/// Blocks without a pair, and ways there: nothing is known of them.
const NEW_BLOCK: i64 = 2;
const WAY_TO_NEW: i64 = 6;
const FALL_TO_NEW: i64 = 4;
/// More calls than were counted.
const CALL: i64 = 10;

/// The weights of the new build.
pub(super) fn infer(
    new: Build,
    weights: &Weights,
    found: &[(FuncId, FuncId)],
    blocks: &[(BlockPairs, [Content; 2])],
) -> Weights {
    let mut inferred = vec![FunctionWeights::default(); new.program.functions.len()];
    for (&(from, to), (pairs, content)) in found.iter().zip(blocks) {
        let function = &new.program.functions[to];
        let counted = &weights.functions[from];
        let mut weights = laid_onto(function, counted, pairs);
        weights.calls = direct_calls(to, function, &weights);
        let indirect = |call: &CallWeight| indirect_call(call, pairs, content, found);
        weights.calls.extend(counted.calls.iter().filter_map(indirect));
        weights.calls.sort_unstable();
        inferred[to.index()] = weights;
    }
    add_new_functions(new.program, found, &mut inferred);
    Weights { functions: inferred.into(), basis: Basis::Counted }
}

/// What was counted of a function's pair, as a flow of its own.
fn laid_onto(function: &Function, counted: &FunctionWeights, pairs: &BlockPairs) -> FunctionWeights {
    let entries = counted.entries.min(MOST);
    if counted.inside_unknown || function.blocks.is_empty() {
        let blocks = function.blocks.ids().map(|b| if b.index() == 0 { entries } else { 0 }).collect();
        return FunctionWeights { entries, blocks, inside_unknown: true, ..FunctionWeights::default() };
    }
    let old_of = inverse(pairs, function.blocks.len());
    let graph = FlowGraph::of(function, |_| false);
    let ids = || function.blocks.ids();
    let blocks: Vec<Evidence> = ids()
        .map(|block| {
            old_of[block.index()].map_or_else(|| unknown(NEW_BLOCK), |old| known(counted.block(old)))
        })
        .collect();
    let way = |from: BlockId, to: BlockId| {
        let (Some(a), Some(b)) = (old_of[from.index()], old_of[to.index()]) else {
            return unknown(if falls_to(function, from, to) { FALL_TO_NEW } else { WAY_TO_NEW });
        };
        match counted.edges.binary_search_by_key(&(a, b), |edge| (edge.from, edge.to)) {
            Ok(found) => known(counted.edges[found].count),
            Err(_) => unknown(NEW_WAY),
        }
    };
    let edges: Vec<Vec<Evidence>> = ids()
        .map(|from| graph.successors[from.index()].iter().map(|&to| way(from, BlockId(to))).collect())
        .collect();
    let entry = Evidence { count: entries, more: CALL, fewer: COUNTED };
    let entered: Vec<_> = ids().map(|block| (block.index() == 0).then_some(entry)).collect();
    let exits: Vec<_> = function.blocks.iter().map(|(_, block)| exit(block.terminator)).collect();
    let flow = infer_flow(&Observed {
        successors: &graph.successors,
        blocks: &blocks,
        edges: &edges,
        entries: &entered,
        exits: &exits,
    });
    let mut edges = Vec::new();
    for (from, ways) in ids().zip(&graph.successors) {
        let counts = &flow.edges[from.index()];
        edges.extend(ways.iter().zip(counts).map(|(&to, &count)| EdgeWeight {
            from,
            to: BlockId(to),
            count,
        }));
    }
    edges.sort_unstable();
    FunctionWeights { entries: flow.entries[0], blocks: flow.blocks, edges, ..FunctionWeights::default() }
}

fn known(count: u64) -> Evidence {
    match count {
        0 => Evidence { count: 0, more: NEVER_RAN, fewer: 0 },
        _ => Evidence { count: count.min(MOST), more: COUNTED, fewer: COUNTED },
    }
}

fn unknown(more: i64) -> Evidence {
    Evidence { count: 0, more, fewer: 0 }
}

/// Direct calls run as often as their blocks; a jump to another function, as often as its block does not go on.
fn direct_calls(own: FuncId, function: &Function, weights: &FunctionWeights) -> Vec<CallWeight> {
    let mut calls = Vec::new();
    for (id, block) in function.blocks.iter() {
        let count = weights.block(id);
        let mut add = |offset: u32, target: Target, count: u64| {
            let callee = match target {
                Target::Code(callee, BlockId(0)) => callee,
                Target::Block(BlockId(0)) => own,
                _ => return,
            };
            if count > 0 {
                calls.push(CallWeight { block: id, offset, callee, count });
            }
        };
        for operand in function.operands_of(block).iter().filter(|operand| operand.role == Role::Call) {
            add(operand.at, operand.target, count);
        }
        let goes_on = |next: BlockId| weights.edge(id, next);
        // A jump to the function's own start is an edge.
        match block.terminator {
            Terminator::Jump(target @ Target::Code(..)) => add(block.body, target, count),
            Terminator::Branch { taken: taken @ Target::Code(..), next, .. } => {
                add(block.body, taken, count.saturating_sub(goes_on(next)))
            }
            _ => {}
        }
    }
    calls
}

/// A call through a pointer of the old build, in the new one.
fn indirect_call(
    call: &CallWeight,
    pairs: &BlockPairs,
    [before, now]: &[Content; 2],
    found: &[(FuncId, FuncId)],
) -> Option<CallWeight> {
    let block = (*pairs.get(call.block.index())?)?;
    let calls = &before.blocks[call.block.index()].indirect_calls;
    let nth = calls.iter().position(|&at| at == call.offset)?;
    let offset = *now.blocks[block.index()].indirect_calls.get(nth)?;
    let callee = found.binary_search_by_key(&call.callee, |pair| pair.0).ok()?;
    Some(CallWeight { block, offset, callee: found[callee].1, count: call.count })
}

/// Functions without a pair were called as often as is known of their callers. The calls of others are no more than they were entered.
fn add_new_functions(program: &Program, found: &[(FuncId, FuncId)], weights: &mut [FunctionWeights]) {
    let called = CallWeight::by_callee(weights.iter(), weights.len());
    let mut has_pair = vec![false; weights.len()];
    found.iter().for_each(|pair| has_pair[pair.1.index()] = true);
    for (id, function) in program.functions.iter() {
        if !has_pair[id.index()] && called[id] > 0 && !function.blocks.is_empty() {
            let entries = called[id].min(MOST);
            weights[id.index()] =
                FunctionWeights { entries, inside_unknown: true, ..FunctionWeights::default() };
        }
    }
    let entries: Vec<u64> = weights.iter().map(|weights| weights.entries).collect();
    for call in weights.iter_mut().flat_map(|weights| &mut weights.calls) {
        let (all, ran) = (called[call.callee], entries[call.callee.index()]);
        if all > ran {
            call.count = (u128::from(call.count) * u128::from(ran) / u128::from(all)) as u64;
        }
    }
}
