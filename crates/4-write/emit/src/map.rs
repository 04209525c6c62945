//! The address map of the output, piece by piece with its reason.

use crate::addresses::Addresses;
use crate::shape::Shape;
use afterlink_core::address_map::{ChainId, MapWriter};
use afterlink_core::index::Id;
use afterlink_core::{BlockMap, FragmentMap, FunctionMap, InputAddr, Reason};
use afterlink_program::{Block, BlockId, Chunk, Function, InPlaceCode, Placement, Program, Terminator};
use rustc_hash::FxHashMap;

/// The bytes of the map that goes into the output, and the number of functions in it.
pub(crate) fn map(
    program: &Program,
    placement: &Placement,
    addresses: &Addresses,
    shapes: &[Shape],
) -> (Vec<u8>, usize) {
    let mut of_function: Vec<Vec<usize>> = vec![Vec::new(); program.functions.len()];
    for (i, fragment) in placement.fragments.iter().enumerate() {
        let list = &mut of_function[fragment.function.index()];
        // The entry comes first in the map, though a cold part may stand before it in the file.
        list.insert(if fragment.starts_function() { 0 } else { list.len() }, i);
    }
    let (mut writer, mut chains, mut count) = (MapWriter::new(), Vec::new(), 0);
    for (id, function) in program.functions.iter().filter(|(id, _)| addresses.is_moved(*id)) {
        let mut fragments = Vec::new();
        let mut of_call = FxHashMap::default();
        for &i in &of_function[id.index()] {
            let mut pieces = Pieces { chains: &mut chains, of_call: &mut of_call, pieces: Vec::new() };
            for (&block, &offset) in placement.fragments[i].blocks.iter().zip(&shapes[i].offsets) {
                let reason = match (function.is_of_input(block), function.duplicate_of(block)) {
                    (_, Some(_)) => Reason::Duplicated,
                    (true, None) => Reason::Copied,
                    (false, None) => Reason::Inserted,
                };
                pieces.block(function, &function.blocks[block], reason, offset);
            }
            let blocks = pieces.pieces;
            fragments.push(FragmentMap { output: addresses.fragments[i], size: shapes[i].size(), blocks });
        }
        let folded_into = function.folded_into.map(|into| program.functions[into].entry());
        writer.add(&FunctionMap { entry: function.entry(), fragments, folded_into });
        count += 1;
    }
    (writer.finish(&chains), count)
}

/// The pieces of a fragment as they come.
struct Pieces<'m> {
    chains: &'m mut Vec<Vec<InputAddr>>,
    /// The chains of calls in place of which several pieces stand.
    of_call: &'m mut FxHashMap<InputAddr, usize>,
    pieces: Vec<BlockMap>,
}

impl Pieces<'_> {
    /// Adds the pieces of a block that starts at `offset` of the fragment.
    fn block(&mut self, function: &Function, block: &Block, reason: Reason, offset: u32) {
        if let Some(code) = function.in_place_of(block) {
            return self.in_place(code, offset);
        }
        // Nothing is left of a block that began with a call which gave way; and what stood behind such a call is the input's, too.
        let leads_in = |next: BlockId| function.in_place_of(&function.blocks[next]).is_some();
        let is_gone =
            block.size == 0 && matches!(block.terminator, Terminator::FallThrough(next) if leads_in(next));
        let reason = if is_gone { Reason::Inserted } else { reason };
        let input = (reason != Reason::Inserted).then_some(block.input);
        self.pieces.push(BlockMap { output_offset: offset, input, input_size: block.size, reason });
        let mut at = offset;
        for chunk in function.chunks_of(block) {
            let size = function.chunk_size(chunk);
            match chunk {
                Chunk::New(row) => {
                    let code = &function.new_code[row as usize];
                    let piece = BlockMap {
                        output_offset: at,
                        input: Some(code.replaces),
                        input_size: code.replaced_size,
                        reason: Reason::Replaced,
                    };
                    self.insert(piece, code.replaces, code.replaced_size, at + size);
                }
                Chunk::Inlined(row) => {
                    let code = &function.inlined[row as usize];
                    let reason = Reason::Inlined(ChainId::from_index(self.chains.len()));
                    self.chains.push(vec![code.call]);
                    let (input, input_size) = (Some(code.start), code.size);
                    let piece = BlockMap { output_offset: at, input, input_size, reason };
                    self.insert(piece, code.call, code.call_size, at + size);
                }
                // It stands for no byte, in front of what stood behind the call.
                Chunk::Back(row) => {
                    let call = function.new_code[row as usize].replaces;
                    let first = self.pieces.pop().expect("a block has begun");
                    let back = BlockMap {
                        input: Some(block.input),
                        input_size: 0,
                        reason: self.of_call(call),
                        ..first
                    };
                    self.pieces.push(back);
                    if block.size > 0 {
                        self.pieces.push(BlockMap { output_offset: at + size, ..first });
                    }
                }
                Chunk::Input(_)
                | Chunk::Counter { .. }
                | Chunk::Targets { .. }
                | Chunk::Prefetch(_)
                | Chunk::InPlace(_) => {}
            }
            at += size;
        }
    }

    /// Adds a block that runs in place of a call.
    fn in_place(&mut self, code: &InPlaceCode, offset: u32) {
        let reason = if code.leads_in() { Reason::Replaced } else { self.of_call(code.call) };
        let (input, input_size) = (Some(code.start), code.size);
        self.pieces.push(BlockMap { output_offset: offset, input, input_size, reason });
    }

    /// The reason of pieces in place of a call.
    fn of_call(&mut self, call: InputAddr) -> Reason {
        let number = *self.of_call.entry(call).or_insert_with(|| {
            self.chains.push(vec![call]);
            self.chains.len() - 1
        });
        Reason::Inlined(ChainId::from_index(number))
    }

    /// Cuts the last piece, which is copied, where `size` bytes of it from `input` on gave way to `piece`, and goes on at `end`.
    fn insert(&mut self, piece: BlockMap, input: InputAddr, size: u32, end: u32) {
        let last = self.pieces.pop().expect("a block has begun");
        let start = last.input.expect("only code of the input is replaced");
        let before = input.since(start) as u32;
        if before > 0 {
            self.pieces.push(BlockMap { input_size: before, ..last });
        }
        self.pieces.push(piece);
        let rest = last.input_size - before - size;
        let behind = input + u64::from(size);
        // Jumps behind the last instruction belong to it.
        if rest > 0 {
            self.pieces.push(BlockMap { output_offset: end, input: Some(behind), input_size: rest, ..last });
        }
    }
}
