//! How often each part of a body runs when it is entered once, by the callee's counts. Control that leaves the parts does not come back to them:
//! what a loop does behind a way out, the callee does. So these are no shares of the callee's counts, but what its chances make of one
//! entry: the solution of one linear equation a part.

use super::body::{Body, Part};
use afterlink_program::{BlockId, Target, Terminator};
use afterlink_weigh::FunctionWeights;

/// A way that is less probable to be left than this has no solution worth having.
const SMALLEST: f64 = 1e-9;

/// Where control goes from a part, and the chance of each way. Empty where the callee returns.
pub(super) fn ways(part: &Part, callee: &FunctionWeights) -> Vec<(Target, f64)> {
    let of = |to: BlockId| callee.edge(part.block, to) as f64;
    let (taken, next) = match part.terminator {
        Terminator::FallThrough(next) => return vec![(Target::Block(next), 1.0)],
        Terminator::Jump(target) => return vec![(target, 1.0)],
        Terminator::Branch { taken, next, .. } if taken == Target::Block(next) => return vec![(taken, 1.0)],
        Terminator::Branch { taken, next, .. } => (taken, next),
        _ => return Vec::new(),
    };
    let on_next = of(next);
    let on_taken = match taken {
        Target::Block(to) => of(to),
        _ => (callee.block(part.block) as f64 - on_next).max(0.0),
    };
    let chance = if on_taken + on_next > 0.0 { on_taken / (on_taken + on_next) } else { 0.5 };
    vec![(taken, chance), (Target::Block(next), 1.0 - chance)]
}

/// How often each part runs for one entry, no more often than in the callee.
pub(super) fn per_entry(body: &Body, callee: &FunctionWeights) -> Vec<f64> {
    let all: Vec<f64> = body.parts.iter().map(|part| share(callee, part.block)).collect();
    let Some(solved) = solve(body, callee) else { return all };
    solved.iter().zip(&all).map(|(runs, all)| runs.clamp(0.0, *all)).collect()
}

/// How often control leaves the parts for the rest of the callee, for one entry.
pub(super) fn leaving(body: &Body, callee: &FunctionWeights) -> f64 {
    let runs = per_entry(body, callee);
    let leaves = |target: Target| !matches!(target, Target::Block(to) if body.part_of(to).is_some());
    let ways = body.parts.iter().zip(runs).flat_map(|(part, runs)| {
        ways(part, callee).into_iter().map(move |(target, chance)| (target, runs * chance))
    });
    ways.filter(|(target, _)| leaves(*target)).map(|(_, often)| often).sum()
}

fn share(callee: &FunctionWeights, block: BlockId) -> f64 {
    callee.block(block) as f64 / callee.entries.max(1) as f64
}

/// By elimination. `None` if control cannot leave some of the parts.
fn solve(body: &Body, callee: &FunctionWeights) -> Option<Vec<f64>> {
    let count = body.parts.len();
    // A row for each part: what comes in is what runs; the last column is what comes from outside.
    let mut rows = vec![vec![0.0; count + 1]; count];
    rows[0][count] = 1.0;
    for (from, part) in body.parts.iter().enumerate() {
        rows[from][from] += 1.0;
        for (target, chance) in ways(part, callee) {
            let Target::Block(to) = target else { continue };
            if let Some(to) = body.part_of(to) {
                rows[to][from] -= chance;
            }
        }
    }
    for at in 0..count {
        let pivot = (at..count).max_by(|a, b| rows[*a][at].abs().total_cmp(&rows[*b][at].abs()))?;
        rows.swap(at, pivot);
        if rows[at][at].abs() < SMALLEST {
            return None;
        }
        let row = rows[at].clone();
        for (_, other) in rows.iter_mut().enumerate().filter(|(i, _)| *i != at) {
            let factor = other[at] / row[at];
            other.iter_mut().zip(&row).for_each(|(value, own)| *value -= factor * own);
        }
    }
    Some((0..count).map(|at| rows[at][count] / rows[at][at]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use afterlink_core::InputAddr;
    use afterlink_isa::Condition;
    use afterlink_program::{FuncId, Stop};
    use afterlink_unwind::RowId;
    use afterlink_weigh::EdgeWeight;

    fn body(parts: &[(u32, Terminator)]) -> Body {
        let part = |&(block, terminator): &(u32, Terminator)| Part {
            block: BlockId(block),
            start: InputAddr(0x1000),
            size: 4,
            copied: 4,
            operands: Vec::new(),
            rows: Vec::new(),
            ending: RowId(0),
            terminator,
            ends_with_call: false,
            frame: None,
        };
        let parts = parts.iter().map(part).collect();
        Body { callee: FuncId(0), parts, exits: Vec::new(), needs_place: false, leaving: 0.0 }
    }

    fn branch(taken: u32, next: u32) -> Terminator {
        let condition = Condition(4);
        Terminator::Branch { condition, taken: Target::Block(BlockId(taken)), next: BlockId(next) }
    }

    fn weights(blocks: &[u64], edges: &[(u32, u32, u64)]) -> FunctionWeights {
        let edge = |&(from, to, count)| EdgeWeight { from: BlockId(from), to: BlockId(to), count };
        let edges = edges.iter().map(edge).collect();
        FunctionWeights { entries: 100, blocks: blocks.to_vec(), edges, ..FunctionWeights::default() }
    }

    fn assert_near(found: &[f64], expected: &[f64]) {
        let far = found.iter().zip(expected).any(|(a, b)| (a - b).abs() > 1e-9);
        assert!(!far && found.len() == expected.len(), "{found:?} instead of {expected:?}");
    }

    /// Of the last block, the copy has only those runs that did not go through the loop, which stays in the callee.
    #[test]
    fn what_a_loop_behind_a_way_out_does_is_the_callees() {
        let weights = weights(&[100, 600, 100], &[(0, 1, 60), (0, 2, 40), (1, 1, 540), (1, 2, 60)]);
        let body = body(&[(0, branch(2, 1)), (2, Terminator::Stop(Stop::Return))]);
        assert_near(&per_entry(&body, &weights), &[1.0, 0.4]);
        assert_near(&[leaving(&body, &weights)], &[0.6]);
    }

    #[test]
    fn a_loop_among_the_parts_runs_as_often_as_in_the_callee() {
        let weights = weights(&[100, 600, 100], &[(0, 1, 60), (0, 2, 40), (1, 1, 540), (1, 2, 60)]);
        let parts = [(0, branch(2, 1)), (1, branch(1, 2)), (2, Terminator::Stop(Stop::Return))];
        assert_near(&per_entry(&body(&parts), &weights), &[1.0, 6.0, 1.0]);
        assert_near(&[leaving(&body(&parts), &weights)], &[0.0]);
    }

    /// By its counts, nothing leaves it: they say how often it runs.
    #[test]
    fn a_loop_without_an_end() {
        let weights = weights(&[100, 600], &[(0, 1, 100), (1, 1, 500)]);
        let parts =
            [(0, Terminator::FallThrough(BlockId(1))), (1, Terminator::Jump(Target::Block(BlockId(1))))];
        assert_near(&per_entry(&body(&parts), &weights), &[1.0, 6.0]);
    }
}
