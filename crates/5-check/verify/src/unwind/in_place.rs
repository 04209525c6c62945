//! Unwinding from a callee's blocks in place of a call: the frame that is found is the caller's, at once. Where it is follows from what the
//! callee's row and the caller's row at the call say; a register that the caller had saved is found there, any other where the
//! callee saved it. Exceptions go where those out of the call go.

use crate::address_map::places::{Block, Place, Shape};
use crate::input::code::Kind;
use crate::unwind::comparison::{Compare, finding};
use crate::unwind::rows::{self, Frame};
use crate::verdict::finding::Finding;
use afterlink_isa::Flow;

/// Bytes of a return address.
const WORD: i64 = 8;

impl Compare<'_, '_, '_> {
    fn at_call(&mut self, call: u64) -> Option<Vec<u8>> {
        self.rows.input.of_moved(&mut self.hint_input, call).0.map(<[u8]>::to_vec)
    }

    /// What makes room for a return address has the row of the call; behind it the stack's top is lower.
    pub(super) fn leads_in(&mut self, block: &Block) -> Result<(), Box<Finding>> {
        let at_call = self.at_call(block.input);
        let bytes = self.check.places.output_bytes(block.output);
        let room = self.check.code.judgement.makes_room(bytes);
        let behind = at_call.as_deref().map(|row| rows::lowered(row, room.map_or(0, |_| WORD)).into_owned());
        let middle = block.output + room.unwrap_or(0) as u64;
        self.holds(block, (block.output, middle), at_call.as_deref())?;
        self.holds(block, (middle, block.output_end()), behind.as_deref())
    }

    /// A block of the callee, or an exit.
    pub(super) fn in_place(&mut self, block: &Block, context: u32) -> Result<(), Box<Finding>> {
        let call = self.check.places.contexts.all[context as usize].call;
        let places = &self.check.places;
        let entry = match self.check.place(call) {
            Place::Moved(place) => places.output_bytes(place),
            _ => &[],
        };
        let has_room = self.check.code.judgement.makes_room(entry).is_some();
        let at_call = self.at_call(call);
        let Some(caller) = at_call.as_deref().and_then(Frame::read) else {
            return Err(finding(call, block.output));
        };
        let site = Site { caller: &caller, at_call: at_call.as_deref(), has_room };
        if block.input_size == 0 { self.exit(block, &site) } else { self.part(block, &site) }
    }

    fn part(&mut self, block: &Block, site: &Site) -> Result<(), Box<Finding>> {
        let code = &self.check.code;
        let insts = &code.insts[code.range(block.input, block.input_end())];
        let shape = Shape::of(insts);
        let (mut input, mut output) = (block.input, block.output);
        for inst in &insts[..shape.body] {
            let len = u64::from(inst.len);
            // Rows change where instructions start, or the callee's would not be followed.
            let row = self.around(input, len, site, 0).ok_or_else(|| finding(input, output))?;
            self.holds(block, (output, output + len), Some(&row))?;
            (input, output) = (input + len, output + len);
        }
        let end = block.output_end();
        let last = insts.get(shape.body).filter(|_| shape.ends);
        if last.is_some_and(|inst| inst.kind == Kind::Return) {
            let bytes = self.check.places.output_bytes(output);
            if let Some(len) = self.check.code.judgement.gives_room_back(bytes).filter(|_| site.has_room) {
                let row = self.around(input, 1, site, 0).ok_or_else(|| finding(input, output))?;
                self.holds(block, (output, output + len as u64), Some(&row))?;
                output += len as u64;
            }
            return self.holds(block, (output, end), site.at_call);
        }
        if output == end {
            return Ok(());
        }
        // A jump that is added where control only goes on has the row of what follows.
        let at = if shape.ends { input } else { block.input_end() };
        let row = self.around(at, 1, site, 0).ok_or_else(|| finding(input, output))?;
        self.holds(block, (output, end), Some(&row))
    }

    fn exit(&mut self, block: &Block, site: &Site) -> Result<(), Box<Finding>> {
        let judgement = self.check.code.judgement;
        let bytes = self.check.places.output_bytes(block.output);
        let decoded = judgement.decode(bytes);
        let len = decoded.map_or(0, |inst| u64::from(inst.len));
        let (start, end) = (block.output, block.output_end());
        let middle = (start + len).min(end);
        let below = |this: &mut Self, lower| {
            this.around(block.input, 1, site, lower).ok_or_else(|| finding(block.input, start))
        };
        if judgement.gives_room_back(bytes).is_some() {
            let row = site.at_call.map(|row| rows::lowered(row, WORD).into_owned());
            self.holds(block, (start, middle), row.as_deref())?;
            return self.holds(block, (middle, end), site.at_call);
        }
        let is_call = decoded.is_some_and(|inst| matches!(inst.flow, Flow::Call(_)));
        if is_call && !site.has_room {
            return self.holds(block, (start, end), site.at_call);
        }
        // A call that leaves a frame behind, or what carries its return address.
        let row = below(self, if is_call { 0 } else { WORD })?;
        if is_call {
            // The frame is there when a signal comes at the call, and gone for who unwinds out of what is called: unwinders look one byte in
            // front of where it comes back.
            self.holds(block, (start, start + 1), Some(&row))?;
            return self.holds(block, (start + 1, end), site.at_call);
        }
        self.holds(block, (start, middle), Some(&row))?;
        let row = below(self, 0)?;
        self.holds(block, (middle, end), Some(&row))
    }

    /// The row in place of the callee's that holds for `len` bytes of the input, with the stack's top lower than there by so many bytes.
    fn around(&mut self, input: u64, len: u64, site: &Site, lower: i64) -> Option<Vec<u8>> {
        let (row, end) = self.rows.input.of_moved(&mut self.hint_input, input);
        let callee = Frame::read(row?).filter(|_| end >= input + len)?;
        let shift = if site.has_room { 0 } else { WORD };
        site.caller.around(&callee, shift, lower)
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
}
