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
}
