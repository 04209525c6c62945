//! What tests of several modules use.

use crate::uncounted::never_ran;
use afterlink_core::IdVec;
use afterlink_program::{BlockId, EdgeWeight, FuncId, Function, FunctionWeights, Program, text};

/// A loop with two arms, the second of which falls through; behind it the way out.
const LOOP: &str = "\
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

/// The program of [`LOOP`].
pub(crate) fn loop_program() -> Program<'static> {
    text::read(LOOP).expect("a program").program
}

/// The function of such a program.
pub(crate) fn only_function<'p>(program: &'p Program<'static>) -> &'p Function<'static> {
    &program.functions[FuncId(0)]
}

pub(crate) fn edge_of((from, to, count): (u32, u32, u64)) -> EdgeWeight {
    EdgeWeight { from: BlockId(from), to: BlockId(to), count }
}

/// The edges of [`LOOP`] with these counts.
pub(crate) fn loop_edges(counts: [u64; 6]) -> Vec<EdgeWeight> {
    let ways = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 0), (3, 4)];
    ways.into_iter().zip(counts).map(|((from, to), count)| edge_of((from, to, count))).collect()
}

/// Counts of a function of two blocks, each of which ran so often.
pub(crate) fn counted_inside(entries: u64) -> FunctionWeights {
    FunctionWeights {
        entries,
        blocks: vec![entries, entries],
        edges: vec![edge_of((0, 1, entries))],
        ..FunctionWeights::default()
    }
}

/// Those of a function of so many blocks of which only entries were counted.
pub(crate) fn unknown_inside(entries: u64, blocks: usize) -> FunctionWeights {
    let mut counts = vec![0; blocks];
    counts[0] = entries;
    FunctionWeights { entries, blocks: counts, inside_unknown: true, ..FunctionWeights::default() }
}

/// Which functions never ran by a profile with these counts.
pub(crate) fn never_ran_by(program: &Program, functions: &[FunctionWeights]) -> IdVec<FuncId, bool> {
    let known: Vec<Option<&FunctionWeights>> =
        functions.iter().map(|weights| weights.is_hot().then_some(weights)).collect();
    never_ran(program, &known)
}
