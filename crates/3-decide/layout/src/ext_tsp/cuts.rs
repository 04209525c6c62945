//! What it costs to cut a chain in two.
//!
//! The gain of a merge is what the jumps between the two chains earn, less what the jumps across
//! the cut lose. A jump that crosses the cut loses the same wherever the cut lies: with another
//! chain in between it grows by the size of that; with the halves swapped a jump of length d
//! turns round and has length size - d. So one pass over the jumps of a chain gives the loss of
//! every cut as a prefix sum.

use super::chains::{Chain, ChainGraph, CutLosses};
use super::jumps::Flow;

/// Works out what cutting a chain costs, as it is now.
pub fn weigh(flow: &Flow, chains: &mut ChainGraph, chain: u32) {
    let mut cuts = std::mem::take(&mut chains.chains[chain as usize].cuts);
    renew(&mut cuts, flow, chains, &chains.chains[chain as usize]);
    chains.chains[chain as usize].cuts = cuts;
}

fn renew(cuts: &mut CutLosses, flow: &Flow, chains: &ChainGraph, chain: &Chain) {
    if chain.nodes.len() < 2 {
        return;
    }
    insertion_losses(&mut cuts.least_insertion, flow, chains, chain, 1);
    let turned = |length: i64| if length >= 0 { length - chain.size } else { length + chain.size };
    losses_of_cuts(&mut cuts.rotation, flow, chains, chain, turned);
    let least = cuts.rotation[1..].iter().copied().min().unwrap_or(0);
    cuts.rotation_gain = if chain.is_entry() { 0 } else { -least.min(0) };
}

/// What each cut of a chain loses with `inserted` bytes in between.
pub fn insertion_losses(
    table: &mut Vec<i64>,
    flow: &Flow,
    chains: &ChainGraph,
    chain: &Chain,
    inserted: i64,
) {
    let stretched = |length: i64| if length >= 0 { length + inserted } else { length - inserted };
    losses_of_cuts(table, flow, chains, chain, stretched);
}

/// What each cut loses if a jump of some length that crosses it gets the length `changed`.
fn losses_of_cuts(
    table: &mut Vec<i64>,
    flow: &Flow,
    chains: &ChainGraph,
    chain: &Chain,
    changed: impl Fn(i64) -> i64,
) {
    table.clear();
    table.resize(chain.nodes.len() + 1, 0);
    for id in chains.links.arcs(chain.jumps) {
        let jump = &flow.jumps[id as usize];
        let (from, to) = (chains.place[jump.from as usize], chains.place[jump.to as usize]);
        let length = to.address - from.address - flow.sizes[jump.from as usize];
        let loss = flow.jump_score(jump, length) - flow.jump_score(jump, changed(length));
        // It crosses the cuts behind its first block up to the one in front of its last.
        table[from.position.min(to.position) as usize + 1] += loss;
        table[from.position.max(to.position) as usize + 1] -= loss;
    }
    let mut sum = 0;
    for loss in table.iter_mut() {
        sum += *loss;
        *loss = sum;
    }
    // What is behind the last block is no cut; the sum there is 0.
    table.pop();
}
