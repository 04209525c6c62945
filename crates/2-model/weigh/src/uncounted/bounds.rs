//! How often blocks can have run at most, where nothing was counted inside of a function, by whom they call.
//!
//! A block ran no more often than what it calls was entered beyond the calls that were counted, and what has never run was not called. From such blocks it spreads
//! along the flow: nothing runs more often than all that it goes on to together, or all that it comes from.

use super::callees::callees;
use super::graph;
use crate::conservation::exit;
use afterlink_core::IdVec;
use afterlink_core::index::Id;
use afterlink_program::{Block, FuncId, Function, FunctionWeights, Program, Stop, Terminator};
use rayon::prelude::*;

/// Passes over a function; in one, what a block tells spreads over all in a row.
const PASSES: usize = 8;

/// Fills in what is known of blocks inside of which nothing was counted, where all else that ran was. `unaccounted` says of functions how many of their entries
/// no counted call accounts for.
pub(super) fn find(program: &Program, functions: &mut [FunctionWeights], unaccounted: &IdVec<FuncId, u64>) {
    let unknown = functions.par_iter_mut().enumerate().filter(|(_, weights)| weights.inside_unknown);
    unknown.for_each(|(id, weights)| {
        let id = FuncId::from_index(id);
        weights.at_most = of_function(id, &program.functions[id], weights.entries, unaccounted);
    });
}

/// Nothing, if it contradicts the entries: then some function ran after all that is not counted.
fn of_function(id: FuncId, function: &Function, entries: u64, unaccounted: &IdVec<FuncId, u64>) -> Vec<u64> {
    let of_block = |block: &Block| match block.terminator {
        // Where a compiler knew that control does not come.
        Terminator::Stop(Stop::Trap) => 0,
        _ => {
            callees(id, function, block).map(|callee| unaccounted[callee.function]).min().unwrap_or(u64::MAX)
        }
    };
    let mut at_most: Vec<u64> = function.blocks.iter().map(|(_, block)| of_block(block)).collect();
    spread(function, &mut at_most);
    if at_most.first().is_some_and(|&first| first < entries) { Vec::new() } else { at_most }
}

/// Lowers bounds to the sum of those behind each block, and of those before it.
fn spread(function: &Function, at_most: &mut [u64]) {
    let graph = graph::of(function);
    let before = graph.predecessors();
    let leaves: Vec<bool> =
        function.blocks.iter().map(|(_, block)| exit(block.terminator).is_some()).collect();
    // To what nothing leads in the graph control may come by ways that are not in it, and of the entries only those are known that were counted calls.
    let is_entered = |block: usize| graph.entered[block] || before[block].is_empty();
    let sum = |at_most: &[u64], blocks: &[u32]| {
        blocks.iter().fold(0u64, |sum, &block| sum.saturating_add(at_most[block as usize]))
    };
    let blocks = 0..at_most.len();
    for _ in 0..PASSES {
        let known = at_most.to_vec();
        for block in blocks.clone().chain(blocks.clone().rev()) {
            let goes_on = if leaves[block] { u64::MAX } else { sum(at_most, &graph.successors[block]) };
            let comes = if is_entered(block) { u64::MAX } else { sum(at_most, &before[block]) };
            at_most[block] = at_most[block].min(goes_on).min(comes);
        }
        cut_off(&graph.successors, blocks.clone().filter(|&block| is_entered(block)), at_most);
        cut_off(&before, blocks.clone().filter(|&block| leaves[block]), at_most);
        if known == at_most {
            return;
        }
    }
}

/// What is not reached from `roots` over blocks that may have run did not run; of loops sums do not tell it.
fn cut_off(ways: &[Vec<u32>], roots: impl Iterator<Item = usize>, at_most: &mut [u64]) {
    let mut reached = vec![false; at_most.len()];
    let mut open: Vec<usize> = roots.collect();
    while let Some(block) = open.pop() {
        if at_most[block] > 0 && !std::mem::replace(&mut reached[block], true) {
            open.extend(ways[block].iter().map(|&to| to as usize));
        }
    }
    at_most.iter_mut().zip(reached).filter(|(_, reached)| !reached).for_each(|(most, _)| *most = 0);
}

#[cfg(test)]
mod tests;
