//! Rule for a callee's blocks in place of a call.
//!
//! The call would have put a return address on the stack, and gone on in the callee with the stack's top there. So room is made for it, or, where
//! nothing asks where the top is, it is left higher by that word. From then on each block does what the callee's does, by the same induction as
//! elsewhere, with another map: of the context. That word alone may differ, so no instruction may touch it, or anything below the top, where a call
//! would have written. Where the callee returns, control goes on where the room is given back, and from there behind the call.
//!
//! An indirect call has such blocks behind a question whether it leads there (`asked.rs`).
//!
//! Where control leaves the context for a place of the input, there is an exit: the stack is made what it was before the call, and that place is
//! called. So it runs with a return address that leads behind the call. Where the callee has the frame pointer lead into its frame, that word holds a return address
//! as well (`depths.rs`). With a frame below the return address, a call that only puts its own
//! return address on top leads to an instruction that carries the word to where it belongs. A frame's depth follows from the
//! input's code alone: `Depths`.

use crate::address_map::flow;
use crate::address_map::places::{Block, Shape};
use crate::input::code::{Inst, Kind};
use crate::input::return_address;
use crate::moved_code::depths::{Depths, Stack};
use crate::moved_code::walk::Walk;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_isa::Flow;
use afterlink_isa::judgement::Reader;

type Checked<T = ()> = Result<T, Box<Finding>>;

impl Walk<'_, '_, '_> {
    /// Checks a piece that stands for a call, and leads into the callee's blocks.
    pub(super) fn leads_in(mut self, block: &Block, context: u32) -> Checked {
        if self.check.has_shadow_stack {
            let what =
                "an unwinder would take a return address of a frame in place of a call off the shadow stack";
            return Err(self.finding(FindingKind::Unwind, what));
        }
        let is_asked = self.asked_call(block).is_some();
        let callee = self.check.callee(&self.check.places.contexts.all[context as usize]);
        let callee = callee.filter(|_| is_asked || self.plain_call(block).is_some());
        let Some(callee) = callee else {
            let what = "what was replaced is not a single call, or it is not asked whom it leads to";
            return Err(self.finding(FindingKind::Instruction, what));
        };
        if block.output_size == 0 && self.is_behind_call() {
            return Err(self.other_name());
        }
        self.output += self.check.behind_question(block) + self.check.makes_room(block).unwrap_or(0) as u64;
        self.context = Some(context);
        if is_asked {
            return self.parts(callee, context);
        }
        self.goes_on(callee)?;
        self.padding(true)
    }

    /// Whether a block that ends with a call stands in front, in both files.
    fn is_behind_call(&self) -> bool {
        let code = &self.check.code;
        let before = code.index_at(self.input).and_then(|index| index.checked_sub(1));
        let stands_in_front =
            |b: &Block| b.input_size > 0 && (b.input_end(), b.output_end()) == (self.input, self.output);
        before.is_some_and(|index| code.insts[index].is_call())
            && self.own.iter().any(|b| !b.is_added() && stands_in_front(b))
    }

    /// Who looks for a caller where its call comes back, as `backtrace_symbols` does, finds whose code that is.
    fn other_name(&self) -> Box<Finding> {
        self.finding(FindingKind::FallThrough, "a call comes back where code of another function starts")
    }

    /// Checks a piece in place of a call.
    pub(super) fn in_place(mut self, block: &Block, context: u32, depths: &Depths) -> Checked {
        self.context = Some(context);
        let own = &self.check.places.contexts.all[context as usize];
        if block.input_size == 0 && block.input == own.call_end {
            return self.back(context);
        }
        let is_asked = || self.check.code.at(own.call).is_some_and(|call| call.kind == Kind::IndirectCall);
        if block.input_size == 0 && block.input == own.call && is_asked() {
            return self.others(context, depths);
        }
        let Some(stack) = depths.at(context, block.input) else {
            let what = "nobody knows how the stack stands where this runs in place of a call";
            return Err(self.finding(FindingKind::Instruction, what));
        };
        if block.input_size == 0 {
            return self.exit(context, stack);
        }
        self.part(block, context, stack, depths)
    }

    fn part(mut self, block: &Block, context: u32, mut stack: Stack, depths: &Depths) -> Checked {
        let code = &self.check.code;
        let insts = &code.insts[code.range(block.input, block.input_end())];
        let size: u64 = insts.iter().map(|inst| u64::from(inst.len)).sum();
        if code.index_at(block.input).is_none() || size != u64::from(block.input_size) {
            let what = "the map's block does not begin and end between instructions of the input";
            return Err(self.finding(FindingKind::Map, what));
        }
        let shape = Shape::of(insts);
        let mut reader = Reader::new(code.judgement);
        for inst in &insts[..shape.body] {
            self.part_inst(inst, context, &mut stack, (depths, &mut reader))?;
        }
        self.comes_back_inside(insts[..shape.body].last(), context)?;
        if !shape.ends {
            let named = self.check.names_return_address(context, block, self.output, stack.frame.depth);
            self.output += named.unwrap_or(0);
            if depths.is_other(context, self.input, Stack { is_named: named.is_some(), ..stack }) {
                let what = "behind a block in place of a call the stack stands otherwise than on another way";
                return Err(self.finding(FindingKind::Instruction, what));
            }
            self.goes_on(block.input_end())?;
            return self.padding(true);
        }
        if depths.is_other(context, self.input, stack) || stack.is_named {
            let what = "the stack stands otherwise, or nobody knows how, at a branch in place of a call";
            return Err(self.finding(FindingKind::Instruction, what));
        }
        let inst = &insts[shape.body];
        if insts[shape.body + 1..].iter().any(|inst| !inst.is_padding()) || code.is_observed(self.input) {
            let what = "code stands behind the branch of the map's block, or a probe at it";
            return Err(self.finding(FindingKind::Map, what));
        }
        match inst.kind {
            Kind::Jump if !flow::runs_for_ever(code, inst.target(code, self.input)) => {
                self.terminator(inst)?
            }
            Kind::Branch => self.terminator(inst)?,
            Kind::Return => self.returns(context, stack)?,
            _ => {
                let what = "control leaves code in place of a call in a way that is not known there";
                return Err(self.finding(FindingKind::Instruction, what));
            }
        }
        self.padding(true)
    }

    /// An instruction of a part in front of what ends it.
    fn part_inst(
        &mut self,
        inst: &Inst,
        context: u32,
        stack: &mut Stack,
        (depths, reader): (&Depths, &mut Reader),
    ) -> Checked {
        let code = &self.check.code;
        if depths.is_other(context, self.input, *stack) {
            let what =
                "the stack stands otherwise, or nobody knows how, inside of a block in place of a call";
            return Err(self.finding(FindingKind::Instruction, what));
        }
        let bytes = code.bytes(self.input, usize::from(inst.len)).unwrap_or(&[]);
        let has_room = self.check.has_room(context);
        let change = reader.frame_change(bytes, stack.frame).filter(|c| has_room || !c.needs_place);
        if change.is_some_and(|change| change.sets_pointer != stack.is_named) {
            let what = "a return address is not named right where the frame pointer is set";
            return Err(self.finding(FindingKind::Instruction, what));
        }
        let Some(change) = change.filter(|_| !inst.is_prefix()) else {
            let what = "an instruction in place of a call may see where the stack is, or the return address";
            return Err(self.finding(FindingKind::Instruction, what));
        };
        if code.is_observed(self.input) {
            let what = "code in place of a call has a probe, whose tracer would not see it";
            return Err(self.finding(FindingKind::Probe, what));
        }
        *stack = Stack { frame: change.frame, is_named: false };
        self.same_inst(inst)
    }

    /// Behind an instruction of the context, if it is a call, more of the context stands.
    fn comes_back_inside(&self, last: Option<&Inst>, context: u32) -> Checked {
        let parts = &self.check.places.contexts.all[context as usize].parts;
        let is_part = |part: &Block| part.output == self.output && part.output_size > 0;
        match last.filter(|inst| inst.is_call() && self.output == self.end) {
            Some(_) if !parts.iter().any(is_part) => Err(self.other_name()),
            _ => Ok(()),
        }
    }

    /// In place of a return, control goes on behind the call.
    fn returns(&mut self, context: u32, stack: Stack) -> Checked {
        let bytes = self.check.code.bytes(self.input, 1).and_then(|_| {
            let inst = self.check.code.at(self.input)?;
            self.check.code.bytes(self.input, usize::from(inst.len))
        });
        if stack != Stack::default()
            || !bytes.is_some_and(|bytes| self.check.code.judgement.is_plain_return(bytes))
        {
            let what = "a callee in place of its call does not return plainly";
            return Err(self.finding(FindingKind::Instruction, what));
        }
        self.goes_back(context)
    }

    /// The room of a return address is given back right in front of what stood behind the call: it would have come back there.
    fn back(mut self, context: u32) -> Checked {
        let has_room = self.check.has_room(context);
        self.gives_room_back(has_room)?;
        if !has_room {
            let inst = self.check.code.judgement.decode(self.bytes()).filter(|inst| inst.nop);
            let Some(inst) = inst else {
                let what = "nothing stands in front of where a call would have come back";
                return Err(self.finding(FindingKind::Instruction, what));
            };
            self.output += u64::from(inst.len);
        }
        self.context = None;
        self.goes_on(self.check.places.contexts.all[context as usize].call_end)?;
        self.padding(true)
    }

    pub(super) fn gives_room_back(&mut self, has_room: bool) -> Checked {
        if !has_room {
            return Ok(());
        }
        match self.check.code.judgement.gives_room_back(self.bytes()) {
            Some(len) => {
                self.output += len as u64;
                Ok(())
            }
            None => {
                let what = "the room of a return address is not given back";
                Err(self.finding(FindingKind::Instruction, what))
            }
        }
    }

    /// Control goes on where the room of the return address is given back, and nowhere else: what leads to the place behind the call
    /// otherwise is no return.
    fn goes_back(&mut self, context: u32) -> Checked {
        let places = &self.check.places;
        let back = places.contexts.all[context as usize].back();
        if back.is_none_or(|back| !flow::leads_to(places, self.output, back.output)) {
            let what = "control does not go on behind the call in place of which the code stands";
            return Err(self.finding(FindingKind::FallThrough, what));
        }
        Ok(())
    }

    /// A piece by which control leaves a context for `self.input`.
    fn exit(mut self, context: u32, stack: Stack) -> Checked {
        let (judgement, to, depth) = (self.check.code.judgement, self.input, stack.frame.depth);
        if stack.is_named {
            let what = "control leaves code in place of a call while a return address is named";
            return Err(self.finding(FindingKind::Instruction, what));
        }
        let has_room = self.check.has_room(context);
        let code = &self.check.code;
        if depth > 0 && !has_room {
            let what = "a frame in place of a call is given up where no room for a return address is";
            return Err(self.finding(FindingKind::Instruction, what));
        }
        let carried = |bytes: &[u8]| judgement.carries_return_address(bytes).filter(|(to, _)| *to == depth);
        if let Some((_, len)) = carried(self.bytes()).filter(|_| depth > 0) {
            self.output += len as u64;
            self.context = None;
            self.goes_on(to)?;
            return self.padding(true);
        }
        // With a frame, something else is on top of the stack.
        if depth == 0 && return_address::is_taken_by(code, self.check.slots.callee(code, to)) {
            let what = "what is called takes the code's address, which moving changes";
            return Err(self.finding(FindingKind::Operand, what));
        }
        if depth == 0 {
            self.gives_room_back(has_room)?;
        }
        let call = judgement.decode(self.bytes()).filter(|_| judgement.is_plain_call(self.bytes()));
        let Some((Flow::Call(displacement), len)) = call.map(|call| (call.flow, call.len)) else {
            let what = "control leaves code in place of a call without a call of where it goes";
            return Err(self.finding(FindingKind::Instruction, what));
        };
        self.output += u64::from(len);
        let mut called = self.output.wrapping_add(displacement as u64);
        if depth > 0 {
            let Some((_, len)) = carried(self.check.places.output_bytes(called)) else {
                let what = "a return address is not carried to where the frame has it";
                return Err(self.finding(FindingKind::Instruction, what));
            };
            called += len as u64;
        }
        self.context = None;
        self.leads(to, called)?;
        self.comes_back_to(context, has_room)
    }

    /// Behind a call by which control has left a context, it goes on behind the call of the context.
    pub(super) fn comes_back_to(mut self, context: u32, has_room: bool) -> Checked {
        let judgement = self.check.code.judgement;
        if has_room {
            let Some(room) = judgement.makes_room(self.bytes()) else {
                let what = "no room is made for what is given back behind the call";
                return Err(self.finding(FindingKind::Instruction, what));
            };
            self.output += room as u64;
        }
        self.goes_back(context)?;
        self.padding(true)
    }
}
