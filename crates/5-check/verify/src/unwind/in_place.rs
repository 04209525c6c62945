//! Unwinding from a callee's blocks in place of a call: the frame that is found is the callee's, where its own row has it, and its caller's as if the
//! call had been made. Up to where the callee's frame pointer is set, no return address is in memory: it is as far from the instruction as the place behind the call is, in front of which stands what
//! gives back the room, so that unwinders, which look one byte in front of it, find the row of the call. Exceptions go where those out of the call go.

use crate::address_map::places::{Block, Shape};
use crate::unwind::comparison::{Compare, finding};
use crate::unwind::rows::{self, Frame};
use crate::verdict::finding::Finding;
use afterlink_isa::Flow;
use std::borrow::Cow;

/// Bytes of a return address.
const WORD: i64 = 8;

impl Compare<'_, '_, '_> {
    fn at_call(&mut self, call: u64) -> Option<Vec<u8>> {
        self.rows.input.of_moved(&mut self.hint_input, call).0.map(<[u8]>::to_vec)
    }

    /// What asks where the call leads, and what makes room for a return address, has the row of the call; behind it the stack's top is lower.
    pub(super) fn leads_in(&mut self, block: &Block) -> Result<(), Box<Finding>> {
        let at_call = self.at_call(block.input);
        let room = self.check.makes_room(block);
        let behind = at_call.as_deref().map(|row| rows::lowered(row, room.map_or(0, |_| WORD)).into_owned());
        let middle = block.output + self.check.behind_question(block) + room.unwrap_or(0) as u64;
        self.holds(block, (block.output, middle), at_call.as_deref())?;
        self.holds(block, (middle, block.output_end()), behind.as_deref())
    }

    /// A block of the callee, or an exit.
    pub(super) fn in_place(&mut self, block: &Block, context: u32) -> Result<(), Box<Finding>> {
        let call = self.check.places.contexts.all[context as usize].call;
        let at_call = self.at_call(call);
        let Some(caller) = at_call.as_deref().and_then(Frame::read) else {
            return Err(finding(call, block.output));
        };
        let Some(back) = self.check.comes_back(context) else { return Err(finding(call, block.output)) };
        let has_room = self.check.has_room(context);
        let site = Site { caller: &caller, at_call: at_call.as_deref(), has_room, back };
        match block.input_size {
            0 if block.input == self.check.places.contexts.all[context as usize].call_end => {
                self.back(block, &site)
            }
            0 => self.exit(block, &site),
            _ => self.part(block, &site),
        }
    }

    /// With the room there, the row of the call, with the stack's top lower; and at its last byte that of the call.
    fn back(&mut self, block: &Block, site: &Site) -> Result<(), Box<Finding>> {
        let last = site.back.saturating_sub(1);
        self.holds(block, (block.output, last), site.with_room().as_deref())?;
        self.holds(block, (last, site.back), site.at_call)?;
        let behind = self.rows.input.of_moved(&mut self.hint_input, block.input).0.map(<[u8]>::to_vec);
        self.holds(block, (site.back, block.output_end()), behind.as_deref())
    }

    fn part(&mut self, block: &Block, site: &Site) -> Result<(), Box<Finding>> {
        let code = &self.check.code;
        let insts = &code.insts[code.range(block.input, block.input_end())];
        let shape = Shape::of(insts);
        let (mut input, mut output) = (block.input, block.output);
        for inst in &insts[..shape.body] {
            let len = u64::from(inst.len);
            self.inst(block, (input, len), (output, output + len), site)?;
            (input, output) = (input + len, output + len);
        }
        // A jump that is added where control only goes on has the row of what follows.
        let at = if shape.ends { input } else { block.input_end() };
        while output < block.output_end() {
            let bytes = self.check.places.output_bytes(output);
            let len = self.check.code.judgement.decode(bytes).map_or(0, |inst| u64::from(inst.len));
            let next = (output + len.max(1)).min(block.output_end());
            self.inst(block, (at, 1), (output, next), site)?;
            output = next;
        }
        Ok(())
    }

    /// An instruction of the callee. Who looks for the frame of a call knows where it comes back, and looks one byte in front of that.
    fn inst(
        &mut self,
        block: &Block,
        (input, len): (u64, u64),
        (output, end): (u64, u64),
        site: &Site,
    ) -> Result<(), Box<Finding>> {
        let bytes = self.check.places.output_bytes(output);
        let flow = self.check.code.judgement.decode(bytes).map(|inst| inst.flow);
        let calls = flow.is_some_and(Flow::is_call);
        let middle = if calls { output + 1 } else { end };
        for (run, place) in [((output, middle), output), ((middle, end), end)] {
            let row = self.in_callee((input, len), site, place).ok_or_else(|| finding(input, output))?;
            self.holds(block, run, Some(&row))?;
        }
        Ok(())
    }

    fn exit(&mut self, block: &Block, site: &Site) -> Result<(), Box<Finding>> {
        let judgement = self.check.code.judgement;
        let bytes = self.check.places.output_bytes(block.output);
        let decoded = judgement.decode(bytes);
        let len = decoded.map_or(0, |inst| u64::from(inst.len));
        let (start, end) = (block.output, block.output_end());
        let middle = (start + len).min(end);
        let fault = || finding(block.input, start);
        if judgement.gives_room_back(bytes).is_some() {
            self.holds(block, (start, middle), site.with_room().as_deref())?;
            return self.calls(block, (middle, middle, end), site);
        }
        // One of whom else an indirect call leads to has no room to give back.
        if decoded.is_some_and(|inst| inst.flow.is_call()) {
            if !site.has_room {
                return self.holds(block, (start, end), site.at_call);
            }
            // The frame is there when a signal comes at the call, and gone for who unwinds out of what is called: unwinders look one byte in
            // front of where it comes back.
            let row = self.in_callee((block.input, 1), site, start).ok_or_else(fault)?;
            self.holds(block, (start, start + 1), Some(&row))?;
            return self.calls(block, (start, start + 1, end), site);
        }
        // What carries a return address to where the callee's frame has it.
        let callee = self.rows.input.of_moved(&mut self.hint_input, block.input).0;
        let callee = callee.and_then(Frame::read).ok_or_else(fault)?;
        let (depth, _) = judgement.carries_return_address(bytes).ok_or_else(fault)?;
        let rows = [site.caller.with_address_on_top(&callee, depth), site.caller.beside(&callee)];
        for (run, row) in [(start, middle), (middle, end)].into_iter().zip(rows) {
            self.holds(block, run, Some(&row.ok_or_else(fault)?))?;
        }
        Ok(())
    }

    /// A call by which control leaves, from somewhere in it on: the row of the call, up to where room is made again for what is given back.
    fn calls(
        &mut self,
        block: &Block,
        (call, start, end): (u64, u64, u64),
        site: &Site,
    ) -> Result<(), Box<Finding>> {
        let judgement = self.check.code.judgement;
        let size = judgement.decode(self.check.places.output_bytes(call)).map(|call| u64::from(call.len));
        let room = size.filter(|_| site.has_room).map(|size| call + size);
        let made = room.and_then(|room| judgement.makes_room(self.check.places.output_bytes(room)));
        let behind = room.zip(made).map(|(room, made)| room + made as u64);
        let behind = behind.filter(|behind| *behind <= end).ok_or_else(|| finding(block.input, start))?;
        self.holds(block, (start, behind), site.at_call)?;
        self.holds(block, (behind, end), site.with_room().as_deref())
    }

    /// The row of the callee's frame that holds for `len` bytes of the input, where the instruction of the output at `place` runs in place of a call.
    fn in_callee(&mut self, (input, len): (u64, u64), site: &Site, place: u64) -> Option<Vec<u8>> {
        let (row, end) = self.rows.input.of_moved(&mut self.hint_input, input);
        let callee = Frame::read(row?).filter(|_| end >= input + len)?;
        let shift = if site.has_room { 0 } else { WORD };
        site.caller.in_callee(&callee, shift, site.back.wrapping_sub(place) as i64)
    }

    /// Whether the row holds for all of a range of the output.
    fn holds(
        &mut self,
        block: &Block,
        (mut at, end): (u64, u64),
        row: Option<&[u8]>,
    ) -> Result<(), Box<Finding>> {
        while at < end {
            let (found, found_end) = self.rows.output.of_moved(&mut self.hint_output, at);
            if found != row || row.is_none() {
                return Err(finding(block.input, at));
            }
            at = found_end;
        }
        Ok(())
    }
}

/// What the row of the call says.
struct Site<'s> {
    caller: &'s Frame<'s>,
    at_call: Option<&'s [u8]>,
    has_room: bool,
    /// Where the call would have come back.
    back: u64,
}

impl<'s> Site<'s> {
    /// The row of the call where the room is, if any is made.
    fn with_room(&self) -> Option<Cow<'s, [u8]>> {
        self.at_call.map(|row| rows::lowered(row, if self.has_room { WORD } else { 0 }))
    }
}
