use super::*;
use crate::graph::FlowEdge;

#[test]
fn classes_keep_the_order() {
    let counts = [100, 5, 90, 0, 5, 1];
    let classes = partition_by_heat(&[0, 2, 1, 3, 4, 5], &counts, &[90, 5]);
    assert_eq!(classes, [vec![0, 2], vec![1, 4], vec![3, 5]]);
    assert_eq!(partition_by_heat(&[1, 0], &counts, &[]), [vec![1, 0]]);
}

#[test]
fn a_chain_is_cut_where_its_heat_changes() {
    let counts = [100, 80, 3, 2, 60, 1];
    let sizes = [100; 6];
    let order = [0, 1, 2, 3, 4, 5];
    assert_eq!(partition_hot_chain(&order, &counts, &sizes, 0.5), [0..2, 2..4, 4..5, 5..6]);
    assert_eq!(partition_hot_chain(&order, &counts, &sizes, 0.0), vec![Range { start: 0, end: 6 }]);
    assert_eq!(partition_hot_chain(&[], &[], &[], 0.5), []);
}

#[test]
fn short_runs_are_not_cut_off() {
    let counts = [100, 1, 100, 1, 1, 100];
    // The lone lukewarm block 1 has 63 bytes, the run of 3 and 4 has 64.
    let sizes = [100, 63, 100, 32, 32, 100];
    assert_eq!(partition_hot_chain(&[0, 1, 2, 3, 4, 5], &counts, &sizes, 0.5), [0..3, 3..5, 5..6]);
    // A short first run takes in the one behind it.
    assert_eq!(partition_hot_chain(&[1, 0, 3, 4], &counts, &sizes, 0.5), [0..2, 2..4]);
}

#[test]
fn the_graph_has_calls_and_jumps_between_fragments_only() {
    let edge = |from, to, count| FlowEdge { from, to, count };
    let first = FlowGraph {
        sizes: vec![10, 20, 30, 40],
        counts: vec![7, 6, 1, 0],
        edges: vec![edge(0, 1, 6), edge(0, 2, 1), edge(1, 1, 50), edge(2, 1, 1), edge(2, 3, 0)],
    };
    let second = FlowGraph { sizes: vec![8], counts: vec![9], edges: vec![] };
    let call = |block, offset, callee, count| CallSite { block, offset, callee, count };
    let functions = [
        FragmentedFunction {
            flow: &first,
            fragments: &[vec![0, 1], vec![], vec![2]],
            calls: &[call(1, 4, 1, 6), call(2, 3, 0, 1), call(3, 0, 1, 2)],
        },
        FragmentedFunction { flow: &second, fragments: &[vec![0]], calls: &[] },
    ];
    let FragmentGraph { graph, origin } = fragment_graph(&functions);
    assert_eq!(origin, [(0, 0), (0, 2), (1, 0)]);
    assert_eq!(graph.sizes, [30, 30, 8]);
    // The first is called 7 times and re-entered once, from the second, at its offset 10.
    assert_eq!(graph.samples, [8, 1, 9]);
    let arc = |caller, callee, count, caller_offset, callee_offset| CallArc {
        caller,
        callee,
        count,
        caller_offset,
        callee_offset,
    };
    let expected = [arc(0, 1, 1, 10, 0), arc(1, 0, 1, 30, 10), arc(0, 2, 6, 14, 0), arc(1, 0, 1, 3, 0)];
    assert_eq!(graph.arcs, expected);
}
