//! Counts of branches that do not fit together: of samples of branch stacks, of counters that lost some, of another build.
//!
//! Where more comes to blocks than leaves them, or less, by more than a little, the flow of minimum cost stands for the counts, which
//! contradicts them least. The costs were measured: `docs/decisions/0008-samples.md` has them beside BOLT's, and
//! `docs/decisions/0002-hot-code-is-packed.md` those of counters that are kept of a part of a function only, as BOLT's are.

use crate::inference::{Evidence, Observed, infer};
use crate::sums::{Sums, raise_to_calls};
use afterlink_analyze::flow::FlowGraph;
use afterlink_core::index::Id;
use afterlink_isa::Encoding;
use afterlink_program::{
    Block, BlockId, EdgeWeight, Function, FunctionWeights, Role, Stop, Target, Terminator,
};

/// What may be missing, of all executions: exceptions and signals leave in the middle.
const TOLERATED: f64 = 0.01;
/// Cost of an execution more or fewer than was counted, of one of a block, jump or fall-through of which nothing was counted, and of a
/// call more than was counted.
const COUNTED: i64 = 150;
const UNKNOWN_BLOCK: i64 = 50;
const UNKNOWN_JUMP: i64 = 140;
const UNKNOWN_FALL_THROUGH: i64 = 100;
const CALL: i64 = 10;
/// Cost of leaving where functions do not usually, and behind a call, if calls may not come back.
const UNUSUAL_EXIT: i64 = 1000;
const LOST_IN_CALL: i64 = 300;
/// Cost of an execution fewer than a counter says, and of one where control cannot have come: more than of any number of others along one way.
const CERTAIN: i64 = 20_000;
const IMPOSSIBLE: i64 = 100_000;
/// More executions than this are not told apart.
pub(crate) const MOST: u64 = 1 << 50;

/// What counts that do not fit together are.
#[derive(Clone, Copy)]
pub(crate) enum Counts<'n> {
    /// Samples: each may be too many or too few, and calls come back.
    Samples,
    /// Those of counters that lost some, or are not kept of every branch: never too many. Some calls throw, or end the program; a function that always does has no
    /// other way out, and all that comes to it would have to be wrong. Of some blocks it is known that they never ran.
    Counters { never: &'n dyn Fn(&Block) -> bool },
}

impl Counts<'_> {
    fn never(&self, block: &Block) -> bool {
        matches!(self, Self::Counters { never } if never(block))
    }

    /// Whether flow may end behind a block, as what it calls does not come back.
    fn may_end(&self, function: &Function, block: &Block) -> bool {
        matches!(self, Self::Counters { .. }) && ends_with_call(function, block)
    }

    /// What is known of each block; `may_end` says of blocks whether flow may end behind them.
    fn of_blocks(&self, function: &Function, weights: &FunctionWeights, may_end: &[bool]) -> Vec<Evidence> {
        let sure = passed(function, weights, |edge| !may_end[edge.from.index()]);
        let of_block = |(id, block): (BlockId, &Block)| {
            if self.never(block) {
                return Evidence { count: 0, more: IMPOSSIBLE, fewer: 0 };
            }
            let known = evidence(weights.block(id), UNKNOWN_BLOCK);
            // It was worked out from what came and what left, of which not all is sure.
            if sure[id.index()] < known.count { known } else { self.of_counter(known) }
        };
        function.blocks.iter().map(of_block).collect()
    }

    /// What is known of each way out of a block, if it is not counted who comes back from the call that the block ends with (`may_end`).
    fn of_ways(
        &self,
        function: &Function,
        weights: &FunctionWeights,
        (from, successors): (BlockId, &[u32]),
        may_end: bool,
    ) -> Vec<Evidence> {
        let known = |&to: &u32| {
            let known = edge(function, weights, from, BlockId(to));
            if may_end { Evidence { fewer: 0, ..known } } else { self.of_counter(known) }
        };
        successors.iter().map(known).collect()
    }

    fn of_counter(&self, known: Evidence) -> Evidence {
        let is_sure = matches!(self, Self::Counters { .. }) && known.count > 0;
        if is_sure { Evidence { fewer: CERTAIN, ..known } } else { known }
    }
}

/// Makes `weights` a flow.
pub(crate) fn restore(function: &Function, weights: &mut FunctionWeights, counts: Counts) {
    let graph = FlowGraph::of(function, |_| false);
    let may_end: Vec<bool> =
        function.blocks.iter().map(|(_, block)| counts.may_end(function, block)).collect();
    let blocks = counts.of_blocks(function, weights, &may_end);
    let ways = function.blocks.ids().zip(graph.successors.iter().map(Vec::as_slice)).zip(&may_end);
    let edges: Vec<Vec<Evidence>> =
        ways.map(|(ways, may_end)| counts.of_ways(function, weights, ways, *may_end)).collect();
    let entry = Evidence { count: weights.entries.min(MOST), more: CALL, fewer: COUNTED };
    let entries: Vec<_> = function.blocks.ids().map(|b| (b.index() == 0).then_some(entry)).collect();
    let lost = Evidence { more: LOST_IN_CALL, ..Evidence::default() };
    let exits = function.blocks.iter().zip(&may_end);
    let exits = exits.map(|((_, block), may_end)| exit(block.terminator).or(may_end.then_some(lost)));
    let exits: Vec<_> = exits.collect();
    let observed = Observed {
        successors: &graph.successors,
        blocks: &blocks,
        edges: &edges,
        entries: &entries,
        exits: &exits,
    };
    let flow = infer(&observed);
    weights.entries = flow.entries.first().copied().unwrap_or(0);
    for from in function.blocks.ids() {
        // Backwards: of ways to one block the first counts.
        let ways = graph.successors[from.index()].iter().zip(&flow.edges[from.index()]);
        for (&to, &count) in ways.rev() {
            if let Ok(at) = edge_at(weights, from, BlockId(to)) {
                weights.edges[at].count = count;
            }
        }
    }
    weights.blocks = flow.blocks;
}

/// How often at least control passed each block, by what was counted on these edges, of calls and of the entry.
fn passed(function: &Function, weights: &FunctionWeights, is_sure: impl Fn(&EdgeWeight) -> bool) -> Vec<u64> {
    let Sums { come, mut left } =
        Sums::of(function, weights.entries, weights.edges.iter().filter(|edge| is_sure(edge)));
    raise_to_calls(&mut left, &weights.calls);
    come.into_iter().zip(left).map(|(come, left)| come.max(left)).collect()
}

/// Whether the last thing that a block does is to call something.
fn ends_with_call(function: &Function, block: &Block) -> bool {
    let last = function.operands_of(block).last();
    last.is_some_and(|last| {
        let Encoding::Relative32 { end } = last.encoding else { return false };
        last.role == Role::Call && last.at + u32::from(end) == block.body
    })
}

/// Whether as much comes to the blocks as leaves them, nearly; or nothing was counted there.
pub(crate) fn fits(function: &Function, weights: &FunctionWeights) -> bool {
    if weights.inside_unknown {
        return true;
    }
    let Sums { come, left } = Sums::of(function, weights.entries, &weights.edges);
    let (mut missing, mut all) = (0.0, 0.0);
    for (id, block) in function.blocks.iter() {
        let (come, left) = (come[id.index()], left[id.index()]);
        all += come.max(left) as f64;
        missing +=
            if exit(block.terminator).is_some() { left.saturating_sub(come) } else { left.abs_diff(come) }
                as f64;
    }
    missing <= TOLERATED * all
}

fn evidence(count: u64, unknown: i64) -> Evidence {
    match count {
        0 => Evidence { count: 0, more: unknown, fewer: 0 },
        _ => Evidence { count: count.min(MOST), more: COUNTED, fewer: COUNTED },
    }
}

fn edge(function: &Function, weights: &FunctionWeights, from: BlockId, to: BlockId) -> Evidence {
    let at = edge_at(weights, from, to);
    let falls = falls_to(function, from, to);
    evidence(
        at.map_or(0, |i| weights.edges[i].count),
        if falls { UNKNOWN_FALL_THROUGH } else { UNKNOWN_JUMP },
    )
}

fn edge_at(weights: &FunctionWeights, from: BlockId, to: BlockId) -> Result<usize, usize> {
    weights.edges.binary_search_by_key(&(from, to), |edge| (edge.from, edge.to))
}

/// Whether control comes from one block to the other without a jump.
pub(crate) fn falls_to(function: &Function, from: BlockId, to: BlockId) -> bool {
    match function.blocks[from].terminator {
        Terminator::FallThrough(next)
        | Terminator::Branch { next, .. }
        | Terminator::ShortBranch { next, .. } => next == to,
        _ => false,
    }
}

/// Whether control may leave the function behind a block, and what it costs to think so.
pub(crate) fn exit(terminator: Terminator) -> Option<Evidence> {
    let leaves = |target: Target| !matches!(target, Target::Block(_));
    let more = match terminator {
        Terminator::Stop(Stop::Return | Stop::TailCall) => 0,
        Terminator::Jump(target) if leaves(target) => 0,
        Terminator::Branch { taken, .. } | Terminator::ShortBranch { taken, .. } if leaves(taken) => {
            UNKNOWN_JUMP
        }
        Terminator::Indirect { .. } => UNKNOWN_JUMP,
        Terminator::Stop(Stop::Trap | Stop::Unknown) | Terminator::LastCall(_) => UNUSUAL_EXIT,
        _ => return None,
    };
    Some(Evidence { more, ..Evidence::default() })
}

#[cfg(test)]
mod tests;
