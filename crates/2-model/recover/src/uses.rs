//! What code does with a function's address right behind where it takes it: calls it, stores it, hands it on; or
//! works out how far it is from elsewhere, as whoever copies code does (`memcpy(page, f, g - f)`), reads the function's bytes,
//! or asks which of two comes first. Then the function stays where it is.
//!
//! Registers and words of the stack frame are followed along the straight path for a few instructions. What is computed
//! later, or elsewhere, is not seen.

use crate::code::{Code, takes_address};
use crate::scan::Event;
use afterlink_core::{InputAddr, Refusal};
use afterlink_isa::x86_64::full;
use afterlink_isa::x86_64::iced_x86::{
    ConditionCode, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use rayon::prelude::*;

/// Instructions to look at.
const WINDOW: usize = 24;

/// What is wrong with which code: all pieces from the first address to the second.
type Fault = (InputAddr, InputAddr, Refusal);

/// The instructions that take the address of a function's entry: their pieces and events.
pub(crate) fn taking(code: &Code) -> Vec<(usize, Event)> {
    let pieces = (0..code.pieces.len()).into_par_iter();
    let taking = pieces.flat_map_iter(|piece| {
        let events = code.scans[piece].events.iter();
        let events = events.filter(|e| takes_address(e.kind) && code.is_entry(e.target));
        events.map(move |event| (piece, *event))
    });
    taking.collect()
}

pub(crate) fn refuse(code: &mut Code, taking: &[(usize, Event)]) {
    let faults: Vec<Fault> = taking
        .par_iter()
        .map_init(InstructionInfoFactory::new, |factory, (piece, event)| follow(code, factory, *piece, event))
        .flatten_iter()
        .collect();
    for (low, high, reason) in faults {
        let first = code.pieces.partition_point(|p| p.range.end() <= low);
        let last = code.pieces.partition_point(|p| p.range.start <= high);
        (first..last).for_each(|piece| code.refuse(piece, reason));
    }
}

fn follow(code: &Code, factory: &mut InstructionInfoFactory, piece: usize, event: &Event) -> Option<Fault> {
    let (bytes, start) = (code.bytes(piece), code.pieces[piece].range.start);
    let mut holders = Holders { code, piece, registers: Vec::new(), slots: Vec::new(), compared: None };
    let mut at = event.offset as usize;
    for _ in 0..WINDOW {
        let inst = bytes.get(at..).and_then(|b| full(b, (start + at as u64).get()))?;
        if let Some(fault) = holders.step(factory, &inst) {
            return Some(fault);
        }
        at += inst.len();
        let goes_on = matches!(
            inst.flow_control(),
            FlowControl::Next
                | FlowControl::ConditionalBranch
                | FlowControl::Call
                | FlowControl::IndirectCall
        );
        if !goes_on || holders.is_empty() {
            return None;
        }
    }
    None
}

/// Who holds a function's address.
struct Holders<'h, 'i, 'a> {
    code: &'h Code<'i, 'a>,
    piece: usize,
    registers: Vec<(Register, InputAddr)>,
    slots: Vec<((Register, u64), InputAddr)>,
    /// What the last comparison was between.
    compared: Option<(InputAddr, InputAddr)>,
}

impl Holders<'_, '_, '_> {
    fn is_empty(&self) -> bool {
        self.registers.is_empty() && self.slots.is_empty() && self.compared.is_none()
    }

    fn held(&self, register: Register) -> Option<InputAddr> {
        let whole = register.full_register();
        self.registers.iter().find(|(r, _)| *r == whole).map(|(_, address)| *address)
    }

    /// The function whose address `inst` makes or has as an operand.
    fn named(&self, inst: &Instruction) -> Option<InputAddr> {
        let offset = InputAddr(inst.ip()).since(self.code.pieces[self.piece].range.start) as u32;
        let events = self.code.scans[self.piece].events_in(offset, offset + 1).iter();
        let mut names = events.filter(|e| takes_address(e.kind)).map(|e| e.target);
        names.find(|&target| self.code.is_entry(target))
    }

    /// Takes note of one instruction.
    fn step(&mut self, factory: &mut InstructionInfoFactory, inst: &Instruction) -> Option<Fault> {
        let named = self.named(inst);
        if inst.mnemonic() == Mnemonic::Nop {
            return None;
        }
        let in_memory = [inst.memory_base(), inst.memory_index()].into_iter().find_map(|r| self.held(r));
        let read = in_memory.or(named.filter(|&address| is_displacement(inst, address)));
        if let Some(address) = read.filter(|_| inst.mnemonic() != Mnemonic::Lea) {
            return Some((address, address, Refusal::ComputedAddress));
        }
        // Of three operands the first is only written.
        let first = u32::from(inst.op_count() == 3);
        let reads = |o: u32| inst.op_count() > o && inst.op_kind(o) == OpKind::Register;
        let operands = [first, 1].map(|o| reads(o).then(|| self.held(inst.op_register(o))).flatten());
        let addresses = operands.into_iter().flatten().chain(named);
        let span = addresses.map(|a| (a, a)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        if let Some((low, high)) = span.filter(|_| is_difference(inst, named.is_some())) {
            return Some((low, high, Refusal::ComputedAddress));
        }
        let asks = asks_order(inst.condition_code()) || inst.mnemonic() == Mnemonic::Sbb;
        if let Some((low, high)) = self.compared.filter(|_| asks) {
            return Some((low, high, Refusal::Ordered));
        }
        if inst.mnemonic() == Mnemonic::Cmp {
            self.compared = span;
            return None;
        }
        self.carry(factory, inst, named);
        None
    }

    /// Who holds what behind `inst`.
    fn carry(&mut self, factory: &mut InstructionInfoFactory, inst: &Instruction, named: Option<InputAddr>) {
        let slot = (matches!(inst.memory_base(), Register::RSP | Register::RBP)
            && inst.memory_index() == Register::None)
            .then(|| (inst.memory_base(), inst.memory_displacement64()));
        let is_move = inst.mnemonic() == Mnemonic::Mov;
        let source = match (is_move, named) {
            (_, Some(named)) if is_move || inst.mnemonic() == Mnemonic::Lea => Some(named),
            (true, _) if inst.op1_kind() == OpKind::Register => self.held(inst.op1_register()),
            (true, _) if inst.op1_kind() == OpKind::Memory => {
                slot.and_then(|slot| self.slots.iter().find(|(s, _)| *s == slot).map(|(_, a)| *a))
            }
            _ => None,
        };
        if matches!(inst.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
            const KEPT: [Register; 6] =
                [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];
            self.registers.retain(|(r, _)| KEPT.contains(r));
            self.compared = None;
        }
        if inst.rflags_modified() != 0 {
            self.compared = None;
        }
        for used in factory.info(inst).used_registers() {
            if matches!(used.access(), OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite) {
                self.registers.retain(|(r, _)| *r != used.register().full_register());
            }
        }
        let to_memory = inst.op_count() > 0 && inst.op0_kind() == OpKind::Memory;
        if let Some(slot) = slot.filter(|_| is_move && to_memory) {
            self.slots.retain(|(s, _)| *s != slot);
            self.slots.extend(source.map(|address| (slot, address)));
        } else if let Some(address) = source.filter(|_| inst.op0_kind() == OpKind::Register) {
            self.registers.push((inst.op0_register().full_register(), address));
        }
    }
}

/// Whether `inst` works out a distance from the address that a register, or its own operand (`names`), has. What is added to
/// an address, or masked, goes where the function goes.
fn is_difference(inst: &Instruction, names: bool) -> bool {
    let is_subtraction = matches!(inst.mnemonic(), Mnemonic::Sub | Mnemonic::Sbb)
        && (names || (0..2).all(|o| matches!(inst.op_kind(o), OpKind::Register | OpKind::Memory)));
    let is_same = inst.op1_kind() == OpKind::Register && inst.op0_register() == inst.op1_register();
    is_subtraction && !is_same || matches!(inst.mnemonic(), Mnemonic::Neg | Mnemonic::Not)
}

/// Whether `address` stands in a memory operand, and is no immediate.
fn is_displacement(inst: &Instruction, address: InputAddr) -> bool {
    let memory = (0..inst.op_count()).any(|o| inst.op_kind(o) == OpKind::Memory);
    memory && inst.memory_displacement64() as u32 == address.get() as u32
}

fn asks_order(condition: ConditionCode) -> bool {
    use ConditionCode as C;
    matches!(condition, C::b | C::ae | C::be | C::a | C::l | C::ge | C::le | C::g)
}
