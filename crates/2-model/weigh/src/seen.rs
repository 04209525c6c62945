//! How often blocks ran where counts do not fit together, as those of branch stacks.
//!
//! A stack starts and ends in the middle of functions, so what comes to a block and what leaves it are two samples of one number. Their mean
//! is nearer to it than the larger of both is, and than a flow, which leads what came too often along ways that nobody saw. So the flow says
//! how often control went from one block to another, which an order of blocks asks for; and what was seen says how often each
//! block ran, by which the hot part is told from the rest: what nobody saw is cold. What it is worth stands in `docs/decisions/0008-samples.md`.

use crate::sums::{Sums, raise_to_calls};
use afterlink_core::index::Id;
use afterlink_program::{EdgeWeight, Function, FunctionWeights, Target, Terminator};

/// Passes over the function; what falls through without a branch chains over a few blocks.
const PASSES: usize = 8;

/// Executions by block, of the counts of `weights` before anything is filled in. Branches that were not taken must be among them.
pub(crate) fn blocks(function: &Function, weights: &FunctionWeights) -> Vec<u64> {
    let mut edges = weights.edges.clone();
    let mut sums = Sums::of(function, weights.entries, &edges);
    for _ in 0..PASSES {
        if !sums.pass_on(function, &mut edges) {
            break;
        }
        sums = Sums::of(function, weights.entries, &edges);
    }
    let mut seen: Vec<u64> =
        function.blocks.iter().map(|(id, b)| sums.mean(id.index(), b.terminator)).collect();
    raise_to_calls(&mut seen, &weights.calls);
    seen
}

/// Whether an edge is a branch that was not taken.
pub(crate) fn is_not_taken(function: &Function, edge: &EdgeWeight) -> bool {
    matches!(function.blocks[edge.from].terminator,
        Terminator::Branch { next, .. } | Terminator::ShortBranch { next, .. } if next == edge.to)
}

impl Sums {
    /// What comes to a block goes on where no branch is, of which there could be a record, or where a layout dropped the only one. Whether
    /// anything changed.
    fn pass_on(&self, function: &Function, edges: &mut [EdgeWeight]) -> bool {
        let mut changed = false;
        for edge in edges {
            let from = edge.from.index();
            let goes_on = match function.blocks[edge.from].terminator {
                Terminator::FallThrough(_) => true,
                Terminator::Jump(Target::Block(_)) => self.left[from] == 0,
                _ => false,
            };
            if goes_on && self.come[from] > edge.count {
                edge.count = self.come[from];
                changed = true;
            }
        }
        changed
    }

    /// Both are samples of the executions where every way out of a block leads to another one.
    fn mean(&self, block: usize, terminator: Terminator) -> u64 {
        let (come, left) = (self.come[block], self.left[block]);
        match terminator {
            Terminator::FallThrough(_)
            | Terminator::Jump(Target::Block(_))
            | Terminator::Branch { taken: Target::Block(_), .. }
            | Terminator::ShortBranch { taken: Target::Block(_), .. } => {
                come.midpoint(left) + ((come ^ left) & 1)
            }
            _ => come.max(left),
        }
    }
}

#[cfg(test)]
mod tests;
