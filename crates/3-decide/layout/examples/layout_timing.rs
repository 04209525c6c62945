//! Times the algorithms of this crate on random programs, on one thread and in processor time:
//! `cargo run --release -p afterlink-layout --example layout_timing`.

use std::time::Duration;

use afterlink_layout::{
    CdSortParams, ExtTspParams, FlowEdge, FlowGraph, hfsort, order_blocks, order_functions,
};

#[path = "../tests/synthetic/mod.rs"]
mod synthetic;
use synthetic::Numbers;

fn main() {
    // The shape of PostgreSQL: most functions small, a few of thousands of blocks.
    let mut numbers = Numbers(1);
    let sizes: Vec<u32> =
        (0..13_000).map(|_| 3 + (9.0 * numbers.unit().powi(2) / (numbers.unit() + 0.005)) as u32).collect();
    let program: Vec<FlowGraph> =
        sizes.iter().zip(0..).map(|(&blocks, seed)| synthetic::flow_graph(blocks, 20, seed)).collect();
    report_blocks("whole program, every function hot", &program);
    let mut partly: Vec<FlowGraph> = program.clone();
    for graph in partly.iter_mut().enumerate().filter(|(index, _)| index % 4 > 0).map(|(_, graph)| graph) {
        graph.counts.fill(0);
        graph.edges.iter_mut().for_each(|edge| edge.count = 0);
    }
    report_blocks("whole program, every fourth function hot", &partly);
    report_blocks("one function of 5,000 blocks", &[synthetic::flow_graph(5_000, 2_000, 1)]);
    report_blocks("one interpreter of 300 operations", &[interpreter(300, 20)]);
    report_blocks("one line of 100,000 blocks", &[line(100_000)]);

    for (functions, calls) in [(13_000, 60_000), (100_000, 500_000)] {
        let graph = synthetic::call_graph(functions, calls, 1);
        let sort = time(|| order_functions(&graph, &CdSortParams::default()));
        let cluster = time(|| hfsort::order_functions(&graph, &Default::default()));
        println!("{functions} functions, {calls} calls: cdsort {sort:?}, hfsort {cluster:?}");
    }
}

/// The shortest of three runs: the least disturbed one.
fn time<T>(run: impl Fn() -> T) -> Duration {
    let once = || {
        let start = processor_time();
        std::hint::black_box(run());
        processor_time() - start
    };
    (0..3).map(|_| once()).min().unwrap_or_default()
}

/// What this thread has run so far; the first number of its schedstat, in nanoseconds.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

fn report_blocks(name: &str, functions: &[FlowGraph]) {
    let blocks: usize = functions.iter().map(FlowGraph::len).sum();
    let executed = functions.iter().flat_map(|graph| &graph.counts).filter(|&&count| count > 0).count();
    let params = ExtTspParams::default();
    let spent = time(|| functions.iter().map(|graph| order_blocks(graph, &params).len()).sum::<usize>());
    println!(
        "ext-tsp, {name}: {} functions, {blocks} blocks, {executed} executed: {spent:?}",
        functions.len()
    );
}

/// Every operation jumps to every other by its own computed goto; `seen` of these are taken.
fn interpreter(operations: u32, seen: u32) -> FlowGraph {
    let mut numbers = Numbers(3);
    let heat: Vec<f64> = (0..operations).map(|_| numbers.unit().powi(3)).collect();
    let mut edges = Vec::new();
    for from in 0..operations {
        for to in 1..operations {
            let is_seen = numbers.below(operations.into()) < seen.into();
            let count = (1e4 * heat[from as usize] * heat[to as usize]) as u64;
            edges.push(FlowEdge { from, to, count: if is_seen { count } else { 0 } });
        }
    }
    let mut counts = vec![0; operations as usize];
    edges.iter().for_each(|edge| counts[edge.to as usize] += edge.count);
    FlowGraph { sizes: vec![30; operations as usize], counts, edges }
}

fn line(blocks: u32) -> FlowGraph {
    let edges = (1..blocks).map(|to| FlowEdge { from: to - 1, to, count: 5 }).collect();
    FlowGraph { sizes: vec![9; blocks as usize], counts: vec![5; blocks as usize], edges }
}
