//! Functions.

use crate::{
    Block, BlockId, Chunk, DataId, InPlaceCode, InlinedCode, Landing, NewCode, Operand, Stream, Target,
    Terminator,
};
use afterlink_core::{IdVec, InputAddr, Refusal};
use afterlink_unwind::{ExceptionTable, FdeId, RowId};

/// A run of input code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub start: InputAddr,
    /// Bytes.
    pub size: u64,
}

impl Range {
    pub fn end(&self) -> InputAddr {
        self.start + self.size
    }

    pub fn contains(&self, address: InputAddr) -> bool {
        address >= self.start && address < self.end()
    }
}

/// One function with its fragments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    /// The symbol's name; of several at the same place, a global one.
    pub name: &'a str,
    /// The range that starts with the entry, then the compiler's cold fragments.
    pub ranges: Vec<Range>,
    /// Block 0 is the entry; blocks of one range are in input order, ranges in the order of `ranges`, and
    /// blocks that were added come last. Empty if the code could not be decoded.
    pub blocks: IdVec<BlockId, Block>,
    /// Number of blocks that come from the input.
    pub input_blocks: u32,
    /// Position-dependent operands, by block. They never cover a terminator that is written anew.
    pub operands: Vec<Operand>,
    /// Those of the terminators, and of code without blocks, for when the function stays in place and is patched.
    /// Their fields count from [`Function::base`].
    pub placed_operands: Vec<Operand>,
    /// Code of blocks that is more than copied.
    pub chunks: Vec<Chunk>,
    pub inlined: Vec<InlinedCode>,
    pub new_code: Vec<NewCode>,
    pub in_place: Vec<InPlaceCode>,
    pub jump_tables: Vec<JumpTable>,
    /// Blocks whose address is taken, by data or by code, ascending.
    pub labels: Vec<BlockId>,
    pub unwind: Vec<UnwindSpan>,
    /// What its landing pads are told.
    pub exceptions: ExceptionTable,
    /// A multiple of so many bytes must be the entry's address, a power of two: somebody may count on it.
    pub alignment: u64,
    /// The function that does the same, and has the same blocks: this one is not written.
    pub folded_into: Option<crate::FuncId>,
    /// Whether a jump to the new place can stand at the old entry.
    pub has_stub_room: bool,
    /// Whether the program may read its bytes where they stand: it is left alone, and no field of it may lead elsewhere.
    pub is_read: bool,
    /// Whether it may come back with the stack elsewhere than right behind its return address: it takes its own arguments off (`ret $8`), or
    /// jumps to what does.
    pub moves_stack: bool,
    /// Whether a dynamic symbol names it, so that it finds its own name by an address of its code.
    pub is_exported: bool,
    /// Why the function is left alone.
    pub refusal: Option<Refusal>,
}

/// A table of code addresses that an indirect jump goes through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JumpTable {
    pub base: InputAddr,
    /// `None`: its entries are among the program's pointers.
    pub format: Option<TableFormat>,
    /// New data that the table is written to, and where in them; `None`: it stays where it is.
    pub place: Option<(DataId, u32)>,
    /// One block an entry.
    pub targets: Vec<BlockId>,
}

impl JumpTable {
    /// Bytes of the table; `None` if its entries are not its own.
    pub fn size(&self) -> Option<u64> {
        Some(self.targets.len() as u64 * u64::from(self.format?.entry))
    }
}

/// How the entries of a table are written: `(target - base) >> shift`, in so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFormat {
    /// Bytes of an entry: 1, 2, 4 or 8.
    pub entry: u8,
    pub signed: bool,
    /// Targets are multiples of `1 << shift` bytes from the base.
    pub shift: u8,
    /// What entries count from; `None`: they are addresses.
    pub base: Option<InputAddr>,
}

impl TableFormat {
    /// Four bytes, signed, counted from the table's start: what compilers of x86-64 write.
    pub fn relative32(table: InputAddr) -> Self {
        Self { entry: 4, signed: true, shift: 0, base: Some(table) }
    }

    /// The entry for a target that lies so many bytes from the base; its low bytes are what is stored. `None` if the
    /// entry cannot hold it.
    pub fn entry_value(self, distance: i64) -> Option<i64> {
        let value = distance >> self.shift;
        let bits = 8 * u32::from(self.entry);
        let fits = match (bits, self.signed) {
            (64, _) => true,
            (_, true) => value >= -(1 << (bits - 1)) && value < 1 << (bits - 1),
            (_, false) => value >= 0 && value < 1 << bits,
        };
        (fits && value << self.shift == distance).then_some(value)
    }
}

/// The unwind rows of a run of code, as one unwind entry (FDE) gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnwindSpan {
    pub range: Range,
    /// Its entry in [`Program::eh_frame`](crate::Program::eh_frame).
    pub fde: FdeId,
    /// By bytes from the range's start.
    pub rows: Stream<RowId>,
    /// What becomes of exceptions, likewise; empty: they go on to the caller.
    pub landings: Stream<Landing>,
}

impl<'a> Function<'a> {
    /// A function of which nothing but its place is known.
    pub fn new(name: &'a str, ranges: Vec<Range>) -> Self {
        Self {
            name,
            ranges,
            blocks: IdVec::new(),
            input_blocks: 0,
            operands: Vec::new(),
            placed_operands: Vec::new(),
            chunks: Vec::new(),
            inlined: Vec::new(),
            new_code: Vec::new(),
            in_place: Vec::new(),
            jump_tables: Vec::new(),
            labels: Vec::new(),
            unwind: Vec::new(),
            exceptions: ExceptionTable::default(),
            alignment: 1,
            folded_into: None,
            has_stub_room: false,
            is_read: false,
            moves_stack: false,
            is_exported: false,
            refusal: None,
        }
    }
}

impl Function<'_> {
    pub fn entry(&self) -> InputAddr {
        self.ranges[0].start
    }

    /// Where the lowest of its ranges starts.
    pub fn base(&self) -> InputAddr {
        self.ranges.iter().map(|r| r.start).min().expect("a function has a range")
    }

    /// Bytes of code in the input.
    pub fn size(&self) -> u64 {
        self.ranges.iter().map(|r| r.size).sum()
    }

    /// Whether a block stands for code of the input: one of its blocks, a part that was cut off one, even if nothing of it is left, or a duplicate.
    pub fn is_of_input(&self, block: BlockId) -> bool {
        block.0 < self.input_blocks || self.blocks[block].size > 0 || self.back_size(block) > 0
    }

    /// The block of the input that an added one has the code of, too. Names of that code mean the input's block.
    pub fn duplicate_of(&self, block: BlockId) -> Option<BlockId> {
        let own = &self.blocks[block];
        // Parts that were cut off a block start inside of it.
        let may_be = block.0 >= self.input_blocks && own.size > 0;
        may_be.then(|| self.block_at(own.input)).flatten()
    }

    /// The block that starts at `address`.
    pub fn block_at(&self, address: InputAddr) -> Option<BlockId> {
        // Most questions are about entries.
        if self.input_blocks > 0 && address == self.blocks[BlockId(0)].input {
            return Some(BlockId(0));
        }
        let id = self.block_covering(address)?;
        (self.blocks[id].input == address).then_some(id)
    }

    /// The block whose input bytes hold `address`.
    pub fn block_covering(&self, address: InputAddr) -> Option<BlockId> {
        let mut first = 0usize;
        let blocks = &self.blocks.as_slice()[..self.input_blocks as usize];
        for range in &self.ranges {
            let tail = &blocks[first..];
            // Most functions have one range, in which all blocks lie.
            let is_only = self.ranges.len() == 1;
            let len = if is_only { tail.len() } else { tail.partition_point(|b| range.contains(b.input)) };
            if range.contains(address) {
                let index = tail[..len].partition_point(|b| b.input <= address).checked_sub(1)?;
                return Some(BlockId((first + index) as u32));
            }
            first += len;
        }
        None
    }

    /// The position-dependent operands of a block's body.
    pub fn operands_of(&self, block: &Block) -> &[Operand] {
        &self.operands[block.operands.range()]
    }

    /// Every position-dependent field of the function in the input.
    pub fn input_operands(&self) -> impl Iterator<Item = (InputAddr, &Operand)> {
        let blocks = self.blocks.as_slice()[..self.input_blocks as usize].iter();
        let in_blocks = blocks.flat_map(|block| {
            self.operands_of(block).iter().map(move |o| (block.input + u64::from(o.at), o))
        });
        let base = self.base();
        in_blocks.chain(self.placed_operands.iter().map(move |o| (base + u64::from(o.at), o)))
    }

    /// Calls `visit` with each block that control may go to from `block` inside this function, in a fixed
    /// order, the same block perhaps more than once.
    pub fn for_each_successor(&self, block: BlockId, mut visit: impl FnMut(BlockId)) {
        let mut direct = |target: Target| {
            if let Target::Block(id) = target {
                visit(id);
            }
        };
        match self.blocks[block].terminator {
            Terminator::FallThrough(next) => direct(Target::Block(next)),
            Terminator::Jump(target) => direct(target),
            Terminator::Branch { taken, next, .. } | Terminator::ShortBranch { taken, next, .. } => {
                direct(taken);
                direct(Target::Block(next));
            }
            Terminator::Indirect { table: Some(table) } => {
                self.jump_tables[table as usize].targets.iter().for_each(|&t| visit(t));
            }
            Terminator::Indirect { table: None } => {
                let tables = self.jump_tables.iter().flat_map(|t| &t.targets);
                tables.chain(&self.labels).for_each(|&t| visit(t));
            }
            Terminator::Stop(_) | Terminator::LastCall(_) => {}
        }
    }

    /// The unwind row that holds at an input address, with its span.
    pub fn unwind_row_at(&self, address: InputAddr) -> Option<(&UnwindSpan, RowId)> {
        let span = self.unwind.iter().find(|s| s.range.contains(address))?;
        let offset = address.since(span.range.start) as u32;
        Some((span, span.rows.at(offset)?))
    }
}
