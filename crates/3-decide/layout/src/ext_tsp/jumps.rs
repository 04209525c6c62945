//! The flow graph made ready: distinct edges by source, and each jump with its score as an
//! integer. With the published constants every score is a whole multiple of 1/51200 of a count,
//! so integers lose nothing and equal scores compare equal.

use super::ExtTspParams;
use crate::graph::{FlowEdge, FlowGraph};
use crate::links::Worth;

/// Score units in one execution. 51200 makes 1.05, 0.1 / 1024 and 0.1 / 640 whole; the factor 16
/// leaves other parameters some precision.
const UNITS: f64 = 51200.0 * 16.0;

/// A jump that was taken, between two different blocks.
pub struct Jump {
    pub from: u32,
    pub to: u32,
    count: i64,
    /// Score as a fall-through.
    pub fallthrough: i64,
}

/// The most that some jumps between two chains can earn when one chain is put beside or into the
/// other: all of them short, and two of them fall-throughs, one at either end of the inner chain.
#[derive(Clone, Copy)]
pub struct MostEarned {
    short: i64,
    /// What the two best fall-throughs earn beyond a short jump.
    extra: [i64; 2],
}

impl MostEarned {
    pub fn total(self) -> i64 {
        self.short + self.fallthroughs()
    }

    /// All of them short.
    pub fn short(self) -> i64 {
        self.short
    }

    /// What fall-throughs earn beyond that.
    pub fn fallthroughs(self) -> i64 {
        self.extra[0] + self.extra[1]
    }
}

impl Worth for MostEarned {
    fn and(self, other: Self) -> Self {
        let ([a, b], [c, d]) = (self.extra, other.extra);
        let extra = [a.max(c), a.min(c).max(if a >= c { b } else { d })];
        Self { short: self.short + other.short, extra }
    }
}

/// One function, ready to be laid out.
pub struct Flow {
    pub sizes: Vec<i64>,
    pub counts: Vec<u64>,
    pub in_degree: Vec<u32>,
    pub jumps: Vec<Jump>,
    /// Distinct edges other than self-loops, by source and target.
    edges: Vec<FlowEdge>,
    /// Where the edges of each block start in `edges`; one more at the end.
    first_edge: Vec<u32>,
    forward: Fading,
    backward: Fading,
}

/// A score that falls by `slope` units for each byte and is 0 from `reach` bytes on.
struct Fading {
    reach: i64,
    slope: i64,
}

impl Fading {
    fn new(weight: f64, reach: u32) -> Self {
        Self { reach: i64::from(reach), slope: (weight * UNITS / f64::from(reach.max(1))).round() as i64 }
    }

    #[inline]
    fn at(&self, distance: i64) -> i64 {
        (self.reach - distance).max(0) * self.slope
    }
}

impl Flow {
    pub fn new(graph: &FlowGraph, params: &ExtTspParams) -> Self {
        let blocks = graph.len();
        let mut edges = graph.edges.clone();
        edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
        edges.dedup_by(|again, first| {
            let same = (again.from, again.to) == (first.from, first.to);
            first.count = if same { first.count.saturating_add(again.count) } else { first.count };
            same
        });
        let mut out_degree = vec![0u32; blocks];
        for edge in &edges {
            out_degree[edge.from as usize] += 1;
        }
        // The score of a self-loop is the same in every order; it only makes its block conditional.
        edges.retain(|edge| edge.from != edge.to);

        let mut in_degree = vec![0u32; blocks];
        let mut first_edge = vec![0u32; blocks + 1];
        for edge in &edges {
            in_degree[edge.to as usize] += 1;
            first_edge[edge.from as usize + 1] += 1;
        }
        for block in 0..blocks {
            first_edge[block + 1] += first_edge[block];
        }
        let jumps = score_jumps(&edges, &out_degree, params);
        Self {
            sizes: graph.sizes.iter().map(|&size| i64::from(size.max(1))).collect(),
            counts: consistent_counts(graph, &edges),
            in_degree,
            jumps,
            edges,
            first_edge,
            forward: Fading::new(params.forward_weight, params.forward_distance),
            backward: Fading::new(params.backward_weight, params.backward_distance),
        }
    }

    /// The distinct edges out of a block, self-loops left out.
    pub fn successors(&self, block: u32) -> &[FlowEdge] {
        let [from, to] = [0, 1].map(|next| self.first_edge[block as usize + next] as usize);
        &self.edges[from..to]
    }

    /// What a jump earns whose target starts `length` bytes after its source ends.
    #[inline]
    pub fn jump_score(&self, jump: &Jump, length: i64) -> i64 {
        match length {
            0 => jump.fallthrough,
            1.. => jump.count * self.forward.at(length),
            _ => jump.count * self.backward.at(-length),
        }
    }

    /// The most that a jump between two chains can earn.
    pub fn most_earned(&self, jump: &Jump) -> MostEarned {
        let short = jump.count * self.forward.at(1).max(self.backward.at(1));
        MostEarned { short, extra: [(jump.fallthrough - short).max(0), 0] }
    }

    /// The score of a whole order, in units.
    pub fn score(&self, order: &[u32]) -> i64 {
        let mut start = vec![0; self.sizes.len()];
        let mut address = 0;
        for &block in order {
            start[block as usize] = address;
            address += self.sizes[block as usize];
        }
        let length = |jump: &Jump| {
            start[jump.to as usize] - start[jump.from as usize] - self.sizes[jump.from as usize]
        };
        self.jumps.iter().map(|jump| self.jump_score(jump, length(jump))).sum()
    }
}

/// Jumps with their integer scores. Counts are shifted down if the sum of all scores could
/// otherwise leave 62 bits (some 5 * 10^12 executions).
fn score_jumps(edges: &[FlowEdge], out_degree: &[u32], params: &ExtTspParams) -> Vec<Jump> {
    let units = |weight: f64| (weight * UNITS).round() as i64;
    let conditional = units(params.fallthrough_conditional);
    let unconditional = units(params.fallthrough_unconditional);
    let highest =
        conditional.max(unconditional).max(units(params.forward_weight.max(params.backward_weight)));
    let total: u128 = edges.iter().map(|edge| u128::from(edge.count)).sum::<u128>() * highest.max(1) as u128;
    let shift = (128 - total.leading_zeros()).saturating_sub(62);
    edges
        .iter()
        .filter(|edge| edge.count > 0)
        .map(|edge| {
            let count = (edge.count >> shift).max(1) as i64;
            let weight = if out_degree[edge.from as usize] > 1 { conditional } else { unconditional };
            Jump { from: edge.from, to: edge.to, count, fallthrough: count * weight }
        })
        .collect()
}

/// A block runs at least as often as it is entered or left; the entry runs at least once.
fn consistent_counts(graph: &FlowGraph, edges: &[FlowEdge]) -> Vec<u64> {
    let mut entered = vec![0u64; graph.len()];
    let mut left = vec![0u64; graph.len()];
    for edge in edges {
        let (from, to) = (edge.from as usize, edge.to as usize);
        left[from] = left[from].saturating_add(edge.count);
        entered[to] = entered[to].saturating_add(edge.count);
    }
    let mut counts: Vec<u64> =
        (0..graph.len()).map(|i| graph.counts[i].max(entered[i]).max(left[i])).collect();
    if let Some(entry) = counts.first_mut() {
        *entry = (*entry).max(1);
    }
    counts
}
