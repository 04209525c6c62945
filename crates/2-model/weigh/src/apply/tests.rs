use super::*;
use crate::flows::tests::choosing;

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
