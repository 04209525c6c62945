//! Operands whose value depends on where the instruction, or what it names, stands.

use crate::{BlockId, FuncId};
use afterlink_core::{InputAddr, define_index};
use afterlink_isa::Encoding;
use std::ops::Range;

define_index!(
    /// Index of a piece of new data in its [`Placement`](crate::Placement).
    DataId,
    "d"
);

/// A position-dependent operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Where its field stands: bytes from its block's start, or from where its owner says.
    pub at: u32,
    pub encoding: Encoding,
    pub role: Role,
    pub target: Target,
}

/// What an instruction does with what its operand names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Call,
    /// Goes there (or, of a hardware transaction, may).
    Jump,
    /// Takes the address.
    Address,
    /// Reads or writes memory there.
    Memory,
    /// Means data, though its number lies in code (an array's element before the first): it stays.
    Data,
}

/// What an operand, a jump or a pointer in data names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A block of the same function.
    Block(BlockId),
    /// A block of another function.
    Code(FuncId, BlockId),
    /// A jump table of the same function.
    Table(u32),
    /// New data, and bytes from their start.
    Data(DataId, u32),
    /// Anything else of the input, which stays where it is.
    Input(InputAddr),
}

/// A run of rows of a function's table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub first: u32,
    pub end: u32,
}

/// In [`Function::operands`](crate::Function::operands).
pub type OperandSpan = Span;
/// In [`Function::chunks`](crate::Function::chunks).
pub type ChunkSpan = Span;

impl Span {
    /// The rows from `first` to the end of a table that has `end` rows now.
    pub fn since(first: usize, end: usize) -> Self {
        Self { first: first as u32, end: end as u32 }
    }

    pub fn is_empty(self) -> bool {
        self.first == self.end
    }

    pub fn range(self) -> Range<usize> {
        self.first as usize..self.end as usize
    }
}
