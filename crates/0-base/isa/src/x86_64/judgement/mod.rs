//! x86-64 as the checker judges it; see [`crate::judgement`], which is what it is asked through.

mod calls;
mod counter;
mod disassembly;
mod frames;
mod handling;
pub(crate) mod huge_pages;
mod questions;
mod relocation;
mod return_address;
pub(crate) mod start_up;
mod steps;
pub(crate) mod targets;
mod uses;

pub(crate) use calls::{
    is_plain_call, is_plain_return, mark_size, return_moves_stack, slot_of_call, slot_of_stub,
};
pub(crate) use counter::{parse as parse_counter, stack_steps};
pub(crate) use disassembly::disassemble;
pub(crate) use frames::{ROOM, carries_return_address, names_return_address};
pub(crate) use questions::{flags, parse as parse_question};
pub(crate) use relocation::{relocation, start_up_relocation};
pub(crate) use return_address::is_taken as takes_return_address;
pub(crate) use uses::is_displacement_of_access;

use crate::judgement::{Convention, Frame, FrameChange, Handling, Step, Use};
use crate::x86_64::full;
use iced_x86::InstructionInfoFactory;

/// `int3`.
pub(crate) const TRAP: u8 = 0xcc;
/// `ud2`.
pub(crate) const UNREACHABLE: &[u8] = &[0x0f, 0x0b];
/// `RSEQ_SIG` of <sys/rseq.h>, as it lies in memory.
pub(crate) const RESTART_SIGNATURE: [u8; 4] = *b"\x53\x30\x05\x53";
/// `lock`: glibc jumps over it while a program has one thread.
pub(crate) const LOCK: u8 = 0xf0;
/// `endbr64`: indirect branches may land here.
const MARK: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
/// Bytes of a `jmp` of any reach.
const JUMP: usize = 5;

/// System V ABI for AMD64, 3.2.1 and 3.2.3. The decoder counts registers as the machine does.
pub(crate) const CONVENTION: Convention = Convention {
    stack_pointer: steps::RSP,
    frame_pointer: 5,
    // `rax` and `rdx`.
    results: [steps::RAX, 2],
    // `rdi`, `rsi`, `rdx`, `rcx`, `r8` and `r9`.
    arguments: 1 << 7 | 1 << 6 | 1 << 2 | 1 << 1 | 1 << 8 | 1 << 9,
    // `rbx`, `rbp`, `r12` to `r15` and `rsp`.
    kept: 1 << 3 | 1 << 4 | 1 << 5 | 0xf << 12,
    general: 0xffff,
    // `rcx`, `rsi`, `rdi`, `r8` to `r11`.
    scratch: 1 << 1 | 1 << 6 | 1 << 7 | 0xf << 8,
    counter_flags: uses::INCREMENT_FLAGS,
    status_flags: uses::STATUS_FLAGS,
};

/// Reads what single instructions do.
pub(crate) struct Reader {
    factory: InstructionInfoFactory,
}

impl Reader {
    pub fn new() -> Self {
        Self { factory: InstructionInfoFactory::new() }
    }

    pub fn read_use(&mut self, bytes: &[u8]) -> Option<Use> {
        Some(uses::read(&mut self.factory, &full(bytes, 0)?))
    }

    pub fn may_raise(&mut self, bytes: &[u8]) -> bool {
        full(bytes, 0).is_none_or(|inst| uses::may_raise(&mut self.factory, &inst))
    }

    pub fn read_step(&mut self, bytes: &[u8], address: u64, is_named: bool) -> Option<Step<u64>> {
        Some(steps::read(&mut self.factory, &full(bytes, address)?, is_named))
    }

    pub fn only_computes(&mut self, bytes: &[u8]) -> bool {
        calls::only_computes(&mut self.factory, bytes)
    }

    pub fn frame_change(&mut self, bytes: &[u8], frame: Frame) -> Option<FrameChange> {
        frames::change(&mut self.factory, bytes, frame)
    }

    pub fn touches_scratch(&mut self, bytes: &[u8]) -> Option<(bool, bool)> {
        questions::touches(&mut self.factory, bytes)
    }

    pub fn read_handling(&mut self, bytes: &[u8], address: u64) -> Option<Handling> {
        Some(handling::read(&mut self.factory, &full(bytes, address)?))
    }
}

/// What `prefetchit0` (or `prefetchit1`) at `address` names, and its bytes: an instruction that is a hint, and on processors without it a nop
/// that reads no memory (Intel, Software Developer's Manual, volume 2, PREFETCHh).
pub(crate) fn code_prefetch(bytes: &[u8], address: u64) -> Option<(u64, u64)> {
    let &[0x0f, 0x18, 0x35 | 0x3d, a, b, c, d, ..] = bytes else { return None };
    let displacement = i64::from(i32::from_le_bytes([a, b, c, d]));
    Some((address.wrapping_add(7).wrapping_add(displacement as u64), 7))
}

/// Whether a direct jump or branch has a displacement of one byte.
pub(crate) fn is_short_branch(bytes: &[u8]) -> bool {
    let opcode = bytes.iter().find(|byte| !is_prefix(**byte));
    opcode.is_some_and(|byte| *byte == 0xeb || byte & 0xf0 == 0x70)
}

/// Prefixes that may stand before a direct branch (`bnd`, branch hints, `notrack`, size, REX).
fn is_prefix(byte: u8) -> bool {
    matches!(byte, 0xf2 | 0xf3 | 0x2e | 0x3e | 0x26 | 0x36 | 0x64 | 0x65 | 0x66 | 0x67 | 0x40..=0x4f)
}

/// Whether a direct branch is one that processors of all makers read alike: without a prefix, or with `bnd`
/// or a branch hint.
pub(crate) fn is_plain_branch(bytes: &[u8], len: u8) -> bool {
    let rest = match bytes.first() {
        Some(0xf2 | 0x2e | 0x3e) => len - 1,
        _ => len,
    };
    matches!(rest, 2 | 5 | 6) && bytes.get(usize::from(len - rest)).is_some_and(|b| !matches!(b, 0x66 | 0x67))
}

/// Bytes of a stub where `input` stood: the mark that stood there, and a jump.
pub(crate) fn stub_size(input: &[u8]) -> u64 {
    let mark = if input.starts_with(&MARK) { MARK.len() } else { 0 };
    (mark + JUMP) as u64
}

/// Where a stub that ends at `end` leads.
pub(crate) fn stub_target(bytes: &[u8], end: u64) -> Option<u64> {
    let (mark, jump) = bytes.split_at(bytes.len().checked_sub(JUMP)?);
    let (0xe9, field) = (jump[0], jump.get(1..)?) else { return None };
    let displacement = i32::from_le_bytes(field.try_into().ok()?);
    (mark.is_empty() || mark == MARK).then(|| end.wrapping_add(displacement as i64 as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::Mnemonic;

    /// Of all instructions that begin so, those are known of which the decoder says that they ask for code, and where.
    #[test]
    fn what_asks_for_code_is_what_the_decoder_says() {
        let mut known = 0;
        for modrm in 0..=u8::MAX {
            let bytes = [0x0f, 0x18, modrm, 0x10, 0xff, 0xff, 0xff, 0x90];
            let inst = full(&bytes, 0x5000);
            let asks = inst.filter(|i| {
                matches!(i.mnemonic(), Mnemonic::Prefetchit0 | Mnemonic::Prefetchit1)
                    && i.is_ip_rel_memory_operand()
            });
            let expected = asks.map(|i| (i.ip_rel_memory_address(), i.len() as u64));
            assert_eq!(code_prefetch(&bytes, 0x5000), expected, "{modrm:#04x}");
            known += u32::from(expected.is_some());
        }
        assert_eq!(known, 2);
        assert_eq!(code_prefetch(&[0x0f, 0x18, 0x3d, 0, 0, 0], 0x5000), None, "it is cut");
    }
}
