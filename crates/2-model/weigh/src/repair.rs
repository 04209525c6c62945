//! Works out what a profile leaves open: block counts, and fall-throughs that a sampled profile does not record.
//!
//! A block ran as often as control entered it or left it, whichever is known to be more. What left a block
//! beyond its recorded jumps fell through, or took the only jump that it has if no record says so. Each pass may reveal counts for the next; a profile that was counted
//! exactly is complete after the first.

use crate::sums::{Sums, raise_to_calls};
use afterlink_program::{BlockId, Function, FunctionWeights, Target, Terminator};

/// Passes over the function; sampled fall-throughs chain over a few blocks.
const PASSES: usize = 8;

/// Fills in `weights.blocks` and raises the counts of fall-through edges.
pub(crate) fn complete(function: &Function, weights: &mut FunctionWeights) {
    weights.blocks = vec![0; function.blocks.len()];
    for _ in 0..PASSES {
        let Sums { come, left } = Sums::of(function, weights.entries, &weights.edges);
        raise_to_calls(&mut weights.blocks, &weights.calls);
        for (i, count) in weights.blocks.iter_mut().enumerate() {
            *count = (*count).max(come[i]).max(left[i]);
        }
        // Nothing says that an uncounted branch fell through.
        if weights.inside_unknown || !raise_fall_throughs(function, weights, &left) {
            return;
        }
    }
}

/// Gives what is missing on the way out of each block to its fall-through edge. Whether anything changed.
fn raise_fall_throughs(function: &Function, weights: &mut FunctionWeights, left: &[u64]) -> bool {
    let mut changed = false;
    for (id, block) in function.blocks.iter() {
        let next: BlockId = match block.terminator {
            Terminator::FallThrough(next)
            | Terminator::Branch { next, .. }
            | Terminator::ShortBranch { next, .. } => next,
            // A call in front of a jump that a layout needs no more returns to where the jump led.
            Terminator::Jump(Target::Block(next)) if left[id.0 as usize] == 0 => next,
            _ => continue,
        };
        let missing = weights.blocks[id.0 as usize].saturating_sub(left[id.0 as usize]);
        if missing == 0 {
            continue;
        }
        if let Ok(i) = weights.edges.binary_search_by_key(&(id, next), |e| (e.from, e.to)) {
            let count = &mut weights.edges[i].count;
            *count = count.saturating_add(missing);
            changed = true;
        }
    }
    changed
}
