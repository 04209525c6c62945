//! What becomes of the addresses of a function's labels: from each instruction that makes one, forward over the control
//! flow, through registers and words of the stack frame, until nothing holds it any more.

use super::Leads;
use super::body::{Body, Slot, changes, is_conditional_move, is_memory};
use crate::code::{Code, takes_address};
use crate::scan::EventKind;
use afterlink_core::InputAddr;
use afterlink_isa::x86_64::iced_x86::{
    Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use afterlink_program::{BlockId, Function};
use std::collections::BTreeSet;

/// Registers in which a call may be given something.
const ARGUMENTS: [Register; 6] =
    [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9];

/// Whether the function does anything with the address of one of its labels but to store it, move it and jump to it. Its
/// entry is an address that others may have, and a function that jumps indirectly must not compute with it.
pub(super) fn are_computed_with(code: &Code, function: &Function, leads: &[(BlockId, Leads)]) -> bool {
    let mut body = None;
    let pieces = || function.ranges.iter().filter_map(|r| code.piece_at(r.start));
    let jumps = pieces().any(|piece| code.scans[piece].has_indirect_jump);
    for range in &function.ranges {
        let Some(piece) = code.piece_at(range.start) else { continue };
        for event in &code.scans[piece].events {
            let is_entry = event.target == function.entry();
            let is_label = takes_address(event.kind)
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

/// One register from one instruction on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Holder {
    block: BlockId,
    index: usize,
    register: Register,
}

struct Follower<'l, 'b, 'a> {
    body: &'l Body<'b, 'a>,
    /// The address is that of the whole function.
    is_entry: bool,
    factory: InstructionInfoFactory,
    seen: BTreeSet<Holder>,
    waiting: Vec<Holder>,
    slots: BTreeSet<Slot>,
}

impl<'l, 'b, 'a> Follower<'l, 'b, 'a> {
    fn new(body: &'l Body<'b, 'a>, is_entry: bool) -> Self {
        let factory = InstructionInfoFactory::new();
        let (seen, slots) = (BTreeSet::new(), BTreeSet::new());
        Self { body, is_entry, factory, seen, waiting: Vec::new(), slots }
    }

    /// Whether the address of `label`, which the instruction at `at` makes, is computed with.
    fn computes_with(mut self, at: InputAddr, kind: EventKind, label: InputAddr) -> bool {
        let Some(block) = self.body.function.block_covering(at) else { return true };
        let insts = self.body.insts(block);
        let Some(index) = insts.iter().position(|inst| inst.ip() == at.get()) else { return true };
        let Some(register) = self.made_in(&insts[index], kind, label) else { return true };
        if register != Register::None {
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
    fn made_in(&mut self, inst: &Instruction, kind: EventKind, label: InputAddr) -> Option<Register> {
        let is_plain = inst.memory_base() == Register::None && inst.memory_index() == Register::None;
        match inst.mnemonic() {
            Mnemonic::Lea if kind == EventKind::Lea || is_plain => Some(inst.op0_register().full_register()),
            Mnemonic::Push if !is_memory(inst, 0) => Some(Register::None),
            // Whether a pointer leads to this very function.
            Mnemonic::Cmp if self.is_entry => Some(Register::None),
            Mnemonic::Mov if inst.op1_kind() == OpKind::Register || is_memory(inst, 1) => None,
            Mnemonic::Mov if inst.op0_kind() == OpKind::Register => Some(inst.op0_register().full_register()),
            // The field may also be the displacement.
            Mnemonic::Mov if inst.immediate(1) & 0xffff_ffff == label.get() & 0xffff_ffff => {
                self.store(inst);
                Some(Register::None)
            }
            _ => None,
        }
    }

    fn follow(&mut self, block: BlockId, index: usize, register: Register) {
        let holder = Holder { block, index, register: register.full_register() };
        if self.seen.insert(holder) {
            self.waiting.push(holder);
        }
    }

    /// Follows what the memory operand of `inst`, which the label was stored in, is loaded into.
    fn store(&mut self, inst: &Instruction) {
        let Some(slot) = self.body.slot(inst).filter(|slot| self.slots.insert(*slot)) else { return };
        for block in self.body.function.blocks.ids() {
            for (index, inst) in self.body.insts(block).iter().enumerate() {
                if self.body.slot(inst) == Some(slot) {
                    // Invariant: no register of code holds it; `run` finds the load at its first step.
                    self.waiting.push(Holder { block, index, register: Register::None });
                }
            }
        }
    }

    /// Follows a register to the end of its block, or to where it holds something else. True if it is computed with.
    fn run(&mut self, from: Holder) -> bool {
        let Holder { block, index, register } = from;
        let body = self.body;
        if register == Register::None {
            return self.loads(block, index);
        }
        for (i, inst) in body.insts(block).iter().enumerate().skip(index) {
            if inst.mnemonic() == Mnemonic::Call {
                let handed_on = !self.is_entry && ARGUMENTS.contains(&register);
                if handed_on || inst.op0_register().full_register() == register {
                    return true;
                }
                if is_scratch(register) {
                    return false;
                }
            }
            if self.reads(inst, register) && !self.passes_on(block, i, register) {
                return true;
            }
            if changes(&mut self.factory, inst, register) && !is_conditional_move(inst) {
                return false;
            }
        }
        body.for_each_successor(block, |to| self.follow(to, 0, register));
        false
    }

    /// What the instruction does that has the label in its memory operand. True if it computes with it.
    fn loads(&mut self, block: BlockId, index: usize) -> bool {
        let inst = &self.body.insts(block)[index];
        match inst.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movq | Mnemonic::Vmovq if is_memory(inst, 1) => {
                self.follow(block, index + 1, inst.op0_register());
                false
            }
            // Its address alone, and other things stored there.
            Mnemonic::Lea | Mnemonic::Mov | Mnemonic::Movq | Mnemonic::Vmovq => false,
            Mnemonic::Jmp | Mnemonic::Push => false,
            _ if is_conditional_move(inst) => {
                self.follow(block, index + 1, inst.op0_register());
                false
            }
            _ => !is_vector_move(inst.mnemonic()),
        }
    }

    fn reads(&mut self, inst: &Instruction, register: Register) -> bool {
        self.factory.info(inst).used_registers().iter().any(|used| {
            let is_read = !matches!(
                used.access(),
                OpAccess::None | OpAccess::Write | OpAccess::CondWrite | OpAccess::NoMemAccess
            );
            is_read && used.register().full_register() == register
        })
    }

    /// Whether the instruction, which reads `register`, only moves it on; what then holds it is followed.
    fn passes_on(&mut self, block: BlockId, index: usize, register: Register) -> bool {
        let inst = &self.body.insts(block)[index];
        let in_address =
            [inst.memory_base(), inst.memory_index()].iter().any(|r| r.full_register() == register);
        if in_address {
            return false;
        }
        match inst.mnemonic() {
            Mnemonic::Cmp | Mnemonic::Test => return self.is_entry,
            Mnemonic::Jmp | Mnemonic::Push | Mnemonic::Ret => return true,
            Mnemonic::Xchg | Mnemonic::Call => return false,
            Mnemonic::Mov => {}
            mnemonic if is_vector_move(mnemonic) => {}
            _ if is_conditional_move(inst) => {}
            _ => return false,
        }
        if is_memory(inst, 0) {
            self.store(inst);
        } else if inst.op0_register().full_register() != register {
            self.follow(block, index + 1, inst.op0_register());
        }
        true
    }
}

/// Whether a called function may change the register.
fn is_scratch(register: Register) -> bool {
    use Register as R;
    !matches!(register, R::RBX | R::RBP | R::R12 | R::R13 | R::R14 | R::R15)
}

/// Moves words to, from and between vector registers.
fn is_vector_move(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(mnemonic, M::Movq | M::Vmovq | M::Pinsrq | M::Vpinsrq | M::Punpcklqdq | M::Vpunpcklqdq)
        || matches!(
            mnemonic,
            M::Movaps | M::Movups | M::Movdqa | M::Movdqu | M::Movhps | M::Movlhps | M::Unpcklpd
        )
        || matches!(mnemonic, M::Vmovaps | M::Vmovups | M::Vmovdqa | M::Vmovdqu | M::Vmovhps | M::Vmovlhps)
        || matches!(mnemonic, M::Vinserti128 | M::Vinsertf128 | M::Movapd | M::Movupd | M::Movhpd)
}
