//! The program as functions, basic blocks and references ([`Program`]), and the order in which to write it
//! ([`Placement`]).
//!
//! A block does not hold instructions: it is a sequence of [`Chunk`]s, most of them bytes of the input that are copied, the list
//! of its position-dependent [`Operand`]s and its [`Terminator`]. Every operand says what it means and names a symbolic
//! [`Target`]; only `emit`, when all addresses are final, turns it into a number.

mod block;
mod chunk;
mod code_bytes;
mod exceptions;
mod function;
mod operand;
mod placement;
mod runtime;
mod stream;
pub mod text;
mod weights;

pub use block::{Block, BlockId, Stop, Terminator};
pub use chunk::{Chunk, InPlaceCode, InlinedCode, InputChunk, NewCode};
pub use code_bytes::{CodeBytes, Contradiction};
pub use exceptions::Landing;
pub use function::{Function, JumpTable, Range, TableFormat, UnwindSpan};
pub use operand::{ChunkSpan, DataId, Operand, OperandSpan, Role, Span, Target};
pub use placement::{CodeSection, Fragment, NewData, Placement, SectionId, to_place};
pub use runtime::{CountedTargets, Runtime};
pub use stream::Stream;
pub use weights::{Basis, CallWeight, EdgeWeight, FunctionWeights, Weights};

use afterlink_core::{FileOffset, IdVec, InputAddr, Refusal, StartTable, define_index};
use afterlink_isa::Arch;
use afterlink_unwind::{EhFrame, RowTable};

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
    pub target: Target,
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

/// A linker's stub: code that does nothing but jump to where a word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkerStub {
    pub address: InputAddr,
    /// The word, which the dynamic linker fills.
    pub slot: InputAddr,
}

/// Which function has which addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extents {
    /// By ascending start.
    ranges: Vec<(Range, FuncId)>,
    starts: StartTable,
}

impl Extents {
    fn of(functions: &IdVec<FuncId, Function>) -> Self {
        let ranges = functions.iter().flat_map(|(id, f)| f.ranges.iter().map(move |r| (*r, id)));
        let mut ranges: Vec<(Range, FuncId)> = ranges.collect();
        ranges.sort_by_key(|(range, _)| range.start);
        let starts = StartTable::of(ranges.iter().map(|(range, _)| range.start.get()));
        Self { ranges, starts }
    }

    /// All ranges of functions, by ascending start.
    pub fn ranges(&self) -> impl Iterator<Item = Range> + '_ {
        self.ranges.iter().map(|(range, _)| *range)
    }

    fn function_at(&self, address: InputAddr) -> Option<FuncId> {
        let (range, id) = self.ranges[self.starts.last_up_to(address.get())?];
        range.contains(address).then_some(id)
    }
}

/// Everything that was recovered from an image.
pub struct Program<'a> {
    /// The instruction set of its code.
    pub arch: Arch,
    /// The input's bytes, for whoever looks into code.
    pub code: CodeBytes<'a>,
    /// By ascending entry address.
    pub functions: IdVec<FuncId, Function<'a>>,
    /// Where each function's ranges lie.
    pub extents: Extents,
    /// Functions with a table that leads to where they end, and what stands there. No value that comes up leads there, but as long
    /// as the first stays as it is, so must the second.
    pub table_ends: Vec<(FuncId, FuncId)>,
    /// Every pointer to code in data, but for the entries of jump tables.
    pub pointers: Vec<DataPointer>,
    /// Places that the dynamic linker, the kernel or a tracer knows, ascending.
    pub known_places: Vec<InputAddr>,
    /// Places of which the dynamic linker stores the address, found by their names, ascending.
    pub stored_places: Vec<InputAddr>,
    /// Bytes in front of each function's entry that must be no other one's: callers read them.
    pub gap_before_entries: u64,
    /// The stubs that code calls, ascending; none of them finds thread-local memory.
    pub linker_stubs: Vec<LinkerStub>,
    /// The input's unwind information.
    pub eh_frame: EhFrame<'a>,
    /// The rows that functions' unwind spans refer to.
    pub rows: RowTable,
}

impl<'a> Program<'a> {
    /// A program of nothing but these functions.
    pub fn of(arch: Arch, functions: IdVec<FuncId, Function<'a>>, frames: EhFrame<'a>) -> Self {
        Self {
            arch,
            code: CodeBytes::default(),
            extents: Extents::of(&functions),
            functions,
            table_ends: Vec::new(),
            pointers: Vec::new(),
            known_places: Vec::new(),
            stored_places: Vec::new(),
            gap_before_entries: 0,
            linker_stubs: Vec::new(),
            eh_frame: frames,
            rows: RowTable::new(),
        }
    }

    /// Refuses what a table of a refused function leads to where that function ends.
    pub fn refuse_table_ends(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for &(owner, behind) in &self.table_ends {
                if self.functions[owner].refusal.is_some() && self.functions[behind].refusal.is_none() {
                    self.functions[behind].refusal = Some(Refusal::UnclaimedTable);
                    changed = true;
                }
            }
        }
    }
}

impl Program<'_> {
    /// The function whose ranges hold `address`.
    pub fn function_at(&self, address: InputAddr) -> Option<FuncId> {
        self.extents.function_at(address)
    }

    /// The block that starts at `address`.
    pub fn block_at(&self, address: InputAddr) -> Option<(FuncId, BlockId)> {
        let function = self.function_at(address)?;
        Some((function, self.functions[function].block_at(address)?))
    }

    /// What an input address means for code of `function`, or (`None`) for data.
    pub fn target_at(&self, address: InputAddr, function: Option<FuncId>) -> Target {
        match self.block_at(address) {
            Some((id, block)) if function == Some(id) => Target::Block(block),
            Some((id, block)) => Target::Code(id, block),
            None => Target::Input(address),
        }
    }

    /// Where a target of `function` stands in the input; `None` for what is new.
    pub fn input_of(&self, target: Target, function: FuncId) -> Option<InputAddr> {
        match target {
            Target::Block(block) => Some(self.functions[function].blocks[block].input),
            Target::Code(id, block) => Some(self.functions[id].blocks[block].input),
            Target::Table(table) => Some(self.functions[function].jump_tables[table as usize].base),
            Target::Data(..) => None,
            Target::Input(address) => Some(address),
        }
    }

    /// Where the stub at `address` leads through, if one is there.
    pub fn slot_of_stub(&self, address: InputAddr) -> Option<InputAddr> {
        let found = self.linker_stubs.binary_search_by_key(&address, |stub| stub.address);
        Some(self.linker_stubs[found.ok()?].slot)
    }

    /// Functions that were left alone, with the reason.
    pub fn refusals(&self) -> impl Iterator<Item = (FuncId, Refusal)> + '_ {
        self.functions.iter().filter_map(|(id, f)| Some((id, f.refusal?)))
    }
}
