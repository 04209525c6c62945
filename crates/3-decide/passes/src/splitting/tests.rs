use super::*;
use crate::LayoutOptions;
use afterlink_core::{IdVec, InputAddr};
use afterlink_program::{Block, Range, Stop, Terminator, text};

/// Three blocks, and a fourth that the compiler has split off.
fn function() -> Function<'static> {
    let mut blocks = IdVec::new();
    for input in [0x1000, 0x1010, 0x1020, 0x8000].map(InputAddr) {
        let terminator = Terminator::Stop(Stop::Return);
        blocks.push(Block { size: 16, body: 16, ..Block::empty(input, terminator) });
    }
    let range = |start, size| Range { start: InputAddr(start), size };
    let ranges = vec![range(0x1000, 48), range(0x8000, 16)];
    Function { input_blocks: 4, blocks, ..Function::new("sample", ranges) }
}

#[test]
fn what_is_not_known_stays_as_the_compiler_left_it() {
    let blocks = |numbers: &[u32]| numbers.iter().copied().map(BlockId).collect::<Vec<_>>();
    let weights = FunctionWeights {
        entries: 50,
        blocks: vec![50, 0, 0, 0],
        inside_unknown: true,
        ..FunctionWeights::default()
    };
    let parts = |limit| as_compiled(FuncId(0), &function(), blocks(&[0, 1, 2, 3]), &weights, limit);
    let often = parts(50);
    assert_eq!((often.hot, often.warm, often.cold), (blocks(&[0, 1, 2]), vec![], blocks(&[3])));
    let seldom = parts(51);
    assert_eq!((seldom.hot, seldom.warm, seldom.cold), (vec![], blocks(&[0, 1, 2]), blocks(&[3])));
}

#[test]
fn what_cannot_have_run_so_often_leaves_what_the_compiler_left_together() {
    let blocks = |numbers: &[u32]| numbers.iter().copied().map(BlockId).collect::<Vec<_>>();
    let weights = |at_most: [u64; 4]| FunctionWeights {
        entries: 50,
        blocks: vec![50, 0, 0, 0],
        inside_unknown: true,
        at_most: at_most.to_vec(),
        ..FunctionWeights::default()
    };
    let parts = |at_most| as_compiled(FuncId(0), &function(), blocks(&[0, 1, 2, 3]), &weights(at_most), 20);
    let found = parts([50, 19, 20, u64::MAX]);
    assert_eq!((found.hot, found.warm, found.cold), (blocks(&[0, 2]), blocks(&[1]), blocks(&[3])));
    let found = parts([50, 0, u64::MAX, 0]);
    assert_eq!((found.hot, found.warm, found.cold), (blocks(&[0, 2]), vec![], blocks(&[1, 3])));
}

/// 97.5 % are in the first block.
const TEXT: &str = "\
program x86-64 counted
function main 0x1000+0x3
block b0 0x1000:
  90
  next b1
block b1 0x1001:
  90
  next b2
block b2 0x1002:
  c3
  return
ran 9750: 9750 150 100
edge b0 b1 150
edge b1 b2 100
";

#[test]
fn the_hot_part_covers_less_of_what_was_only_estimated() {
    let text = text::read(TEXT).expect("a program");
    let hot = |basis: Basis, hot_share: Option<f64>| {
        let weights = Weights { basis, ..text.weights.clone() };
        let options = LayoutOptions { hot_share, ..LayoutOptions::default() };
        let mut parts = Parts::of_input(&text.program, &[FuncId(0)]);
        split(&OrderJob { program: &text.program, weights: &weights, options: &options }, &mut parts);
        parts[0].hot.len()
    };
    assert_eq!((hot(Basis::Counted, None), hot(Basis::Estimated, None)), (2, 1));
    assert_eq!(
        (hot(Basis::Counted, Some(0.97)), hot(Basis::Estimated, Some(0.98))),
        (1, 2),
        "options come first"
    );
}

#[test]
fn what_was_sampled_often_is_hot_whatever_the_hot_part_covers() {
    let text = text::read(TEXT).expect("a program");
    let hot = |basis: Basis, times: u64| {
        let mut weights = Weights { basis, ..text.weights.clone() };
        for count in &mut weights.functions[FuncId(0)].blocks {
            *count *= times;
        }
        warm_limit(&text.program, &weights, &[FuncId(0)], None)
    };
    // Of 10,000 executed bytes, what ran at all is often; of ten thousand millions what ran ten thousand times.
    assert_eq!((hot(Basis::Counted, 1), hot(Basis::Sampled, 1)), (150, 1));
    assert_eq!((hot(Basis::Counted, 1_000_000), hot(Basis::Sampled, 1_000_000)), (150_000_000, 10_000));
}

/// Another workload may call a function that ran only where a copy of it stands now.
#[test]
fn what_runs_elsewhere_now_is_warm() {
    let weights = FunctionWeights {
        blocks: vec![0; 3],
        elsewhere: vec![BlockId(0), BlockId(2)],
        ..FunctionWeights::default()
    };
    let parts =
        by_heat(FuncId(0), [0, 1, 2].map(BlockId).to_vec(), &weights, |block| weights.block(block), 1);
    assert_eq!((parts.hot, parts.warm, parts.cold), (vec![], [0, 2].map(BlockId).to_vec(), vec![BlockId(1)]));
}
