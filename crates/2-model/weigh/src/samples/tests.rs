use super::*;
use afterlink_program::text;

/// A branch to one of two blocks, and a call behind them; the callee is a loop. Both loops and calls are of a few instructions.
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
  e8 (call callee)
  c3
  return
function callee 0x1020+0x10
block b0 0x1020:
  31 c0
  next b1
block b1 0x1022:
  ff c0
  83 f8 09
  branch ne b1 else b2 | 75 f9
block b2 0x1029:
  c3
  return
";

fn weighed(samples: &[(u64, u64)]) -> Weights {
    let program = text::read(TEXT).expect("a program").program;
    let mut sampled = Sampled::default();
    for &(at, count) in samples {
        let function = program.function_at(InputAddr(at)).expect("inside");
        sampled.entry(function).or_default().push((InputAddr(at), count));
    }
    weigh(&program, &sampled)
}

#[test]
fn the_arm_that_was_seen_is_likelier() {
    let weights = weighed(&[(0x1000, 50), (0x1002, 50), (0x1009, 50), (0x100c, 40), (0x1011, 60)]);
    let main = &weights.functions[FuncId(0)];
    assert!(main.blocks[2] > 10 * main.blocks[1], "{:?}", main.blocks);
    // A sample of the other would hardly have been missed.
    assert!(main.blocks[1] as f64 <= EXECUTIONS_PER_SAMPLE, "{:?}", main.blocks);
    assert_eq!(main.entries, main.blocks[0]);
    assert!(weights.basis == Basis::Estimated);
}

#[test]
fn an_arm_beside_a_few_samples_may_have_run() {
    let weights = weighed(&[(0x1000, 1), (0x1002, 1), (0x1009, 1), (0x100c, 1)]);
    let main = &weights.functions[FuncId(0)];
    assert!(main.blocks[1] > 0 && main.blocks[1] < main.blocks[2], "{:?}", main.blocks);
}

#[test]
fn a_callee_without_a_sample_runs_when_it_is_called() {
    let weights = weighed(&[(0x1000, 5), (0x1002, 5), (0x1009, 5), (0x100c, 5), (0x1011, 5)]);
    let (main, callee) = (&weights.functions[FuncId(0)], &weights.functions[FuncId(1)]);
    assert_eq!(main.calls.len(), 1);
    assert_eq!((main.calls[0].callee, main.calls[0].offset), (FuncId(1), 5));
    assert!(callee.entries > 0 && callee.entries <= main.calls[0].count, "{callee:?}");
    assert!(callee.blocks[1] > callee.entries, "it loops: {callee:?}");
    // Had it run ten rounds at each call, it would have been seen.
    let instructions: u64 = callee.blocks.iter().zip([1, 3, 1]).map(|(&count, n)| count * n).sum();
    assert!(instructions < main.calls[0].count * (1 + 10 * 3 + 1) / 4, "{callee:?}");
}

#[test]
fn what_nobody_calls_does_not_run() {
    let weights = weighed(&[(0x1020, 7), (0x1022, 30), (0x1024, 30)]);
    assert!(!weights.functions[FuncId(0)].is_hot());
    let callee = &weights.functions[FuncId(1)];
    assert!(callee.blocks[1] > callee.blocks[0], "{callee:?}");
}

#[test]
fn absurd_counts_are_only_large() {
    let most = i64::MAX as u64;
    let weights = weighed(&[(0x1000, most), (0x1002, most), (0x1009, most), (0x100c, most), (0x1011, most)]);
    let main = &weights.functions[FuncId(0)];
    assert!(main.blocks[0] >= 1 << 39 && main.blocks[0] < 1 << 41, "{:?}", main.blocks);
}
