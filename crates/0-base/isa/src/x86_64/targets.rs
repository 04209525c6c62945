//! The code of x86-64 that counts [targets](crate::targets) of indirect calls and jumps.
//!
//! In front of a jump, `lea -128(%rsp),%rsp` steps over the red zone. Then the target and the place of the site are pushed, and the routine is
//! called. A table of a site is [`TARGETS`] pairs of words, a target and its count, and a word for all other targets. Pairs are
//! filled in their order and never change their target, so whoever finds one needs no lock.

use super::counter::{RED_ZONE, STEP_DOWN};
use super::full;
use crate::targets::{TARGETS, TargetCode, TargetRoutine, TargetSite};
use iced_x86::code_asm::{CodeAssembler, eax, esi, qword_ptr, rax, rcx, rdx, rsi, rsp};
use iced_x86::{BlockEncoderOptions, Code, IcedError, Instruction, MemoryOperand, Mnemonic, Register};

/// `lea 144(%rsp),%rsp`: over the red zone, the target and the site; and `lea 16(%rsp),%rsp`.
const STEP_UP: [u8; 8] = [0x48, 0x8d, 0xa4, 0x24, RED_ZONE + 16, 0, 0, 0];
const DROP: [u8; 5] = [0x48, 0x8d, 0x64, 0x24, 16];
/// Bytes of a target and its count.
const TARGET_BYTES: usize = 16;
/// The prefix that no other processor comes between, and one for a segment that has no base.
const LOCK: u8 = 0xf0;
const NOTHING: u8 = 0x3e;
/// `push` of four bytes, and `call`.
const PUSH_NUMBER: usize = 1 + 4;
const CALL: usize = 1 + 4;

impl TargetCode {
    /// Bytes of all of it.
    pub fn size(self) -> u32 {
        let steps = if self.is_jump { STEP_DOWN.len() + STEP_UP.len() } else { DROP.len() };
        u32::from(self.touch) + u32::from(self.push) + (PUSH_NUMBER + CALL + steps) as u32
    }

    /// Where in the code the stack pointer changes, as bytes from its start, and by how much it is then lower than around it.
    pub fn lowered_stack(self) -> [(u32, u32); 4] {
        let (size, step) = if self.is_jump { (STEP_DOWN.len() as u32, u32::from(RED_ZONE)) } else { (0, 0) };
        let lowered = u32::from(self.touch) + size;
        let pushed = lowered + u32::from(self.push);
        [(lowered, step), (pushed, step + 8), (pushed + PUSH_NUMBER as u32, step + 16), (self.size(), 0)]
    }
}

/// The operand of an indirect call or jump.
struct Operand<'b> {
    is_jump: bool,
    /// The bits of its REX prefix that extend a base and an index.
    rex: u8,
    modrm: u8,
    /// What stands behind `modrm`.
    rest: &'b [u8],
    /// Where that starts in the instruction.
    rest_at: usize,
}

const EXTENDS_INDEX_AND_BASE: u8 = 3;
const STACK_POINTER: u8 = 4;

impl<'b> Operand<'b> {
    /// `None`: not an indirect call or jump that is near and has no prefix but `notrack` and `bnd`.
    fn of(call: &'b [u8]) -> Option<Self> {
        let mut at = call.iter().take_while(|byte| matches!(byte, 0x3e | 0xf2)).count();
        let mut rex = 0;
        if let Some(prefix @ 0x40..=0x4f) = call.get(at) {
            rex = prefix & EXTENDS_INDEX_AND_BASE;
            at += 1;
        }
        let [0xff, modrm, ..] = *call.get(at..)? else { return None };
        let rest_at = at + 2;
        let rest = call.get(rest_at..)?;
        let sib = usize::from(modrm >> 6 != 3 && modrm & 7 == 4);
        let has_no_base = sib == 1 && rest.first()? & 7 == 5;
        let displacement = match modrm >> 6 {
            0 if modrm & 7 == 5 || has_no_base => 4,
            1 => 1,
            2 => 4,
            _ => 0,
        };
        let rest = rest.get(..sib + displacement)?;
        let is_jump = match modrm >> 3 & 7 {
            2 => false,
            4 => true,
            _ => return None,
        };
        Some(Self { is_jump, rex, modrm, rest, rest_at })
    }

    fn register(&self) -> Option<u8> {
        (self.modrm >> 6 == 3).then_some(self.modrm & 7 | (self.rex & 1) << 3)
    }

    fn is_on_stack(&self) -> bool {
        let has_sib = self.modrm >> 6 != 3 && self.modrm & 7 == 4;
        has_sib && self.rest[0] & 7 == STACK_POINTER && self.rex & 1 == 0
    }

    /// Bytes from the start of `rest` to a displacement of four bytes.
    fn long_displacement(&self) -> Option<usize> {
        let at = self.rest.len().checked_sub(4)?;
        (self.modrm >> 6 != 1).then_some(at)
    }

    /// Appends an instruction with the operand, and gives where its displacement of four bytes stands.
    fn write(&self, out: &mut Vec<u8>, rex: u8, opcode: u8, reg: u8) -> Option<usize> {
        let rex = rex | self.rex;
        if rex != 0 {
            out.push(0x40 | rex);
        }
        out.extend_from_slice(&[opcode, self.modrm & 0xc7 | reg << 3]);
        let field = self.long_displacement().map(|at| out.len() + at);
        out.extend_from_slice(self.rest);
        field
    }

    /// Appends `cmp operand,%rax`.
    fn touch(&self, out: &mut Vec<u8>) -> Option<usize> {
        const WIDE: u8 = 8;
        self.write(out, WIDE, 0x3b, 0)
    }

    /// Whether the word that holds the target has to be read first: the push itself is the first instruction in front of a call.
    fn is_touched(&self) -> bool {
        self.is_jump && self.register().is_none() && !self.is_on_stack()
    }

    /// Appends a push of it; in front of a jump the stack pointer is lower by the red zone.
    fn push(&self, out: &mut Vec<u8>) -> Option<usize> {
        if let Some(register) = self.register() {
            if register >= 8 {
                out.push(0x41);
            }
            out.push(0x50 | register & 7);
            return None;
        }
        if !(self.is_jump && self.is_on_stack()) {
            return self.write(out, 0, 0xff, 6);
        }
        let displacement = match self.rest[1..] {
            [] => 0,
            [byte] => i32::from(byte as i8),
            [a, b, c, d] => i32::from_le_bytes([a, b, c, d]),
            _ => unreachable!("displacements have one or four bytes"),
        };
        if self.rex != 0 {
            out.push(0x40 | self.rex);
        }
        out.extend_from_slice(&[0xff, 0x80 | 6 << 3 | 4, self.rest[0]]);
        out.extend_from_slice(&displacement.wrapping_add(RED_ZONE.into()).to_le_bytes());
        None
    }
}

/// The code in front of the call.
pub(crate) fn target_code(call: &[u8]) -> Option<TargetCode> {
    let operand = Operand::of(call)?;
    let (mut touch, mut push) = (Vec::new(), Vec::new());
    if operand.register() == Some(STACK_POINTER) {
        return None;
    }
    if operand.is_touched() {
        operand.touch(&mut touch);
    }
    operand.push(&mut push);
    Some(TargetCode { is_jump: operand.is_jump, touch: touch.len() as u8, push: push.len() as u8 })
}

/// Where in the call its displacement of four bytes stands.
pub(crate) fn target_field(call: &[u8]) -> Option<u32> {
    let operand = Operand::of(call).filter(|operand| operand.register().is_none())?;
    operand.long_displacement().map(|at| (operand.rest_at + at) as u32)
}

/// Appends the code, and gives where the displacement of four bytes stands, each time that it does.
pub(crate) fn write_target_code(
    out: &mut Vec<u8>,
    site: TargetSite,
    displacement: impl Fn(u32) -> i32,
) -> Vec<u32> {
    // Invariant: `target_code` has said that there is such code.
    let operand = Operand::of(site.call).expect("an indirect call or jump");
    let start = out.len();
    let first = if operand.is_touched() { operand.touch(out) } else { None };
    if operand.is_jump {
        out.extend_from_slice(&STEP_DOWN);
    }
    let second = operand.push(out);
    out.push(0x68);
    out.extend_from_slice(&site.place.to_le_bytes());
    out.push(0xe8);
    let end = (out.len() - start + 4) as u32;
    out.extend_from_slice(&displacement(end).to_le_bytes());
    out.extend_from_slice(if operand.is_jump { &STEP_UP } else { &DROP });
    first.into_iter().chain(second).map(|at| (at - start) as u32).collect()
}

/// The routine.
///
/// # Panics
/// If a place is more than 2 GiB away.
pub(crate) fn assemble_target_routine(routine: &TargetRoutine) -> Vec<u8> {
    assemble(routine).expect("the routine that counts targets can be encoded")
}

fn assemble(routine: &TargetRoutine) -> Result<Vec<u8>, IcedError> {
    let mut asm = CodeAssembler::new(64)?;
    let (mut free, mut others) = (asm.create_label(), asm.create_label());
    let (mut claim, mut claimed) = (asm.create_label(), asm.create_label());
    let pair = |i: usize| (i * TARGET_BYTES) as i32;
    let count = |asm: &mut CodeAssembler, word: i32| {
        // A prefix that means nothing keeps the places of all else.
        asm.db(&[if routine.is_exact { LOCK } else { NOTHING }])?;
        asm.inc(qword_ptr(rcx) + word)
    };
    asm.push(rax)?;
    asm.push(rcx)?;
    // Below the target and the site stand where to return to, and these two.
    asm.mov(rax, qword_ptr(rsp) + 32)?;
    lea(&mut asm, Register::RCX, routine.base)?;
    asm.sub(rax, rcx)?;
    asm.add(rcx, qword_ptr(rsp) + 24)?;
    for i in 0..TARGETS {
        let mut next = asm.create_label();
        asm.cmp(rax, qword_ptr(rcx) + pair(i))?;
        asm.jne(next)?;
        count(&mut asm, pair(i) + 8)?;
        leave(&mut asm)?;
        asm.set_label(&mut next)?;
        asm.zero_bytes()?;
    }
    asm.cmp(qword_ptr(rcx) + pair(TARGETS - 1), 0)?;
    asm.je(free)?;
    asm.set_label(&mut others)?;
    count(&mut asm, pair(TARGETS))?;
    leave(&mut asm)?;
    // Some pair has no target yet. Only one of the program's code gets it.
    asm.set_label(&mut free)?;
    asm.cmp(rax, routine.span as i32)?;
    asm.jae(others)?;
    asm.push(rdx)?;
    asm.push(rsi)?;
    asm.mov(rdx, rax)?;
    asm.mov(esi, TARGETS as u32)?;
    asm.set_label(&mut claim)?;
    asm.xor(eax, eax)?;
    asm.lock().cmpxchg(qword_ptr(rcx), rdx)?;
    asm.je(claimed)?;
    // Somebody else was here in between; maybe for the same target.
    asm.cmp(rax, rdx)?;
    asm.je(claimed)?;
    asm.add(rcx, TARGET_BYTES as i32)?;
    asm.dec(esi)?;
    asm.jne(claim)?;
    // No pair was left: the word behind them is no pair's second one.
    asm.sub(rcx, 8)?;
    asm.set_label(&mut claimed)?;
    count(&mut asm, 8)?;
    asm.pop(rsi)?;
    asm.pop(rdx)?;
    leave(&mut asm)?;
    Ok(asm.assemble_options(routine.code, BlockEncoderOptions::NONE)?.inner.code_buffer)
}

fn leave(asm: &mut CodeAssembler) -> Result<(), IcedError> {
    asm.pop(rcx)?;
    asm.pop(rax)?;
    asm.ret()
}

fn lea(asm: &mut CodeAssembler, register: Register, address: u64) -> Result<(), IcedError> {
    let place = MemoryOperand::with_base_displ(Register::RIP, address as i64);
    asm.add_instruction(Instruction::with2(Code::Lea_r64_m, register, place)?)
}

/// How many registers the routine has saved behind each push and pop. Behind its return stands code that runs with the first two saved.
pub(crate) fn saved_by_routine(code: &[u8]) -> Vec<(u32, usize)> {
    let (mut at, mut saved, mut steps) = (0, 0, Vec::new());
    while let Some(inst) = code.get(at..).filter(|rest| !rest.is_empty()).and_then(|rest| full(rest, 0)) {
        at += inst.len();
        let now = match inst.mnemonic() {
            Mnemonic::Push => saved + 1,
            Mnemonic::Pop => saved - 1,
            Mnemonic::Ret => 2,
            _ => saved,
        };
        if now != saved {
            if at < code.len() {
                steps.push((at as u32, now));
            }
            saved = now;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(call: &[u8]) -> (TargetCode, Vec<u8>, Vec<u32>) {
        let code = target_code(call).expect("such code");
        let mut out = Vec::new();
        let fields = write_target_code(&mut out, TargetSite { call, place: 0x88 }, |end| 0x1000 - end as i32);
        assert_eq!(out.len(), code.size() as usize, "{out:x?}");
        let starts = code.lowered_stack().map(|(at, _)| out.get(at as usize).copied());
        assert_eq!(&starts[1..], [Some(0x68), Some(0xe8), None], "{out:x?}");
        (code, out, fields)
    }

    /// The call or jump; what reads its word, and what pushes its target; where their displacements stand.
    type Example = (&'static [u8], &'static [u8], &'static [u8], &'static [u32]);

    const EXAMPLES: [Example; 11] = [
        // call *%rax
        (&[0xff, 0xd0], &[], &[0x50], &[]),
        // jmp *%r11
        (&[0x41, 0xff, 0xe3], &[], &[0x41, 0x53], &[]),
        // notrack jmp *%rdx
        (&[0x3e, 0xff, 0xe2], &[], &[0x52], &[]),
        // call *0x18(%rax)
        (&[0xff, 0x50, 0x18], &[], &[0xff, 0x70, 0x18], &[]),
        // jmp *0x18(%rax)
        (&[0xff, 0x60, 0x18], &[0x48, 0x3b, 0x40, 0x18], &[0xff, 0x70, 0x18], &[]),
        // jmp *(%r12,%r13,8)
        (&[0x43, 0xff, 0x24, 0xec], &[0x4b, 0x3b, 0x04, 0xec], &[0x43, 0xff, 0x34, 0xec], &[]),
        // call *8(%rsp)
        (&[0xff, 0x54, 0x24, 8], &[], &[0xff, 0x74, 0x24, 8], &[]),
        // jmp *8(%rsp)
        (&[0xff, 0x64, 0x24, 8], &[], &[0xff, 0xb4, 0x24, 0x88, 0, 0, 0], &[]),
        // call *0x11223344(%rip)
        (&[0xff, 0x15, 0x44, 0x33, 0x22, 0x11], &[], &[0xff, 0x35, 0x44, 0x33, 0x22, 0x11], &[2]),
        // jmp *0x11223344(%rip)
        (
            &[0xff, 0x25, 0x44, 0x33, 0x22, 0x11],
            &[0x48, 0x3b, 0x05, 0x44, 0x33, 0x22, 0x11],
            &[0xff, 0x35, 0x44, 0x33, 0x22, 0x11],
            &[3, 14],
        ),
        // jmp *0x1000(,%rdi,8)
        (
            &[0xff, 0x24, 0xfd, 0, 0x10, 0, 0],
            &[0x48, 0x3b, 0x04, 0xfd, 0, 0x10, 0, 0],
            &[0xff, 0x34, 0xfd, 0, 0x10, 0, 0],
            &[4, 16],
        ),
    ];

    #[test]
    fn the_code_has_the_operand_of_the_call() {
        let behind = [0x68, 0x88, 0, 0, 0, 0xe8];
        for (call, touch, push, fields) in EXAMPLES {
            let (code, out, found) = written(call);
            let (down, up) = if code.is_jump { (&STEP_DOWN[..], &STEP_UP[..]) } else { (&[][..], &DROP[..]) };
            let expected = [touch, down, push, &behind].concat();
            assert!(out.starts_with(&expected), "{call:x?}: {out:x?}, not {expected:x?}");
            assert!(out.ends_with(up), "{out:x?}");
            assert_eq!((usize::from(code.touch), usize::from(code.push)), (touch.len(), push.len()));
            assert_eq!(found, fields, "{call:x?}");
        }
    }

    #[test]
    fn other_calls_have_none() {
        for call in [
            &[0xff, 0xd4][..],                     // call *%rsp
            &[0x64, 0xff, 0x14, 0x25, 0, 0, 0, 0], // call *%fs:0
            &[0x67, 0xff, 0x10],                   // call *(%eax)
            &[0x66, 0xff, 0xd0],                   // callw *%ax
            &[0xff, 0x18],                         // lcall *(%rax)
            &[0xff, 0x30],                         // push (%rax)
            &[0xe8, 0, 0, 0, 0],                   // call
            &[0xc3],                               // ret
            &[0xff, 0x15, 0, 0],                   // cut off
        ] {
            assert_eq!(target_code(call), None, "{call:x?}");
        }
    }
}
