use super::*;
use crate::example::{counted_inside, never_ran_by, unknown_inside};
use afterlink_program::{BlockId, CallWeight, text};

/// `main` calls `peer`, which calls `second` if its table says so; `chooser` calls `first` or `second` by its own. Both have a part that was split off. Nobody is seen to call
/// `chooser`, nor `other`.
const TEXT: &str = "\
program x86-64
function main 0x1000+0x10
block b0 0x1000:
  85 ff
  branch e b2 else b1 | 74 06
block b1 0x1004:
  e8 (call peer)
  next b2
block b2 0x1009:
  c3
  return
function chooser 0x1020+0x20, 0x2000+0x10
block b0 0x1020:
  89 f8
  ff e0
  indirect table 0
block b1 0x1024:
  e8 (call first)
  c3
  return
block b2 0x102a:
  e8 (call second)
  c3
  return
block b3 0x2000:
  c3
  return
table 0x9000 entry 4 signed shift 0 base 0x9000: b1 b2 b3
function peer 0x1060+0x20, 0x2020+0x10
block b0 0x1060:
  89 f8
  ff e0
  indirect table 0
block b1 0x1064:
  e8 (call second)
  c3
  return
block b2 0x2020:
  c3
  return
table 0x9010 entry 4 signed shift 0 base 0x9010: b1 b2
function first 0x10a0+0x10
block b0 0x10a0:
  85 ff
  branch e b0 else b1 | 74 fc
block b1 0x10a4:
  c3
  return
function second 0x10b0+0x10
block b0 0x10b0:
  85 ff
  branch e b0 else b1 | 74 fc
block b1 0x10b4:
  c3
  return
function other 0x10c0+0x10
block b0 0x10c0:
  e8 (call first)
  c3
  return
";

const MAIN: usize = 0;
const CHOOSER: usize = 1;
const PEER: usize = 2;
const FIRST: FuncId = FuncId(3);
const SECOND: FuncId = FuncId(4);
const OTHER: usize = 5;

/// `first` was entered 40 times and `second` 70 times, and nobody was seen to call them; inside of `peer` nothing was counted.
fn counted() -> Vec<FunctionWeights> {
    let edges = [(0, 1, 50), (1, 2, 50)].map(crate::example::edge_of).to_vec();
    let call = CallWeight { block: BlockId(1), offset: 1, callee: FuncId(PEER as u32), count: 50 };
    let main = FunctionWeights {
        entries: 50,
        blocks: vec![50, 50, 50],
        edges,
        calls: vec![call],
        ..FunctionWeights::default()
    };
    let peer = unknown_inside(50, 3);
    let unknown = FunctionWeights::default;
    vec![main, unknown(), peer, counted_inside(40), counted_inside(70), unknown()]
}

/// What is found in this program.
fn found_in(program: &str, mut functions: Vec<FunctionWeights>, partly: &[usize]) -> Vec<FunctionWeights> {
    let program = text::read(program).expect("a program").program;
    let never_ran = never_ran_by(&program, &functions);
    let partly: Vec<bool> = (0..functions.len()).map(|id| partly.contains(&id)).collect();
    find(&program, &mut functions, &partly.into(), &never_ran);
    functions
}

fn calls(weights: &FunctionWeights) -> Vec<(u32, FuncId, u64)> {
    weights.calls.iter().map(|call| (call.block.0, call.callee, call.count)).collect()
}

#[test]
fn what_alone_can_have_called_a_function_did() {
    let found = found_in(TEXT, counted(), &[]);
    // `other` calls it as well, but is of a kind that the profile counts, and never ran.
    assert_eq!((found[CHOOSER].entries, found[CHOOSER].inside_unknown), (40, true));
    assert_eq!(calls(&found[CHOOSER]), [(1, FIRST, 40)]);
    assert_eq!(found[CHOOSER].blocks, [40, 40, 0, 0]);
    assert!(!found[OTHER].is_hot());
    // Two can have called the other one.
    assert!(found[PEER].calls.is_empty());
}

#[test]
fn where_the_profile_counts_such_functions_one_that_it_does_not_name_never_ran() {
    let mut functions = counted();
    functions[PEER].inside_unknown = false;
    functions[MAIN].inside_unknown = true;
    assert!(!found_in(TEXT, functions, &[])[CHOOSER].is_hot());
}

#[test]
fn where_somebody_has_the_address_anybody_may_have_called() {
    let program = format!("{TEXT}pointer 0x3000 word64 first\n");
    assert!(!found_in(&program, counted(), &[])[CHOOSER].is_hot());
}

#[test]
fn calls_in_a_loop_tell_that_a_function_ran_not_how_often() {
    let program = TEXT.replace("(call first)\n  c3\n  return\nblock b2", "(call first)\n  next b0\nblock b2");
    assert_ne!(program, TEXT);
    let found = found_in(&program, counted(), &[]);
    assert_eq!(found[CHOOSER].entries, 1);
    assert_eq!(calls(&found[CHOOSER]), [(1, FIRST, 40)]);
}

#[test]
fn calls_in_two_places_are_at_least_half_as_many_entries() {
    let program = TEXT.replace("block b2 0x102a:\n  e8 (call second)", "block b2 0x102a:\n  e8 (call first)");
    assert_ne!(program, TEXT);
    let found = found_in(&program, counted(), &[]);
    assert_eq!(found[CHOOSER].entries, 20);
    assert!(found[CHOOSER].calls.is_empty());
    assert_eq!(calls(&found[PEER]), [(1, SECOND, 70)]);
}

#[test]
fn a_function_of_which_a_part_is_counted_may_have_called() {
    let program = TEXT.replace("block b2 0x1009:\n  c3", "block b2 0x1009:\n  e8 (call first)\n  c3");
    assert_ne!(program, TEXT);
    let found = found_in(&program, counted(), &[MAIN]);
    assert!(!found[CHOOSER].is_hot());
    // Only the 40 entries that nobody else accounts for are calls from there, though its block ran 50 times.
    assert_eq!(calls(&found[MAIN]), [(1, FuncId(PEER as u32), 50), (2, FIRST, 40)]);
    // If all of it is counted, what was not counted was not called there.
    assert!(found_in(&program, counted(), &[])[CHOOSER].is_hot());
}

#[test]
fn calls_stay_in_order() {
    let program = TEXT
        .replace("block b0 0x1000:\n  85 ff", "block b0 0x1000:\n  e8 (call first)\n  85 ff")
        .replace("block b1 0x1004:", "block b1 0x1009:")
        .replace("block b2 0x1009:", "block b2 0x100e:");
    let found = found_in(&program, counted(), &[MAIN]);
    assert_eq!(calls(&found[MAIN]), [(0, FIRST, 40), (1, FuncId(PEER as u32), 50)]);
}

#[test]
fn where_all_is_counted_nothing_is_looked_for() {
    let mut functions = counted();
    functions[PEER].inside_unknown = false;
    assert_eq!(found_in(TEXT, functions.clone(), &[MAIN]), functions);
}
