//! Calls in place of which their callees' blocks stand, each block a piece of the map: in such a context a place of the callee has another place of
//! the output than everywhere else, and what control leaves the pieces for has an exit.
//!
//! Like the rest of the map these are hints: `moved_code/in_place.rs` compares what stands there.

use crate::address_map::places::{Block, Place, Places, Shape};
use crate::input::code::Code;
use afterlink_core::FunctionMap;
use afterlink_core::address_map::Reason;
use rustc_hash::{FxHashMap, FxHashSet};

/// All pieces in place of one call.
pub(crate) struct Context {
    pub call: u64,
    /// Blocks of the callee, by input address.
    pub parts: Vec<Block>,
    /// Pieces that stand for no byte: where control leaves for other places. By that place.
    pub exits: Vec<Block>,
}

#[derive(Default)]
pub(crate) struct Contexts {
    pub all: Vec<Context>,
    by_call: FxHashMap<u64, u32>,
    /// Instructions of the function at hand that a piece of its own stands for.
    replaced: FxHashSet<u64>,
}

impl Contexts {
    /// The pieces of `function` are to come.
    pub fn expect(&mut self, function: &FunctionMap) {
        let pieces = function.fragments.iter().flat_map(|fragment| &fragment.blocks);
        let replaced = pieces.filter(|piece| piece.reason == Reason::Replaced);
        self.replaced = replaced.filter_map(|piece| Some(piece.input?.get())).collect();
    }

    /// The context that a piece in place of `call` belongs to: something leads into it where the call stood.
    pub fn of_piece(&mut self, call: u64) -> Option<u32> {
        if !self.replaced.contains(&call) {
            return None;
        }
        let next = self.all.len() as u32;
        let number = *self.by_call.entry(call).or_insert(next);
        if number == next {
            self.all.push(Context { call, parts: Vec::new(), exits: Vec::new() });
        }
        Some(number)
    }

    pub fn add(&mut self, context: u32, piece: Block) {
        let context = &mut self.all[context as usize];
        if piece.input_size > 0 { &mut context.parts } else { &mut context.exits }.push(piece);
    }

    /// Puts the pieces in order when all have come.
    pub fn sort(&mut self) {
        for context in &mut self.all {
            context.parts.sort_by_key(|piece| piece.input);
            context.exits.sort_by_key(|piece| piece.input);
        }
        self.replaced = FxHashSet::default();
    }

    /// The context of a call.
    pub fn of_call(&self, call: u64) -> Option<u32> {
        self.by_call.get(&call).copied()
    }
}

impl Context {
    /// The block of the callee that holds an address.
    pub fn part_at(&self, address: u64) -> Option<&Block> {
        let index = self.parts.partition_point(|piece| piece.input <= address).checked_sub(1)?;
        Some(&self.parts[index]).filter(|piece| address < piece.input_end())
    }

    /// Whether `output` is the place of the input's `address` in this context.
    pub fn is_place(&self, code: &Code, places: &Places, address: u64, output: u64) -> bool {
        let first = self.exits.partition_point(|piece| piece.input < address);
        let exits = self.exits[first..].iter().take_while(|piece| piece.input == address);
        // What carries a return address to its place is no exit by itself: a call leads there.
        let leaves = |piece: &Block| piece.output == output && !carries(places, piece.output);
        exits.into_iter().any(leaves) || self.place_of(code, address) == Some(output)
    }

    /// Where the instruction of the callee at `address` stands in this context.
    fn place_of(&self, code: &Code, address: u64) -> Option<u64> {
        let mark = code.bytes(address, MARK_LIMIT).map_or(0, |bytes| code.judgement.mark_size(bytes)) as u64;
        let piece = self
            .part_at(address)
            .or_else(|| self.part_at(address + mark).filter(|p| p.input == address + mark))?;
        let address = address.max(piece.input);
        let insts = &code.insts[code.range(piece.input, piece.input_end())];
        let shape = Shape::of(insts);
        let (mut input, mut output) = (piece.input, piece.output);
        for (i, inst) in insts.iter().enumerate() {
            if input == address {
                // Behind a branch nothing has a place.
                return (!shape.ends || i <= shape.body).then_some(output);
            }
            let len = u64::from(inst.len);
            input += len;
            output += if i < shape.body { len } else { 0 };
        }
        None
    }
}

/// Bytes in which a mark is looked for.
const MARK_LIMIT: usize = 4;

/// Whether the output has there what takes a return address off the stack's top.
fn carries(places: &Places, output: u64) -> bool {
    let bytes = places.output_bytes(output);
    !places.judgement.decode(bytes).is_some_and(|inst| inst.flow != afterlink_isa::Flow::Next)
        && places.judgement.gives_room_back(bytes).is_none()
}

/// Whether `output` is the very place of `input`, in a context or outside of any.
pub(crate) fn is_place(code: &Code, places: &Places, context: Option<u32>, input: u64, output: u64) -> bool {
    match context {
        Some(context) => places.contexts.all[context as usize].is_place(code, places, input, output),
        None => match places.of(code, input) {
            Place::Same => input == output && !places.may_be_stub(input),
            Place::Moved(place) => place == output,
            Place::Nowhere => false,
        },
    }
}
