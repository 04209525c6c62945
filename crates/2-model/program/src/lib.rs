//! The program as functions, basic blocks and references ([`Program`]), and the order in which to write it
//! ([`Placement`]).
//!
//! A block does not hold instructions: it is a range of input bytes, the list of its position-dependent
//! fields ([`Reference`]) and its [`Terminator`]. All other bytes are copied as they are. Every target is an
//! input address; only `emit`, when all addresses are final, translates it.

mod block;
mod function;
mod placement;

pub use block::{Block, BlockId, Field, Reference, Target, Terminator};
pub use function::{Function, JumpTable, Range, UnwindSpan};
pub use placement::{Counter, CounterForm, Fragment, Part, Placement};

use afterlink_core::{FileOffset, IdVec, InputAddr, Refusal, define_index};
use afterlink_frames::{EhFrame, RowTable};

define_index!(
    /// Index of a function, by ascending entry address.
    FuncId,
    "fn"
);

/// A pointer to code that stands in data, a dynamic relocation or the symbol-less parts of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPointer {
    /// Where the pointer's bytes stand in the file.
    pub field: FileOffset,
    pub form: PointerForm,
    /// The code that it leads to.
    pub target: InputAddr,
}

/// How a [`DataPointer`] is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointerForm {
    /// Eight bytes, absolute.
    Word64,
    /// Four bytes, absolute.
    Word32,
    /// Four bytes, counted from this address (the field's own, or a table's base).
    Relative32(InputAddr),
}

/// Everything that was recovered from an image.
pub struct Program<'a> {
    /// By ascending entry address.
    pub functions: IdVec<FuncId, Function<'a>>,
    /// Where each function's ranges lie, by ascending start.
    pub extents: Vec<(Range, FuncId)>,
    /// Every pointer to code in data.
    pub pointers: Vec<DataPointer>,
    /// The input's unwind information.
    pub frames: EhFrame<'a>,
    /// The rows that functions' unwind spans refer to.
    pub rows: RowTable,
}

impl Program<'_> {
    /// The function whose ranges hold `address`.
    pub fn function_at(&self, address: InputAddr) -> Option<FuncId> {
        let next = self.extents.partition_point(|(range, _)| range.start <= address);
        let (range, id) = self.extents.get(next.checked_sub(1)?)?;
        range.contains(address).then_some(*id)
    }

    /// The block that starts at `address`.
    pub fn block_at(&self, address: InputAddr) -> Option<(FuncId, BlockId)> {
        let function = self.function_at(address)?;
        Some((function, self.functions[function].block_at(address)?))
    }

    /// Functions that were left alone, with the reason.
    pub fn refusals(&self) -> impl Iterator<Item = (FuncId, Refusal)> + '_ {
        self.functions.iter().filter_map(|(id, f)| Some((id, f.refusal?)))
    }
}
