//! Calls in place of which their callees' blocks stand, each block a piece of the map: in such a context a place of the callee has another place of
//! the output than everywhere else, and what control leaves the pieces for has an exit.
//!
//! Like the rest of the map these are hints: `moved_code/in_place.rs` compares what stands there.

use crate::address_map::pieces::Reason::Replaced;
use crate::address_map::pieces::{Block, Shape};
use crate::input::code::Code;
use afterlink_core::FunctionMap;
use afterlink_core::address_map::Reason;
use rustc_hash::{FxHashMap, FxHashSet};

/// All pieces in place of one call.
pub(crate) struct Context {
    pub call: u64,
    /// Where the call ends.
    pub call_end: u64,
    /// The piece that stands for the call, and leads in.
    pub entry: Option<Block>,
    /// The pieces that stand for the place behind the call, in front of it. There should be one.
    pub backs: Vec<Block>,
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
    pub fn of_piece(&mut self, call: u64, call_end: u64) -> Option<u32> {
        if !self.replaced.contains(&call) {
            return None;
        }
        let next = self.all.len() as u32;
        let number = *self.by_call.entry(call).or_insert(next);
        if number == next {
            let (backs, parts, exits) = (Vec::new(), Vec::new(), Vec::new());
            self.all.push(Context { call, call_end, entry: None, backs, parts, exits });
        }
        Some(number)
    }

    pub fn add(&mut self, context: u32, piece: Block) {
        let context = &mut self.all[context as usize];
        let list = match piece.input_size {
            0 if piece.input == context.call_end => &mut context.backs,
            0 => &mut context.exits,
            _ => &mut context.parts,
        };
        list.push(piece);
    }

    /// Puts the pieces in order when all have come; `blocks` are all of the map.
    pub fn sort(&mut self, blocks: &[Block]) {
        for piece in blocks.iter().filter(|piece| piece.reason == Replaced) {
            if let Some(context) = self.of_call(piece.input) {
                self.all[context as usize].entry = Some(*piece);
            }
        }
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
    /// Where control goes on that comes back, in front of what stood behind the call.
    pub fn back(&self) -> Option<&Block> {
        if let [back] = &self.backs[..] { Some(back) } else { None }
    }

    /// The block of the callee that holds an address.
    pub fn part_at(&self, address: u64) -> Option<&Block> {
        let index = self.parts.partition_point(|piece| piece.input <= address).checked_sub(1)?;
        Some(&self.parts[index]).filter(|piece| address < piece.input_end())
    }

    /// Where control leaves for an address.
    pub fn exits_to(&self, address: u64) -> impl Iterator<Item = &Block> {
        let first = self.exits.partition_point(|piece| piece.input < address);
        self.exits[first..].iter().take_while(move |piece| piece.input == address)
    }

    /// Where the instruction of the callee at `address` stands in this context.
    pub fn place_of(&self, code: &Code, address: u64) -> Option<u64> {
        let mark = code.mark_size(address);
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
