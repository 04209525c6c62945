use super::super::entries::unaccounted;
use super::*;
use crate::example::{counted_inside, never_ran_by, unknown_inside};
use afterlink_core::Refusal;
use afterlink_program::{BlockId, CallWeight, text};

/// `main` calls one of three functions, the third from behind a loop that leads nowhere else; `other` calls the first of them, too.
const TEXT: &str = "\
program x86-64
function main 0x1000+0x30
block b0 0x1000:
  85 ff
  branch e b2 else b1 | 74 07
block b1 0x1004:
  e8 (call often)
  jump b6 | eb 15
block b2 0x100b:
  85 f6
  branch e b4 else b3 | 74 07
block b3 0x100f:
  e8 (call once)
  jump b6 | eb 0a
block b4 0x1016:
  85 f6
  branch ne b4 else b5 | 75 fc
block b5 0x101a:
  e8 (call never)
  90
  next b6
block b6 0x1020:
  c3
  return
function other 0x1030+0x10
block b0 0x1030:
  e8 (call often)
  c3
  return
function often 0x1040+0x10
block b0 0x1040:
  85 ff
  branch e b0 else b1 | 74 fc
block b1 0x1044:
  c3
  return
function once 0x1050+0x10
block b0 0x1050:
  85 ff
  branch e b0 else b1 | 74 fc
block b1 0x1054:
  c3
  return
function never 0x1060+0x10
block b0 0x1060:
  c3
  return
";

const OTHER: FuncId = FuncId(1);
const OFTEN: FuncId = FuncId(2);
/// No bound.
const ANY: u64 = u64::MAX;

/// Counts of all functions but `main`, inside of which nothing was counted, with so many entries of that one.
fn counts(entries: u64) -> Vec<FunctionWeights> {
    let unknown = unknown_inside(entries, 7);
    let call = CallWeight { block: BlockId(0), offset: 5, callee: OFTEN, count: 50 };
    let other =
        FunctionWeights { entries: 50, blocks: vec![50], calls: vec![call], ..FunctionWeights::default() };
    vec![unknown, other, counted_inside(120), counted_inside(1), FunctionWeights::default()]
}

/// Finds bounds, where what the profile does not name never ran.
fn bounds(program: &Program, counts: &mut [FunctionWeights]) {
    let unaccounted = unaccounted(counts, &never_ran_by(program, counts));
    find(program, counts, &unaccounted);
}

/// Bounds of the blocks of `main`.
fn found(counts: &mut [FunctionWeights]) -> &[u64] {
    let program = text::read(TEXT).expect("a program").program;
    bounds(&program, counts);
    &counts[0].at_most
}

#[test]
fn what_entered_a_callee_beyond_counted_calls_came_from_what_is_not_counted() {
    // 70 of the 120; one; and none, so that the loop in front of it cannot have run. Of the rest it is the sum.
    assert_eq!(found(&mut counts(71)), [71, 70, 1, 1, 0, 0, 71]);
}

#[test]
fn bounds_below_the_entries_are_no_bounds() {
    // No more than 71 of 72 would have called anything: some callee is not counted, either.
    assert!(found(&mut counts(72)).is_empty());
}

#[test]
fn callees_inside_of_which_nothing_was_counted_tell_nothing() {
    let mut counts = counts(100);
    counts[OFTEN.0 as usize].edges.clear();
    assert_eq!(found(&mut counts)[..4], [ANY, ANY, 1, 1]);
}

#[test]
fn calls_out_of_what_is_not_counted_account_for_nothing() {
    let mut counts = counts(100);
    counts[OTHER.0 as usize].inside_unknown = true;
    assert_eq!(found(&mut counts)[1], 120);
}

#[test]
fn what_nobody_counts_tells_nothing_by_not_having_run() {
    let mut program = text::read(TEXT).expect("a program").program;
    let never = FuncId(4);
    program.functions[never].refusal = Some(Refusal::SpecialSection);
    let mut counts = counts(100);
    bounds(&program, &mut counts);
    assert_eq!(counts[0].at_most[4..6], [ANY, ANY]);
}

#[test]
fn entries_tell_nothing_of_other_places_in_a_function() {
    let program = TEXT.replace("call never", "call once:b1");
    let program = text::read(&program).expect("a program").program;
    let mut counts = counts(71);
    bounds(&program, &mut counts);
    assert_eq!(counts[0].at_most[3..6], [1, ANY, ANY]);
}

#[test]
fn functions_whose_inside_was_counted_have_no_bounds() {
    let mut counts = counts(71);
    counts[0].inside_unknown = false;
    assert!(found(&mut counts).is_empty());
}
