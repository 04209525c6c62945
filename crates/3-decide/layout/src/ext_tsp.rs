//! Orders the basic blocks of one function so that hot jumps become fall-throughs or short hops.
//!
//! Takes a [`FlowGraph`], gives a permutation of its blocks that starts with the entry. The
//! objective is the extended travelling-salesman score: a fall-through earns its full count, a
//! short jump a tenth of it, fading to nothing with the distance. The heuristic starts with one
//! chain per block and repeatedly makes the merge of two chains that earns most, where the first
//! chain may be cut in two to take the second in between or beside its halves.
//!
//! A. Newell and S. Pupyrev, "Improved Basic Block Reordering", IEEE Transactions on Computers
//! 2020 (arXiv 1809.04676); limits on chain length and density as in the code layout library of
//! LLVM 22.
//!
//! Three things differ from that library in how, not in what: scores are integers, so that ties
//! are true ties; all cuts of a chain are scored together (the loss of a cut is a prefix sum over
//! the jumps that it crosses); and a merge is only evaluated when an upper bound of its gain
//! reaches the top of the queue. Two things differ in what: a few blocks are also ordered by their best
//! fall-throughs exactly, and all blocks as in the input with the never executed ones at the end; the
//! order with the highest score is the result.

mod arrangement;
mod chains;
mod cuts;
mod exact;
mod jumps;
mod merge;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::graph::{FlowEdge, FlowGraph};
use arrangement::Merge;
use chains::ChainGraph;
use jumps::Flow;
use merge::MergeEvaluator;

/// The published constants. Distances are in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtTspParams {
    /// Earned by a fall-through out of a block with several successors.
    pub fallthrough_conditional: f64,
    /// Earned by a fall-through out of a block with one successor (it saves a jump instruction).
    pub fallthrough_unconditional: f64,
    /// Earned by a forward jump of length 0+, fading linearly to 0 at `forward_distance`.
    pub forward_weight: f64,
    pub forward_distance: u32,
    /// The same for backward jumps, measured from the end of the source to the target's start.
    pub backward_weight: f64,
    pub backward_distance: u32,
    /// Chains of up to this many blocks are cut at every place; longer ones only beside jumps.
    pub chain_split_threshold: usize,
    /// Two chains that together have this many blocks or more are not merged.
    pub max_chain_size: usize,
    /// Two chains whose densities (count per byte) differ by more than this factor are not merged.
    pub max_density_ratio: f64,
}

impl Default for ExtTspParams {
    fn default() -> Self {
        Self {
            fallthrough_conditional: 1.0,
            fallthrough_unconditional: 1.05,
            forward_weight: 0.1,
            forward_distance: 1024,
            backward_weight: 0.1,
            backward_distance: 640,
            chain_split_threshold: 128,
            max_chain_size: 512,
            max_density_ratio: 100.0,
        }
    }
}

/// The best order found: a permutation of `0..graph.len()` with block 0 first. A graph without
/// counts keeps its order.
pub fn order_blocks(graph: &FlowGraph, params: &ExtTspParams) -> Vec<u32> {
    graph.assert_well_formed();
    let input: Vec<u32> = (0..graph.len() as u32).collect();
    let flow = Flow::new(graph, params);
    if graph.len() < 3 || flow.jumps.is_empty() {
        return input;
    }
    let mut chains = ChainGraph::new(&flow);
    glue_forced_pairs(&flow, &mut chains);
    merge_by_gain(&flow, params, &mut chains);
    glue_along_edges(&flow, &mut chains);
    let merged = chains.concatenate();
    let (executed, never) = crate::split::partition(&input, |block| flow.counts[block as usize] > 0);
    let exact = exact::best_fall_throughs(&flow, &executed).map(|best| [&best[..], &never].concat());
    let kept = [executed, never].concat();
    // Of equal ones the first.
    let better =
        |best: Vec<u32>, other: Vec<u32>| if flow.score(&other) > flow.score(&best) { other } else { best };
    exact.into_iter().chain([kept]).fold(merged, better)
}

/// The extended travelling-salesman score of `order`, in executions: the sum over all edges of
/// count times what the edge earns at its length.
pub fn ext_tsp_score(graph: &FlowGraph, order: &[u32], params: &ExtTspParams) -> f64 {
    graph.assert_well_formed();
    assert_eq!(order.len(), graph.len(), "an order names every block once");
    let mut places = vec![0..0; graph.len()];
    let mut address = 0;
    for &block in order {
        let end = address + i64::from(graph.sizes[block as usize].max(1));
        places[block as usize] = address..end;
        address = end;
    }
    ext_tsp_score_at(&graph.edges, &places, params)
}

/// The same of blocks that stand anywhere: `places` says where each starts and ends.
pub fn ext_tsp_score_at(edges: &[FlowEdge], places: &[Range<i64>], params: &ExtTspParams) -> f64 {
    let mut edges = edges.to_vec();
    edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
    let mut out_degree = vec![0u32; places.len()];
    for same in edges.chunk_by(|a, b| (a.from, a.to) == (b.from, b.to)) {
        out_degree[same[0].from as usize] += 1;
    }
    edges
        .iter()
        .map(|edge| {
            let length = places[edge.to as usize].start - places[edge.from as usize].end;
            let fading = |weight: f64, distance: u32| {
                weight * (1.0 - length.unsigned_abs() as f64 / f64::from(distance)).max(0.0)
            };
            let earned = match length {
                0 if out_degree[edge.from as usize] > 1 => params.fallthrough_conditional,
                0 => params.fallthrough_unconditional,
                1.. => fading(params.forward_weight, params.forward_distance),
                _ => fading(params.backward_weight, params.backward_distance),
            };
            earned * edge.count as f64
        })
        .sum()
}

/// Glues a block to its only successor where it is that one's only predecessor: they stand
/// together in some best order. A ring of such pairs is opened before its smallest block.
fn glue_forced_pairs(flow: &Flow, chains: &mut ChainGraph) {
    let blocks = flow.sizes.len() as u32;
    let mut next: Vec<Option<u32>> = vec![None; blocks as usize];
    let mut previous: Vec<Option<u32>> = vec![None; blocks as usize];
    for block in 0..blocks {
        if let [only] = flow.successors(block)
            && only.to != 0
            && flow.in_degree[only.to as usize] == 1
        {
            next[block as usize] = Some(only.to);
            previous[only.to as usize] = Some(block);
        }
    }
    open_rings(&mut next, &mut previous);
    for head in (0..blocks).filter(|&block| previous[block as usize].is_none()) {
        let mut last = head;
        while let Some(block) = next[last as usize] {
            chains.glue(last, block);
            last = block;
        }
    }
}

/// Opens each ring of forced pairs before its smallest block.
fn open_rings(next: &mut [Option<u32>], previous: &mut [Option<u32>]) {
    let mut is_seen = vec![false; next.len()];
    let heads = (0..next.len()).filter(|&block| previous[block].is_none());
    // What no head leads to is in a ring, and of a ring its smallest block is met first.
    for first in heads.chain(0..next.len()).collect::<Vec<_>>() {
        let mut walk = Some(first as u32);
        while let Some(block) = walk
            && !is_seen[block as usize]
        {
            is_seen[block as usize] = true;
            walk = next[block as usize];
            if walk == Some(first as u32) {
                next[block as usize] = None;
                previous[first] = None;
            }
        }
    }
}

/// What the queue holds: the gain of merging the chains of a link, or a bound of it.
///
/// The order of the fields is the order of the queue: the highest gain; a bound before an exact
/// gain of the same height, for it may hide a better tie; then the smallest chains.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    gain: i64,
    is_bound: bool,
    chains: Reverse<(u32, u32)>,
    link: u32,
    /// Which state of the edge this speaks of.
    version: u32,
    merge: Option<Merge>,
}

/// Makes the merge with the highest gain until none has any.
fn merge_by_gain(flow: &Flow, params: &ExtTspParams, chains: &mut ChainGraph) {
    let mut evaluator = MergeEvaluator::new(flow, params);
    let mut queue = BinaryHeap::new();
    for chain in 0..chains.chains.len() as u32 {
        cuts::weigh(flow, chains, chain);
    }
    for link in (0..chains.links.links.len() as u32).filter(|&link| chains.links.is_open(link)) {
        queue.extend(bound(params, chains, link));
    }
    while let Some(candidate) = queue.pop() {
        let link = &chains.links.links[candidate.link as usize];
        if link.version != candidate.version {
            continue;
        }
        let Some(merge) = candidate.merge else {
            queue.extend(evaluate(&mut evaluator, chains, candidate.link));
            continue;
        };
        let Reverse((into, from)) = candidate.chains;
        chains.merge(into, from, merge);
        cuts::weigh(flow, chains, into);
        queue.extend(chains.links.of(into).filter_map(|link| bound(params, chains, link)));
    }
}

/// An upper bound of the gain of merging the two chains of a link, if they may be merged: the most
/// that the jumps between them can earn, and the better rotation of either for free. (Taking a
/// chain in between only ever lengthens the other's jumps.)
fn bound(params: &ExtTspParams, chains: &ChainGraph, link: u32) -> Option<Candidate> {
    let joined = &chains.links.links[link as usize];
    let [a, b] = joined.chains.map(|chain| &chains.chains[chain as usize]);
    if a.nodes.len() + b.nodes.len() >= params.max_chain_size {
        return None;
    }
    let (a_density, b_density) = (a.density(), b.density());
    if a_density.max(b_density) > params.max_density_ratio * a_density.min(b_density) {
        return None;
    }
    let gain = joined.worth.total() + a.cuts.rotation_gain.max(b.cuts.rotation_gain);
    Some(Candidate {
        gain,
        is_bound: true,
        chains: Reverse((0, 0)),
        link,
        version: joined.version,
        merge: None,
    })
}

/// The best merge along a link, in either direction, if it gains anything.
fn evaluate(evaluator: &mut MergeEvaluator, chains: &ChainGraph, link: u32) -> Option<Candidate> {
    let [a, b] = chains.links.links[link as usize].chains;
    let version = chains.links.links[link as usize].version;
    [(a, b), (b, a)]
        .into_iter()
        .filter_map(|(into, from)| {
            let (gain, merge) = evaluator.best_merge(chains, into, from, link)?;
            let chains = Reverse((into, from));
            Some(Candidate { gain, is_bound: false, chains, link, version, merge: Some(merge) })
        })
        .max()
}

/// Joins what is left where one chain ends with a jump to the start of another, hot with hot and
/// cold with cold: the most frequent jump of a block first, then its fall-through. Code that
/// never ran so keeps its order and needs no new jumps.
fn glue_along_edges(flow: &Flow, chains: &mut ChainGraph) {
    let mut successors = Vec::new();
    for block in 0..flow.sizes.len() as u32 {
        if chains.chain_of(block).nodes.last() != Some(&block) {
            continue;
        }
        successors.clear();
        successors.extend_from_slice(flow.successors(block));
        successors.sort_by_key(|edge| (Reverse(edge.count), edge.to != block + 1, edge.to));
        let next = successors.iter().map(|edge| edge.to).find(|&to| {
            let (from_chain, to_chain) = (chains.chain_of(block), chains.chain_of(to));
            chains.place[block as usize].chain != chains.place[to as usize].chain
                && to != 0
                && to_chain.nodes.first() == Some(&to)
                && (from_chain.count > 0.0) == (to_chain.count > 0.0)
        });
        if let Some(next) = next {
            chains.join(block, next);
        }
    }
}
