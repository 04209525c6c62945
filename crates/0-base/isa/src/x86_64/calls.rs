//! What stands at the two ends of a call: stubs that only lead on, functions that only compute, and a call through memory.

use super::{ENDBR64, decode, full};
use crate::{CodePrefetch, Flow};
use iced_x86::{
    CpuidFeature, FlowControl, InstructionInfoFactory, InstructionInfoOptions, Mnemonic, Register,
};

/// Bytes of `call` with a four-byte displacement and no prefix.
pub const CALL: u64 = 5;

/// Whether `bytes` start with a direct call that has no prefix: others are known by their bytes (an access to thread-local
/// memory), or to processors (`bnd`).
pub fn is_plain_call(bytes: &[u8]) -> bool {
    bytes.first() == Some(&0xe8) && bytes.len() >= CALL as usize
}

/// Where the instructions of `bytes` start, up to what is none.
pub fn instruction_starts(bytes: &[u8]) -> Vec<u32> {
    let mut starts = Vec::new();
    let mut at = 0;
    while let Some(inst) = bytes.get(at..).and_then(decode) {
        starts.push(at as u32);
        at += usize::from(inst.len);
    }
    starts
}

/// `call *slot(%rip)`, its displacement left zero.
pub const CALL_THROUGH_MEMORY: [u8; 6] = [0xff, 0x15, 0, 0, 0, 0];

/// `prefetchit0 line(%rip)`, its displacement left zero. Processors without it (Intel's before Granite Rapids, AMD's before Zen 5) do nothing
/// there (Intel, Software Developer's Manual, volume 2, PREFETCHh; AMD, Architecture Programmer's Manual, volume 3, PREFETCHlevel).
pub const CODE_PREFETCH: CodePrefetch = CodePrefetch { code: &[0x0f, 0x18, 0x3d, 0, 0, 0, 0], field: 3 };

/// Whether `bytes` start with `prefetchit0` or `prefetchit1`.
pub fn prefetches_code(bytes: &[u8]) -> bool {
    matches!(bytes, [0x0f, 0x18, 0x35 | 0x3d, ..])
}

/// Where a stub leads that does nothing but jump through a word of memory (`jmp *slot(%rip)`, maybe behind a mark for indirect
/// branches): the word's address, if the stub stands at `address`.
pub fn slot_of_stub(bytes: &[u8], address: u64) -> Option<u64> {
    let rest = bytes.strip_prefix(&ENDBR64).unwrap_or(bytes);
    let at = address + (bytes.len() - rest.len()) as u64;
    let inst = full(rest, at)?;
    let plain = inst.memory_base() == Register::RIP && inst.segment_prefix() == Register::None;
    let jumps = inst.mnemonic() == Mnemonic::Jmp && inst.is_ip_rel_memory_operand();
    (jumps && plain && inst.memory_size().size() == 8).then(|| inst.ip_rel_memory_address())
}

/// A function that is one run of instructions and returns: the part of `bytes` that can stand where it was called, without the
/// mark at its entry and its return. `None` if that would be another thing: it uses the stack (whose top would be another), or
/// does anything but compute, or does not end in a plain return.
pub fn leaf_body(bytes: &[u8]) -> Option<std::ops::Range<usize>> {
    let start = if bytes.starts_with(&ENDBR64) { ENDBR64.len() } else { 0 };
    let mut factory = InstructionInfoFactory::new();
    let mut at = start;
    loop {
        let inst = full(&bytes[at..], 0)?;
        if inst.flow_control() == FlowControl::Return {
            let returns = decode(&bytes[at..])?.flow == Flow::Return && inst.op_count() == 0;
            return (returns && inst.mnemonic() == Mnemonic::Ret).then_some(start..at);
        }
        let info = factory.info_options(&inst, InstructionInfoOptions::NO_MEMORY_USAGE);
        let uses_stack = info.used_registers().iter().any(|u| u.register().full_register() == Register::RSP);
        let computes = inst.flow_control() == FlowControl::Next
            && !inst.is_privileged()
            && !inst.is_stack_instruction()
            && !inst.cpuid_features().contains(&CpuidFeature::CET_SS)
            && !matches!(inst.mnemonic(), Mnemonic::Hlt | Mnemonic::Endbr64);
        if uses_stack || !computes {
            return None;
        }
        at += inst.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_lead_to_their_slot() {
        // jmp *0x2fca(%rip), as the linker writes it in .plt and, with a mark and `bnd`, in .plt.sec.
        assert_eq!(slot_of_stub(&[0xff, 0x25, 0xca, 0x2f, 0, 0], 0x1000), Some(0x3fd0));
        let marked = [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xca, 0x2f, 0, 0];
        assert_eq!(slot_of_stub(&marked, 0x1000), Some(0x3fd5));
        assert_eq!(slot_of_stub(&[0xff, 0xe0], 0x1000), None);
        assert_eq!(slot_of_stub(&[0x68, 0, 0, 0, 0], 0x1000), None);
        // jmp *%fs:0x2fca(%rip) and jmp *0x2fca(%eip)
        assert_eq!(slot_of_stub(&[0x64, 0xff, 0x25, 0xca, 0x2f, 0, 0], 0x1000), None);
        assert_eq!(slot_of_stub(&[0x67, 0xff, 0x25, 0xca, 0x2f, 0, 0], 0x1000), None);
    }

    #[test]
    fn leaves_only_compute_and_return() {
        // lea (%rdi,%rsi),%eax; ret
        assert_eq!(leaf_body(&[0x8d, 0x04, 0x37, 0xc3]), Some(0..3));
        // endbr64; mov %edi,%eax; repz ret
        assert_eq!(leaf_body(&[0xf3, 0x0f, 0x1e, 0xfa, 0x89, 0xf8, 0xf3, 0xc3]), Some(4..6));
        // ret alone
        assert_eq!(leaf_body(&[0xc3]), Some(0..0));
        for other in [
            &[0x8b, 0x44, 0x24, 0x08, 0xc3][..], // mov 8(%rsp),%eax: an argument on the stack
            &[0x48, 0x89, 0x7c, 0x24, 0xf8, 0xc3], // mov %rdi,-8(%rsp): the red zone
            &[0x50, 0x58, 0xc3],                 // push; pop
            &[0xe8, 0, 0, 0, 0, 0xc3],           // call
            &[0xeb, 0x00, 0xc3],                 // jmp
            &[0x0f, 0x05, 0xc3],                 // syscall
            &[0xcc, 0xc3],                       // int3
            &[0x0f, 0x0b, 0xc3],                 // ud2
            &[0xc2, 8, 0],                       // ret $8
            &[0x89, 0xf8],                       // falls off its end
            &[0xc9, 0xc3],                       // leave
            &[0xf3, 0x48, 0x0f, 0xae, 0xe8, 0xc3], // incsspq %rax
            &[0xcd, 0x80, 0xc3],                 // int $0x80
        ] {
            assert_eq!(leaf_body(other), None, "{other:x?}");
        }
    }
}
