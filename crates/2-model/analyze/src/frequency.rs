//! How often each block and edge will probably run, from the graph alone.
//!
//! A branch goes either way equally often, but stays in a loop nine times of ten, and hardly ever goes to code that
//! the compiler has put aside. So what enters a loop goes round ten times (after Wu and Larus, "Static branch
//! frequency and program profile analysis", 1994).

use crate::flow::{DepthFirst, FlowGraph};

/// Chance of leaving a loop at a branch that could.
const LEAVES_LOOP: f64 = 0.1;
/// Chance of going where the compiler does not expect to.
const UNLIKELY: f64 = 0.01;

/// More often than this is not told apart: loops one behind the other, each of which the next seems to lie in, multiply.
const MOST: f64 = 1e100;

/// Relative frequencies.
pub struct Frequencies {
    /// By block.
    pub blocks: Vec<f64>,
    /// By block and successor.
    pub edges: Vec<Vec<f64>>,
}

/// Estimates frequencies; `unlikely` says which blocks the compiler thinks are. Where an edge is not drawn, as of an indirect
/// jump, its targets must count as entered: those are then as frequent as a call of the function.
pub fn estimate(graph: &FlowGraph, unlikely: &[bool]) -> Frequencies {
    let ways = &graph.successors;
    let DepthFirst { order, back } = DepthFirst::search(graph, 0..ways.len() as u32);
    let depth = loop_depths(graph, &order, &back);
    let chances: Vec<Vec<f64>> = (0..ways.len()).map(|b| chances(b, &ways[b], &depth, unlikely)).collect();
    let start = |b: usize| {
        let entered = f64::from(graph.entered[b]);
        if unlikely[b] { entered * UNLIKELY } else { entered }
    };
    let mut blocks: Vec<f64> = (0..ways.len()).map(start).collect();
    let mut is_head = vec![false; ways.len()];
    back.iter().for_each(|&(from, i)| is_head[ways[from as usize][i as usize] as usize] = true);
    for &block in &order {
        let b = block as usize;
        if is_head[b] {
            blocks[b] = (blocks[b] / LEAVES_LOOP).min(MOST);
        }
        for (i, &to) in (0u32..).zip(&ways[b]) {
            if back.binary_search(&(block, i)).is_err() {
                blocks[to as usize] += blocks[b] * chances[b][i as usize];
            }
        }
    }
    let edges =
        blocks.iter().zip(&chances).map(|(&count, c)| c.iter().map(|c| c * count).collect()).collect();
    Frequencies { blocks, edges }
}

/// In how many loops each block lies. A loop is what reaches the source of an edge back without passing its target.
///
/// One walk follows as many loops as a word has bits: most blocks lie in many of them, or in none.
fn loop_depths(graph: &FlowGraph, order: &[u32], back: &[(u32, u32)]) -> Vec<u32> {
    /// More would make no difference, and keeps a large function with many loops from taking long.
    const LOOPS: usize = 2000;
    let mut depth = vec![0; graph.len()];
    if back.is_empty() {
        return depth;
    }
    let mut position = vec![0; graph.len()];
    (0u32..).zip(order).for_each(|(i, &b)| position[b as usize] = i);
    let at = |block: u32| position[block as usize];
    let head_of = |&(from, i): &(u32, u32)| graph.successors[from as usize][i as usize];
    let mut edges: Vec<(u32, u32)> = back.iter().map(|edge| (head_of(edge), edge.0)).collect();
    edges.sort_unstable();
    let edges = edges.chunk_by(|a, b| a.0 == b.0).take(LOOPS);
    let mut loops: Vec<Loop> = edges
        .map(|edges| Loop { head: at(edges[0].0), sources: edges.iter().map(|e| at(e.1)).collect() })
        .collect();
    loops.sort_by_key(|one| one.head);
    let before = graph.predecessors();
    let before = order.iter().map(|&b| before[b as usize].iter().map(|&b| at(b)).collect()).collect();
    let mut walk = Walk { before, inside: Vec::new(), news: vec![0; graph.len()], open: Open::default() };
    for some in loops.chunks(u64::BITS as usize) {
        walk.follow(some);
        for (&block, inside) in order.iter().zip(&walk.inside) {
            depth[block as usize] += inside.count_ones();
        }
    }
    depth
}

/// What leads back to a head. Blocks are told by their positions here.
struct Loop {
    head: u32,
    sources: Vec<u32>,
}

/// A walk against the flow, along loops.
struct Walk {
    before: Vec<Vec<u32>>,
    /// By block, the loops in which it lies, each a bit.
    inside: Vec<u64>,
    /// Those that the blocks in front of it do not know of yet.
    news: Vec<u64>,
    open: Open,
}

impl Walk {
    /// Follows up to 64 loops, whose heads ascend.
    fn follow(&mut self, loops: &[Loop]) {
        let mut inside = vec![0; self.before.len()];
        // By block, the loops whose heads do not come behind it.
        let mut begun = vec![0; self.before.len()];
        for (bit, one) in loops.iter().enumerate() {
            inside[one.head as usize] = 1 << bit;
            begun[one.head as usize] = 1 << bit;
        }
        let mut all = 0;
        for begun in &mut begun {
            all |= *begun;
            *begun = all;
        }
        self.inside = inside;
        for (bit, one) in loops.iter().enumerate() {
            one.sources.iter().for_each(|&source| self.enter(source, 1 << bit));
        }
        // From behind, so that a block is seldom come to twice.
        while let Some(block) = self.open.pop() {
            let found = std::mem::take(&mut self.news[block as usize]);
            for i in 0..self.before[block as usize].len() {
                let before = self.before[block as usize][i];
                // What comes before the head in this order lies outside, even if the loop has a second way in.
                self.enter(before, found & begun[before as usize]);
            }
        }
    }

    fn enter(&mut self, block: u32, loops: u64) {
        let b = block as usize;
        let new = loops & !self.inside[b];
        if new != 0 {
            self.inside[b] |= new;
            self.news[b] |= new;
            self.open.push(block);
        }
    }
}

/// A set of numbers.
#[derive(Default)]
struct Open {
    words: Vec<u64>,
    /// No word at or behind it has a number.
    end: usize,
}

impl Open {
    fn push(&mut self, number: u32) {
        let word = (number / u64::BITS) as usize;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (number % u64::BITS);
        self.end = self.end.max(word + 1);
    }

    /// Takes out the last one.
    fn pop(&mut self) -> Option<u32> {
        while let Some(last) = self.end.checked_sub(1) {
            if let Some(bit) = self.words[last].checked_ilog2() {
                self.words[last] &= !(1 << bit);
                return Some(last as u32 * u64::BITS + bit);
            }
            self.end = last;
        }
        None
    }
}

fn chances(block: usize, ways: &[u32], depth: &[u32], unlikely: &[bool]) -> Vec<f64> {
    let likely = |to: usize| {
        if unlikely[to] && !unlikely[block] {
            UNLIKELY
        } else if depth[to] < depth[block] {
            LEAVES_LOOP.powi((depth[block] - depth[to]) as i32)
        } else {
            1.0 - LEAVES_LOOP
        }
    };
    let total: f64 = ways.iter().map(|&to| likely(to as usize)).sum();
    ways.iter().map(|&to| likely(to as usize) / total).collect()
}

#[cfg(test)]
mod tests;
