use super::*;
use microlp::{ComparisonOp, OptimizationDirection, Problem};
use proptest::prelude::*;

/// An arc as a test makes it: from, to, capacity, cost.
type Given = (Node, Node, u64, i64);

fn network(nodes: usize, arcs: &[Given], supplies: &[i64]) -> (Network, Vec<ArcId>) {
    let mut network = Network::new(nodes);
    let ids =
        arcs.iter().map(|&(from, to, capacity, cost)| network.add_arc(from, to, capacity, cost)).collect();
    supplies.iter().enumerate().for_each(|(node, &supply)| network.add_supply(node as Node, supply));
    (network, ids)
}

#[test]
fn the_cheaper_way_is_filled_first() {
    let arcs = [(0, 1, 5, 1), (1, 3, 5, 1), (0, 2, 9, 2), (2, 3, 9, 2)];
    let (mut network, ids) = network(4, &arcs, &[8, 0, 0, -8]);
    assert_eq!(network.solve(), 0);
    assert_eq!(ids.iter().map(|&id| network.flow(id)).collect::<Vec<_>>(), [5, 5, 3, 3]);
}

#[test]
fn what_was_sent_is_taken_back_where_that_is_cheaper() {
    // The cheapest single way takes the arc that the cheapest pair of ways leaves alone.
    let arcs = [(0, 1, 1, 1), (0, 2, 1, 4), (1, 2, 1, 1), (1, 3, 1, 4), (2, 3, 1, 1)];
    let (mut network, ids) = network(4, &arcs, &[2, 0, 0, -2]);
    assert_eq!(network.solve(), 0);
    assert_eq!(ids.iter().map(|&id| network.flow(id)).collect::<Vec<_>>(), [1, 1, 0, 1, 1]);
}

#[test]
fn what_nothing_takes_is_left() {
    let (mut network, _) = network(3, &[(0, 1, 4, 0)], &[7, -9, 2]);
    assert_eq!(network.solve(), 5);
}

/// The lowest cost by a solver of linear programs: each arc a variable, each node an equation.
fn oracle(nodes: usize, arcs: &[Given], supplies: &[i64]) -> f64 {
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let variables: Vec<_> = arcs
        .iter()
        .map(|&(_, _, capacity, cost)| problem.add_var(cost as f64, (0.0, capacity as f64)))
        .collect();
    for node in 0..nodes as Node {
        let sign = |&(from, to, ..): &Given| f64::from(i32::from(from == node) - i32::from(to == node));
        let row: Vec<_> =
            variables.iter().copied().zip(arcs.iter().map(sign)).filter(|r| r.1 != 0.0).collect();
        if !row.is_empty() {
            problem.add_constraint(row.as_slice(), ComparisonOp::Eq, supplies[node as usize] as f64);
        }
    }
    let outcome = problem.solve().expect("all can be sent");
    outcome.solution().expect("nothing limits it").objective()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_flow_is_cheaper(
        (nodes, arcs, amounts) in (2usize..12).prop_flat_map(|nodes| {
            let node = 0..nodes as Node;
            let arc = (node.clone(), node.clone(), 0u64..30, 0i64..40);
            (Just(nodes), prop::collection::vec(arc, 0..40), prop::collection::vec((node.clone(), node, 0i64..40), 0..8))
        })
    ) {
        let mut supplies = vec![0; nodes];
        let mut arcs: Vec<Given> = arcs.into_iter().filter(|arc| arc.0 != arc.1).collect();
        for (from, to, amount) in amounts {
            supplies[from as usize] += amount;
            supplies[to as usize] -= amount;
        }
        // So that all can be sent.
        for node in 1..nodes as Node {
            arcs.extend([(node, 0, 1000, 100), (0, node, 1000, 100)]);
        }
        let (mut network, ids) = network(nodes, &arcs, &supplies);
        prop_assert_eq!(network.solve(), 0);
        let cost: i64 = ids.iter().zip(&arcs).map(|(&id, arc)| network.flow(id) as i64 * arc.3).sum();
        prop_assert!((cost as f64 - oracle(nodes, &arcs, &supplies)).abs() < 0.5);
    }
}
