use super::*;
use std::time::Instant;

/// What tests know of a block: samples that cost 10 to add to and 20 to leave out.
fn seen(count: u64) -> Evidence {
    Evidence { count, more: 10, fewer: 20 }
}

/// Infers from counts of blocks alone. Control comes to the first and leaves where nothing follows.
fn by_blocks(successors: &[&[u32]], counts: &[u64]) -> Flow {
    let successors: Vec<Vec<u32>> = successors.iter().map(|s| s.to_vec()).collect();
    let edges: Vec<Vec<Evidence>> = successors.iter().map(|s| vec![Evidence::default(); s.len()]).collect();
    let blocks: Vec<Evidence> = counts.iter().map(|&count| seen(count)).collect();
    let entries: Vec<_> = (0..counts.len()).map(|b| (b == 0).then(Evidence::default)).collect();
    let exits: Vec<_> = successors.iter().map(|s| s.is_empty().then(Evidence::default)).collect();
    let observed = Observed {
        successors: &successors,
        blocks: &blocks,
        edges: &edges,
        entries: &entries,
        exits: &exits,
    };
    let flow = infer(&observed);
    check(&observed, &flow);
    flow
}

/// As often as control comes to a block, it runs, and leaves.
fn check(observed: &Observed, flow: &Flow) {
    let mut into = flow.entries.clone();
    for (to, count) in
        observed.successors.iter().zip(&flow.edges).flat_map(|(to, counts)| to.iter().zip(counts))
    {
        into[*to as usize] += count;
    }
    let out = flow.edges.iter().zip(&flow.exits).map(|(edges, exits)| edges.iter().sum::<u64>() + exits);
    assert_eq!(into, flow.blocks);
    assert_eq!(out.collect::<Vec<_>>(), flow.blocks);
}

#[test]
fn counts_that_fit_stay() {
    let flow = by_blocks(&[&[1, 2], &[3], &[3], &[]], &[100, 30, 70, 100]);
    assert_eq!(flow.blocks, [100, 30, 70, 100]);
    assert_eq!(flow.edges[0], [30, 70]);
}

#[test]
fn a_block_between_two_that_ran_ran() {
    assert_eq!(by_blocks(&[&[1], &[2], &[]], &[50, 0, 50]).blocks, [50, 50, 50]);
}

#[test]
fn one_sample_too_many_is_taken_back() {
    // To think that 1 ran and everything around it did not would cost more.
    assert_eq!(by_blocks(&[&[1], &[2], &[3], &[]], &[0, 1, 0, 0]).blocks, [0, 0, 0, 0]);
}

#[test]
fn what_only_goes_round_is_joined_to_the_entry() {
    // 0 → 1 ⇄ 2, 1 → 3: only the loop was seen.
    let flow = by_blocks(&[&[1], &[2, 3], &[1], &[]], &[0, 90, 90, 0]);
    assert_eq!(flow.blocks, [1, 91, 90, 1]);
}

#[test]
fn a_loop_has_its_way_out() {
    let flow = by_blocks(&[&[1], &[1, 2], &[]], &[1, 100, 1]);
    assert_eq!(flow.edges[1], [99, 1]);
}

#[test]
fn a_thousand_blocks_take_a_tenth_of_a_second() {
    // Diamonds in loops, with counts that contradict each other everywhere.
    let blocks = 1000u32;
    let successors: Vec<Vec<u32>> = (0..blocks)
        .map(|b| match b % 4 {
            _ if b + 3 >= blocks => Vec::new(),
            0 => vec![b + 1, b + 2],
            1 => vec![b + 2],
            2 => vec![b + 1],
            _ if b % 20 == 19 => vec![b + 1, b - 19],
            _ => vec![b + 1],
        })
        .collect();
    let slices: Vec<&[u32]> = successors.iter().map(Vec::as_slice).collect();
    let counts: Vec<u64> = (0..u64::from(blocks)).map(|b| b * 7919 % 1009).collect();
    let start = Instant::now();
    by_blocks(&slices, &counts);
    // Measured as 0.01 s, in a release build. A busy machine and a debug build take longer.
    let limit = if cfg!(debug_assertions) { 2.0 } else { 0.1 };
    let took = start.elapsed().as_secs_f64();
    assert!(took < limit, "{took} s");
}
