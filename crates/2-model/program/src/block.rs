//! Basic blocks: what is written of each, and how control leaves it.

use crate::{ChunkSpan, OperandSpan, Target};
use afterlink_core::{InputAddr, define_index};
use afterlink_isa::Condition;

define_index!(
    /// Index of a block in its function; 0 is the entry.
    BlockId,
    "b"
);

/// A basic block: its code and how control leaves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Start in the input; of an added block, the place whose unwind row it shares.
    pub input: InputAddr,
    /// Bytes in the input, with terminator and the padding behind it; 0 for an added block.
    pub size: u32,
    /// Bytes from the start that are no terminator, which is written anew, nor padding behind it, which is dropped.
    pub body: u32,
    /// Position-dependent operands of the body, in [`Function::operands`](crate::Function::operands).
    pub operands: OperandSpan,
    /// What is written instead of the body, in [`Function::chunks`](crate::Function::chunks); empty: the body is copied.
    pub chunks: ChunkSpan,
    pub terminator: Terminator,
}

impl Block {
    /// A block without code of its own, which shares the unwind row of `input`.
    pub fn empty(input: InputAddr, terminator: Terminator) -> Self {
        Self {
            input,
            size: 0,
            body: 0,
            operands: OperandSpan::default(),
            chunks: ChunkSpan::default(),
            terminator,
        }
    }

    /// Where it ends in the input.
    pub fn input_end(&self) -> InputAddr {
        self.input + u64::from(self.size)
    }
}

/// How control leaves a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminator {
    /// Goes on in another block, without an instruction in the input.
    FallThrough(BlockId),
    /// A direct jump (to other functions: a tail call).
    Jump(Target),
    /// A conditional jump, or on into `next`.
    Branch { condition: Condition, taken: Target, next: BlockId },
    /// A conditional jump with only a short form (`jrcxz`, `loop`). `opcode` bytes of it, the displacement
    /// left out, stand in the input behind the body.
    ShortBranch { opcode: u8, taken: Target, next: BlockId },
    /// An indirect jump (part of the body) through that jump table of the function, or, if `None`, to any of
    /// the function's tables' targets and labels.
    Indirect { table: Option<u32> },
    /// Control does not go on in this function (the last instruction is part of the body).
    Stop(Stop),
    /// A call (part of the body) is the function's last instruction, so its compiler took it not to come back. Should it do
    /// so, control goes on here, behind the function, as in the input.
    LastCall(Target),
}

/// Why control does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Return,
    /// An indirect jump that leaves the function.
    TailCall,
    /// A trap behind which the function ends.
    Trap,
    /// What follows could not be recovered; only in functions that stay.
    Unknown,
}
