use super::*;
use afterlink_core::counter_description::EdgeKind;
use proptest::prelude::*;

fn edge(from: u32, to: u32) -> Edge {
    Edge { from, to, kind: EdgeKind::Executed(0), counted: false }
}

/// Whether the edges without a counter form no circle: each joins two sets that were not joined.
fn determines(edges: &[Edge], counted: u32, nodes: usize) -> bool {
    let mut group: Vec<usize> = (0..nodes).collect();
    edges.iter().enumerate().filter(|(i, _)| counted >> i & 1 == 0).all(|(_, e)| {
        let (a, b) = (group[e.from as usize], group[e.to as usize]);
        group.iter_mut().filter(|g| **g == a).for_each(|g| *g = b);
        a != b
    })
}

proptest! {
    /// Against all choices there are.
    #[test]
    fn no_sufficient_choice_is_cheaper(
        ends in proptest::collection::vec((0u32..5, 0u32..5), 1..9),
        weights in proptest::collection::vec(0u32..100, 9),
    ) {
        let edges: Vec<Edge> = ends.into_iter().map(|(from, to)| edge(from, to)).collect();
        let weights: Vec<f64> = weights[..edges.len()].iter().map(|&w| f64::from(w)).collect();
        let cost = |counted: u32| -> f64 {
            weights.iter().enumerate().filter(|(i, _)| counted >> i & 1 == 1).map(|(_, w)| w).sum()
        };
        let best = (0..1u32 << edges.len())
            .filter(|&c| determines(&edges, c, 5))
            .map(cost)
            .fold(f64::INFINITY, f64::min);
        let chosen = choose_counted(&edges, 5, &weights);
        let chosen = chosen.iter().enumerate().map(|(i, &c)| u32::from(c) << i).sum();
        prop_assert!(determines(&edges, chosen, 5));
        prop_assert_eq!(cost(chosen), best);
    }
}

#[test]
fn what_cannot_be_counted_is_not() {
    let edges = [edge(0, 1), edge(1, 0), edge(1, 2), edge(2, 0)];
    let counted = choose_counted(&edges, 3, &[f64::INFINITY, 1.0, 5.0, f64::INFINITY]);
    assert_eq!(counted, [false, true, true, false]);
}
