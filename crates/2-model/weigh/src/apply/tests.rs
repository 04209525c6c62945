use super::*;
use afterlink_core::IdVec;
use afterlink_program::{Block, JumpTable, Range, Stop, Terminator};

const START: u64 = 0x1000;

/// A function that chooses one of blocks 1 and 2 by a table; block 1 runs on into 2.
fn choosing() -> Function<'static> {
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

/// A layout leads jumps around blocks that only jump, and drops those that hold nothing but padding.
#[test]
fn ways_around_blocks_without_code_count_for_them() {
    let mut around = choosing();
    around.blocks[BlockId(0)].terminator = Terminator::FallThrough(BlockId(1));
    assert_eq!(way(&around, BlockId(0), BlockId(1)), [BlockId(1)]);
    assert_eq!(way(&around, BlockId(0), BlockId(2)), []);
    around.blocks[BlockId(1)].body = 0;
    assert_eq!(way(&around, BlockId(0), BlockId(2)), [BlockId(1), BlockId(2)]);
    around.blocks[BlockId(1)].terminator = Terminator::Jump(Target::Block(BlockId(2)));
    assert_eq!(way(&around, BlockId(0), BlockId(2)), [BlockId(1), BlockId(2)]);
    around.blocks[BlockId(1)].terminator = Terminator::FallThrough(BlockId(1));
    assert_eq!(way(&around, BlockId(0), BlockId(2)), []);
    let mut flows = Flows::default();
    flows.add_way(FuncId(3), BlockId(0), &[BlockId(1), BlockId(2)], 7);
    let edge = |from, to| (FuncId(3), EdgeWeight { from: BlockId(from), to: BlockId(to), count: 7 });
    assert_eq!(flows.edges, [edge(0, 1), edge(1, 2)]);
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
