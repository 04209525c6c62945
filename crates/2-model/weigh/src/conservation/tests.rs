use super::*;
use crate::example::{edge_of, loop_edges, loop_program, only_function};
use afterlink_program::{FuncId, text};

/// The weights of the loop that follow from these counts of edges.
fn restored(entries: u64, counts: [u64; 6]) -> FunctionWeights {
    let program = loop_program();
    let edges = loop_edges(counts);
    let mut blocks = vec![0u64; 5];
    edges.iter().for_each(|edge| blocks[edge.to.index()] += edge.count);
    blocks[0] += entries;
    let mut weights = FunctionWeights { entries, blocks, edges, ..FunctionWeights::default() };
    restore(only_function(&program), &mut weights, Counts::Samples);
    weights
}

#[test]
fn what_fits_stays() {
    let counts = [60, 40, 60, 40, 90, 10];
    let weights = restored(10, counts);
    assert_eq!(weights.blocks, [100, 60, 40, 100, 10]);
    assert_eq!(weights.edges.iter().map(|edge| edge.count).collect::<Vec<_>>(), counts);
}

#[test]
fn a_count_that_was_lost_comes_back() {
    // Nothing was counted on the way from 1 to 3.
    let weights = restored(10, [60, 40, 0, 40, 90, 10]);
    assert_eq!(weights.blocks, [100, 60, 40, 100, 10]);
    assert_eq!(weights.edges[2].count, 60);
}

#[test]
fn what_comes_leaves() {
    let weights = restored(9, [55, 37, 63, 40, 80, 3]);
    assert!(fits(only_function(&loop_program()), &weights));
    assert!((90..=105).contains(&weights.blocks[3]), "{weights:?}");
}

/// What is called from the loop does not come back, so nothing leaves the function.
const LAST_CALL: &str = "\
program x86-64
function main 0x1000+0x11
block b0 0x1000:
  85 ff
  branch e b2 else b1 | 74 07
block b1 0x1004:
  90
  e8 (call fails)
  next b2
block b2 0x100a:
  31 c9
  jump b1 | eb f6
function fails 0x1020+0x2
block b0 0x1020:
  0f 0b
  trap
";

#[test]
fn what_does_not_come_back_has_come() {
    let program = text::read(LAST_CALL).expect("a program").program;
    let function = only_function(&program);
    let of = |counts| {
        // What comes to the call is taken to go on behind it, until it is seen that this does not fit.
        let edges = [(0, 1, 0), (0, 2, 400), (1, 2, 400), (2, 1, 400)].map(edge_of).to_vec();
        let mut weights = FunctionWeights {
            entries: 400,
            blocks: vec![400, 400, 800],
            edges,
            ..FunctionWeights::default()
        };
        assert!(!fits(function, &weights));
        restore(function, &mut weights, counts);
        (weights.entries, weights.blocks)
    };
    assert_eq!(of(Counts::Counters { never: &|_| false }), (400, vec![400, 400, 400]));
    assert_ne!(of(Counts::Samples).0, 400, "where calls come back, something was counted wrongly");
}

/// Six branches one behind the other, each of which may lead to the end; behind them a jump there.
fn six_branches() -> String {
    let branch = |i: u64| {
        format!(
            "block b{i} {:#x}:\n  85 ff\n  branch e b7 else b{} | 74 {:02x}\n",
            0x1000 + 4 * i,
            i + 1,
            4 * (6 - i)
        )
    };
    let branches: String = (0..6).map(branch).collect();
    format!(
        "program x86-64\nfunction main 0x1000+0x1b\n{branches}block b6 0x1018:\n  jump b7 | eb 00\nblock b7 0x101a:\n  c3\n  return\n"
    )
}

#[test]
fn counters_are_never_too_many() {
    let program = six_branches();
    let program = text::read(&program).expect("a program").program;
    let function = &program.functions[FuncId(0)];
    let restored = |counts: Counts| {
        // Only the jump was counted, and the entry.
        let ways = (0..6).flat_map(|i| [(i, i + 1, 0), (i, 7, 0)]).chain([(6, 7, 40)]);
        let edges = ways.map(edge_of).collect();
        let blocks = vec![40, 0, 0, 0, 0, 0, 40, 40];
        let mut weights = FunctionWeights { entries: 40, blocks, edges, ..FunctionWeights::default() };
        restore(function, &mut weights, counts);
        weights.blocks
    };
    // Samples may have been led astray by one; a counter was not.
    assert_eq!(restored(Counts::Samples), [40, 0, 0, 0, 0, 0, 0, 40]);
    assert_eq!(restored(Counts::Counters { never: &|_| false }), [40; 8]);
    // But it may be made up, as BOLT makes up some: control did not come where it never has.
    let third = function.blocks[BlockId(2)].input;
    let never = |block: &Block| block.input == third;
    assert_eq!(restored(Counts::Counters { never: &never })[1..7], [0; 6]);
}
