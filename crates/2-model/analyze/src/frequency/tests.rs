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

/// In how many loops each block lies, one loop after the other.
fn depths_one_by_one(graph: &FlowGraph, order: &[u32], back: &[(u32, u32)]) -> Vec<u32> {
    let mut depth = vec![0; graph.len()];
    let position = |block: u32| order.iter().position(|&b| b == block);
    let before = graph.predecessors();
    let head_of = |&(from, i): &(u32, u32)| graph.successors[from as usize][i as usize];
    for head in 0..graph.len() as u32 {
        let sources = back.iter().filter(|edge| head_of(edge) == head).map(|edge| edge.0);
        let mut open: Vec<u32> = sources.collect();
        let mut inside = vec![false; graph.len()];
        inside[head as usize] = !open.is_empty();
        while let Some(block) = open.pop() {
            if !inside[block as usize] && position(block) >= position(head) {
                inside[block as usize] = true;
                open.extend(&before[block as usize]);
            }
        }
        inside.iter().zip(&mut depth).for_each(|(inside, depth)| *depth += u32::from(*inside));
    }
    depth
}

/// Random graphs, with more loops than are followed at once.
#[test]
fn loops_are_counted_as_one_by_one() {
    let mut state = 1u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for size in [1, 2, 5, 20, 100, 400] {
        for reach in [2, 10, 1000] {
            let mut ways = Vec::new();
            for block in 0..size {
                let near = |to: usize| (block + to).saturating_sub(reach / 2).min(size - 1) as u32;
                let mut own = vec![near(draw(reach)), (block + 1).min(size - 1) as u32];
                own.dedup();
                ways.push(own);
            }
            let ways: Vec<&[u32]> = ways.iter().map(|ways| &ways[..]).collect();
            let graph = graph(&ways);
            let DepthFirst { order, back } = DepthFirst::search(&graph, 0..size as u32);
            let wanted = depths_one_by_one(&graph, &order, &back);
            assert_eq!(loop_depths(&graph, &order, &back), wanted, "{ways:?}");
        }
    }
}

/// Hundreds of loops that reach over half of the function: one by one they take 20 seconds.
#[test]
fn many_long_loops_take_no_time() {
    const BLOCKS: u32 = 400_000;
    let ways =
        |block: u32| [(block + 1).min(BLOCKS - 1), if block % 500 == 499 { block / 500 } else { block }];
    let ways: Vec<[u32; 2]> = (0..BLOCKS).map(ways).collect();
    let ways: Vec<&[u32]> = ways.iter().map(|ways| &ways[..]).collect();
    let graph = graph(&ways);
    let DepthFirst { order, back } = DepthFirst::search(&graph, 0..BLOCKS);
    let since = std::time::Instant::now();
    let found = loop_depths(&graph, &order, &back);
    assert_eq!(found.len(), BLOCKS as usize);
    assert!(since.elapsed().as_secs() < 5, "{:?}", since.elapsed());
}
