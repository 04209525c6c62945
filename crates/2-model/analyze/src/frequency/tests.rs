use super::*;

fn graph(ways: &[&[u32]]) -> FlowGraph {
    let entered = (0..ways.len()).map(|block| block == 0).collect();
    FlowGraph { successors: ways.iter().map(|ways| ways.to_vec()).collect(), entered }
}

fn frequencies(ways: &[&[u32]], unlikely: &[usize]) -> Frequencies {
    let flags: Vec<bool> = (0..ways.len()).map(|b| unlikely.contains(&b)).collect();
    estimate(&graph(ways), &flags)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.35 * b
}

#[test]
fn a_loop_runs_ten_times_and_a_loop_in_it_a_hundred() {
    // 0 -> 1 -> 2 -> 2 or 3; 3 -> 1 or 4
    let found = frequencies(&[&[1], &[2], &[2, 3], &[1, 4], &[]], &[]).blocks;
    assert!(close(found[1], 10.0), "{found:?}");
    assert!(close(found[2], 100.0), "{found:?}");
    assert!(close(found[4], 1.0), "{found:?}");
}

#[test]
fn a_loop_that_tests_at_its_head_runs_as_often() {
    // 0 -> 1; 1 -> 2 or 3; 2 -> 1
    let found = frequencies(&[&[1], &[2, 3], &[1], &[]], &[]);
    assert!(close(found.blocks[1], 10.0), "{:?}", found.blocks);
    assert!(close(found.edges[1][1], 1.0), "{:?}", found.edges);
}

#[test]
fn both_ways_are_equal_but_for_what_was_put_aside() {
    let found = frequencies(&[&[1, 2], &[3], &[3], &[]], &[]).blocks;
    assert_eq!(found, [1.0, 0.5, 0.5, 1.0]);
    let found = frequencies(&[&[1, 2], &[3], &[3], &[]], &[1]).blocks;
    assert!(found[1] < 0.02 && found[2] > 0.98, "{found:?}");
}

/// Two ways into a circle: no block rules it. Everything must still get a number, and the circle a large one.
#[test]
fn a_circle_with_two_ways_in_is_a_loop() {
    let found = frequencies(&[&[1, 2], &[2], &[1, 3], &[]], &[]).blocks;
    assert!(found[1] + found[2] > 4.0, "{found:?}");
    assert!(found.iter().all(|f| f.is_finite()));
}

/// Each way back makes what stands behind it ten times as frequent: a thousand of them are more than any number.
#[test]
fn a_thousand_loops_have_numbers() {
    const BLOCKS: u32 = 1000;
    let ways = |block: u32| [block.saturating_sub(1), (block + 1).min(BLOCKS - 1)];
    let ways: Vec<[u32; 2]> = (0..BLOCKS).map(ways).collect();
    let ways: Vec<&[u32]> = ways.iter().map(|ways| &ways[..]).collect();
    let found = frequencies(&ways, &[]);
    assert!(found.blocks.iter().chain(found.edges.iter().flatten()).all(|count| count.is_finite()));
    assert!(found.blocks[999] > 1e50, "{:?}", found.blocks[999]);
}
