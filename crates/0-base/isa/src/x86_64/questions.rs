//! Whether an indirect call leads to a known function, asked in front of it.

use super::full;
use crate::{CallQuestion, Condition, ScratchUse};
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, InstructionInfoOptions,
    OpAccess, OpKind, Register,
};

/// The register that the function's address is put into. The System V ABI passes nothing in it, and lets every function change it (3.2.1);
/// clang's `preserve_none` does pass an argument in it.
const SCRATCH: Register = Register::R11;
/// `lea callee(%rip),%r11`, its displacement left zero; and `test %r11,%r11`.
const ADDRESS: [u8; 7] = [0x4c, 0x8d, 0x1d, 0, 0, 0, 0];
const IS_NONE: [u8; 3] = [0x4d, 0x85, 0xdb];
/// Of `cmp %r11,operand`: the prefix for two registers of 64 bits, and the opcode.
const COMPARE: [u8; 2] = [0x4c, 0x39];
/// That of `jne`.
const OTHER: Condition = Condition(5);
/// The bits of a prefix that choose the operand's registers.
const OPERAND_BITS: u8 = 0b11;

/// See [`crate::Arch::call_question`].
pub fn call_question(bytes: &[u8]) -> Option<CallQuestion> {
    let call = full(bytes, 0)?;
    let (prefix, rest) = match bytes {
        [prefix @ 0x40..=0x4f, 0xff, rest @ ..] => (prefix & OPERAND_BITS, rest),
        [0xff, rest @ ..] => (0, rest),
        _ => return None,
    };
    let size = call.len();
    let operand = &rest[..size - (bytes.len() - rest.len())];
    let registers = [call.memory_base(), call.memory_index(), call.op0_register()];
    let in_memory = call.op0_kind() == OpKind::Memory;
    // Addresses in the instruction are fields of a linker's, mostly.
    let has_address = in_memory && matches!(call.memory_base(), Register::RIP | Register::None);
    let is_own = in_memory || call.op0_register() != Register::RSP;
    if call.code() != Code::Call_rm64 || has_address || !is_own || registers.contains(&SCRATCH) {
        return None;
    }
    let mut code = ADDRESS.to_vec();
    if in_memory {
        // Who leaves the access out finds another function.
        code.extend(IS_NONE);
    }
    code.extend([COMPARE[0] | prefix, COMPARE[1]]);
    let (form, behind) = operand.split_first()?;
    code.push(form & 0b1100_0111 | 0b011 << 3);
    code.extend(behind);
    Some(CallQuestion { size: size as u32, code, field: 3, other: OTHER })
}

/// See [`crate::Arch::scratch_use`].
pub fn scratch_use(bytes: &[u8], is_unread: bool) -> ScratchUse {
    let mut factory = InstructionInfoFactory::new();
    let mut found = ScratchUse { is_unread, ..ScratchUse::default() };
    for inst in &mut Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE) {
        let (is_read, is_written) = touches(&mut factory, &inst);
        found.is_named |= is_read || is_written;
        found.takes |= is_read && !found.ends;
        found.is_unread &= !is_read;
        let calls = matches!(inst.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
        if calls && std::mem::take(&mut found.is_unread) {
            found.hands_on.push(inst.ip() as u32);
        }
        found.is_unread |= is_written;
        found.ends |= is_written || calls;
    }
    found
}

/// Whether an instruction names the register to read it, or a part of it, and to write it.
fn touches(factory: &mut InstructionInfoFactory, inst: &Instruction) -> (bool, bool) {
    let info = factory.info_options(inst, InstructionInfoOptions::NO_MEMORY_USAGE);
    let own = info.used_registers().iter().filter(|used| used.register().full_register() == SCRATCH);
    own.fold((false, false), |(read, written), used| match used.access() {
        OpAccess::Write => (read, true),
        OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
        OpAccess::None | OpAccess::NoMemAccess => (read, written),
        OpAccess::Read | OpAccess::CondRead => (true, written),
    })
}

/// See [`crate::Arch::reads_flags_first`].
pub fn reads_flags_first(bytes: &[u8]) -> Option<bool> {
    Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).into_iter().find_map(|inst| {
        let calls = matches!(inst.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
        let (reads, changes) = (inst.rflags_read() != 0, inst.rflags_modified() != 0);
        (calls || reads || changes).then_some(reads && !calls)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(call: &[u8]) -> Option<Vec<u8>> {
        call_question(call)
            .inspect(|asked| assert_eq!(asked.size as usize, call.len()))
            .map(|asked| asked.code)
    }

    /// As GNU as 2.40 encodes `lea 0(%rip),%r11`, `test %r11,%r11`, and the comparison.
    #[test]
    fn the_question_names_what_the_call_names() {
        let address = [0x4c, 0x8d, 0x1d, 0, 0, 0, 0];
        let of_memory = [&address[..], &[0x4d, 0x85, 0xdb]].concat();
        for (call, question) in [
            (&[0xff, 0xd0][..], [&address[..], &[0x4c, 0x39, 0xd8]].concat()), // call *%rax; cmp %r11,%rax
            (&[0x41, 0xff, 0xd4], [&address[..], &[0x4d, 0x39, 0xdc]].concat()), // *%r12
            (&[0xff, 0x10], [&of_memory[..], &[0x4c, 0x39, 0x18]].concat()),   // *(%rax)
            (&[0xff, 0x53, 0x08], [&of_memory[..], &[0x4c, 0x39, 0x5b, 0x08]].concat()), // *8(%rbx)
            (&[0x41, 0xff, 0x55, 0], [&of_memory[..], &[0x4d, 0x39, 0x5d, 0]].concat()), // *0(%r13)
            (&[0xff, 0x54, 0x24, 0x10], [&of_memory[..], &[0x4c, 0x39, 0x5c, 0x24, 0x10]].concat()), // *16(%rsp)
            (&[0x42, 0xff, 0x14, 0xe0], [&of_memory[..], &[0x4e, 0x39, 0x1c, 0xe0]].concat()), // *(%rax,%r12,8)
        ] {
            assert_eq!(code(call), Some(question), "{call:x?}");
        }
    }

    #[test]
    fn calls_that_are_not_asked() {
        for call in [
            &[0x41, 0xff, 0xd3][..],         // call *%r11
            &[0x41, 0xff, 0x13],             // *(%r11)
            &[0x42, 0xff, 0x14, 0xd8],       // *(%rax,%r11,8)
            &[0xff, 0x15, 0, 0, 0, 0],       // *0(%rip)
            &[0xff, 0x14, 0x25, 0, 0, 0, 0], // *0
            &[0xff, 0x14, 0xc5, 0, 0, 0, 0], // *0(,%rax,8)
            &[0xff, 0xd4],                   // *%rsp
            &[0x3e, 0xff, 0xd0],             // notrack call *%rax
            &[0x67, 0xff, 0x10],             // *(%eax)
            &[0x64, 0xff, 0x10],             // *%fs:(%rax)
            &[0x66, 0xff, 0xd0],             // of 16 bits
            &[0xf2, 0xff, 0xd0],             // bnd call *%rax
            &[0xff, 0xe0],                   // jmp *%rax
            &[0xe8, 0, 0, 0, 0],             // call
        ] {
            assert_eq!(code(call), None, "{call:x?}");
        }
    }

    #[test]
    fn what_is_passed_in_the_register() {
        let found = |bytes: &[u8]| {
            let found = scratch_use(bytes, false);
            (found.takes, found.ends, found.is_unread, found.hands_on)
        };
        assert_eq!(found(&[0x48, 0x89, 0xc3]), (false, false, false, vec![]), "mov %rax,%rbx");
        assert_eq!(found(&[0x4c, 0x89, 0xd8]), (true, false, false, vec![]), "mov %r11,%rax");
        assert_eq!(found(&[0x41, 0x8b, 0x03]), (true, false, false, vec![]), "mov (%r11),%eax");
        assert_eq!(found(&[0x45, 0x89, 0xc3]), (false, true, true, vec![]), "mov %r8d,%r11d");
        assert_eq!(
            found(&[0x45, 0x89, 0xc3, 0xff, 0xd0]),
            (false, true, false, vec![3]),
            "mov %r8d,%r11d; call *%rax"
        );
        assert_eq!(
            found(&[0x45, 0x89, 0xc3, 0x44, 0x89, 0xd8, 0xff, 0xd0]),
            (false, true, false, vec![]),
            "… mov %r11d,%eax …"
        );
        assert_eq!(
            found(&[0x45, 0x89, 0xc3, 0x41, 0xff, 0xd3]),
            (false, true, false, vec![]),
            "mov %r8d,%r11d; call *%r11"
        );
        assert_eq!(
            found(&[0xff, 0xd0, 0x4c, 0x89, 0xd8]),
            (false, true, false, vec![]),
            "call *%rax; mov %r11,%rax"
        );
        assert_eq!(found(&[0x41, 0x88, 0xc3]), (false, true, true, vec![]), "mov %al,%r11b");
        assert_eq!(scratch_use(&[0xe8, 0, 0, 0, 0], true).hands_on, [0], "call");
        assert!(!scratch_use(&[0x48, 0x89, 0xc3], false).is_named);
        assert!(scratch_use(&[0x45, 0x89, 0xc3], false).is_named);
    }

    #[test]
    fn flags_behind_a_call() {
        assert_eq!(reads_flags_first(&[0x72, 0]), Some(true), "jb");
        assert_eq!(reads_flags_first(&[0x48, 0x89, 0xc3, 0x0f, 0x92, 0xc0]), Some(true), "mov; setb");
        assert_eq!(reads_flags_first(&[0x85, 0xc0, 0x74, 0]), Some(false), "test; je");
        assert_eq!(reads_flags_first(&[0xff, 0xd0, 0x72, 0]), Some(false), "another call; jb");
        assert_eq!(reads_flags_first(&[0x48, 0x89, 0xc3]), None, "mov");
    }
}
