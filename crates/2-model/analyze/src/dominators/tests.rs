use super::*;
use proptest::prelude::*;

fn graph(successors: &[&[u32]], entered: &[u32]) -> FlowGraph {
    let entered = (0..successors.len() as u32).map(|b| entered.contains(&b)).collect();
    FlowGraph { successors: successors.iter().map(|s| s.to_vec()).collect(), entered }
}

fn immediate(graph: &FlowGraph) -> Vec<Option<u32>> {
    let dominators = Dominators::of(graph);
    (0..graph.len() as u32).map(|block| dominators.immediate(block)).collect()
}

#[test]
fn branches_meet_behind_their_condition() {
    let graph = graph(&[&[1, 2], &[3], &[3], &[]], &[0]);
    assert_eq!(immediate(&graph), [None, Some(0), Some(0), Some(0)]);
}

/// The graph of figure 4 of the paper, which no order makes converge in one round; its blocks are numbered from 6 down.
#[test]
fn a_graph_that_cannot_be_reduced() {
    let graph = graph(&[&[1, 2], &[3], &[4, 5], &[4], &[3, 5], &[4]], &[0]);
    assert_eq!(immediate(&graph), [None, Some(0), Some(0), Some(0), Some(0), Some(0)]);
}

#[test]
fn a_second_entry_frees_what_it_leads_to() {
    let graph = graph(&[&[1], &[2], &[3], &[]], &[0, 2]);
    assert_eq!(immediate(&graph), [None, Some(0), None, Some(2)]);
}

#[test]
fn where_control_never_comes_nothing_dominates() {
    let graph = graph(&[&[2], &[2], &[]], &[0]);
    let dominators = Dominators::of(&graph);
    assert!(!dominators.is_reached(1));
    assert!(dominators.dominates(1, 1) && !dominators.dominates(0, 1) && dominators.dominates(0, 2));
}

/// The blocks that control can come to without passing `avoided`.
fn reached(graph: &FlowGraph, avoided: Option<u32>) -> Vec<bool> {
    let mut seen = vec![false; graph.len()];
    let mut stack: Vec<u32> = (0..graph.len() as u32).filter(|&b| graph.entered[b as usize]).collect();
    while let Some(block) = stack.pop() {
        if Some(block) != avoided && !std::mem::replace(&mut seen[block as usize], true) {
            stack.extend(&graph.successors[block as usize]);
        }
    }
    seen
}

proptest! {
    /// The definition: a block dominates those that cannot be reached without it.
    #[test]
    fn dominators_are_what_cannot_be_avoided(
        successors in proptest::collection::vec(proptest::collection::vec(0u32..12, 0..4), 12),
        second in 0u32..24,
    ) {
        let entered = (0..12).map(|b| b == 0 || b == second).collect();
        let graph = FlowGraph { successors, entered };
        let dominators = Dominators::of(&graph);
        let ever = reached(&graph, None);
        for avoided in 0..12u32 {
            let without = reached(&graph, Some(avoided));
            for block in 0..12u32 {
                prop_assert_eq!(dominators.is_reached(block), ever[block as usize]);
                let expected = block == avoided || ever[block as usize] && !without[block as usize];
                prop_assert_eq!(dominators.dominates(avoided, block), expected, "{} over {}", avoided, block);
            }
        }
    }
}
