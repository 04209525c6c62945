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
fn loop_depths(graph: &FlowGraph, order: &[u32], back: &[(u32, u32)]) -> Vec<u32> {
    /// More would make no difference, and keeps a large function with many loops from taking long.
    const LOOPS: usize = 2000;
    let mut depth = vec![0; graph.len()];
    if back.is_empty() {
        return depth;
    }
    let mut position = vec![0; graph.len()];
    order.iter().enumerate().for_each(|(i, &b)| position[b as usize] = i);
    let before = graph.predecessors();
    let head_of = |&(from, i): &(u32, u32)| graph.successors[from as usize][i as usize];
    let mut heads: Vec<u32> = back.iter().map(head_of).collect();
    heads.sort_unstable();
    heads.dedup();
    let mut seen = vec![u32::MAX; graph.len()];
    for &head in heads.iter().take(LOOPS) {
        seen[head as usize] = head;
        depth[head as usize] += 1;
        let mut stack: Vec<u32> =
            back.iter().filter(|edge| head_of(edge) == head).map(|&(from, _)| from).collect();
        while let Some(block) = stack.pop() {
            let b = block as usize;
            // What comes before the head in this order lies outside, even if the loop has a second way in.
            if seen[b] == head || position[b] < position[head as usize] {
                continue;
            }
            seen[b] = head;
            depth[b] += 1;
            stack.extend(&before[b]);
        }
    }
    depth
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
