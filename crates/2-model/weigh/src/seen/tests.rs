use super::*;
use afterlink_program::{BlockId, CallWeight, FuncId, text};

/// A loop with two arms, the second of which falls through; behind it a way out that calls.
const TEXT: &str = "\
program x86-64
function main 0x1000+0x20
block b0 0x1000:
  85 ff
  branch e b2 else b1 | 74 04
block b1 0x1004:
  90 31 c0
  jump b3 | eb 03
block b2 0x1009:
  31 c9
  90
  next b3
block b3 0x100c:
  ff c8
  branch ne b0 else b4 | 75 f0
block b4 0x1010:
  c3
  return
";

fn seen(entries: u64, counts: [u64; 6], calls: &[(u32, u64)]) -> Vec<u64> {
    let program = text::read(TEXT).expect("a program").program;
    let ways = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 0), (3, 4)];
    let edge = |((from, to), count)| EdgeWeight { from: BlockId(from), to: BlockId(to), count };
    let call = |&(block, count): &(u32, u64)| CallWeight {
        block: BlockId(block),
        offset: 1,
        callee: FuncId(0),
        count,
    };
    let weights = FunctionWeights {
        entries,
        edges: ways.into_iter().zip(counts).map(edge).collect(),
        calls: calls.iter().map(call).collect(),
        ..FunctionWeights::default()
    };
    blocks(&program.functions[FuncId(0)], &weights)
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
