//! Blocks that no sample hit, beside others that were hit.
//!
//! A flow of least cost leaves out every block that need not have run. But that a short block was not seen says little where
//! the blocks around it were hit only now and then. So each block that was not seen gets the share of its predecessors' executions that
//! their graph suggests, up to what would probably have been seen of it.

use super::{EXECUTIONS_PER_SAMPLE, Shape, UNSEEN};
use crate::inference::Flow;

/// With fewer samples to be expected of such a block it counts as cold.
const NEGLIGIBLE: f64 = 0.001;

pub(super) fn add(flow: &mut Flow, shape: &Shape, chances: &[Vec<f64>]) {
    let blocks = flow.blocks.len();
    let mut extra = vec![0.0f64; blocks];
    for block in shape.graph.reverse_postorder() {
        let b = block as usize;
        let length = shape.sampled[b].number as f64;
        let most = UNSEEN * EXECUTIONS_PER_SAMPLE / length;
        extra[b] = extra[b].min(most);
        if extra[b] * length < NEGLIGIBLE * EXECUTIONS_PER_SAMPLE {
            extra[b] = 0.0;
        }
        let total = flow.blocks[b] as f64 + extra[b];
        for (way, &to) in shape.graph.successors[b].iter().enumerate() {
            let missing = chances[b][way] * total - flow.edges[b][way] as f64;
            if flow.blocks[to as usize] == 0 && missing > 0.0 {
                extra[to as usize] += missing;
                flow.edges[b][way] += missing.round() as u64;
            }
        }
    }
    for (count, extra) in flow.blocks.iter_mut().zip(extra) {
        *count += extra.ceil() as u64;
    }
}
