//! A question in front of an indirect call, whether it leads to a function: as few instructions, in this order.
//!
//! | code | |
//! |---|---|
//! | `lea function(%rip),%r11` | |
//! | `test %r11,%r11` | only if the call reads memory: a handler of the signal that the next one raises may leave that out, and no function's address is zero |
//! | `cmp %r11,operand` | which is the call's: it reads what the call reads |

use crate::judgement::Asked;
use crate::x86_64::full;
use iced_x86::{Code, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register};

const SCRATCH: Register = Register::R11;

/// The question that `code`, which stands at `address`, starts with, if it is that of `call`.
pub(crate) fn parse(code: &[u8], address: u64, call: &[u8]) -> Option<Asked> {
    let call = full(call, 0).filter(|call| call.code() == Code::Call_rm64 && is_bare(call))?;
    let lea = full(code, address)?;
    let names = lea.code() == Code::Lea_r64_m
        && lea.op0_register() == SCRATCH
        && lea.memory_base() == Register::RIP
        && lea.segment_prefix() == Register::None;
    names.then_some(())?;
    let mut at = lea.len();
    if call.op0_kind() == OpKind::Memory {
        let test = full(code.get(at..)?, 0)?;
        let is_test = test.code() == Code::Test_rm64_r64
            && test.op0_kind() == OpKind::Register
            && [test.op0_register(), test.op1_register()] == [SCRATCH; 2];
        is_test.then_some(())?;
        at += test.len();
    }
    let compare = full(code.get(at..)?, 0)?;
    let asks = compare.code() == Code::Cmp_rm64_r64
        && compare.op1_register() == SCRATCH
        && is_bare(&compare)
        && same_operand(&compare, &call);
    asks.then(|| Asked { function: lea.ip_rel_memory_address(), size: at + compare.len() })
}

/// Whether nothing stands in front of an instruction that means anything to it.
fn is_bare(inst: &Instruction) -> bool {
    let repeats = inst.has_rep_prefix() || inst.has_repne_prefix();
    !repeats && !inst.has_lock_prefix() && inst.segment_prefix() == Register::None
}

/// Whether both name the same register, or the same word of memory, by registers that the question leaves alone.
fn same_operand(one: &Instruction, other: &Instruction) -> bool {
    if one.op0_kind() != other.op0_kind() {
        return false;
    }
    if one.op0_kind() == OpKind::Register {
        let register = one.op0_register();
        return register == other.op0_register() && ![SCRATCH, Register::RSP].contains(&register);
    }
    let of = |inst: &Instruction| (inst.memory_base(), inst.memory_index(), inst.memory_index_scale());
    let (base, index, _) = of(one);
    // Where neither register is one of 64 bits, the address is cut off, or counts from the instruction.
    let is_whole = base.is_gpr64() && (index == Register::None || index.is_gpr64());
    let is_kept = ![base, index].contains(&SCRATCH);
    let same = of(one) == of(other) && one.memory_displacement64() == other.memory_displacement64();
    is_whole && is_kept && same && one.memory_size().size() == other.memory_size().size()
}

/// Whether an instruction names the register that a question uses to read it, and to write it.
pub(crate) fn touches(factory: &mut InstructionInfoFactory, code: &[u8]) -> Option<(bool, bool)> {
    let inst = full(code, 0)?;
    let (mut read, mut written) = (false, false);
    for used in factory.info(&inst).used_registers() {
        if used.register().full_register() == SCRATCH {
            let access = used.access();
            read |= !matches!(access, OpAccess::Write | OpAccess::None | OpAccess::NoMemAccess);
            written |= !matches!(
                access,
                OpAccess::Read | OpAccess::CondRead | OpAccess::None | OpAccess::NoMemAccess
            );
        }
    }
    Some((read, written))
}

/// Whether an instruction reads flags, and whether it changes any.
pub(crate) fn flags(code: &[u8]) -> Option<(bool, bool)> {
    let inst = full(code, 0)?;
    Some((inst.rflags_read() != 0, inst.rflags_modified() != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `lea 0x100(%rip),%r11`.
    const LEA: [u8; 7] = [0x4c, 0x8d, 0x1d, 0, 1, 0, 0];
    const TEST: [u8; 3] = [0x4d, 0x85, 0xdb];

    fn asked(parts: &[&[u8]], call: &[u8]) -> Option<(u64, usize)> {
        parse(&parts.concat(), 0x1000, call).map(|asked| (asked.function, asked.size))
    }

    #[test]
    fn a_question_is_that_of_its_call() {
        let (cmp_rax, call_rax) = (&[0x4c, 0x39, 0xd8][..], &[0xff, 0xd0][..]);
        assert_eq!(asked(&[&LEA, cmp_rax], call_rax), Some((0x1107, 10)));
        let (cmp_memory, call_memory) = (&[0x4c, 0x39, 0x5b, 8][..], &[0xff, 0x53, 8][..]);
        assert_eq!(asked(&[&LEA, &TEST, cmp_memory], call_memory), Some((0x1107, 14)));
        for (what, parts, call) in [
            ("another register is asked", &[&LEA[..], &[0x4c, 0x39, 0xd9]][..], call_rax),
            ("another register is compared", &[&LEA, &[0x48, 0x39, 0xd8]], call_rax),
            ("half of it is compared", &[&LEA, &[0x44, 0x39, 0xd8]], call_rax),
            ("nothing sets flags if the access is left out", &[&LEA, cmp_memory], call_memory),
            ("another word", &[&LEA, &TEST, &[0x4c, 0x39, 0x5b, 16]], call_memory),
            ("another base", &[&LEA, &TEST, &[0x4c, 0x39, 0x5a, 8]], call_memory),
            ("another segment", &[&LEA, &TEST, &[0x64, 0x4c, 0x39, 0x5b, 8]], call_memory),
            ("it is written", &[&LEA, &TEST, &[0x4c, 0x29, 0x5b, 8]], call_memory),
            ("an address of 32 bits", &[&[0x67, 0x4c, 0x8d, 0x1d, 0, 1, 0, 0], cmp_rax], call_rax),
            ("a word is loaded", &[&[0x4c, 0x8b, 0x1d, 0, 1, 0, 0], cmp_rax], call_rax),
            ("no call", &[&LEA, cmp_rax], &[0xff, 0xe0]),
            ("by the register itself", &[&LEA, &[0x4d, 0x39, 0xdb]], &[0x41, 0xff, 0xd3]),
            ("cut off", &[&LEA], call_rax),
        ] {
            assert_eq!(asked(parts, call), None, "{what}");
        }
    }
}
