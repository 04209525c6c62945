//! Orders functions, or fragments of functions, by cache-directed sort.
//!
//! Takes a [`CallGraph`], gives a permutation of its nodes. Chains of nodes are merged greedily
//! by the gain in locality per byte of the smaller chain. The gain has two parts: calls between
//! the chains get shorter (count times distance to the power -1/4), and hot chains packed
//! together miss a small cache less often (the chance that none of its entries holds the chain).
//! Chains are then sorted by density.
//!
//! S. Pupyrev's successor of hfsort+, as in the code layout library of LLVM 22. The chains there
//! are merged as X_Y or Y_X only, and so they are here.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::graph::{CallArc, CallGraph};
use crate::power_law::PowerLaw;

mod chains;
#[cfg(test)]
mod tests;

use chains::{CallChains, Chain};

/// The published constants.
#[derive(Clone, Debug, PartialEq)]
pub struct CdSortParams {
    /// Entries of the modelled cache.
    pub cache_entries: u32,
    /// Bytes of one entry.
    pub cache_size: u32,
    /// Chains of more nodes than this are not built.
    pub max_chain_size: usize,
    /// How fast the worth of a call falls with its length.
    pub distance_power: f64,
    /// The weight of the cache part against the distance part.
    pub frequency_scale: f64,
}

impl Default for CdSortParams {
    fn default() -> Self {
        Self {
            cache_entries: 16,
            cache_size: 2048,
            max_chain_size: 128,
            distance_power: 0.25,
            frequency_scale: 0.25,
        }
    }
}

/// Gains that differ by less are equal.
const EPSILON: f64 = 1e-8;

/// A permutation of `0..graph.len()`. Nodes without samples and calls come last, in input order.
pub fn order_functions(graph: &CallGraph, params: &CdSortParams) -> Vec<u32> {
    graph.assert_well_formed();
    let mut chains = CallChains::new(graph);
    let gains = Gains::new(graph, params);
    let mut queue = BinaryHeap::new();
    for link in 0..chains.links.links.len() as u32 {
        queue.extend(gains.candidate(&chains, link));
    }
    while let Some(best) = queue.pop() {
        if chains.links.links[best.link as usize].version != best.version {
            continue;
        }
        let Reverse((x, y)) = best.chains;
        // The chain that the link names first keeps its number, whichever stands first.
        chains.merge(x, y, best.is_reversed);
        queue.extend(chains.links.of(x).iter().filter_map(|to| gains.candidate(&chains, to.link)));
    }
    chains.concatenate()
}

/// A merge that the queue holds: the highest gain first, then the smallest chains.
struct Candidate {
    gain: f64,
    chains: Reverse<(u32, u32)>,
    link: u32,
    version: u32,
    /// The second chain is to stand before the first.
    is_reversed: bool,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = self.gain.total_cmp(&other.gain).then(self.chains.cmp(&other.chains));
        order.then(self.version.cmp(&other.version))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

/// What merging two chains is worth.
struct Gains<'a> {
    params: &'a CdSortParams,
    power: PowerLaw,
    at_distance_zero: f64,
    /// What a call is worth across the whole hot code: as far as it can be.
    apart: f64,
    total_samples: f64,
}

impl<'a> Gains<'a> {
    fn new(graph: &CallGraph, params: &'a CdSortParams) -> Self {
        let power = PowerLaw::new(params.distance_power);
        let hot = graph.sizes.iter().zip(&graph.samples).filter(|&(_, &samples)| samples > 0);
        let hot_size: u64 = hot.map(|(&size, _)| u64::from(size.max(1))).sum();
        Self {
            params,
            at_distance_zero: PowerLaw::of_one_tenth(params.distance_power),
            apart: power.of(hot_size),
            power,
            total_samples: graph.samples.iter().map(|&samples| samples as f64).sum(),
        }
    }

    /// The better way to merge along a link, if it may be made and gains anything.
    fn candidate(&self, chains: &CallChains, link: u32) -> Option<Candidate> {
        let joined = &chains.links.links[link as usize];
        let [x, y] = joined.chains.map(|chain| &chains.chains[chain as usize]);
        if x.nodes.len() + y.nodes.len() > self.params.max_chain_size {
            return None;
        }
        let frequency = self.params.frequency_scale * self.frequency_gain(x, y);
        let scaled = |distance: f64| match distance + frequency {
            gain if gain >= 0.0 => gain / x.size.min(y.size) as f64,
            loss => loss,
        };
        let straight = scaled(self.distance_gain(chains, link, 0, x.size));
        let reversed = scaled(self.distance_gain(chains, link, y.size, 0));
        let input_order = joined.chains[0] < joined.chains[1];
        let is_reversed =
            if (straight - reversed).abs() < EPSILON { !input_order } else { reversed > straight };
        let gain = if is_reversed { reversed } else { straight };
        let [x, y] = joined.chains;
        (gain > EPSILON).then_some(Candidate {
            gain,
            chains: Reverse((x, y)),
            link,
            version: joined.version,
            is_reversed,
        })
    }

    /// How much more the calls along a link are worth once its chains start at these addresses.
    fn distance_gain(&self, chains: &CallChains, link: u32, x_start: u64, y_start: u64) -> f64 {
        let joined = &chains.links.links[link as usize];
        let address = |node: u32, offset: u32| {
            let place = chains.place[node as usize];
            let start = if place.chain == joined.chains[0] { x_start } else { y_start };
            start + place.address + u64::from(offset)
        };
        let worth = |arc: &CallArc| {
            let from = address(arc.caller, arc.caller_offset);
            let distance = from.abs_diff(address(arc.callee, arc.callee_offset));
            let near = if distance == 0 { self.at_distance_zero } else { self.power.of(distance) };
            arc.count as f64 * (near - self.apart)
        };
        joined.arcs.iter().map(|&arc| worth(&chains.arcs[arc as usize])).sum()
    }

    /// How many fewer executions of the two chains miss the modelled cache once they are one.
    fn frequency_gain(&self, x: &Chain, y: &Chain) -> f64 {
        let misses = |count: f64, size: u64| count * self.miss_probability(count / size as f64);
        misses(x.count, x.size) + misses(y.count, y.size) - misses(x.count + y.count, x.size + y.size)
    }

    /// The chance that none of the cache's entries holds a chain of this density.
    fn miss_probability(&self, density: f64) -> f64 {
        let share = density * f64::from(self.params.cache_size);
        if share >= self.total_samples {
            return 0.0;
        }
        let miss = 1.0 - share / self.total_samples;
        (0..self.params.cache_entries).fold(1.0, |chance, _| chance * miss)
    }
}
