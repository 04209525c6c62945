use super::*;
use proptest::prelude::*;

fn graph(successors: Vec<Vec<u32>>) -> FlowGraph {
    let entered = (0..successors.len()).map(|block| block == 0).collect();
    FlowGraph { successors, entered }
}

#[test]
fn circles_are_what_leads_back() {
    // 1 and 2 lead to each other, 3 to itself, 5 and 6 are a circle that nothing leads to.
    let graph = graph(vec![vec![1], vec![2, 3], vec![1], vec![3, 4], vec![], vec![6], vec![5, 4]]);
    assert_eq!(graph.circles(), [false, true, true, true, false, true, true]);
}

/// The same, by following all ways from each block.
fn leads_back(graph: &FlowGraph, block: u32) -> bool {
    let mut reached = vec![false; graph.len()];
    let mut open = graph.successors[block as usize].clone();
    while let Some(to) = open.pop() {
        if !std::mem::replace(&mut reached[to as usize], true) {
            open.extend(&graph.successors[to as usize]);
        }
    }
    reached[block as usize]
}

proptest! {
    #[test]
    fn circles_are_found_in_any_graph(ways in prop::collection::vec(prop::collection::vec(0u32..12, 0..4), 12)) {
        let graph = graph(ways);
        let all: Vec<bool> = (0..12).map(|block| leads_back(&graph, block)).collect();
        prop_assert_eq!(graph.circles(), all);
    }
}
