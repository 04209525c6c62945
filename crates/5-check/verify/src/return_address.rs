//! Whether code takes its return address as data, which tells where its caller now stands.

use crate::code::{Code, Kind};
use afterlink_isa::x86_64::iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};
use afterlink_isa::x86_64::{ENDBR64, full};

/// Instructions between taking the address off the stack and putting it back.
const WINDOW: usize = 8;

/// Whether the code at `address` begins by reading what its caller's call pushed, and does more with it than to put it
/// back, as `vfork` does: the child returns through it, and the parent finds the stack as the child leaves it.
pub(crate) fn is_taken_by(code: &Code, address: u64) -> bool {
    let marked = code.bytes(address, ENDBR64.len()) == Some(&ENDBR64);
    let address = if marked { address + ENDBR64.len() as u64 } else { address };
    match inst_at(code, address) {
        Some(first) if first.mnemonic() == Mnemonic::Pop && first.op0_kind() == OpKind::Register => {
            !is_put_back(code, address + first.len() as u64, first.op0_register())
        }
        Some(first) => {
            first.mnemonic() == Mnemonic::Mov
                && first.op0_kind() == OpKind::Register
                && first.memory_base() == Register::RSP
                && first.memory_index() == Register::None
                && first.memory_displacement64() == 0
        }
        None => false,
    }
}

fn inst_at(code: &Code, address: u64) -> Option<Instruction> {
    let inst = code.at(address)?;
    full(code.bytes(address, usize::from(inst.len))?, address)
}

/// Whether straight code from `at` on does nothing with `register`, nor with the stack, before it pushes it again.
fn is_put_back(code: &Code, mut at: u64, register: Register) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let mut calls_vfork = false;
    for _ in 0..WINDOW {
        let Some(inst) = inst_at(code, at) else { return false };
        if inst.mnemonic() == Mnemonic::Push {
            return inst.op0_kind() == OpKind::Register && inst.op0_register() == register;
        }
        // The kernel sees all registers; this call of it takes no argument.
        if inst.mnemonic() == Mnemonic::Syscall {
            if !calls_vfork {
                return false;
            }
        } else if code.at(at).is_none_or(|i| i.kind != Kind::Next) {
            return false;
        }
        let mut used = factory.info(&inst).used_registers().iter().map(|u| u.register().full_register());
        if used.any(|r| r == register || r == Register::RSP) {
            return false;
        }
        calls_vfork = is_number_of_vfork(&inst) || calls_vfork && !writes_rax(&mut factory, &inst);
        at += inst.len() as u64;
    }
    false
}

/// `mov $__NR_vfork,%eax`.
fn is_number_of_vfork(inst: &Instruction) -> bool {
    const VFORK: u32 = 58;
    inst.mnemonic() == Mnemonic::Mov
        && inst.op0_register() == Register::EAX
        && inst.op1_kind() == OpKind::Immediate32
        && inst.immediate32() == VFORK
}

fn writes_rax(factory: &mut InstructionInfoFactory, inst: &Instruction) -> bool {
    let used = factory.info(inst).used_registers();
    used.iter().any(|u| u.register().full_register() == Register::RAX)
}
