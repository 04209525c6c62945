//! Calls, what may stand in place of them, and what they lead to.

use super::MARK;
use crate::x86_64::full;
use iced_x86::{
    Code, CpuidFeature, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

/// Bytes of the mark that `code` starts with.
pub(crate) fn mark_size(code: &[u8]) -> usize {
    if code.starts_with(&MARK) { MARK.len() } else { 0 }
}

/// Whether `code` starts with a direct call without any prefix.
pub(crate) fn is_plain_call(code: &[u8]) -> bool {
    code.first() == Some(&0xe8)
}

/// The word that code at `address` jumps through without doing anything else.
pub(crate) fn slot_of_stub(code: &[u8], address: u64) -> Option<u64> {
    let mark = mark_size(code);
    let jump = full(&code[mark..], address + mark as u64)?;
    (jump.code() == Code::Jmp_rm64 && names_plainly(&jump)).then(|| jump.ip_rel_memory_address())
}

/// Whether the operand is relative to the instruction, with no segment's base added and no bits of the address cut off.
fn names_plainly(inst: &Instruction) -> bool {
    inst.memory_base() == Register::RIP && inst.segment_prefix() == Register::None
}

/// The word that the call at the start of `code`, which stands at `address`, leads through, and the call's bytes: six, so
/// that no prefix can mean anything.
pub(crate) fn slot_of_call(code: &[u8], address: u64) -> Option<(u64, usize)> {
    let call = full(code, address)?;
    let is_call = call.code() == Code::Call_rm64 && call.is_ip_rel_memory_operand() && call.len() == 6;
    is_call.then(|| (call.ip_rel_memory_address(), call.len()))
}

/// Whether `code` starts with a return that takes nothing else off the stack.
pub(crate) fn is_plain_return(code: &[u8]) -> bool {
    full(code, 0).is_some_and(|inst| inst.code() == Code::Retnq)
}

/// Whether `code` starts with a return that takes off more than the return address, or is of an interrupt or another segment.
pub(crate) fn return_moves_stack(code: &[u8]) -> bool {
    let Some(inst) = full(code, 0).filter(|inst| inst.flow_control() == FlowControl::Return) else {
        return false;
    };
    match inst.code() {
        Code::Retnq => false,
        Code::Retnq_imm16 => inst.immediate16() != 0,
        _ => true,
    }
}

/// Whether all that the instruction does is in registers other than the stack pointer, flags and memory that it names by
/// those registers.
pub(crate) fn only_computes(factory: &mut InstructionInfoFactory, code: &[u8]) -> bool {
    let Some(inst) = full(code, 0) else { return false };
    let info = factory.info(&inst);
    let is_stack = |register: Register| register.full_register() == Register::RSP;
    let used = info.used_registers().iter();
    let registers = used.filter(|u| u.access() != OpAccess::None).any(|u| is_stack(u.register()));
    let memory = info.used_memory().iter().any(|m| is_stack(m.base()) || is_stack(m.index()));
    let mut operands = 0..inst.op_count();
    let named = operands.any(|i| inst.op_kind(i) == OpKind::Register && is_stack(inst.op_register(i)));
    !registers && !memory && !named && !is_watched(&inst)
}

/// Instructions that ask for more than registers and memory: the system, which may look where they stand, or the second
/// stack of return addresses.
fn is_watched(inst: &Instruction) -> bool {
    inst.flow_control() != FlowControl::Next || inst.is_stack_instruction() || asks_for_more(inst)
}

/// Those that ask the system, or are the second stack's.
pub(super) fn asks_for_more(inst: &Instruction) -> bool {
    use Mnemonic as M;
    inst.cpuid_features().contains(&CpuidFeature::CET_SS)
        || inst.is_privileged()
        || inst.is_save_restore_instruction()
        || matches!(inst.mnemonic(), M::Endbr64 | M::Hlt)
}
