//! Puts a function's code in place of a call of it.
//!
//! In front of the callee's entry, room for the return address is made, if the stack's top has to be where the call would have put it; behind the code,
//! in front of what stood behind the call, it is given back. Where control leaves for what does not run in place of the call, the rest of the callee, or a
//! function that it tail-calls, goes on as if the call had been made: a call of that place puts the return address there.
//! Below the frame, a call puts its return address on top of the stack, and the next instruction carries it to where it belongs.
//!
//! Where the callee has the frame pointer lead into its frame, whoever follows frames by it finds a return address right above. So in front of the instruction
//! that does so, the register it overwrites carries there where the call would have come back. A room made by a push is as good up to then: the frame pointer
//! still leads into the caller's frame.
//!
//! In front of code in place of an indirect call stands the question whether it leads to the callee. If not, the call is made as it was: that is a way out to
//! the call itself.
//!
//! Unwinders look one byte in front of where a call comes back, so what gives the room back stands right there, wherever blocks are put. Others look where it comes
//! back: between a call and code of another function stands a byte at least.

use super::body::{Body, Exit, FrameStart, Part};
use super::rows::{AtCall, with_address_on_top};
use afterlink_core::InputAddr;
use afterlink_isa::{CallQuestion, Encoding, InPlaceForms};
use afterlink_program::{
    BlockId, FuncId, InPlaceCode, Operand, OperandSpan, Program, Role, Target, Terminator,
};
use afterlink_unwind::{Row, RowId};

/// The blocks that run in place of a call.
pub(super) struct Rewritten {
    /// Those behind the call.
    pub rest: BlockId,
    /// What leads in.
    pub entry: BlockId,
    /// By the body's parts and exits.
    pub parts: Vec<BlockId>,
    /// What a part that names its return address goes on with, by part.
    pub framed: Vec<Option<BlockId>>,
    pub exits: Vec<BlockId>,
    /// What leads into the callee's frames, by exit.
    pub crossings: Vec<Option<BlockId>>,
    /// Of an indirect call: what calls whom else it leads to.
    pub others: Option<BlockId>,
}

struct Piece {
    code: InPlaceCode,
    operands: Vec<Operand>,
    terminator: Terminator,
}

/// Where what is written.
struct Site<'s> {
    caller: FuncId,
    call: InputAddr,
    call_size: u32,
    /// Of an indirect call.
    question: Option<CallQuestion>,
    /// Whether another call comes back right there.
    is_behind_call: bool,
    forms: InPlaceForms,
    body: &'s Body,
    at_call: AtCall,
    ids: Rewritten,
}

/// Puts the body in place of the call of so many bytes at `at` in a block of the caller. `None` if unwinders could not be told; nothing has changed then.
pub(super) fn rewrite(
    program: &mut Program,
    caller: FuncId,
    (block, at, size): (BlockId, u32, u32),
    body: &Body,
) -> Option<Rewritten> {
    let forms = program.arch.in_place_forms()?;
    let function = &program.functions[caller];
    let call = function.blocks[block].input + u64::from(at);
    let question = program.arch.call_question(program.code.at(call, size as usize)?);
    let at_call = AtCall::find(program, caller, call, body.needs_place)?;
    let ids = numbers(body, question.is_some(), function.blocks.len() as u32);
    // Whatever leads there would be taken for a return, or for the call of all others.
    let is_taken = |place: InputAddr| place == call + u64::from(size) || question.is_some() && place == call;
    if body.exits.iter().any(|exit| is_taken(exit.address)) {
        return None;
    }
    let in_front = program.code.at(function.blocks[block].input, at as usize)?;
    let is_behind_call = program.arch.may_end_with_call(in_front);
    let site = Site { caller, call, call_size: size, question, is_behind_call, forms, body, at_call, ids };
    let pieces = site.pieces(program)?;
    let back = if body.needs_place { forms.give_room_back } else { forms.no_room };
    let function = &mut program.functions[caller];
    let rest = function.cut_around(block, at, size, back);
    debug_assert_eq!(rest, site.ids.rest, "blocks are numbered as they come");
    function.blocks[block].terminator = Terminator::FallThrough(site.ids.entry);
    for piece in pieces {
        function.add_in_place(piece.code, &piece.operands, piece.terminator);
    }
    Some(site.ids)
}

/// The numbers of new blocks, of which `first` is the first.
fn numbers(body: &Body, is_asked: bool, first: u32) -> Rewritten {
    let parts = first + 2..first + 2 + body.parts.len() as u32;
    let exits = parts.end..parts.end + body.exits.len() as u32;
    let others = is_asked.then_some(BlockId(exits.end));
    let mut next = exits.end + u32::from(is_asked);
    let mut number = |is_there: bool| {
        is_there.then(|| {
            next += 1;
            BlockId(next - 1)
        })
    };
    Rewritten {
        crossings: body.exits.iter().map(|exit| number(exit.depth > 0)).collect(),
        framed: body.parts.iter().map(|part| number(part.frame.is_some())).collect(),
        rest: BlockId(first),
        entry: BlockId(first + 1),
        parts: parts.map(BlockId).collect(),
        exits: exits.map(BlockId).collect(),
        others,
    }
}

impl Site<'_> {
    /// All of them, in the order of their numbers.
    fn pieces(&self, program: &mut Program) -> Option<Vec<Piece>> {
        let mut pieces = vec![self.entry(program)];
        let mut framed = Vec::new();
        for (part, behind) in self.body.parts.iter().zip(&self.ids.framed) {
            let mut piece = self.part(program, part)?;
            if let Some((start, behind)) = part.frame.zip(*behind) {
                framed.push(self.cut_at_frame(program, &mut piece, start, behind)?);
            }
            pieces.push(piece);
        }
        let exits = || self.body.exits.iter().zip(&self.ids.crossings);
        for (exit, crossing) in exits() {
            pieces.push(self.exit(program, exit, *crossing)?);
        }
        if self.ids.others.is_some() {
            pieces.push(self.others(program)?);
        }
        for (exit, _) in exits().filter(|(_, crossing)| crossing.is_some()) {
            pieces.push(self.crossing(program, exit)?);
        }
        pieces.extend(framed);
        Some(pieces)
    }

    fn code(&self, start: InputAddr, size: u32) -> InPlaceCode {
        InPlaceCode {
            call: self.call,
            start,
            size,
            copied: 0,
            added: Vec::new(),
            operands: OperandSpan::default(),
            rows: Vec::new(),
            ending: self.at_call.id(),
            back: self.ids.rest,
            names_back: None,
        }
    }

    fn has_room(&self) -> bool {
        self.body.needs_place
    }

    fn row_with_room(&self, program: &mut Program) -> RowId {
        program.rows.intern(&self.at_call.with_room())
    }

    fn in_callee(&self, program: &mut Program, callee: RowId) -> Option<RowId> {
        let row: Row = self.at_call.in_callee(&program.rows[callee])?;
        Some(program.rows.intern(&row))
    }

    fn entry(&self, program: &mut Program) -> Piece {
        let mut code = self.code(self.call, self.call_size);
        let (mut operands, first) = (Vec::new(), self.ids.parts[0]);
        let mut terminator = Terminator::FallThrough(first);
        if let Some((question, others)) = self.question.as_ref().zip(self.ids.others) {
            code.added.extend_from_slice(&question.code);
            let (encoding, target) =
                (Encoding::Relative32 { end: 4 }, Target::Code(self.body.callee, BlockId(0)));
            operands.push(Operand { at: question.field, encoding, role: Role::Address, target });
            let (condition, taken) = (question.other, Target::Block(others));
            terminator = Terminator::Branch { condition, taken, next: first };
        }
        if self.has_room() {
            code.added.extend_from_slice(self.forms.make_room);
            code.ending = self.row_with_room(program);
        }
        if code.added.is_empty() && self.is_behind_call {
            code.added.extend_from_slice(self.forms.no_room);
        }
        if !code.added.is_empty() {
            code.rows.push((0, self.at_call.id()));
        }
        Piece { code, operands, terminator }
    }

    fn part(&self, program: &mut Program, part: &Part) -> Option<Piece> {
        let mut code = self.code(part.start, part.size);
        code.copied = part.copied;
        for (at, row) in &part.rows {
            code.rows.push((*at, self.in_callee(program, *row)?));
        }
        code.ending = self.in_callee(program, part.ending)?;
        let terminator = match part.terminator {
            Terminator::FallThrough(next) => Terminator::FallThrough(self.block(Target::Block(next))?),
            Terminator::Jump(target) => Terminator::Jump(Target::Block(self.block(target)?)),
            Terminator::Branch { condition, taken, next } => Terminator::Branch {
                condition,
                taken: Target::Block(self.block(taken)?),
                next: self.block(Target::Block(next))?,
            },
            _ => Terminator::FallThrough(self.ids.rest),
        };
        let stays_inside = match terminator {
            Terminator::FallThrough(to) | Terminator::Jump(Target::Block(to)) => self.ids.parts.contains(&to),
            _ => true,
        };
        if part.ends_with_call && !stays_inside {
            code.added.extend_from_slice(self.forms.no_room);
            code.rows.push((part.copied, code.ending));
        }
        Some(Piece { code, operands: part.operands.clone(), terminator })
    }

    /// Cuts a part in two, in front of the instruction that sets the frame pointer; the first one names the return address. Gives the second one, which is to be
    /// the block `behind`.
    fn cut_at_frame(
        &self,
        program: &Program,
        piece: &mut Piece,
        FrameStart { at, depth }: FrameStart,
        behind: BlockId,
    ) -> Option<Piece> {
        let first = &mut piece.code;
        let (added, field) = program.arch.name_return_address(depth)?;
        let mut second = self.code(first.start + u64::from(at), first.size - at);
        (second.copied, second.ending) = (first.copied - at, first.ending);
        let row_there = first.rows.iter().rfind(|(start, _)| *start <= at)?.1;
        let later = first.rows.iter().filter(|(start, _)| *start > at).map(|(start, row)| (start - at, *row));
        second.rows = [(0, row_there)].into_iter().chain(later).collect();
        second.added = std::mem::replace(&mut first.added, added);
        first.rows.retain(|(start, _)| *start < at);
        first.rows.push((at, row_there));
        (first.size, first.copied, first.ending) = (at, at, row_there);
        first.names_back = Some(at + field);
        // Invariant: operands of a block ascend.
        let later = piece.operands.partition_point(|operand| operand.at < at);
        let mut operands = piece.operands.split_off(later);
        operands.iter_mut().for_each(|operand| operand.at -= at);
        let terminator = std::mem::replace(&mut piece.terminator, Terminator::FallThrough(behind));
        Some(Piece { code: second, operands, terminator })
    }

    /// The new block that stands for a target of the callee.
    fn block(&self, target: Target) -> Option<BlockId> {
        let part = match target {
            Target::Block(block) => self.body.part_of(block),
            _ => None,
        };
        match part {
            Some(part) => Some(self.ids.parts[part]),
            None => Some(self.ids.exits[self.body.exit_to(target)?]),
        }
    }

    fn exit(&self, program: &mut Program, exit: &Exit, crossing: Option<BlockId>) -> Option<Piece> {
        let mut code = self.code(exit.address, 0);
        let target = match crossing {
            Some(crossing) => {
                code.rows.push((0, self.in_callee(program, exit.row?)?));
                // Unwinders look one byte in front of where a call comes back, and there the frame is gone.
                code.rows.push((1, self.at_call.id()));
                Target::Block(crossing)
            }
            None => {
                self.give_room_back(program, &mut code);
                exit.to
            }
        };
        let at = code.added.len() as u32 + self.forms.call_field;
        let operand = Operand { at, encoding: Encoding::Relative32 { end: 4 }, role: Role::Call, target };
        Some(self.call(program, code, self.forms.call, vec![operand]))
    }

    /// The call of whom else the indirect call leads to.
    fn others(&self, program: &mut Program) -> Option<Piece> {
        let mut code = self.code(self.call, 0);
        self.give_room_back(program, &mut code);
        let call = program.code.at(self.call, self.call_size as usize)?.to_vec();
        Some(self.call(program, code, &call, Vec::new()))
    }

    /// The stack becomes what it was at the call.
    fn give_room_back(&self, program: &mut Program, code: &mut InPlaceCode) {
        if self.has_room() {
            code.rows.push((0, self.row_with_room(program)));
            code.added.extend_from_slice(self.forms.give_room_back);
        }
        code.rows.push((code.added.len() as u32, self.at_call.id()));
    }

    /// Control leaves by this call, and goes on behind the code.
    fn call(
        &self,
        program: &mut Program,
        mut code: InPlaceCode,
        call: &[u8],
        operands: Vec<Operand>,
    ) -> Piece {
        code.added.extend_from_slice(call);
        if self.has_room() {
            // It is given back behind the code.
            code.added.extend_from_slice(self.forms.make_room);
            code.ending = self.row_with_room(program);
        }
        Piece { code, operands, terminator: Terminator::Jump(Target::Block(self.ids.rest)) }
    }

    fn crossing(&self, program: &mut Program, exit: &Exit) -> Option<Piece> {
        let mut code = self.code(exit.address, 0);
        code.added = program.arch.put_return_address(exit.depth);
        let row = with_address_on_top(&program.rows[exit.row?], exit.depth)?;
        code.rows.push((0, program.rows.intern(&row)));
        code.ending = exit.row?;
        debug_assert!(self.caller != self.body.callee, "no function runs in itself");
        Some(Piece { code, operands: Vec::new(), terminator: Terminator::Jump(exit.to) })
    }
}
