//! Block orders against the best of all orders, for functions small enough to try them all.

use afterlink_layout::{ExtTspParams, FlowEdge, FlowGraph, ext_tsp_score, order_blocks};

mod synthetic;

/// The highest score of all orders that start with block 0.
fn best_score(graph: &FlowGraph) -> f64 {
    fn extend(graph: &FlowGraph, order: &mut Vec<u32>, best: &mut f64) {
        if order.len() == graph.len() {
            *best = best.max(ext_tsp_score(graph, order, &ExtTspParams::default()));
            return;
        }
        for block in 0..graph.len() as u32 {
            if !order.contains(&block) {
                order.push(block);
                extend(graph, order, best);
                order.pop();
            }
        }
    }
    let mut best = 0.0;
    extend(graph, &mut vec![0], &mut best);
    best
}

#[test]
fn small_functions_come_close_to_the_best_order() {
    let params = ExtTspParams::default();
    let (mut share, mut functions, mut optimal) = (0.0, 0.0, 0);
    for seed in 0..400 {
        let graph = synthetic::flow_graph(3 + seed as u32 % 5, 100, seed);
        let score = ext_tsp_score(&graph, &order_blocks(&graph, &params), &params);
        let input: Vec<u32> = (0..graph.len() as u32).collect();
        let kept = ext_tsp_score(&graph, &input, &params);
        assert!(score >= kept * (1.0 - 1e-12), "seed {seed}: {score} is less than {kept} as it was");
        let best = best_score(&graph);
        assert!(score <= best * (1.0 + 1e-12), "seed {seed}: {score} is more than {best}");
        if best > 0.0 {
            share += score / best;
            functions += 1.0;
            optimal += u32::from(score >= best * (1.0 - 1e-12));
        }
    }
    assert!(share / functions >= 0.99, "on average {} of the best score", share / functions);
    assert!(f64::from(optimal) >= 0.8 * functions, "{optimal} of {functions} orders are the best");
}

#[test]
fn larger_functions_never_score_less_than_they_did() {
    let params = ExtTspParams::default();
    for seed in 0..200 {
        let graph = synthetic::flow_graph(8 + seed as u32, 50, seed);
        let order = order_blocks(&graph, &params);
        let input: Vec<u32> = (0..graph.len() as u32).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, input);
        assert_eq!(order[0], 0);
        assert_eq!(order, order_blocks(&graph, &params));
        let (score, kept) = (ext_tsp_score(&graph, &order, &params), ext_tsp_score(&graph, &input, &params));
        assert!(score >= kept * (1.0 - 1e-9), "seed {seed}: {score} is less than {kept} as it was");
    }
}

/// The limit is a hundred times and more what an idle machine takes; it is there to catch an algorithm
/// that has become quadratic.
#[test]
fn large_functions_are_ordered_in_seconds() {
    let start = std::time::Instant::now();
    let params = ExtTspParams::default();
    order_blocks(&synthetic::flow_graph(5_000, 2_000, 1), &params);
    let edges = (1..100_000).map(|to| FlowEdge { from: to - 1, to, count: 5 }).collect();
    let line = FlowGraph { sizes: vec![9; 100_000], counts: vec![5; 100_000], edges };
    assert_eq!(order_blocks(&line, &params), (0..100_000).collect::<Vec<_>>());
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}
