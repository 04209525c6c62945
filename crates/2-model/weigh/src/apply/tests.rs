use super::*;
use afterlink_core::IdVec;
use afterlink_program::{Block, JumpTable, Range, Terminator};

const START: u64 = 0x1000;

/// A function that chooses one of blocks 1 and 2 by a table; block 1 runs on into 2.
fn choosing() -> Function<'static> {
    let terminators =
        [Terminator::Indirect { table: Some(0) }, Terminator::FallThrough(BlockId(2)), Terminator::Stop];
    let mut blocks = IdVec::new();
    for (i, terminator) in (0..).zip(terminators) {
        let input = InputAddr(START + i * 16);
        blocks.push(Block { input, size: 16, body: 16, first_reference: 0, end_reference: 0, terminator });
    }
    Function {
        name: "choosing",
        ranges: vec![Range { start: InputAddr(START), size: 48 }],
        input_blocks: 3,
        blocks,
        references: Vec::new(),
        terminator_references: Vec::new(),
        jump_tables: vec![JumpTable { base: InputAddr(0x9000), targets: vec![BlockId(1), BlockId(2)] }],
        labels: Vec::new(),
        unwind: Vec::new(),
        refusal: None,
        alignment: 1,
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
