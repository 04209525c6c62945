use super::*;
use afterlink_core::{IdVec, InputAddr};
use afterlink_program::{Block, JumpTable, Range, Stop, Target, Terminator, text};

const START: u64 = 0x1000;

/// A function that chooses one of blocks 1 and 2 by a table; block 1 runs on into 2.
pub(crate) fn choosing() -> Function<'static> {
    let terminators = [
        Terminator::Indirect { table: Some(0) },
        Terminator::FallThrough(BlockId(2)),
        Terminator::Stop(Stop::Return),
    ];
    let mut blocks = IdVec::new();
    for (i, terminator) in (0..).zip(terminators) {
        let input = InputAddr(START + i * 16);
        blocks.push(Block { size: 16, body: 16, ..Block::empty(input, terminator) });
    }
    let range = Range { start: InputAddr(START), size: 48 };
    let targets = vec![BlockId(1), BlockId(2)];
    Function {
        input_blocks: 3,
        blocks,
        jump_tables: vec![JumpTable { base: InputAddr(0x9000), format: None, place: None, targets }],
        ..Function::new("choosing", vec![range])
    }
}

fn function_weights(
    function: &Function,
    entries: &[(FuncId, u64)],
    edges: &[(FuncId, EdgeWeight)],
    calls: &[(FuncId, CallWeight)],
) -> FunctionWeights {
    made_whole(function, summed(function, entries, edges, calls)).whole
}

#[test]
fn entries_alone_tell_nothing_of_the_inside() {
    let id = FuncId(3);
    let weights = function_weights(&choosing(), &[(id, 70)], &[], &[]);
    assert!(weights.inside_unknown && weights.is_hot());
    assert_eq!(weights.blocks, [70, 0, 0]);
    let edge = EdgeWeight { from: BlockId(0), to: BlockId(1), count: 70 };
    let weights = function_weights(&choosing(), &[(id, 70)], &[(id, edge)], &[]);
    assert!(!weights.inside_unknown);
    assert_eq!(weights.blocks, [70, 70, 70]);
}

#[test]
fn where_there_is_no_choice_entries_tell_all() {
    let mut straight = choosing();
    straight.blocks[BlockId(0)].terminator = Terminator::FallThrough(BlockId(1));
    let weights = function_weights(&straight, &[(FuncId(3), 70)], &[], &[]);
    assert!(!weights.inside_unknown);
    assert_eq!(weights.blocks, [70, 70, 70]);
}

/// What was seen of a layout that dropped a jump has no record of it where a call stands in front of it.
#[test]
fn the_only_way_out_of_a_block_was_taken() {
    let mut jumping = choosing();
    jumping.blocks[BlockId(0)].terminator = Terminator::FallThrough(BlockId(1));
    jumping.blocks[BlockId(1)].terminator = Terminator::Jump(Target::Block(BlockId(2)));
    let first = EdgeWeight { from: BlockId(0), to: BlockId(1), count: 70 };
    let weights = function_weights(&jumping, &[(FuncId(3), 70)], &[(FuncId(3), first)], &[]);
    assert_eq!(weights.blocks, [70, 70, 70]);
    // A record that there is stays: something may have ended the program in the middle.
    let second = EdgeWeight { from: BlockId(1), to: BlockId(2), count: 69 };
    let edges = [(FuncId(3), first), (FuncId(3), second)];
    assert_eq!(function_weights(&jumping, &[(FuncId(3), 70)], &edges, &[]).blocks, [70, 70, 69]);
}

#[test]
fn a_way_counts_for_each_of_its_edges() {
    let mut flows = Flows::default();
    flows.add_way(FuncId(3), BlockId(0), &[BlockId(1), BlockId(2)], 7);
    let edge = |from, to| (FuncId(3), EdgeWeight { from: BlockId(from), to: BlockId(to), count: 7 });
    assert_eq!(flows.edges, [edge(0, 1), edge(1, 2)]);
}

/// A loop with a branch out of it.
const TEXT: &str = "\
program x86-64
function first 0x1000+0x6
block b0 0x1000:
  85 ff
  branch e b2 else b1 | 74 02
block b1 0x1004:
  ff c8
  jump b0 | eb fa
block b2 0x1008:
  c3
  return
";

/// The weights of TEXT by how often its loop was left, went on, and came back.
fn of_loop(entries: u64, [left, on, back]: [u64; 3]) -> Weights {
    let program = text::read(TEXT).expect("a program").program;
    let edge = |from, to, count| (FuncId(0), EdgeWeight { from: BlockId(from), to: BlockId(to), count });
    let edges = vec![edge(0, 2, left), edge(0, 1, on), edge(1, 0, back)];
    Flows { entries: vec![(FuncId(0), entries)], edges, calls: Vec::new() }.into_weights(&program)
}

#[test]
fn what_was_seen_in_part_counts_as_often_as_it_was_seen() {
    let weights = of_loop(10, [10, 90, 90]);
    assert_eq!(
        (weights.basis, &weights.functions[FuncId(0)].blocks[..]),
        (Basis::Counted, &[100, 90, 10][..])
    );
    let weights = of_loop(20, [0, 90, 70]);
    // Nobody saw it leave; a flow has to.
    assert_eq!((weights.basis, &weights.functions[FuncId(0)].blocks[..]), (Basis::Sampled, &[90, 80, 0][..]));
    assert!(weights.functions[FuncId(0)].edges[1].count > 0);
}

#[test]
fn where_no_branch_was_seen_to_go_on_nothing_is_known_of_those_that_did() {
    assert_eq!(of_loop(20, [5, 0, 70]).basis, Basis::Counted);
}

/// A tool that counts but leaves functions out has counts that do not fit together in few functions, however often these run.
#[test]
fn samples_are_counts_of_which_many_functions_do_not_fit() {
    let function = |at: u64| {
        let [first, second, third] = [0, 4, 8].map(|from| format!("{:#x}", 0x1000 * at + from));
        let blocks = TEXT.split_once('\n').expect("a first line").1;
        let blocks = blocks.replace("0x1000+", &format!("{first}+")).replace("first", &format!("f{at}"));
        blocks
            .replace("b0 0x1000", &format!("b0 {first}"))
            .replace("0x1004", &second)
            .replace("0x1008", &third)
    };
    let text = (1..=10).fold("program x86-64\n".to_owned(), |text, at| text + &function(at));
    let program = text::read(&text).expect("a program").program;
    let basis = |unfit: u32| {
        let mut flows = Flows::default();
        for at in 0..10 {
            let [left, on, back] = if at < unfit { [0, 900, 700] } else { [10, 90, 90] };
            for (from, to, count) in [(0, 2, left), (0, 1, on), (1, 0, back)] {
                let edge = EdgeWeight { from: BlockId(from), to: BlockId(to), count };
                flows.edges.push((FuncId(at), edge));
            }
            flows.entries.push((FuncId(at), 10));
        }
        flows.into_weights(&program).basis
    };
    assert_eq!([0, 1, 2].map(basis), [Basis::Counted, Basis::Counted, Basis::Sampled]);
}
