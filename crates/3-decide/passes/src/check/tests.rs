//! A good program passes; each thing that may be wrong with it is found.

use super::*;
use afterlink_core::{InputAddr, Refusal};
use afterlink_isa::{Arch, Condition, Encoding};
use afterlink_program::{
    Block, BlockId, Fragment, Function, JumpTable, Operand, Range, Role, SectionId, Span, Stop, Target,
    Terminator,
};
use afterlink_unwind::{Bases, EhFrame};
use afterlink_weigh::{CallWeight, EdgeWeight, FunctionWeights};

/// `if (…) a(); b();`, twice in a program.
struct Sample {
    program: Program<'static>,
    weights: Weights,
    placement: Placement,
}

/// Three blocks, the first of which goes on in the second or the third.
fn function(start: u64) -> Function<'static> {
    let condition = Condition(4);
    let to = |block| Target::Block(BlockId(block));
    let terminators = [
        Terminator::Branch { condition, taken: to(2), next: BlockId(1) },
        Terminator::FallThrough(BlockId(2)),
        Terminator::Stop(Stop::Return),
    ];
    let block = |(i, terminator)| Block {
        size: 8,
        body: 6,
        operands: Span { first: 0, end: 1 },
        ..Block::empty(InputAddr(start + 8 * i), terminator)
    };
    let encoding = Encoding::Relative32 { end: 4 };
    Function {
        blocks: (0u64..).zip(terminators).map(block).collect::<Vec<_>>().into(),
        input_blocks: 3,
        operands: vec![Operand {
            at: 2,
            encoding,
            role: Role::Call,
            target: Target::Code(FuncId(1), BlockId(0)),
        }],
        jump_tables: vec![JumpTable {
            base: InputAddr(0x9000),
            format: None,
            place: None,
            targets: vec![BlockId(1)],
        }],
        labels: vec![BlockId(1), BlockId(2)],
        ..Function::new("sample", vec![Range { start: InputAddr(start), size: 24 }])
    }
}

fn sample() -> Sample {
    let fragment = |function, section, blocks: &[u32]| {
        Fragment::packed(FuncId(function), section, blocks.iter().copied().map(BlockId).collect())
    };
    let edge = |from, to, count| EdgeWeight { from: BlockId(from), to: BlockId(to), count };
    let weights = FunctionWeights {
        entries: 9,
        blocks: vec![9, 4, 9],
        edges: vec![edge(0, 1, 4), edge(0, 2, 5), edge(1, 2, 4)],
        calls: vec![CallWeight { block: BlockId(1), offset: 2, callee: FuncId(1), count: 4 }],
        ..FunctionWeights::default()
    };
    let fragments = vec![
        fragment(1, SectionId::HOT, &[0, 2]),
        fragment(0, SectionId::HOT, &[0, 1, 2]),
        fragment(1, SectionId::COLD, &[1]),
    ];
    Sample {
        program: Program::of(
            Arch::X86_64,
            vec![function(0x1000), function(0x2000)].into(),
            EhFrame::parse(&[], InputAddr(0), Bases::default(), Arch::X86_64.unwind_numbers())
                .expect("nothing is read"),
        ),
        weights: Weights {
            functions: vec![weights, FunctionWeights::default()].into(),
            ..Weights::default()
        },
        placement: Placement::of(fragments),
    }
}

#[track_caller]
fn assert_found(change: impl FnOnce(&mut Sample), function: u32, words: &str) {
    let mut sample = sample();
    change(&mut sample);
    let found = faults(&sample.program, &sample.weights, &sample.placement);
    let expected = |f: &Fault| f.function == FuncId(function) && f.what.contains(words);
    assert!(found.iter().any(expected), "{words}: {found:?}");
}

impl Sample {
    fn function(&mut self) -> &mut Function<'static> {
        &mut self.program.functions[FuncId(0)]
    }

    fn counts(&mut self) -> &mut FunctionWeights {
        &mut self.weights.functions[FuncId(0)]
    }
}

#[test]
fn a_good_program_has_no_faults() {
    let Sample { program, weights, placement } = sample();
    assert_eq!(faults(&program, &weights, &placement), []);
    let nothing = Weights::default();
    assert_eq!(faults(&program, &nothing, &Placement::default()), []);
}

#[test]
fn names_of_what_is_not_there_are_found() {
    let jump =
        |target| move |s: &mut Sample| s.function().blocks[BlockId(1)].terminator = Terminator::Jump(target);
    assert_found(jump(Target::Block(BlockId(3))), 0, "goes on from b1 to Block(b3)");
    assert_found(jump(Target::Code(FuncId(1), BlockId(3))), 0, "goes on from b1");
    assert_found(jump(Target::Code(FuncId(2), BlockId(0))), 0, "goes on from b1");
    let table = Terminator::Indirect { table: Some(1) };
    assert_found(|s| s.function().blocks[BlockId(1)].terminator = table, 0, "through table 1");
    assert_found(|s| s.function().jump_tables[0].targets.push(BlockId(7)), 0, "b7 in a table");
    assert_found(|s| s.function().labels.swap(0, 1), 0, "labels out of order");
    assert_found(|s| s.function().operands[0].target = Target::Table(4), 0, "names Table(4)");
    assert_found(|s| s.function().operands[0].at = 3, 0, "an operand behind the body of b0");
    assert_found(|s| s.function().operands.clear(), 0, "operands or chunks of b0");
}

#[test]
fn what_has_no_place_or_two_is_found() {
    assert_found(|s| s.placement.fragments[1].blocks.truncate(2), 0, "0 places for b2");
    assert_found(|s| s.placement.fragments[1].blocks.push(BlockId(2)), 0, "2 places for b2");
    assert_found(
        |s| s.placement.fragments[1].blocks.push(BlockId(3)),
        0,
        "a place for b3, which is not there",
    );
    assert_found(|s| s.placement.fragments[1].blocks.swap(0, 1), 0, "entry inside");
    assert_found(|s| s.placement.fragments[2].blocks.clear(), 1, "a fragment of nothing");
    assert_found(|s| s.placement.fragments[0].alignment = 3, 1, "aligned to 3");
    assert_found(|s| s.placement.fragments.swap(1, 2), 0, "behind those of a later section");
    assert_found(|s| s.placement.fragments[2].section = SectionId(2), 1, "goes to section2");
    assert_found(|s| s.placement.fragments[1].runs_on = true, 0, "runs on where nothing stands");
    assert_found(|s| s.placement.fragments[2].runs_on = true, 1, "runs on where nothing stands");
    assert_found(
        |s| s.placement.fragments[1].places = vec![None, Some(4), None],
        0,
        "bytes free where control goes on",
    );
    assert_found(
        |s| s.placement.fragments[1].places = vec![Some(4), None, None],
        0,
        "bytes free where control goes on",
    );
    assert_found(|s| s.function().refusal = Some(Refusal::Excluded), 0, "though it is refused");
}

#[test]
fn counts_of_what_is_not_there_are_found() {
    assert_found(|s| s.counts().blocks.truncate(2), 0, "3 blocks and counts of 2");
    assert_found(|s| s.counts().edges[2].to = BlockId(0), 0, "from b1 to b0, which is no way");
    assert_found(|s| s.counts().edges.swap(0, 1), 0, "out of order");
    assert_found(|s| s.counts().calls[0].callee = FuncId(5), 0, "called fn5");
}

/// Its counts are the other's now, which lose nothing unless they join what was sampled.
#[test]
fn what_is_folded_has_no_counts() {
    let Sample { mut program, mut weights, placement } = sample();
    let mut checker = Checker::new(&program, &weights, &[FuncId(0), FuncId(1)]);
    let counts = std::mem::take(&mut weights.functions[FuncId(0)]);
    weights.functions[FuncId(1)] = counts;
    program.functions[FuncId(0)].folded_into = Some(FuncId(1));
    checker.check("folding", &program, &weights, &placement);
    assert!(checker.exact.is_empty());
}

#[test]
fn exact_counts_must_stay_so() {
    let Sample { program, mut weights, placement } = sample();
    let moved = [FuncId(0), FuncId(1)];
    let mut checker = Checker::new(&program, &weights, &moved);
    assert_eq!(checker.exact, [FuncId(0)].into());
    checker.check("nothing", &program, &weights, &placement);
    weights.functions[FuncId(0)].edges[0].count = 3;
    // A sampled profile is not exact: nothing is asked of it.
    Checker::new(&program, &weights, &moved).check("nothing", &program, &weights, &placement);
    let broken = std::panic::catch_unwind(move || checker.check("theft", &program, &weights, &placement));
    let words = broken.unwrap_err().downcast::<String>().unwrap();
    assert!(words.contains("after the pass theft, sample has counts"), "{words}");
}
