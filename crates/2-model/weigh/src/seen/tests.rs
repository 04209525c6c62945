use super::*;
use crate::example::{loop_edges, loop_program, only_function};
use afterlink_program::{BlockId, CallWeight, FuncId};

fn seen(entries: u64, counts: [u64; 6], calls: &[(u32, u64)]) -> Vec<u64> {
    let call = |&(block, count): &(u32, u64)| CallWeight {
        block: BlockId(block),
        offset: 1,
        callee: FuncId(0),
        count,
    };
    let weights = FunctionWeights {
        entries,
        edges: loop_edges(counts),
        calls: calls.iter().map(call).collect(),
        ..FunctionWeights::default()
    };
    blocks(only_function(&loop_program()), &weights)
}

#[test]
fn a_flow_stays_as_it_is() {
    assert_eq!(seen(10, [60, 40, 60, 40, 90, 10], &[]), vec![100, 60, 40, 100, 10]);
}

#[test]
fn a_block_ran_as_often_as_it_was_seen_from_both_sides() {
    // 96 came and 102 left; 60 and 64; 42, which fall through; 106 and 95, of which the way out saw 5.
    assert_eq!(seen(6, [60, 42, 64, 0, 90, 5], &[]), vec![99, 62, 42, 101, 5]);
}

#[test]
fn what_nobody_saw_did_not_run() {
    // More came to the branch than left it: that says nothing of its other way, though a flow would have to take it.
    assert_eq!(seen(12, [0, 80, 0, 80, 90, 10], &[]), vec![91, 0, 80, 90, 10]);
}

#[test]
fn a_call_tells_that_its_block_ran() {
    assert_eq!(seen(10, [60, 40, 60, 40, 90, 10], &[(1, 70)]), vec![100, 70, 40, 100, 10]);
}
