//! Whether a function's counts belong to its blocks, and whether what flows into each block makes up its count.

use super::Fault;
use afterlink_core::index::Id;
use afterlink_program::{Block, FuncId, Function, Program, Target, Terminator};
use afterlink_weigh::{FunctionWeights, Weights};

pub(super) fn faults(program: &Program, weights: &Weights, id: FuncId) -> Vec<Fault> {
    let (own, mut faults) = (&weights.functions[id], Vec::new());
    let mut add = |what: String| faults.push(Fault { function: id, what });
    let Some(function) = program.functions.get(id) else { return faults };
    if !own.blocks.is_empty() && own.blocks.len() != function.blocks.len() {
        add(format!("has {} blocks and counts of {}", function.blocks.len(), own.blocks.len()));
    }
    if !own.edges.is_sorted_by_key(|e| (e.from, e.to)) || !own.calls.is_sorted() {
        add("has counts out of order".into());
    }
    for edge in &own.edges {
        let mut is_there = false;
        if function.blocks.get(edge.from).is_some() {
            function.for_each_successor(edge.from, |to| is_there |= to == edge.to);
        }
        if !is_there && edge.count > 0 {
            add(format!("went {} times from {} to {}, which is no way", edge.count, edge.from, edge.to));
        }
    }
    for call in &own.calls {
        if function.blocks.get(call.block).is_none() || program.functions.get(call.callee).is_none() {
            add(format!("called {} from {}, which is not there", call.callee, call.block));
        }
    }
    faults
}

/// Whether what flows into each block is what ran of it, and out of each that does nothing but go on.
pub(super) fn is_conserved(function: &Function, weights: &FunctionWeights) -> bool {
    if weights.blocks.len() != function.blocks.len() {
        return false;
    }
    let mut entered = vec![0u64; weights.blocks.len()];
    let mut left = entered.clone();
    if let Some(entry) = entered.first_mut() {
        *entry = weights.entries;
    }
    for edge in &weights.edges {
        let (Some(to), Some(from)) = (entered.get_mut(edge.to.index()), left.get_mut(edge.from.index()))
        else {
            return false;
        };
        *to = to.saturating_add(edge.count);
        *from = from.saturating_add(edge.count);
    }
    // Behind a call that does not come back less goes on than came in.
    let only_goes_on = |block: &Block| {
        let inside =
            matches!(block.terminator, Terminator::FallThrough(_) | Terminator::Jump(Target::Block(_)));
        inside && function.code_size(block) == 0
    };
    let mut bare = function.blocks.iter().filter(|(_, block)| only_goes_on(block));
    entered == weights.blocks && bare.all(|(id, _)| left[id.index()] == weights.blocks[id.index()])
}
