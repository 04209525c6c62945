//! The layouts of LLVM 22 for random graphs, beside ours. The library's own answers are in
//! `llvm_orders/orders.txt`; `llvm_orders/make.sh` renews them.

use afterlink_layout::{
    CallArc, CallGraph, CdSortParams, ExtTspParams, FlowEdge, FlowGraph, ext_tsp_score, order_blocks,
    order_functions,
};

fn lines(kind: &str) -> impl Iterator<Item = (Vec<u64>, &'static str)> {
    include_str!("llvm_orders/orders.txt").lines().filter_map(move |line| {
        let (graph, answer) = line.strip_prefix(kind)?.split_once(" = ")?;
        Some((graph.split_whitespace().map(|number| number.parse().unwrap()).collect(), answer))
    })
}

/// Sizes, counts and the numbers of all edges.
fn parts(numbers: &[u64]) -> (Vec<u32>, Vec<u64>, &[u64]) {
    let (nodes, rest) = numbers.split_first().unwrap();
    let (sizes, rest) = rest.split_at(*nodes as usize);
    let (counts, edges) = rest.split_at(*nodes as usize);
    (sizes.iter().map(|&size| size as u32).collect(), counts.to_vec(), &edges[1..])
}

#[test]
fn ext_tsp_scores_what_llvm_scores() {
    let params = ExtTspParams::default();
    let (mut graphs, mut equal, mut ours_sum, mut llvm_sum) = (0, 0, 0.0, 0.0);
    for (numbers, answer) in lines("flow ") {
        let (sizes, counts, edges) = parts(&numbers);
        let edge = |edge: &[u64]| FlowEdge { from: edge[0] as u32, to: edge[1] as u32, count: edge[2] };
        let graph = FlowGraph { sizes, counts, edges: edges.chunks(3).map(edge).collect() };
        let (score, order) = answer.split_once(' ').unwrap();
        let score: f64 = score.parse().unwrap();
        let order: Vec<u32> = order.split(' ').map(|block| block.parse().unwrap()).collect();
        let scored = ext_tsp_score(&graph, &order, &params);
        assert!((scored - score).abs() <= 1e-5 * score.max(1.0), "{scored} is not {score} for {order:?}");

        let ours = order_blocks(&graph, &params);
        let ours_score = ext_tsp_score(&graph, &ours, &params);
        assert!(ours_score >= 0.98 * score, "{ours:?} scores {ours_score}, {order:?} {score}");
        // What never ran has no score; we keep more of its order than the library does.
        let executed = |order: &[u32]| -> Vec<u32> {
            order.iter().copied().filter(|&block| graph.counts[block as usize] > 0).collect()
        };
        graphs += 1;
        equal += u32::from(executed(&ours) == executed(&order));
        ours_sum += ours_score;
        llvm_sum += score;
    }
    assert_eq!(graphs, 60);
    assert!(ours_sum >= 0.9999 * llvm_sum, "the sum of all scores is {} of LLVM's", ours_sum / llvm_sum);
    assert!(equal >= 56, "only {equal} of {graphs} orders are those of LLVM");
}

#[test]
fn cdsort_orders_as_llvm_orders() {
    let (mut graphs, mut equal) = (0, 0);
    for (numbers, answer) in lines("call ") {
        let (sizes, samples, arcs) = parts(&numbers);
        let arc = |arc: &[u64]| CallArc {
            caller: arc[0] as u32,
            callee: arc[1] as u32,
            count: arc[2],
            caller_offset: arc[3] as u32,
            callee_offset: 0,
        };
        let graph = CallGraph { sizes, samples, arcs: arcs.chunks(4).map(arc).collect() };
        let order: Vec<u32> = answer.split_whitespace().map(|node| node.parse().unwrap()).collect();
        let ours = order_functions(&graph, &CdSortParams::default());
        graphs += 1;
        equal += u32::from(ours == order);
    }
    assert_eq!((graphs, equal), (12, 12));
}
