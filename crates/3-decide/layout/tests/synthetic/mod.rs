//! Random programs for tests and timings: flow graphs whose counts come from random walks, so
//! that every block is entered as often as it is left, and call graphs with the skew of real
//! ones. The same seed gives the same graph.
#![allow(dead_code)] // Each test binary takes what it needs.

use afterlink_layout::{CallArc, CallGraph, FlowEdge, FlowGraph};

/// SplitMix64.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A function of `blocks` blocks: straight code, conditional branches (a quarter of them
/// backwards), some switches and returns; then `walks` runs through it from the entry.
pub fn flow_graph(blocks: u32, walks: u32, seed: u64) -> FlowGraph {
    let mut numbers = Numbers(seed);
    let mut successors: Vec<Vec<(u32, f64)>> = Vec::new();
    for block in 0..blocks {
        let mut out: Vec<u32> = Vec::new();
        let near = |numbers: &mut Numbers| {
            let reach = 1 + numbers.below(u64::from(blocks / 4 + 3)) as u32;
            if numbers.below(4) == 0 { block.saturating_sub(reach) } else { (block + reach).min(blocks - 1) }
        };
        let kind = numbers.below(100);
        if block + 1 < blocks && kind < 90 {
            out.push(block + 1);
        }
        match kind {
            30..80 => out.push(near(&mut numbers)),
            80..84 => out.extend((0..6).map(|_| near(&mut numbers))),
            90..97 => out.push(near(&mut numbers)),
            _ => {}
        }
        out.sort_unstable();
        out.dedup();
        // Most branches are strongly biased to one side.
        let weights: Vec<f64> = out.iter().map(|_| numbers.unit().powi(4) + 1e-4).collect();
        let sum: f64 = weights.iter().sum();
        successors.push(out.into_iter().zip(weights).map(|(to, weight)| (to, weight / sum)).collect());
    }
    let mut taken: Vec<Vec<u64>> = successors.iter().map(|out| vec![0; out.len()]).collect();
    let mut counts = vec![0u64; blocks as usize];
    for _ in 0..walks {
        let mut at = 0usize;
        for _ in 0..4 * blocks {
            counts[at] += 1;
            let mut draw = numbers.unit();
            let Some(last) = successors[at].len().checked_sub(1) else { break };
            let choice = successors[at].iter().position(|&(_, share)| {
                draw -= share;
                draw < 0.0
            });
            let choice = choice.unwrap_or(last);
            taken[at][choice] += 1;
            at = successors[at][choice].0 as usize;
        }
    }
    let edges = successors.iter().zip(&taken).zip(0..).flat_map(|((out, taken), from)| {
        out.iter().zip(taken).map(move |(&(to, _), &count)| FlowEdge { from, to, count })
    });
    FlowGraph {
        edges: edges.collect(),
        sizes: (0..blocks).map(|_| 2 + numbers.below(12) as u32 * numbers.below(8) as u32).collect(),
        counts,
    }
}

/// A program of `functions` functions with `calls` call sites; some functions are called from
/// everywhere, most from a few places; counts span six orders of magnitude.
pub fn call_graph(functions: u32, calls: u32, seed: u64) -> CallGraph {
    let mut numbers = Numbers(seed);
    let sizes: Vec<u32> = (0..functions).map(|_| 16 + (2000.0 * numbers.unit().powi(3)) as u32).collect();
    let mut arcs = Vec::new();
    for _ in 0..calls {
        let caller = numbers.below(u64::from(functions)) as u32;
        let callee = if numbers.below(5) == 0 {
            (f64::from(functions) * numbers.unit().powi(6)) as u32
        } else {
            ((u64::from(caller) + numbers.below(50)) % u64::from(functions)) as u32
        };
        let count = 10f64.powf(6.0 * numbers.unit()) as u64 - 1;
        let caller_offset = numbers.below(u64::from(sizes[caller as usize])) as u32;
        arcs.push(CallArc { caller, callee, count, caller_offset, callee_offset: 0 });
    }
    let mut samples = vec![0u64; functions as usize];
    for arc in &arcs {
        samples[arc.callee as usize] += arc.count;
    }
    CallGraph { sizes, samples, arcs }
}
