//! How near the order of blocks comes to the best one, in all functions of a program with few executed blocks:
//! `optimum PROGRAM PROFILE [BLOCKS]`. The best order is searched for among all: branch and bound, with the order that the product finds as the
//! first bound.

mod profiled;

use afterlink_layout::{ExtTspParams, FlowEdge, FlowGraph, ext_tsp_score, order_blocks};
use afterlink_program::Program;
use afterlink_weigh::Weights;
use rayon::prelude::*;

/// Steps of a search before it is given up.
const MOST_STEPS: u64 = 3_000_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, profile, rest @ ..] = &arguments[..] else { panic!("optimum PROGRAM PROFILE [BLOCKS]") };
    let most: usize = rest.first().map_or(12, |text| text.parse().expect("a number of blocks"));
    profiled::with_counts(program, profile, |program, weights| tell(&program, &weights, most));
}

fn tell(program: &Program, weights: &Weights, most: usize) {
    let graphs: Vec<FlowGraph> = weights
        .functions
        .iter()
        .filter(|(id, weights)| {
            weights.is_hot() && !weights.inside_unknown && program.functions[*id].refusal.is_none()
        })
        .map(|(id, weights)| executed(&afterlink_passes::flow_graph(&program.functions[id], weights)))
        .filter(|graph| (3..=most).contains(&graph.len()))
        .collect();
    let found: Vec<Option<(f64, f64)>> = graphs.par_iter().map(compare).collect();
    let given_up = found.iter().filter(|found| found.is_none()).count();
    let known: Vec<(f64, f64)> = found.into_iter().flatten().collect();
    let (ours, best) = known.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let exact = known.iter().filter(|(ours, best)| *ours >= best * (1.0 - 1e-9)).count();
    println!("{} functions of 3 to {most} executed blocks, {given_up} given up", known.len());
    println!("{exact} have the best order; {:.4} % of the best score by weight", 100.0 * ours / best);
}

/// Only the blocks that ran: the others earn nothing and stand behind.
fn executed(graph: &FlowGraph) -> FlowGraph {
    let kept: Vec<usize> = (0..graph.len()).filter(|&block| block == 0 || graph.counts[block] > 0).collect();
    let number = |block: u32| kept.binary_search(&(block as usize)).ok().map(|at| at as u32);
    let edge = |e: &FlowEdge| Some(FlowEdge { from: number(e.from)?, to: number(e.to)?, count: e.count });
    FlowGraph {
        sizes: kept.iter().map(|&block| graph.sizes[block]).collect(),
        counts: kept.iter().map(|&block| graph.counts[block]).collect(),
        edges: graph.edges.iter().filter_map(edge).collect(),
    }
}

fn compare(graph: &FlowGraph) -> Option<(f64, f64)> {
    let params = ExtTspParams::default();
    let ours = ext_tsp_score(graph, &order_blocks(graph, &params), &params);
    let mut search = Search::new(graph, ours);
    search.extend(0, 0.0, 0);
    (search.steps < MOST_STEPS).then_some((ours, search.best))
}

/// Orders that begin alike are looked at together: what they earn so far, and the most that the rest can.
struct Search<'a> {
    graph: &'a FlowGraph,
    /// Edges out of and into each block, with whether the block has one successor only.
    out: Vec<Vec<FlowEdge>>,
    single: Vec<bool>,
    start: Vec<Option<i64>>,
    order: Vec<u32>,
    best: f64,
    steps: u64,
}

impl<'a> Search<'a> {
    fn new(graph: &'a FlowGraph, best: f64) -> Self {
        let mut out = vec![Vec::new(); graph.len()];
        graph.edges.iter().for_each(|edge| out[edge.from as usize].push(*edge));
        let targets = |edges: &Vec<FlowEdge>| {
            let mut targets: Vec<u32> = edges.iter().map(|edge| edge.to).collect();
            targets.sort_unstable();
            targets.dedup();
            targets.len() < 2
        };
        let single = out.iter().map(targets).collect();
        let start = vec![None; graph.len()];
        Self { graph, out, single, start, order: Vec::new(), best, steps: 0 }
    }

    fn end(&self, block: u32) -> Option<i64> {
        Some(self.start[block as usize]? + i64::from(self.graph.sizes[block as usize].max(1)))
    }

    fn earned(&self, edge: &FlowEdge, length: i64) -> f64 {
        let fading = |distance: i64| 0.1 * (1.0 - length.abs() as f64 / distance as f64).max(0.0);
        edge.count as f64
            * match length {
                0 if self.single[edge.from as usize] => 1.05,
                0 => 1.0,
                1.. => fading(1024),
                _ => fading(640),
            }
    }

    /// Puts `block` at `address`, behind what is there.
    fn extend(&mut self, block: u32, so_far: f64, address: i64) {
        self.steps += 1;
        if self.steps >= MOST_STEPS {
            return;
        }
        self.start[block as usize] = Some(address);
        self.order.push(block);
        let own = self.graph.edges.iter().filter(|edge| edge.from == block || edge.to == block);
        let gain: f64 = own
            .filter_map(|edge| Some(self.earned(edge, self.start[edge.to as usize]? - self.end(edge.from)?)))
            .sum();
        let sum = so_far + gain;
        let end = self.end(block).expect("it was just placed");
        if self.order.len() == self.graph.len() {
            self.best = self.best.max(sum);
        } else if sum + self.most_left(block, end) > self.best * (1.0 + 1e-12) {
            let mut next: Vec<u32> =
                (0..self.graph.len() as u32).filter(|b| self.start[*b as usize].is_none()).collect();
            let likely = |b: &u32| {
                self.out[block as usize].iter().filter(|e| e.to == *b).map(|e| e.count).sum::<u64>()
            };
            next.sort_by_key(|b| std::cmp::Reverse(likely(b)));
            for b in next {
                self.extend(b, sum, end);
            }
        }
        self.order.pop();
        self.start[block as usize] = None;
    }

    /// The most that edges with an end that is not placed can earn: each block falls through to one other at most, and is fallen into
    /// from one; all else are jumps no shorter than nothing.
    fn most_left(&self, last: u32, end: i64) -> f64 {
        let mut jumps = 0.0;
        let (mut by_source, mut by_target) = (vec![0.0f64; self.graph.len()], vec![0.0f64; self.graph.len()]);
        for edge in &self.graph.edges {
            let [from, to] = [edge.from, edge.to].map(|b| self.start[b as usize].is_some());
            if from && to {
                continue;
            }
            let short = match (from, to) {
                (true, false) => self.earned(edge, (end - self.end(edge.from).unwrap_or(end)).max(1)),
                (false, true) => self.earned(edge, self.start[edge.to as usize].unwrap_or(end) - end - 1),
                _ => 0.1 * edge.count as f64,
            };
            jumps += short;
            let falls = edge.from != edge.to && !to && (!from || edge.from == last);
            if falls {
                let more = self.earned(edge, 0) - short;
                by_source[edge.from as usize] = by_source[edge.from as usize].max(more);
                by_target[edge.to as usize] = by_target[edge.to as usize].max(more);
            }
        }
        jumps + by_source.iter().sum::<f64>().min(by_target.iter().sum())
    }
}
