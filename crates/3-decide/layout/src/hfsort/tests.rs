use super::*;
use crate::graph::CallArc;

fn graph(nodes: &[(u32, u64)], arcs: &[(u32, u32, u64)]) -> CallGraph {
    let arc =
        |&(caller, callee, count)| CallArc { caller, callee, count, caller_offset: 0, callee_offset: 0 };
    CallGraph {
        sizes: nodes.iter().map(|node| node.0).collect(),
        samples: nodes.iter().map(|node| node.1).collect(),
        arcs: arcs.iter().map(arc).collect(),
    }
}

fn order(graph: &CallGraph) -> Vec<u32> {
    order_functions(graph, &HfSortParams::default())
}

#[test]
fn callees_follow_their_best_callers() {
    // By density: 3 (10), 2 (5), 1 (2), 0 (1), 4 (0.5).
    // 3 goes behind 1, its best caller; 2 behind 0; 1 (with 3) behind 0 (with 2).
    let nodes = [(100, 100), (100, 200), (100, 500), (100, 1000), (100, 50)];
    let arcs = [(0, 1, 200), (0, 2, 500), (1, 3, 600), (2, 3, 400), (4, 3, 10)];
    assert_eq!(order(&graph(&nodes, &arcs)), [0, 2, 1, 3, 4]);
}

#[test]
fn a_cluster_keeps_below_its_size_limit() {
    let nodes = [(1 << 19, 1000), (1 << 19, 900), (1, 0)];
    assert_eq!(order(&graph(&nodes, &[(1, 0, 1000)])), [1, 0, 2], "exactly 1 MiB fits");
    let nodes = [(1 << 19, 1000), ((1 << 19) + 1, 900), (1, 0)];
    assert_eq!(order(&graph(&nodes, &[(1, 0, 1000)])), [0, 1, 2], "one byte more does not");
}

#[test]
fn a_rare_caller_does_not_attract() {
    // Function 0 is entered 1000 times; its only known caller makes 99 or 100 of the calls.
    let nodes = [(10, 1000), (10, 999)];
    assert_eq!(order(&graph(&nodes, &[(1, 0, 99)])), [0, 1]);
    assert_eq!(order(&graph(&nodes, &[(1, 0, 100)])), [1, 0]);
}

#[test]
fn a_dense_caller_is_not_thinned_out() {
    // The caller has density 100; merged it would have 1000 / 80 (fits) or 1000 / 81 (does not).
    let fits = graph(&[(70, 0), (10, 1000), (1, 200)], &[(1, 0, 5)]);
    assert_eq!(order(&fits), [2, 1, 0], "0 has no samples and stays last");
    let fits = graph(&[(60, 1), (10, 1000), (1, 200)], &[(1, 0, 1)]);
    assert_eq!(order(&fits), [2, 1, 0]);
    let thinned = graph(&[(90, 1), (10, 1000), (5, 50)], &[(1, 0, 1)]);
    assert_eq!(order(&thinned), [1, 2, 0]);
}

#[test]
fn recursion_and_rings_end() {
    let nodes = [(10, 30), (10, 20), (10, 10)];
    let mut order = order(&graph(&nodes, &[(0, 0, 99), (0, 1, 20), (1, 2, 10), (2, 0, 30)]));
    order.sort_unstable();
    assert_eq!(order, [0, 1, 2]);
    assert_eq!(order_functions(&CallGraph::default(), &HfSortParams::default()), []);
}
