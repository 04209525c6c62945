//! Makes branches cheaper before the blocks are ordered, which leaves their order free:
//!
//! - *Jump threading*: what leads to a block that is nothing but a jump leads to where that jump goes. The block stays, for
//!   whoever else knows its address, but runs no more.
//! - *Likelier first*: of a conditional branch's two ways the likelier is the one that is named in the branch. Where the other
//!   follows in the layout, the writer inverts the condition; where neither does, only the other way costs a
//!   second jump.
//!
//! Counts follow, so that the sum over all ways into every block stays what it was.

use crate::pass::{Pass, Run};
use afterlink_core::index::Id;
use afterlink_program::{Block, BlockId, FuncId, Function, Program, Target, Terminator};
use afterlink_weigh::{CallWeight, EdgeWeight, FunctionWeights, Weights};
use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

/// Bare jumps that lead to one another are followed no further than this.
const LONGEST_CHAIN: usize = 8;

pub(crate) const PASS: Pass = Pass {
    name: "branches",
    what: "leads jumps to jumps around them, and names the likelier way of a branch first",
    by_default: true,
    off: None,
    has_work: |_| true,
    run: Run::Code(|job| improve(job.program, job.weights, job.moved)),
};

/// Improves the branches of the functions that move and have counts; gives the number of blocks that end otherwise.
fn improve(program: &mut Program, weights: &mut Weights, moved: &[FuncId]) -> usize {
    let mut changes = 0;
    let counted = moved.iter().filter(|id| id.index() < weights.functions.len());
    for &id in counted.collect::<Vec<_>>() {
        let (function, weights) = (&mut program.functions[id], &mut weights.functions[id]);
        if weights.is_hot() {
            changes += thread_jumps(function, weights) + put_likelier_first(function, weights);
        }
    }
    changes
}

fn thread_jumps(function: &mut Function, weights: &mut FunctionWeights) -> usize {
    let mut changes = 0;
    let mut counts = Counts::new(weights);
    for id in function.blocks.ids() {
        let (threaded, moves) = threaded(function, id);
        changes += usize::from(function.blocks[id].terminator != threaded);
        function.blocks[id].terminator = threaded;
        for Moved { over, to } in moves.into_iter().flatten() {
            counts.lead_around(function, id, &over, to);
        }
    }
    counts.write_back();
    changes
}

/// A way out of a block that no longer leads over these bare jumps.
struct Moved {
    over: Vec<BlockId>,
    to: Target,
}

/// The block's terminator with its targets threaded.
fn threaded(function: &Function, id: BlockId) -> (Terminator, [Option<Moved>; 2]) {
    let block = &function.blocks[id];
    let end_of = |target: Target| match target {
        Target::Block(first) => destination(function, first),
        _ => None,
    };
    let same = (block.terminator, [None, None]);
    match block.terminator {
        // Bare jumps keep leading to the next one: others may come in between.
        Terminator::Jump(_) if bare_jump(block).is_some() => same,
        Terminator::FallThrough(next) => match destination(function, next) {
            Some(moved) => (Terminator::Jump(moved.to), [Some(moved), None]),
            None => same,
        },
        Terminator::Jump(target) => match end_of(target) {
            Some(moved) => (Terminator::Jump(moved.to), [Some(moved), None]),
            None => same,
        },
        Terminator::Branch { condition, taken, next } => {
            let on_taken = end_of(taken);
            // Going on needs a block of this function.
            let on_next = destination(function, next).filter(|m| matches!(m.to, Target::Block(_)));
            let new_taken = on_taken.as_ref().map_or(taken, |m| m.to);
            let new_next = match on_next.as_ref().map(|m| m.to) {
                Some(Target::Block(block)) => block,
                _ => next,
            };
            if new_taken == Target::Block(new_next) {
                return same;
            }
            (Terminator::Branch { condition, taken: new_taken, next: new_next }, [on_taken, on_next])
        }
        _ => same,
    }
}

/// Where a bare jump at `first` leads in the end. `None` if there is none, or if it leads in a circle.
fn destination(function: &Function, first: BlockId) -> Option<Moved> {
    let mut over = Vec::new();
    let mut at = first;
    while over.len() < LONGEST_CHAIN {
        match bare_jump(&function.blocks[at]) {
            None => return (!over.is_empty()).then_some(Moved { over, to: Target::Block(at) }),
            Some(Target::Block(next)) => {
                over.push(at);
                at = next;
            }
            Some(to) => {
                over.push(at);
                return Some(Moved { over, to });
            }
        }
    }
    None
}

/// The target of a block that does nothing else.
fn bare_jump(block: &Block) -> Option<Target> {
    match block.terminator {
        Terminator::Jump(target) if block.body == 0 && block.chunks.is_empty() => Some(target),
        _ => None,
    }
}

/// A function's counts while ways are led around blocks.
struct Counts<'w> {
    weights: &'w mut FunctionWeights,
    edges: BTreeMap<(BlockId, BlockId), u64>,
}

impl<'w> Counts<'w> {
    fn new(weights: &'w mut FunctionWeights) -> Self {
        let edges = weights.edges.iter().map(|e| ((e.from, e.to), e.count)).collect();
        Self { weights, edges }
    }

    /// What went from `from` to the first of `over` goes to `to` at once.
    fn lead_around(&mut self, function: &Function, from: BlockId, over: &[BlockId], to: Target) {
        let Some(count) = self.edges.remove(&(from, over[0])) else { return };
        for (i, &block) in over.iter().enumerate() {
            let runs = &mut self.weights.blocks[block.index()];
            *runs = runs.saturating_sub(count);
            let next = over.get(i + 1).copied().map(Target::Block).unwrap_or(to);
            match next {
                Target::Block(next) => {
                    let passed = self.edges.entry((block, next)).or_default();
                    *passed = passed.saturating_sub(count);
                }
                _ => self.move_call(function, block, from, count),
            }
        }
        if let Target::Block(to) = to {
            *self.edges.entry((from, to)).or_default() += count;
        }
    }

    /// A tail call that `block` made is now made by `from`.
    fn move_call(&mut self, function: &Function, block: BlockId, from: BlockId, count: u64) {
        let Some(call) = self.weights.calls.iter_mut().find(|c| c.block == block) else { return };
        call.count = call.count.saturating_sub(count);
        let moved = CallWeight { block: from, offset: function.blocks[from].body, count, ..*call };
        self.weights.calls.push(moved);
    }

    fn write_back(self) {
        let edges = self.edges.into_iter().map(|((from, to), count)| EdgeWeight { from, to, count });
        self.weights.edges = edges.collect();
        self.weights.calls.retain(|c| c.count > 0);
        self.weights.calls.sort_unstable();
    }
}

fn put_likelier_first(function: &mut Function, weights: &FunctionWeights) -> usize {
    let mut changes = 0;
    for id in function.blocks.ids() {
        let terminator = &mut function.blocks[id].terminator;
        let Terminator::Branch { condition, taken: Target::Block(taken), next } = *terminator else {
            continue;
        };
        if weights.edge(id, next) > weights.edge(id, taken) {
            *terminator = Terminator::Branch {
                condition: condition.inverse(),
                taken: Target::Block(next),
                next: taken,
            };
            changes += 1;
        }
    }
    changes
}
