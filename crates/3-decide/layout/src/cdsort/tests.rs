use super::*;

fn arc(caller: u32, callee: u32, count: u64, caller_offset: u32) -> CallArc {
    CallArc { caller, callee, count, caller_offset, callee_offset: 0 }
}

fn order(sizes: &[u32], samples: &[u64], arcs: &[CallArc]) -> Vec<u32> {
    let graph = CallGraph { sizes: sizes.to_vec(), samples: samples.to_vec(), arcs: arcs.to_vec() };
    order_functions(&graph, &CdSortParams::default())
}

#[test]
fn the_call_site_decides_who_stands_first() {
    // From the end of function 1 the start of 0 is next door if 1 stands first; from its start
    // it is nearer the other way round only if 0 is the shorter of the two.
    assert_eq!(order(&[100, 100], &[50, 50], &[arc(1, 0, 50, 100)]), [1, 0]);
    assert_eq!(order(&[10, 100], &[50, 50], &[arc(1, 0, 50, 0)]), [0, 1]);
}

#[test]
fn a_tie_keeps_the_input_order() {
    // Length 50 both ways.
    assert_eq!(order(&[50, 100], &[5, 5], &[arc(1, 0, 5, 50), arc(1, 0, 5, 0)]), [0, 1]);
    let both_ways = [CallArc { callee_offset: 25, ..arc(0, 1, 5, 25) }];
    assert_eq!(order(&[50, 50], &[5, 5], &both_ways), [0, 1]);
}

#[test]
fn functions_that_never_ran_come_last_in_input_order() {
    let arcs = [arc(4, 2, 10, 0), arc(1, 3, 0, 0)];
    assert_eq!(order(&[10; 5], &[0, 0, 10, 0, 10], &arcs), [2, 4, 0, 1, 3]);
    assert_eq!(order(&[], &[], &[]), []);
    assert_eq!(order(&[0], &[0], &[arc(0, 0, 3, 0)]), [0]);
}

/// The gain of one merge, worked out from the published formula with the C library's `pow`.
#[test]
fn the_gain_is_the_published_one() {
    let graph =
        CallGraph { sizes: vec![300, 200, 1000], samples: vec![40, 60, 900], arcs: vec![arc(0, 1, 60, 120)] };
    let params = CdSortParams::default();
    let gains = Gains::new(&graph, &params);
    let chains = CallChains::new(&graph, |arc| gains.most_gain(arc));
    let found = gains.evaluate(&chains, 0).expect("worth merging");
    assert!(gains.bound(&chains, 0) >= found.gain);
    // Function 0 runs as often as it calls: 60 times.
    let misses = |count: f64, size: f64| count * (1.0 - count / size * 2048.0 / 1000.0).powi(16);
    let frequency = misses(60.0, 300.0) + misses(60.0, 200.0) - misses(120.0, 500.0);
    let worth = |length: f64| 60.0 * (length.powf(-0.25) - 1500f64.powf(-0.25));
    let straight = (worth(300.0 - 120.0) + 0.25 * frequency) / 200.0;
    let reversed = (worth(200.0 + 120.0) + 0.25 * frequency) / 200.0;
    assert!(straight > reversed && !found.is_reversed);
    assert!((found.gain - straight).abs() < 1e-6 * straight, "{} is not {straight}", found.gain);
}

#[test]
fn chains_stop_at_their_size_limit() {
    let sizes = vec![16; 10];
    let arcs: Vec<CallArc> = (0..9).map(|node| arc(node, node + 1, 100, 16)).collect();
    let graph = CallGraph { sizes, samples: vec![100; 10], arcs };
    let limited = CdSortParams { max_chain_size: 1, ..CdSortParams::default() };
    // Without merges all have the same density.
    assert_eq!(order_functions(&graph, &limited), (0..10).collect::<Vec<_>>());
    assert_eq!(order_functions(&graph, &CdSortParams::default()), (0..10).collect::<Vec<_>>());
}

#[test]
fn counts_may_be_huge() {
    let mut arcs = vec![arc(0, 1, u64::MAX, 5), arc(1, 2, u64::MAX, 5)];
    arcs.push(arc(2, 0, u64::MAX, u32::MAX));
    let mut found = order(&[u32::MAX; 3], &[u64::MAX; 3], &arcs);
    found.sort_unstable();
    assert_eq!(found, [0, 1, 2]);
}
