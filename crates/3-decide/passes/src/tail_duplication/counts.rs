//! The counts that go with a duplicate: it runs as often as the way to it, and goes on as its block did.

use afterlink_program::BlockId;
use afterlink_weigh::{CallWeight, EdgeWeight, FunctionWeights};

/// Gives a new block what came to another one by a way, which leads to the new one now.
pub(super) fn share(weights: &mut FunctionWeights, (from, to): (BlockId, BlockId), new: BlockId) {
    let Some(all) = weights.blocks.get(to.0 as usize).copied() else { return };
    let mut runs = 0;
    for edge in weights.edges.iter_mut().filter(|edge| (edge.from, edge.to) == (from, to)) {
        (runs, edge.to) = (edge.count, new);
    }
    weights.blocks[to.0 as usize] = all.saturating_sub(runs);
    weights.blocks.resize(new.0 as usize + 1, 0);
    weights.blocks[new.0 as usize] = runs;
    let mut part = Part { all, runs, passed: 0 };
    let mut edges = Vec::new();
    for edge in weights.edges.iter_mut().filter(|edge| edge.from == to) {
        edges.push(EdgeWeight { from: new, count: part.take(&mut edge.count), ..*edge });
    }
    weights.edges.extend(edges);
    weights.edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
    let mut part = Part { all, runs, passed: 0 };
    let mut calls = Vec::new();
    for call in weights.calls.iter_mut().filter(|call| call.block == to) {
        calls.push(CallWeight { block: new, count: part.take(&mut call.count), ..*call });
    }
    weights.calls.extend(calls);
    weights.calls.sort_unstable();
}

/// A part of what a block did, by ways that are passed one by one.
struct Part {
    all: u64,
    runs: u64,
    passed: u64,
}

impl Part {
    /// Takes its share of a way's count, rounded so that the shares of all ways add up to that of their sum.
    fn take(&mut self, count: &mut u64) -> u64 {
        let share = |passed: u64| {
            let share = u128::from(passed) * u128::from(self.runs) / u128::from(self.all.max(1));
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        let before = share(self.passed);
        self.passed = self.passed.saturating_add(*count);
        let taken = share(self.passed).saturating_sub(before).min(*count);
        *count -= taken;
        taken
    }
}
