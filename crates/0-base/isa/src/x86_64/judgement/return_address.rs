//! Whether code takes its return address as data, which tells where its caller now stands.

use crate::x86_64::full;
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};

/// Instructions between taking the address off the stack and putting it back.
const WINDOW: usize = 8;

/// Whether code begins by reading what its caller's call pushed, and does more with it than to put it back.
pub(crate) fn is_taken(bytes: &[u8]) -> bool {
    let mut insts = instructions(bytes).filter(|i| i.mnemonic() != Mnemonic::Endbr64);
    let Some(first) = insts.next() else { return false };
    match first.mnemonic() {
        Mnemonic::Pop if first.op0_kind() == OpKind::Register => {
            !is_put_back(&mut insts, first.op0_register())
        }
        Mnemonic::Mov => {
            first.op0_kind() == OpKind::Register
                && first.memory_base() == Register::RSP
                && first.memory_index() == Register::None
                && first.memory_displacement64() == 0
        }
        _ => false,
    }
}

fn instructions(bytes: &[u8]) -> impl Iterator<Item = Instruction> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let inst = full(bytes.get(at..)?, 0)?;
        at += inst.len();
        Some(inst)
    })
}

/// Whether straight code does nothing with `register`, nor with the stack, before it pushes it again, as `vfork` does:
/// its child, which shares the stack, returns before the parent.
fn is_put_back(insts: &mut dyn Iterator<Item = Instruction>, register: Register) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let mut calls_vfork = false;
    for inst in insts.take(WINDOW) {
        if inst.mnemonic() == Mnemonic::Push {
            return inst.op0_kind() == OpKind::Register && inst.op0_register() == register;
        }
        // The kernel sees all registers; this call of it takes no argument.
        let is_known_call = inst.mnemonic() == Mnemonic::Syscall && calls_vfork;
        let used = factory.info(&inst).used_registers();
        let uses = |r: Register| used.iter().any(|u| u.register().full_register() == r);
        if !is_known_call && inst.flow_control() != FlowControl::Next || uses(register) || uses(Register::RSP)
        {
            return false;
        }
        calls_vfork = is_number_of_vfork(&inst) || calls_vfork && !uses(Register::RAX);
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

#[cfg(test)]
mod tests {
    use super::is_taken;

    const MARK: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
    const POP_RDI: &[u8] = &[0x5f];
    const PUSH_RDI: &[u8] = &[0x57];
    const SYSCALL: &[u8] = &[0x0f, 0x05];
    const RET: &[u8] = &[0xc3];

    /// `mov $number,%eax`.
    fn number(number: u8) -> [u8; 5] {
        [0xb8, number, 0, 0, 0]
    }

    #[test]
    fn vfork_puts_it_back() {
        for start in [&[][..], MARK] {
            assert!(!is_taken(&[start, POP_RDI, &number(58), SYSCALL, PUSH_RDI, RET].concat()));
        }
    }

    #[test]
    fn what_does_anything_else_with_it_takes_it() {
        let write = number(1);
        let number = number(58);
        let wrong: [&[&[u8]]; 8] = [
            // `jmp *%rdi`: it stays in a register.
            &[POP_RDI, &[0xff, 0xe7]],
            &[POP_RDI, &write, SYSCALL, PUSH_RDI, RET],
            &[POP_RDI, SYSCALL, PUSH_RDI, RET],
            // The number is changed: `inc %eax`.
            &[POP_RDI, &number, &[0xff, 0xc0], SYSCALL, PUSH_RDI, RET],
            // `lea 1(%rdi),%rdi`, `mov %rdi,%rdx`, `push %rsi` instead.
            &[POP_RDI, &[0x48, 0x8d, 0x7f, 1], PUSH_RDI, RET],
            &[POP_RDI, &[0x48, 0x89, 0xfa], PUSH_RDI, RET],
            &[POP_RDI, &number, SYSCALL, &[0x56], RET],
            // `call` while it is off the stack.
            &[POP_RDI, &[0xe8, 0, 0, 0, 0], PUSH_RDI, RET],
        ];
        for parts in wrong {
            for start in [&[][..], MARK] {
                assert!(is_taken(&[start, &parts.concat()].concat()), "{parts:x?}");
            }
        }
        // `mov (%rsp),%rcx; ret`; `mov 8(%rsp),%rcx; ret` reads something else.
        assert!(is_taken(&[0x48, 0x8b, 0x0c, 0x24, 0xc3]));
        assert!(!is_taken(&[0x48, 0x8b, 0x4c, 0x24, 8, 0xc3]));
    }
}
