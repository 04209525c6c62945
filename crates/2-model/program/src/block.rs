//! Basic blocks, their position-dependent fields, and how they end.

use afterlink_core::{InputAddr, define_index};
use afterlink_isa::Condition;

define_index!(
    /// Index of a block in its function; 0 is the entry.
    BlockId,
    "b"
);

/// A basic block: a run of input bytes and how control leaves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Start in the input; of an added block, the place whose unwind row it shares.
    pub input: InputAddr,
    /// Bytes in the input, with terminator and the padding behind it; 0 for an added block.
    pub size: u32,
    /// Bytes from the start that are copied. What lies behind is the terminator, which is written anew,
    /// and padding, which is dropped.
    pub body: u32,
    /// First of this block's rows in [`Function::references`](crate::Function::references).
    pub first_reference: u32,
    /// One past the last.
    pub end_reference: u32,
    pub terminator: Terminator,
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
    /// Control does not go on in this function: a return, an indirect tail call, a trap behind which the function ends
    /// (all part of the body).
    Stop,
    /// A call (part of the body) is the function's last instruction, so its compiler took it not to come back. Should it do
    /// so, control goes on here, behind the function, as in the input.
    LastCall(InputAddr),
}

/// Where a direct jump leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// In the same function.
    Block(BlockId),
    /// Anywhere else.
    Code(InputAddr),
}

/// A field of an instruction whose value depends on where the instruction, or what it names, stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Where the field stands in the input.
    pub field: InputAddr,
    /// What it names: code or data.
    pub target: InputAddr,
    pub form: Field,
}

/// How a [`Reference`] is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Four bytes, counted from the end of the instruction, which lies that many bytes behind the field's start.
    Relative32 { end: u8 },
    /// As `Relative32`; what it names is data and stays, though the number may lie in code that moves (an array's
    /// element before the first).
    Data32 { end: u8 },
    /// One byte, counted from its own end. Only kept for code that does not move.
    Relative8,
    /// Four bytes, absolute (sign- or zero-extended alike for addresses below 2 GiB).
    Absolute32,
    /// Eight bytes, absolute.
    Absolute64,
}
