//! Chains of functions and the calls between them, kept up to date while chains are merged.

use crate::graph::{CallArc, CallGraph};
use crate::links::{Links, Worth};

/// The most that the calls of a link can gain by getting shorter.
#[derive(Clone, Copy)]
pub struct MostGain(pub f64);

impl Worth for MostGain {
    fn and(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

/// A run of functions that will stand together.
pub struct Chain {
    /// Empty once the chain has been merged into another.
    pub nodes: Vec<u32>,
    /// Bytes.
    pub size: u64,
    /// Executions of all its functions; a float, since a sum of counts may pass 64 bits.
    pub count: f64,
}

impl Chain {
    fn density(&self) -> f64 {
        self.count / self.size as f64
    }
}

/// Where a function stands: bytes from its chain's start.
#[derive(Clone, Copy)]
pub struct Place {
    pub chain: u32,
    pub address: u64,
}

/// A chain has the number of the function that it grew from.
pub struct CallChains {
    pub chains: Vec<Chain>,
    pub links: Links<MostGain>,
    pub place: Vec<Place>,
    /// The calls that were made, recursion left out.
    pub arcs: Vec<CallArc>,
    sizes: Vec<u64>,
}

impl CallChains {
    /// One chain for each function. `most_gain` tells what a call can gain at most.
    pub fn new(graph: &CallGraph, most_gain: impl Fn(&CallArc) -> f64) -> Self {
        let mut arcs = graph.arcs.clone();
        arcs.retain(|arc| arc.count > 0 && arc.caller != arc.callee);
        let sizes: Vec<u64> = graph.sizes.iter().map(|&size| u64::from(size.max(1))).collect();
        let counts = consistent_counts(graph, &arcs);
        let singleton =
            |node: usize| Chain { nodes: vec![node as u32], size: sizes[node], count: counts[node] };
        Self {
            chains: (0..sizes.len()).map(singleton).collect(),
            links: Links::new(
                sizes.len(),
                arcs.iter().map(|arc| (arc.caller, arc.callee, MostGain(most_gain(arc)))),
            ),
            place: (0..sizes.len() as u32).map(|chain| Place { chain, address: 0 }).collect(),
            arcs,
            sizes,
        }
    }

    /// Merges chain `from` into chain `into`, which keeps its number; `in_front` puts `from`
    /// before it.
    pub fn merge(&mut self, into: u32, from: u32, in_front: bool) {
        let gone = &mut self.chains[from as usize];
        let (mut nodes, size, count) = (std::mem::take(&mut gone.nodes), gone.size, gone.count);
        let chain = &mut self.chains[into as usize];
        if in_front {
            std::mem::swap(&mut chain.nodes, &mut nodes);
        }
        chain.nodes.append(&mut nodes);
        chain.size += size;
        chain.count += count;
        let mut address = 0;
        for &node in &chain.nodes {
            self.place[node as usize] = Place { chain: into, address };
            address += self.sizes[node as usize];
        }
        self.links.merge(into, from);
    }

    /// All functions, chains by falling density; chains of equal density by their numbers.
    pub fn concatenate(&self) -> Vec<u32> {
        let mut order: Vec<&Chain> = self.chains.iter().filter(|chain| !chain.nodes.is_empty()).collect();
        order.sort_by(|a, b| f64::total_cmp(&b.density(), &a.density()));
        order.iter().flat_map(|chain| chain.nodes.iter().copied()).collect()
    }
}

/// A function runs at least as often as it is called, and as often as it calls.
fn consistent_counts(graph: &CallGraph, arcs: &[CallArc]) -> Vec<f64> {
    let mut entered = vec![0.0; graph.len()];
    let mut left = vec![0.0; graph.len()];
    for arc in arcs {
        left[arc.caller as usize] += arc.count as f64;
        entered[arc.callee as usize] += arc.count as f64;
    }
    (0..graph.len()).map(|node| (graph.samples[node] as f64).max(entered[node]).max(left[node])).collect()
}
