//! Rule for a callee's blocks in place of an indirect call: they run only if the call would have led to the callee.
//!
//! What leads in asks for that. The word that the call reads is compared with the address of the callee's entry in the output, so where they are
//! equal the call would go on there, and that is the entry of the callee of the input. Otherwise the call is made as it was: a way out of the context to
//! the call itself, which needs no frame. The question changes flags, which nobody passes to a function, and a register:
//!
//! - the function around the call does not name it, and nobody calls that one right behind an instruction that writes the register, with nothing in between
//!   that reads it;
//! - the callee does not read it before it is written: no way from its entry leads to that without a call;
//! - no function that moved calls, or leaves, through a pointer right behind an instruction that writes it, and none so calls a function that reads it
//!   first: each for itself compilers do by accident, with what turns out not to be needed, or was never set;
//! - no flag is read behind the call that nothing behind the call has set;
//! - nobody looks the call up by its address: the question reads its word in front of it.

use crate::address_map::contexts::Context;
use crate::address_map::flow;
use crate::address_map::places::{Block, MovedFunction, Place};
use crate::addresses::jumps::Jumps;
use crate::check::Check;
use crate::input::code::{Inst, Kind};
use crate::input::ranges::{holds, merged};
use crate::moved_code::depths::Depths;
use crate::moved_code::walk::Walk;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_isa::Flow;
use afterlink_isa::judgement::{Asked, Reader};
use rayon::prelude::*;
use rustc_hash::FxHashSet;

type Checked<T = ()> = Result<T, Box<Finding>>;

impl Check<'_, '_> {
    /// The question in front of an indirect call's context, if the piece that leads in starts with one.
    pub fn asked(&self, entry: &Block) -> Option<Asked> {
        let call = self.code.at(entry.input).filter(|call| call.kind == Kind::IndirectCall)?;
        let call = self.code.bytes(entry.input, usize::from(call.len))?;
        let asked = self.code.judgement.asks(self.places.output_bytes(entry.output), entry.output, call)?;
        (asked.size <= entry.output_size as usize).then_some(asked)
    }

    /// Whose blocks run in place of a context's call: whom it calls, or whom its question asks for.
    pub fn callee(&self, context: &Context) -> Option<u64> {
        let call = self.code.at(context.call)?;
        if call.kind == Kind::Call {
            return Some(call.target(&self.code, context.call));
        }
        let asked = self.asked(context.entry.as_ref()?)?.function;
        // One of the blocks begins at the entry, or behind the mark there.
        let starts = context.parts.iter().flat_map(|part| [part.input, part.input.saturating_sub(MARK)]);
        let mut entries = starts.filter(|&start| self.code.holds(start));
        entries.find(|&start| self.place(start) == Place::Moved(asked))
    }
}

/// Bytes of the mark that may stand at an entry.
const MARK: u64 = 4;

impl Walk<'_, '_, '_> {
    /// The indirect call that a block of the input is, if it is one alone, and nothing in it is a field.
    pub(super) fn asked_call(&self, block: &Block) -> Option<Inst> {
        let code = &self.check.code;
        let call = code.at(block.input).filter(|inst| u32::from(inst.len) == block.input_size)?;
        let has_fields =
            call.field().is_some() || !self.check.references.fields_in(block.input, call.len).is_empty();
        (call.kind == Kind::IndirectCall && !has_fields).then_some(*call)
    }

    /// Checks how control parts behind a question: for the callee, or for the call itself.
    pub(super) fn parts(mut self, callee: u64, context: u32) -> Checked {
        let judgement = self.check.code.judgement;
        let decoded =
            judgement.decode(self.bytes()).filter(|d| judgement.is_plain_branch(self.bytes(), d.len));
        let Some((Flow::Branch(condition, displacement), len)) = decoded.map(|d| (d.flow, d.len)) else {
            return Err(
                self.finding(FindingKind::Instruction, "nothing is done about what is asked of a call")
            );
        };
        self.output += u64::from(len);
        let taken = self.output.wrapping_add(displacement as u64);
        let (is, other) = match [condition.0, condition.0 ^ 1].map(|condition| judgement.is_yes(condition)) {
            [true, _] => (taken, self.output),
            [_, true] => (self.output, taken),
            _ => {
                let what = "the branch behind a question tests another condition";
                return Err(self.finding(FindingKind::Instruction, what));
            }
        };
        self.leads(callee, is)?;
        let own = &self.check.places.contexts.all[context as usize];
        let mut exits = own.exits_to(own.call);
        if !exits.any(|exit| flow::leads_to(&self.check.places, other, exit.output)) {
            let what = "whom else the call leads to is not called";
            return Err(self.finding(FindingKind::Target, what));
        }
        self.padding(true)
    }

    /// Checks the way out by which the call is made as it was.
    pub(super) fn others(mut self, context: u32, depths: &Depths) -> Checked {
        if depths.comes_to(context, self.input) {
            let what = "the callee goes on at the call in place of which it runs";
            return Err(self.finding(FindingKind::Target, what));
        }
        let has_room = self.check.has_room(context);
        self.gives_room_back(has_room)?;
        let Some(call) = self.check.code.at(self.input) else {
            return Err(self.finding(FindingKind::Map, "no call of the input is there"));
        };
        self.context = None;
        self.same_inst(call)?;
        self.comes_back_to(context, has_room)
    }
}

/// What is wrong with the question of a context whose call is an indirect one, in the function `around` it.
pub(super) fn fault(
    check: &Check,
    passed: &Passed,
    context: &Context,
    (around, callee): (&MovedFunction, &MovedFunction),
) -> Option<&'static str> {
    if check.code.is_observed(context.call) {
        return Some("a call has a probe that something else stands in place of");
    }
    let is_handed = passed.to.binary_search(&around.entry).is_ok();
    if passed.is_known || is_handed || takes(check, callee.entry, &code_of(check, callee)) {
        return Some("a question changes a register in which a value may be passed to a function");
    }
    if names(check, around) {
        return Some("a question changes a register that the function around the call may keep something in");
    }
    reads_flags(check, context.call_end)
        .then_some("a flag is read behind a call in front of which a question changes it")
}

/// What is passed in the register that questions change.
pub(super) struct Passed {
    /// Something is.
    is_known: bool,
    /// Functions that are called right behind an instruction that writes it, ascending.
    to: Vec<u64>,
}

impl Passed {
    pub fn find(check: &Check, jumps: &Jumps) -> Self {
        let functions = check.places.functions.par_iter().filter(|function| function.folded_into.is_none());
        let handed: Vec<Option<u64>> =
            functions.flat_map_iter(|function| handed(check, function, &jumps.leaving)).collect();
        let mut to: Vec<u64> = handed.iter().copied().flatten().collect();
        to.sort_unstable();
        to.dedup();
        let mut moved = check.places.functions.iter().filter(|f| to.binary_search(&f.entry).is_ok());
        let is_known = handed.contains(&None)
            || moved.any(|function| takes(check, function.entry, &code_of(check, function)));
        Self { is_known, to }
    }
}

/// Where a function leads right behind an instruction that writes the register, and nothing in between has read it; `None` through a pointer. `leaving` are
/// indirect jumps that leave their function, ascending.
fn handed(check: &Check, function: &MovedFunction, leaving: &[u64]) -> Vec<Option<u64>> {
    let code = &check.code;
    let own = code_of(check, function);
    let mut reader = Reader::new(code.judgement);
    let mut found = Vec::new();
    for &(start, end) in &own {
        let (mut at, mut is_unread) = (start, false);
        for inst in &code.insts[code.range(start, end)] {
            let bytes = code.bytes(at, usize::from(inst.len)).unwrap_or(&[]);
            let (reads, writes) = reader.touches_scratch(bytes).unwrap_or((true, false));
            is_unread &= !reads;
            let to = match inst.kind {
                Kind::Call => Some(Some(inst.target(code, at))),
                Kind::Jump | Kind::Branch | Kind::ShortBranch => {
                    Some(Some(inst.target(code, at))).filter(|to| to.is_some_and(|to| !holds(&own, to)))
                }
                Kind::IndirectCall => Some(None),
                Kind::IndirectJump => leaving.binary_search(&at).is_ok().then_some(None),
                _ => None,
            };
            found.extend(to.filter(|_| is_unread));
            is_unread = (writes || is_unread && to.is_none()) && !inst.ends_block();
            at += u64::from(inst.len);
        }
    }
    found
}

/// Whether a function names the register.
fn names(check: &Check, function: &MovedFunction) -> bool {
    let code = &check.code;
    let mut reader = Reader::new(code.judgement);
    code_of(check, function).into_iter().any(|(start, end)| {
        let mut at = start;
        code.insts[code.range(start, end)].iter().any(|inst| {
            let bytes = code.bytes(at, usize::from(inst.len)).unwrap_or(&[]);
            at += u64::from(inst.len);
            reader.touches_scratch(bytes) != Some((false, false))
        })
    })
}

/// Whether flags are read at `address` or behind it, before they are changed and control leaves.
fn reads_flags(check: &Check, mut address: u64) -> bool {
    while let Some(inst) = check.code.at(address) {
        let bytes = check.code.bytes(address, usize::from(inst.len)).unwrap_or(&[]);
        let Some((reads, changes)) = check.code.judgement.flags(bytes) else { return true };
        if reads || changes || inst.is_call() || inst.is_trap() || inst.ends_block() {
            return reads && !inst.is_call();
        }
        address += u64::from(inst.len);
    }
    false
}

/// A function's code in the input: start and end of each run, ascending.
fn code_of(check: &Check, function: &MovedFunction) -> Vec<(u64, u64)> {
    let own = check.places.blocks[function.blocks.clone()].iter().filter(|block| !block.is_added());
    let mut own: Vec<(u64, u64)> = own.map(|block| (block.input, block.input_end())).collect();
    own.sort_unstable();
    merged(own)
}

/// Whether the register is read before it is written on a way from `entry` on that stays in the function's code and calls nothing.
fn takes(check: &Check, entry: u64, own: &[(u64, u64)]) -> bool {
    let code = &check.code;
    let mut reader = Reader::new(code.judgement);
    let (mut seen, mut open) = (FxHashSet::default(), vec![entry]);
    while let Some(start) = open.pop() {
        let mut at = start;
        while holds(own, at)
            && let Some(inst) = code.at(at)
            && seen.insert(at)
        {
            let bytes = code.bytes(at, usize::from(inst.len)).unwrap_or(&[]);
            let (reads, writes) = reader.touches_scratch(bytes).unwrap_or((true, false));
            if reads {
                return true;
            }
            if matches!(inst.kind, Kind::Jump | Kind::Branch | Kind::ShortBranch) {
                open.push(inst.target(code, at));
            }
            let goes_on = matches!(inst.kind, Kind::Next | Kind::Branch | Kind::ShortBranch);
            if writes || !goes_on {
                break;
            }
            at += u64::from(inst.len);
        }
    }
    false
}
