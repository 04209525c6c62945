//! Orders functions, or fragments of functions, by cache-directed sort.
//!
//! Takes a [`CallGraph`], gives a permutation of its nodes. Chains of nodes are merged greedily
//! by the gain in locality per byte of the smaller chain. The gain has two parts: calls between
//! the chains get shorter (count times distance to the power -1/4), and hot chains packed
//! together miss a small cache less often (the chance that none of its entries holds the chain).
//! Chains are then sorted by density.
//!
//! S. Pupyrev's successor of hfsort+, as in the code layout library of LLVM 22. The chains there
//! are merged as X_Y or Y_X only, and so they are here; the orders are the same. What differs is
//! that the gain of a merge is worked out only when a bound of it reaches the top of the queue.

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
    let gains = Gains::new(graph, params);
    let mut chains = CallChains::new(graph, |arc| gains.most_gain(arc));
    let mut queue = Queue::new(chains.links.links.len());
    for link in 0..chains.links.links.len() as u32 {
        queue.raise(link, gains.bound(&chains, link));
    }
    while let Some(best) = queue.pop() {
        if !chains.links.is_open(best.link) {
            continue;
        }
        if best.is_bound || chains.links.links[best.link as usize].version != best.version {
            queue.put(best.link, gains.evaluate(&chains, best.link));
            continue;
        }
        let Reverse((x, y)) = best.chains;
        // The chain that the link names first keeps its number, whichever stands first.
        chains.merge(x, y, best.is_reversed);
        for link in chains.links.of(x) {
            queue.raise(link, gains.bound(&chains, link));
        }
    }
    chains.concatenate()
}

/// A merge that the queue holds, or a bound of its gain: the highest gain first, then bounds, for
/// they may hide a better tie, then the smallest chains.
struct Candidate {
    gain: f64,
    is_bound: bool,
    chains: Reverse<(u32, u32)>,
    link: u32,
    /// Of the link, when the gain was worked out.
    version: u32,
    /// Which entry of its link this is.
    number: u32,
    /// The second chain is to stand before the first.
    is_reversed: bool,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = self.gain.total_cmp(&other.gain).then(self.is_bound.cmp(&other.is_bound));
        order.then(self.chains.cmp(&other.chains)).then(self.version.cmp(&other.version))
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

/// The possible merges, at most one entry for each link. An entry may stay while its link
/// changes: as long as it is no less than the gain, it serves as a bound.
struct Queue {
    heap: BinaryHeap<Candidate>,
    /// For each link the number of its entry that counts, and the gain in it.
    current: Vec<(u32, f64)>,
}

/// By how much a bound is put higher than it is, so that it need not be renewed for a trifle.
const HEADROOM: f64 = 1.25;

impl Queue {
    fn new(links: usize) -> Self {
        Self { heap: BinaryHeap::new(), current: vec![(0, f64::NEG_INFINITY); links] }
    }

    /// Makes sure that the entry of a link is no less than this bound; 0 or less needs none.
    fn raise(&mut self, link: u32, bound: f64) {
        if bound > EPSILON && bound > self.current[link as usize].1 {
            let chains = Reverse((0, 0));
            let gain = bound * HEADROOM;
            let entry =
                Candidate { gain, is_bound: true, chains, link, version: 0, is_reversed: false, number: 0 };
            self.put(link, Some(entry));
        }
    }

    /// Replaces the entry of a link.
    fn put(&mut self, link: u32, entry: Option<Candidate>) {
        let current = &mut self.current[link as usize];
        *current = (current.0 + 1, entry.as_ref().map_or(f64::NEG_INFINITY, |entry| entry.gain));
        self.heap.extend(entry.map(|entry| Candidate { number: current.0, ..entry }));
    }

    /// Takes out the highest entry that counts.
    fn pop(&mut self) -> Option<Candidate> {
        loop {
            let entry = self.heap.pop()?;
            let current = &mut self.current[entry.link as usize];
            if current.0 == entry.number {
                current.1 = f64::NEG_INFINITY;
                return Some(entry);
            }
        }
    }
}

/// What merging two chains is worth.
struct Gains<'a> {
    graph: &'a CallGraph,
    params: &'a CdSortParams,
    power: PowerLaw,
    at_distance_zero: f64,
    /// What a call is worth across the whole hot code: as far as it can be.
    apart: f64,
    total_samples: f64,
}

impl<'a> Gains<'a> {
    fn new(graph: &'a CallGraph, params: &'a CdSortParams) -> Self {
        let power = PowerLaw::new(params.distance_power);
        let hot = graph.sizes.iter().zip(&graph.samples).filter(|&(_, &samples)| samples > 0);
        let hot_size: u64 = hot.map(|(&size, _)| u64::from(size.max(1))).sum();
        Self {
            graph,
            params,
            at_distance_zero: PowerLaw::of_one_tenth(params.distance_power),
            apart: power.of(hot_size),
            power,
            total_samples: graph.samples.iter().map(|&samples| samples as f64).sum(),
        }
    }

    /// What calls are worth that cover this distance, each.
    fn worth(&self, distance: u64) -> f64 {
        if distance == 0 { self.at_distance_zero } else { self.power.of(distance) }
    }

    /// The most that a call can gain: caller and callee side by side, the better way round.
    fn most_gain(&self, arc: &CallArc) -> f64 {
        let [caller, callee] = [arc.caller, arc.callee].map(|node| self.graph.sizes[node as usize].max(1));
        let caller_first = caller.saturating_sub(arc.caller_offset).saturating_add(arc.callee_offset);
        let callee_first = callee.saturating_sub(arc.callee_offset).saturating_add(arc.caller_offset);
        arc.count as f64 * (self.worth(caller_first.min(callee_first).into()) - self.apart)
    }

    /// The gain of a merge by what it gains in calls and in the cache.
    fn scaled(&self, x: &Chain, y: &Chain, distance_gain: f64, frequency_gain: f64) -> f64 {
        match distance_gain + self.params.frequency_scale * frequency_gain {
            gain if gain >= 0.0 => gain / x.size.min(y.size) as f64,
            loss => loss,
        }
    }

    /// An upper bound of the gain of merging along a link; 0 if that may not be done.
    fn bound(&self, chains: &CallChains, link: u32) -> f64 {
        let joined = &chains.links.links[link as usize];
        let [x, y] = joined.chains.map(|chain| &chains.chains[chain as usize]);
        if x.nodes.len() + y.nodes.len() > self.params.max_chain_size {
            return 0.0;
        }
        // Sums of floats depend on their order by a few parts in 10^16; a bound must not.
        let most = joined.worth.0.abs() * 1e-9 + joined.worth.0;
        self.scaled(x, y, most, self.frequency_gain(x, y))
    }

    /// The better way to merge along a link, if it gains anything.
    fn evaluate(&self, chains: &CallChains, link: u32) -> Option<Candidate> {
        let joined = &chains.links.links[link as usize];
        let [x, y] = joined.chains.map(|chain| &chains.chains[chain as usize]);
        if x.nodes.len() + y.nodes.len() > self.params.max_chain_size {
            return None;
        }
        let frequency = self.frequency_gain(x, y);
        let [straight, reversed] = [(0, x.size), (y.size, 0)].map(|(x_start, y_start)| {
            self.scaled(x, y, self.distance_gain(chains, link, x_start, y_start), frequency)
        });
        let is_tie = (straight - reversed).abs() < EPSILON;
        let is_reversed = if is_tie { joined.chains[0] > joined.chains[1] } else { reversed > straight };
        let gain = if is_reversed { reversed } else { straight };
        (gain > EPSILON).then_some(Candidate {
            gain,
            is_bound: false,
            chains: Reverse((joined.chains[0], joined.chains[1])),
            link,
            version: joined.version,
            number: 0,
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
            arc.count as f64 * (self.worth(distance) - self.apart)
        };
        chains.links.arcs(joined.arcs).map(|arc| worth(&chains.arcs[arc as usize])).sum()
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
        let (mut chance, mut power, mut entries) = (1.0, miss, self.params.cache_entries);
        while entries > 0 {
            chance *= if entries % 2 == 1 { power } else { 1.0 };
            power *= power;
            entries /= 2;
        }
        chance
    }
}
