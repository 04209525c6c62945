//! Orders functions by call-chain clustering (C3, known as hfsort).
//!
//! Takes a [`CallGraph`], gives a permutation of its nodes. Functions are visited by falling
//! density (samples per byte); each brings its cluster behind the cluster of its most frequent
//! caller, unless that call is rare, the cluster would pass a size limit, or a dense caller would
//! be thinned out too much. Clusters are then sorted by density. A callee thus stands right
//! behind the caller that matters to it, which Pettis and Hansen's merging cannot promise.
//!
//! G. Ottoni and B. Maher, "Optimizing Function Placement for Large-Scale Data-Center
//! Applications", CGO 2017.

use crate::graph::CallGraph;

/// The published constants.
#[derive(Clone, Debug, PartialEq)]
pub struct HfSortParams {
    /// Clusters do not grow past this many bytes.
    pub max_cluster_size: u64,
    /// A caller that makes less than this share of all calls of a function does not attract it.
    pub min_call_probability: f64,
    /// A cluster does not take in another that would lower its density by more than this factor.
    pub max_density_loss: f64,
}

impl Default for HfSortParams {
    fn default() -> Self {
        Self { max_cluster_size: 1 << 20, min_call_probability: 0.1, max_density_loss: 8.0 }
    }
}

struct Cluster {
    /// Empty once merged into another.
    nodes: Vec<u32>,
    size: u64,
    samples: f64,
}

impl Cluster {
    fn density(&self) -> f64 {
        self.samples / self.size as f64
    }
}

/// A permutation of `0..graph.len()`. Functions without samples come last, in input order.
pub fn order_functions(graph: &CallGraph, params: &HfSortParams) -> Vec<u32> {
    graph.assert_well_formed();
    let nodes = graph.len() as u32;
    let best_caller = most_frequent_callers(graph, params.min_call_probability);
    let mut clusters: Vec<Cluster> = (0..graph.len())
        .map(|node| Cluster {
            nodes: vec![node as u32],
            size: u64::from(graph.sizes[node].max(1)),
            samples: graph.samples[node] as f64,
        })
        .collect();
    let mut cluster_of: Vec<u32> = (0..nodes).collect();

    for callee in by_density(&clusters) {
        let Some(caller) = best_caller[callee as usize] else { continue };
        // A function is visited once and only then moves, so it still heads its own cluster.
        let (into, from) = (cluster_of[caller as usize] as usize, callee as usize);
        if into == from || clusters[from].samples == 0.0 {
            continue;
        }
        let size = clusters[into].size + clusters[from].size;
        let samples = clusters[into].samples + clusters[from].samples;
        let thinned = clusters[into].density() > params.max_density_loss * (samples / size as f64);
        if size > params.max_cluster_size || thinned {
            continue;
        }
        let moved = std::mem::take(&mut clusters[from].nodes);
        for &node in &moved {
            cluster_of[node as usize] = into as u32;
        }
        clusters[into].nodes.extend(moved);
        clusters[into].size = size;
        clusters[into].samples = samples;
    }

    let order = by_density(&clusters);
    order.iter().flat_map(|&cluster| clusters[cluster as usize].nodes.iter().copied()).collect()
}

/// The clusters by falling density; equals in the order of their numbers.
fn by_density(clusters: &[Cluster]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..clusters.len() as u32).collect();
    order.sort_by(|&a, &b| f64::total_cmp(&clusters[b as usize].density(), &clusters[a as usize].density()));
    order
}

/// For each function the caller that makes most of its calls (the smallest number of equals), if
/// that is at least `min_probability` of them. Recursion does not count.
fn most_frequent_callers(graph: &CallGraph, min_probability: f64) -> Vec<Option<u32>> {
    let mut calls: Vec<(u32, u32, u64)> = graph
        .arcs
        .iter()
        .filter(|arc| arc.caller != arc.callee && arc.count > 0)
        .map(|arc| (arc.callee, arc.caller, arc.count))
        .collect();
    calls.sort_unstable();
    let mut best = vec![None; graph.len()];
    for into_one in calls.chunk_by(|a, b| a.0 == b.0) {
        let callee = into_one[0].0 as usize;
        let mut total = 0u128;
        let mut highest = 0u128;
        for from_one in into_one.chunk_by(|a, b| a.1 == b.1) {
            let count = from_one.iter().map(|call| u128::from(call.2)).sum();
            total += count;
            if count > highest {
                highest = count;
                best[callee] = Some(from_one[0].1);
            }
        }
        // A function may also be entered in ways that no arc tells of.
        let entered = total.max(u128::from(graph.samples[callee]));
        if (highest as f64) < min_probability * entered as f64 {
            best[callee] = None;
        }
    }
    best
}

#[cfg(test)]
mod tests;
