use super::*;
use proptest::prelude::*;

/// A loop with two bodies, one of which leaves: 0 → 1, 1 → 2 or 3, 2 → 1, 3 → 1 or away.
fn loops() -> (Vec<Vec<u32>>, Vec<Vec<f64>>, Vec<f64>) {
    let successors = vec![vec![1], vec![2, 3], vec![1], vec![1]];
    let chances = vec![vec![1.0], vec![0.75, 0.25], vec![1.0], vec![0.5]];
    (successors, chances, vec![0.0, 0.0, 0.0, 0.5])
}

#[test]
fn a_loop_runs_until_it_is_left() {
    let (successors, chances, leaving) = loops();
    let mut system = Elimination::of(&successors, 1000).expect("small");
    system.set(&chances, &leaving);
    let mut times = vec![1.0, 0.0, 0.0, 0.0];
    system.executions(&mut times);
    // It is left at every eighth round.
    for (found, expected) in times.iter().zip([1.0, 8.0, 6.0, 2.0]) {
        assert!((found - expected).abs() < 1e-9, "{times:?}");
    }
    // What each execution of block 2 gives, from each block on.
    let mut values = vec![0.0, 0.0, 1.0, 0.0];
    system.values(&mut values);
    for (found, expected) in values.iter().zip([6.0, 6.0, 7.0, 3.0]) {
        assert!((found - expected).abs() < 1e-9, "{values:?}");
    }
}

#[test]
fn what_never_ends_ends() {
    let mut system = Elimination::of(&[vec![1], vec![0], vec![2]], 1000).expect("small");
    system.set(&[vec![1.0], vec![1.0], vec![1.0]], &[0.0; 3]);
    let mut times = vec![1.0, 0.0, 1.0];
    system.executions(&mut times);
    assert!(times.iter().all(|times| (1.0..100.0).contains(times)), "{times:?}");
}

#[test]
fn the_entangled_is_refused() {
    let all: Vec<u32> = (0..40).collect();
    assert!(Elimination::of(&vec![all; 40], 1000).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Against going round until nothing is left.
    #[test]
    fn as_going_round(ways in prop::collection::vec(prop::collection::btree_map(0u32..9, 1u32..9, 0..4), 9)) {
        let successors: Vec<Vec<u32>> = ways.iter().map(|ways| ways.keys().copied().collect()).collect();
        let leaving: Vec<f64> = ways.iter().map(|ways| 1.0 / f64::from(1 + ways.values().sum::<u32>())).collect();
        let chances: Vec<Vec<f64>> = ways.iter().zip(&leaving)
            .map(|(ways, leaving)| ways.values().map(|&n| f64::from(n) * leaving).collect()).collect();
        let mut system = Elimination::of(&successors, 10_000).expect("small");
        system.set(&chances, &leaving);
        let mut found = vec![0.0; 9];
        found[0] = 1.0;
        system.executions(&mut found);
        let (mut all, mut now) = (vec![0.0; 9], vec![0.0; 9]);
        now[0] = 1.0;
        for _ in 0..3000 {
            let mut next = vec![0.0; 9];
            for b in 0..9 {
                all[b] += now[b];
                successors[b].iter().zip(&chances[b]).for_each(|(&to, chance)| next[to as usize] += now[b] * chance);
            }
            now = next;
        }
        for (found, all) in found.iter().zip(&all) {
            prop_assert!((found - all).abs() <= 1e-6 * (1.0 + all), "{} {}", found, all);
        }
    }
}
