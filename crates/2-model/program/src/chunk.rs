//! The code of a block as a sequence of chunks. Most blocks have one, which is copied, and no row for it.

use crate::{Block, BlockId, Function, Operand, OperandSpan, Span, Terminator};
use afterlink_core::InputAddr;
use afterlink_isa::{CounterForm, TargetCode};
use afterlink_unwind::RowId;

/// A run of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// Bytes of the block's own body, copied but for their operands.
    Input(InputChunk),
    /// A counter, which nobody can notice.
    Counter { index: u32, form: CounterForm },
    /// Code that counts where the indirect call or jump leads that stands behind it, so many bytes behind the block's start, as the
    /// site of that number.
    Targets { site: u32, call: u32, code: TargetCode },
    /// A callee's code, in place of its call: a row of [`Function::inlined`].
    Inlined(u32),
    /// Instructions that the input lacks: a row of [`Function::new_code`].
    New(u32),
    /// All of a block that runs in place of a call: a row of [`Function::in_place`].
    InPlace(u32),
    /// What stands behind the code in place of a call, in front of what stood behind the call: it gives back the room of the return address, and
    /// replaces nothing. A row of [`Function::new_code`] that names the call.
    Back(u32),
    /// An instruction that only brings a line of code into the cache: a row of [`Function::new_code`] that replaces nothing.
    Prefetch(u32),
}

/// A part of a block's body: from so many bytes behind its start on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputChunk {
    pub from: u32,
    /// Bytes.
    pub size: u32,
}

/// A callee's code in place of its call. Its operands are copies of the callee's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlinedCode {
    /// The call, and its bytes.
    pub call: InputAddr,
    pub call_size: u32,
    /// The callee's code.
    pub start: InputAddr,
    pub size: u32,
    /// In [`Function::operands`], with fields counted from `start`.
    pub operands: OperandSpan,
}

/// Instructions that the input lacks, and do what others did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCode {
    pub bytes: Vec<u8>,
    /// In [`Function::operands`], with fields counted from the first byte.
    pub operands: OperandSpan,
    /// Where the code stood that it replaces, and its bytes.
    pub replaces: InputAddr,
    pub replaced_size: u32,
}

/// A block of the caller that runs in place of a call: a block of the callee, or what leads into the callee or out of it.
/// Copied bytes come first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InPlaceCode {
    /// The call.
    pub call: InputAddr,
    /// What of the input it stands for: the call itself, where it leads in; a block of the callee; or the place that it leads out
    /// to, of which it stands for no byte: the call itself, if that is indirect and leads elsewhere.
    pub start: InputAddr,
    pub size: u32,
    /// Bytes from `start` on that are copied.
    pub copied: u32,
    /// Instructions behind these.
    pub added: Vec<u8>,
    /// In [`Function::operands`], with fields counted from the first byte.
    pub operands: OperandSpan,
    /// What unwinders are told, by bytes from the start; all of it is under the entry of the call, and lands where the call does. In a row
    /// without a rule for the return address, the call would have come back to where `back` goes on behind its [`Chunk::Back`].
    pub rows: Vec<(u32, RowId)>,
    /// What holds where the block jumps on.
    pub ending: RowId,
    /// The block behind the call.
    pub back: BlockId,
    /// Where four bytes stand, counted from the first one, that name by the distance from their end where the call would have come back.
    pub names_back: Option<u32>,
}

impl InPlaceCode {
    /// Whether it leads into the callee's code.
    pub fn leads_in(&self) -> bool {
        self.size > 0 && self.start == self.call
    }

    /// Whether it is a block of the callee.
    pub fn is_of_callee(&self) -> bool {
        self.size > 0 && self.start != self.call
    }
}

impl InputChunk {
    /// One past its last byte, from the block's start.
    pub fn end(self) -> u32 {
        self.from + self.size
    }
}

impl Function<'_> {
    /// What is written of a block in front of its terminator, in order.
    pub fn chunks_of(&self, block: &Block) -> impl Iterator<Item = Chunk> {
        let whole = block.chunks.is_empty() && block.body > 0;
        let body = whole.then_some(Chunk::Input(InputChunk { from: 0, size: block.body }));
        body.into_iter().chain(self.chunks[block.chunks.range()].iter().copied())
    }

    /// Bytes that a chunk takes.
    pub fn chunk_size(&self, chunk: Chunk) -> u32 {
        match chunk {
            Chunk::Input(chunk) => chunk.size,
            Chunk::Counter { form, .. } => form.size(),
            Chunk::Targets { code, .. } => code.size(),
            Chunk::Inlined(row) => self.inlined[row as usize].size,
            Chunk::New(row) | Chunk::Back(row) | Chunk::Prefetch(row) => {
                self.new_code[row as usize].bytes.len() as u32
            }
            Chunk::InPlace(row) => {
                let code = &self.in_place[row as usize];
                code.copied + code.added.len() as u32
            }
        }
    }

    /// Bytes that all of a block's chunks take.
    pub fn code_size(&self, block: &Block) -> u32 {
        if block.chunks.is_empty() {
            return block.body;
        }
        self.chunks[block.chunks.range()].iter().map(|&chunk| self.chunk_size(chunk)).sum()
    }

    /// Puts counters into a block's body, each before the byte at its offset; ascending.
    pub fn insert_counters(&mut self, block: BlockId, counters: impl IntoIterator<Item = (u32, Chunk)>) {
        let (first, body) = (self.chunks.len(), self.blocks[block].body);
        let mut copied = 0;
        for (offset, counter) in counters {
            if offset > copied {
                self.chunks.push(Chunk::Input(InputChunk { from: copied, size: offset - copied }));
                copied = offset;
            }
            self.chunks.push(counter);
        }
        if body > copied {
            self.chunks.push(Chunk::Input(InputChunk { from: copied, size: body - copied }));
        }
        self.blocks[block].chunks = Span::since(first, self.chunks.len());
    }

    /// Puts an instruction in front of all that is written of a block that brings what its operand names into the cache.
    pub fn prefetch(&mut self, block: BlockId, bytes: &[u8], operand: Operand) {
        let row = self.add_new_code((block, 0, 0), bytes, &[operand]);
        let first = self.chunks_at_the_end(block);
        self.chunks.insert(first, Chunk::Prefetch(row));
        self.blocks[block].chunks = Span::since(first, self.chunks.len());
    }

    /// Puts `bytes` in place of the `size` bytes of a block's body that start at `at`.
    pub fn replace(&mut self, block: BlockId, at: u32, size: u32, bytes: &[u8], operands: &[Operand]) {
        let row = self.add_new_code((block, at, size), bytes, operands);
        self.put(block, at, size, Chunk::New(row));
    }

    /// The row of `bytes` that stand for so many of a block's body.
    fn add_new_code(
        &mut self,
        (block, at, replaced_size): (BlockId, u32, u32),
        bytes: &[u8],
        operands: &[Operand],
    ) -> u32 {
        let operands = self.add_operands(operands);
        let replaces = self.blocks[block].input + u64::from(at);
        self.new_code.push(NewCode { bytes: bytes.to_vec(), operands, replaces, replaced_size });
        self.new_code.len() as u32 - 1
    }

    /// Puts the callee's `size` bytes from `start` on, with copies of its operands, in place of the call of so many
    /// bytes at `at` in a block's body.
    pub fn inline(
        &mut self,
        block: BlockId,
        at: u32,
        call_size: u32,
        (start, size): (InputAddr, u32),
        operands: &[Operand],
    ) {
        let operands = self.add_operands(operands);
        let row = self.inlined.len() as u32;
        let call = self.blocks[block].input + u64::from(at);
        self.inlined.push(InlinedCode { call, call_size, start, size, operands });
        self.put(block, at, call_size, Chunk::Inlined(row));
    }

    /// Bytes with which a block begins that stands behind the code in place of a call: behind them the call would have come back.
    pub fn back_size(&self, block: BlockId) -> u32 {
        match self.chunks[self.blocks[block].chunks.range()] {
            [first @ Chunk::Back(_), ..] => self.chunk_size(first),
            _ => 0,
        }
    }

    /// What a block is that runs in place of a call.
    pub fn in_place_of(&self, block: &Block) -> Option<&InPlaceCode> {
        match self.chunks[block.chunks.range()] {
            [Chunk::InPlace(row)] => Some(&self.in_place[row as usize]),
            _ => None,
        }
    }

    /// Adds a block that runs in place of a call, with these operands.
    pub fn add_in_place(
        &mut self,
        code: InPlaceCode,
        operands: &[Operand],
        terminator: Terminator,
    ) -> BlockId {
        let operands = self.add_operands(operands);
        let (row, first) = (self.in_place.len() as u32, self.chunks.len());
        let mut block = Block::empty(code.call, terminator);
        self.in_place.push(InPlaceCode { operands, ..code });
        self.chunks.push(Chunk::InPlace(row));
        block.chunks = Span::since(first, self.chunks.len());
        self.blocks.push(block)
    }

    /// Cuts a block in front of the call of so many bytes at `at` in its body: gives a new block, from behind the call on, with
    /// the terminator, which begins with the instructions `back`. The first part has none of its own any more, and leads there.
    ///
    /// # Panics
    /// If the block is not copied as one run.
    pub fn cut_around(&mut self, block: BlockId, at: u32, call_size: u32, back: &[u8]) -> BlockId {
        let own = self.blocks[block].clone();
        assert!(own.chunks.is_empty(), "the code of {block} is copied");
        let (call, behind) = (at, at + call_size);
        let (row, first) = (self.new_code.len() as u32, self.chunks.len());
        let replaces = own.input + u64::from(call);
        let operands = OperandSpan::default();
        self.new_code.push(NewCode { bytes: back.to_vec(), operands, replaces, replaced_size: 0 });
        self.chunks.push(Chunk::Back(row));
        if own.body > behind {
            self.chunks.push(Chunk::Input(InputChunk { from: 0, size: own.body - behind }));
        }
        let chunks = Span::since(first, self.chunks.len());
        let operands = self.operands_of(&own);
        let rest: Vec<Operand> = operands
            .iter()
            .filter(|operand| operand.at >= behind)
            .map(|operand| Operand { at: operand.at - behind, ..*operand })
            .collect();
        let kept = operands.iter().filter(|operand| operand.at < call).count() as u32;
        let second = Block {
            input: own.input + u64::from(behind),
            size: own.size - behind,
            body: own.body - behind,
            operands: self.add_operands(&rest),
            chunks,
            ..own
        };
        let second = self.blocks.push(second);
        let first = &mut self.blocks[block];
        // Invariant: operands of a block ascend.
        first.operands.end = first.operands.first + kept;
        (first.size, first.body) = (call, call);
        first.terminator = Terminator::FallThrough(second);
        second
    }

    /// Adds a block with the code of another one, which stands for it as well: what leads there may lead to either.
    ///
    /// # Panics
    /// If the block is not copied as one run.
    pub fn add_duplicate(&mut self, of: BlockId) -> BlockId {
        let own = self.blocks[of].clone();
        assert!(own.chunks.is_empty(), "the code of {of} is copied");
        let operands = self.operands_of(&own).to_vec();
        let operands = self.add_operands(&operands);
        self.blocks.push(Block { operands, ..own })
    }

    fn add_operands(&mut self, operands: &[Operand]) -> OperandSpan {
        let first = self.operands.len();
        self.operands.extend_from_slice(operands);
        Span::since(first, self.operands.len())
    }

    /// Puts `new` in place of a part of a block's body.
    ///
    /// # Panics
    /// If it is not copied as one run: something else was put there before.
    fn put(&mut self, block: BlockId, at: u32, size: u32, new: Chunk) {
        let first = self.chunks_at_the_end(block);
        // From behind: what is put ascends mostly, and is in the last chunk then.
        let copied = self.chunks[first..].iter().enumerate().rev().find_map(|(i, &chunk)| match chunk {
            Chunk::Input(own) if own.from <= at && at + size <= own.end() => Some((first + i, own)),
            _ => None,
        });
        let (i, own) = copied.unwrap_or_else(|| panic!("the code at {at} of {block} is copied"));
        let before = InputChunk { from: own.from, size: at - own.from };
        let behind = InputChunk { from: at + size, size: own.end() - at - size };
        let [before, behind] = [before, behind].map(|c| (c.size > 0).then_some(Chunk::Input(c)));
        self.chunks.splice(i..=i, before.into_iter().chain([new]).chain(behind));
        self.blocks[block].chunks = Span::since(first, self.chunks.len());
    }

    /// Has a block's chunks stand behind all others, where they can grow; gives where they start. They are copied only if
    /// others stand behind them, so that a row of changes of one block takes no room but its own.
    fn chunks_at_the_end(&mut self, block: BlockId) -> usize {
        let own = &self.blocks[block];
        let (span, body) = (own.chunks, own.body);
        if !span.is_empty() && span.end as usize == self.chunks.len() {
            return span.first as usize;
        }
        let first = self.chunks.len();
        self.chunks.extend_from_within(span.range());
        if span.is_empty() && body > 0 {
            self.chunks.push(Chunk::Input(InputChunk { from: 0, size: body }));
        }
        first
    }
}

#[cfg(test)]
mod tests;
