//! What becomes of the addresses of a function's labels: from each instruction that makes one, forward over the control
//! flow, through registers and words of the stack frame, until nothing holds it any more.

use super::Leads;
use super::body::{Body, Slot, changes};
use crate::code::Code;
use crate::code::event::EventKind;
use afterlink_core::InputAddr;
use afterlink_isa::semantics::{Operation, Register, Semantics};
use afterlink_program::{BlockId, Function};
use std::collections::BTreeSet;

/// Whether the function does anything with the address of one of its labels but to store it, move it and jump to it. Its
/// entry is an address that others may have, and a function that jumps indirectly must not compute with it.
pub(super) fn are_computed_with(code: &Code, function: &Function, leads: &[(BlockId, Leads)]) -> bool {
    let mut body = None;
    let pieces = || function.ranges.iter().filter_map(|r| code.piece_at(r.start));
    let jumps = pieces().any(|piece| code.scans[piece].has_indirect_jump);
    for range in &function.ranges {
        let Some(piece) = code.piece_at(range.start) else { continue };
        for event in code.scans[piece].events.iter() {
            let is_entry = event.target == function.entry();
            let is_label = event.takes_address()
                && function.ranges.iter().any(|r| r.contains(event.target))
                && (jumps || !is_entry);
            if is_label {
                let body = body.get_or_insert_with(|| Body::new(code, function, leads.to_vec()));
                let at = range.start + u64::from(event.offset);
                if Follower::new(body, is_entry).computes_with(at, event.kind, event.target) {
                    return true;
                }
            }
        }
    }
    false
}

/// One register from one instruction on; none: what that instruction has in its memory operand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Holder {
    block: BlockId,
    index: usize,
    register: Option<Register>,
}

struct Follower<'l, 'b, 'a> {
    body: &'l Body<'b, 'a>,
    /// The address is that of the whole function.
    is_entry: bool,
    seen: BTreeSet<Holder>,
    waiting: Vec<Holder>,
    slots: BTreeSet<Slot>,
}

impl<'l, 'b, 'a> Follower<'l, 'b, 'a> {
    fn new(body: &'l Body<'b, 'a>, is_entry: bool) -> Self {
        let (seen, slots) = (BTreeSet::new(), BTreeSet::new());
        Self { body, is_entry, seen, waiting: Vec::new(), slots }
    }

    /// Whether the address of `label`, which the instruction at `at` makes, is computed with.
    fn computes_with(mut self, at: InputAddr, kind: EventKind, label: InputAddr) -> bool {
        let Some(block) = self.body.function.block_covering(at) else { return true };
        let insts = self.body.insts(block);
        let Some(index) = insts.iter().position(|inst| inst.address == at.get()) else { return true };
        let Some(made) = self.made_in(&insts[index], kind, label) else { return true };
        if let Some(register) = made {
            self.follow(block, index + 1, register);
        }
        while let Some(holder) = self.waiting.pop() {
            if self.run(holder) {
                return true;
            }
        }
        false
    }

    /// The register in which the instruction leaves the label, none if it stores it; `None` if it computes with it.
    fn made_in(&mut self, inst: &Semantics, kind: EventKind, label: InputAddr) -> Option<Option<Register>> {
        let is_plain = inst.memory.is_none_or(|m| m.base.is_none() && m.index.is_none() && !m.is_relative);
        let target = inst.operands[0].register();
        match inst.operation {
            Operation::Address if kind == EventKind::Lea || is_plain => Some(target),
            Operation::Push if !inst.is_memory(0) => Some(None),
            // Whether a pointer leads to this very function.
            Operation::Compare if self.is_entry => Some(None),
            Operation::Move if inst.operands[1].register().is_some() || inst.is_memory(1) => None,
            Operation::Move if target.is_some() => Some(target),
            // The field may also be the displacement.
            Operation::Move if inst.operands[1].number().is_some_and(|n| n as u32 == label.get() as u32) => {
                self.store(inst);
                Some(None)
            }
            _ => None,
        }
    }

    fn follow(&mut self, block: BlockId, index: usize, register: Register) {
        let holder = Holder { block, index, register: Some(register) };
        if self.seen.insert(holder) {
            self.waiting.push(holder);
        }
    }

    /// Follows what the memory operand of `inst`, which the label was stored in, is loaded into.
    fn store(&mut self, inst: &Semantics) {
        let Some(slot) = self.body.slot(inst).filter(|slot| self.slots.insert(*slot)) else { return };
        for &(block, index) in self.body.naming(slot) {
            // Invariant: no register of code holds it; `run` finds the load at its first step.
            self.waiting.push(Holder { block, index, register: None });
        }
    }

    /// Follows a register to the end of its block, or to where it holds something else. True if it is computed with.
    fn run(&mut self, from: Holder) -> bool {
        let Holder { block, index, register } = from;
        let body = self.body;
        let Some(register) = register else { return self.loads(block, index) };
        let convention = body.convention();
        for (i, inst) in body.insts(block).iter().enumerate().skip(index) {
            if inst.operation == Operation::Call {
                let is_used =
                    convention.arguments.contains(register) || inst.operands[0].register() == Some(register);
                if is_used && !self.is_entry {
                    return true;
                }
                if !convention.kept.contains(register) {
                    return false;
                }
                if let Some(pad) = body.landing_pad_of(inst) {
                    self.follow(pad, 0, register);
                }
            }
            if inst.reads.contains(register) && !self.passes_on(block, i, register) {
                return true;
            }
            if changes(convention, inst, register) && inst.operation != Operation::Select {
                return false;
            }
        }
        body.for_each_successor(block, |to| self.follow(to, 0, register));
        false
    }

    /// What the instruction does that has the label in its memory operand. True if it computes with it.
    fn loads(&mut self, block: BlockId, index: usize) -> bool {
        let inst = &self.body.insts(block)[index];
        let target = inst.operands[0].register();
        let is_loaded = match inst.operation {
            Operation::Move | Operation::MoveWord => inst.is_memory(1),
            Operation::Select => true,
            // Its address alone, and other things stored there.
            Operation::Address | Operation::Jump | Operation::Push | Operation::MoveVector => false,
            _ => return true,
        };
        if let Some(target) = target.filter(|_| is_loaded) {
            self.follow(block, index + 1, target);
        }
        false
    }

    /// Whether the instruction, which reads `register`, only moves it on; what then holds it is followed.
    fn passes_on(&mut self, block: BlockId, index: usize, register: Register) -> bool {
        let inst = &self.body.insts(block)[index];
        if inst.memory.is_some_and(|m| [m.base, m.index].contains(&Some(register))) {
            return false;
        }
        let is_narrow = inst.operands[1].register() == Some(register) && inst.operands[1].word().is_none();
        match inst.operation {
            Operation::Compare | Operation::Test | Operation::Call => return self.is_entry,
            Operation::Jump | Operation::Push | Operation::Return => return true,
            // Half of an address is a number.
            Operation::Move if is_narrow => return false,
            Operation::Move | Operation::MoveWord | Operation::MoveVector | Operation::Select => {}
            _ => return false,
        }
        if inst.is_memory(0) {
            self.store(inst);
        } else if let Some(target) = inst.operands[0].register().filter(|target| *target != register) {
            self.follow(block, index + 1, target);
        }
        true
    }
}
