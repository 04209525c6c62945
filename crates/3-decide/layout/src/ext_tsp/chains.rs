//! Chains of blocks and the edges between chains, kept up to date while chains are merged.

use super::arrangement::{Merge, MergeKind};
use super::jumps::{Flow, MostEarned};
use crate::links::{ArcList, Links};

/// A run of blocks that will stand together.
pub struct Chain {
    /// Empty once the chain has been merged into another.
    pub nodes: Vec<u32>,
    /// Bytes.
    pub size: i64,
    /// Executions of all its blocks; a float, since a sum of counts may pass 64 bits.
    pub count: f64,
    /// Jumps between two blocks of this chain.
    pub jumps: ArcList,
    /// Filled by [`cuts::weigh`](super::cuts::weigh).
    pub cuts: CutLosses,
}

impl Chain {
    pub fn density(&self) -> f64 {
        self.count / self.size as f64
    }

    pub fn is_entry(&self) -> bool {
        self.nodes.first() == Some(&0)
    }
}

/// The losses of a chain, in score units. Index `i` is the cut in front of block `i`; 0 is none.
#[derive(Default)]
pub struct CutLosses {
    /// With the smallest possible chain in between: no insertion loses less.
    pub least_insertion: Vec<i64>,
    /// With the halves swapped. A loss below 0 is a gain.
    pub rotation: Vec<i64>,
    /// The most that swapping halves earns; at least 0, and 0 for the entry's chain.
    pub rotation_gain: i64,
}

/// Where a block stands.
#[derive(Clone, Copy)]
pub struct Place {
    pub chain: u32,
    /// Index in the chain.
    pub position: u32,
    /// Bytes from the chain's start.
    pub address: i64,
}

/// A chain has the number of the block that it grew from.
pub struct ChainGraph<'a> {
    flow: &'a Flow,
    pub chains: Vec<Chain>,
    pub links: Links<MostEarned>,
    pub place: Vec<Place>,
    /// Whether a block must be followed by the one that follows it now.
    pub is_glued: Vec<bool>,
}

impl<'a> ChainGraph<'a> {
    /// One chain for each block.
    pub fn new(flow: &'a Flow) -> Self {
        let blocks = flow.sizes.len();
        let singleton = |block: usize| Chain {
            nodes: vec![block as u32],
            size: flow.sizes[block],
            count: flow.counts[block] as f64,
            jumps: ArcList::EMPTY,
            cuts: CutLosses::default(),
        };
        Self {
            flow,
            chains: (0..blocks).map(singleton).collect(),
            links: Links::new(
                blocks,
                flow.jumps.iter().map(|jump| (jump.from, jump.to, flow.most_earned(jump))),
            ),
            place: (0..blocks as u32).map(|chain| Place { chain, position: 0, address: 0 }).collect(),
            is_glued: vec![false; blocks],
        }
    }

    pub fn chain_of(&self, block: u32) -> &Chain {
        &self.chains[self.place[block as usize].chain as usize]
    }

    /// Puts the chain that starts with `next` behind the one that ends with `last`.
    pub fn join(&mut self, last: u32, next: u32) {
        let [into, from] = [last, next].map(|block| self.place[block as usize].chain);
        self.merge(into, from, Merge { kind: MergeKind::XY, cut: 0 });
    }

    /// Joins two blocks for good: no later merge will part them.
    pub fn glue(&mut self, last: u32, next: u32) {
        self.join(last, next);
        self.is_glued[last as usize] = true;
    }

    /// Merges chain `from` (Y) into chain `into` (X), which keeps its number.
    pub fn merge(&mut self, into: u32, from: u32, merge: Merge) {
        let inside = self.links.merge(into, from);
        let gone = &mut self.chains[from as usize];
        let (nodes, jumps) = (std::mem::take(&mut gone.nodes), gone.jumps);
        let (size, count) = (gone.size, gone.count);
        let chain = &mut self.chains[into as usize];
        // Blocks of X that stay in front of Y keep their places.
        let (kept, mut address) = match merge.kind {
            MergeKind::XY => (chain.nodes.len(), chain.size),
            _ => (0, 0),
        };
        merge.arrange(&mut chain.nodes, &nodes);
        chain.size += size;
        chain.count += count;
        let jumps = self.links.join(chain.jumps, jumps);
        chain.jumps = self.links.join(jumps, inside);
        for (position, &block) in (kept as u32..).zip(&chain.nodes[kept..]) {
            self.place[block as usize] = Place { chain: into, position, address };
            address += self.flow.sizes[block as usize];
        }
    }

    /// All blocks: the entry's chain first, then the chains by falling density.
    pub fn concatenate(&self) -> Vec<u32> {
        let mut order: Vec<&Chain> = self.chains.iter().filter(|chain| !chain.nodes.is_empty()).collect();
        // The sort is stable: chains of equal density stay in the order of their numbers.
        order
            .sort_by(|a, b| b.is_entry().cmp(&a.is_entry()).then(f64::total_cmp(&b.density(), &a.density())));
        order.iter().flat_map(|chain| chain.nodes.iter().copied()).collect()
    }
}
