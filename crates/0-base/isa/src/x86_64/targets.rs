//! The code of x86-64 that counts [targets](crate::targets) of indirect calls and jumps.
//!
//! In front of a jump, `lea -128(%rsp),%rsp` steps over the red zone. Then `%rax` is saved and the target loaded into it, the place of the site is
//! pushed, and the routine is called. Whoever leaves out an instruction that cannot read the target finds the stack as it should be behind
//! it: no access to memory that may not be there moves the stack pointer. A table of a site is [`TARGETS`] pairs of words, a target and its count, and a word for all other targets. Pairs are
//! filled in their order and never change their target, so whoever finds one needs no lock.

use super::counter::{RED_ZONE, STEP_DOWN, STEP_UP};
use super::full;
use crate::targets::{TARGETS, TargetCode, TargetRoutine, TargetSite};
use iced_x86::code_asm::{CodeAssembler, eax, esi, qword_ptr, rax, rcx, rdx, rsi, rsp};
use iced_x86::{BlockEncoderOptions, Code, IcedError, Instruction, MemoryOperand, Mnemonic, Register};

/// `push %rax`; and `pop %rax` twice: the site, and what was saved.
const SAVE: u8 = 0x50;
const RESTORE: [u8; 2] = [0x58, 0x58];
/// Where the target is handed over.
const RAX: u8 = 0;
const WIDE: u8 = 8;
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
        let steps = if self.is_jump { STEP_DOWN.len() + STEP_UP.len() } else { 0 };
        let handed = 1 + usize::from(self.load) + PUSH_NUMBER + CALL + RESTORE.len();
        u32::from(self.touch) + (handed + steps) as u32
    }

    /// Where in the code the stack pointer changes, as bytes from its start, and by how much it is then lower than around it.
    pub fn lowered_stack(self) -> [(u32, u32); 6] {
        let (size, step) = if self.is_jump { (STEP_DOWN.len() as u32, u32::from(RED_ZONE)) } else { (0, 0) };
        let lowered = u32::from(self.touch) + size;
        let saved = lowered + 1;
        let pushed = saved + u32::from(self.load) + PUSH_NUMBER as u32;
        let restored = pushed + (CALL + 1) as u32;
        [
            (lowered, step),
            (saved, step + 8),
            (pushed, step + 16),
            (restored, step + 8),
            (restored + 1, step),
            (self.size(), 0),
        ]
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
/// An index of that number, without the bit of REX that extends it, is none.
const NO_INDEX: u8 = 4;

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
        self.write(out, WIDE, 0x3b, RAX)
    }

    /// Whether the word that holds the target has to be read first: it may not be there.
    fn is_touched(&self) -> bool {
        let has_index = self.rest.first().is_some_and(|sib| sib >> 3 & 7 != NO_INDEX || self.rex & 2 != 0);
        let is_near = self.modrm & 0xc7 == 5;
        self.register().is_none() && !is_near && (!self.is_on_stack() || has_index)
    }

    /// Appends a load of it into `%rax`, below which the stack pointer is, and in front of a jump lower by the red zone.
    fn load(&self, out: &mut Vec<u8>) -> Option<usize> {
        if self.register() == Some(RAX) {
            return None;
        }
        if !self.is_on_stack() {
            return self.write(out, WIDE, 0x8b, RAX);
        }
        let displacement = match self.rest[1..] {
            [] => 0,
            [byte] => i32::from(byte as i8),
            [a, b, c, d] => i32::from_le_bytes([a, b, c, d]),
            _ => unreachable!("displacements have one or four bytes"),
        };
        let lower = 8 + if self.is_jump { i32::from(RED_ZONE) } else { 0 };
        out.extend_from_slice(&[0x40 | WIDE | self.rex, 0x8b, 0x80 | RAX << 3 | 4, self.rest[0]]);
        out.extend_from_slice(&displacement.wrapping_add(lower).to_le_bytes());
        None
    }
}

/// The code in front of the call.
pub(crate) fn target_code(call: &[u8]) -> Option<TargetCode> {
    let operand = Operand::of(call)?;
    let (mut touch, mut load) = (Vec::new(), Vec::new());
    if operand.register() == Some(STACK_POINTER) {
        return None;
    }
    if operand.is_touched() {
        operand.touch(&mut touch);
    }
    operand.load(&mut load);
    Some(TargetCode { is_jump: operand.is_jump, touch: touch.len() as u8, load: load.len() as u8 })
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
    out.push(SAVE);
    let second = operand.load(out);
    out.push(0x68);
    out.extend_from_slice(&site.place.to_le_bytes());
    out.push(0xe8);
    let end = (out.len() - start + 4) as u32;
    out.extend_from_slice(&displacement(end).to_le_bytes());
    out.extend_from_slice(&RESTORE);
    if operand.is_jump {
        out.extend_from_slice(&STEP_UP);
    }
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
    // The target is in `rax`, which the site has saved.
    asm.push(rcx)?;
    lea(&mut asm, Register::RCX, routine.base)?;
    asm.sub(rax, rcx)?;
    // Below the site stand where to return to, and `rcx`.
    asm.add(rcx, qword_ptr(rsp) + 16)?;
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
    asm.ret()
}

fn lea(asm: &mut CodeAssembler, register: Register, address: u64) -> Result<(), IcedError> {
    let place = MemoryOperand::with_base_displ(Register::RIP, address as i64);
    asm.add_instruction(Instruction::with2(Code::Lea_r64_m, register, place)?)
}

/// How many registers the routine has saved behind each push and pop. Behind its return stands code that runs with the first one saved.
pub(crate) fn saved_by_routine(code: &[u8]) -> Vec<(u32, usize)> {
    let (mut at, mut saved, mut steps) = (0, 0, Vec::new());
    while let Some(inst) = code.get(at..).filter(|rest| !rest.is_empty()).and_then(|rest| full(rest, 0)) {
        at += inst.len();
        let now = match inst.mnemonic() {
            Mnemonic::Push => saved + 1,
            Mnemonic::Pop => saved - 1,
            Mnemonic::Ret => 1,
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
    use iced_x86::OpKind;

    fn written(call: &[u8]) -> (TargetCode, Vec<u8>, Vec<u32>) {
        let code = target_code(call).expect("such code");
        let mut out = Vec::new();
        let fields = write_target_code(&mut out, TargetSite { call, place: 0x88 }, |end| 0x1000 - end as i32);
        assert_eq!(out.len(), code.size() as usize, "{out:x?}");
        let starts = code.lowered_stack().map(|(at, _)| out.get(at as usize).copied());
        assert_eq!(starts[0], Some(SAVE), "{out:x?}");
        let up = code.is_jump.then_some(STEP_UP[0]);
        assert_eq!(starts[2..], [Some(0xe8), Some(RESTORE[1]), up, None], "{out:x?}");
        (code, out, fields)
    }

    /// The call or jump; what reads its word, and what loads its target; where their displacements stand.
    type Example = (&'static [u8], &'static [u8], &'static [u8], &'static [u32]);

    const EXAMPLES: [Example; 13] = [
        // call *%rax
        (&[0xff, 0xd0], &[], &[], &[]),
        // jmp *%r11
        (&[0x41, 0xff, 0xe3], &[], &[0x49, 0x8b, 0xc3], &[]),
        // notrack jmp *%rdx
        (&[0x3e, 0xff, 0xe2], &[], &[0x48, 0x8b, 0xc2], &[]),
        // call *0x18(%rax)
        (&[0xff, 0x50, 0x18], &[0x48, 0x3b, 0x40, 0x18], &[0x48, 0x8b, 0x40, 0x18], &[]),
        // jmp *0x18(%rax)
        (&[0xff, 0x60, 0x18], &[0x48, 0x3b, 0x40, 0x18], &[0x48, 0x8b, 0x40, 0x18], &[]),
        // jmp *(%r12,%r13,8)
        (&[0x43, 0xff, 0x24, 0xec], &[0x4b, 0x3b, 0x04, 0xec], &[0x4b, 0x8b, 0x04, 0xec], &[]),
        // call *8(%rsp)
        (&[0xff, 0x54, 0x24, 8], &[], &[0x48, 0x8b, 0x84, 0x24, 0x10, 0, 0, 0], &[]),
        // jmp *8(%rsp)
        (&[0xff, 0x64, 0x24, 8], &[], &[0x48, 0x8b, 0x84, 0x24, 0x90, 0, 0, 0], &[]),
        // call *8(%rsp,%rax,8)
        (&[0xff, 0x54, 0xc4, 8], &[0x48, 0x3b, 0x44, 0xc4, 8], &[0x48, 0x8b, 0x84, 0xc4, 0x10, 0, 0, 0], &[]),
        // call *(%rsp,%r12,8)
        (&[0x42, 0xff, 0x14, 0xe4], &[0x4a, 0x3b, 0x04, 0xe4], &[0x4a, 0x8b, 0x84, 0xe4, 8, 0, 0, 0], &[]),
        // call *0x11223344(%rip)
        (&[0xff, 0x15, 0x44, 0x33, 0x22, 0x11], &[], &[0x48, 0x8b, 0x05, 0x44, 0x33, 0x22, 0x11], &[4]),
        // jmp *0x11223344(%rip)
        (&[0xff, 0x25, 0x44, 0x33, 0x22, 0x11], &[], &[0x48, 0x8b, 0x05, 0x44, 0x33, 0x22, 0x11], &[9]),
        // jmp *0x1000(,%rdi,8)
        (
            &[0xff, 0x24, 0xfd, 0, 0x10, 0, 0],
            &[0x48, 0x3b, 0x04, 0xfd, 0, 0x10, 0, 0],
            &[0x48, 0x8b, 0x04, 0xfd, 0, 0x10, 0, 0],
            &[4, 18],
        ),
    ];

    #[test]
    fn the_code_has_the_operand_of_the_call() {
        let behind = [0x68, 0x88, 0, 0, 0, 0xe8];
        for (call, touch, load, fields) in EXAMPLES {
            let (code, out, found) = written(call);
            let (down, up) = if code.is_jump { (&STEP_DOWN[..], &STEP_UP[..]) } else { (&[][..], &[][..]) };
            let expected = [touch, down, &[SAVE], load, &behind].concat();
            assert!(out.starts_with(&expected), "{call:x?}: {out:x?}, not {expected:x?}");
            assert!(out.ends_with(&[&RESTORE, up].concat()), "{out:x?}");
            assert_eq!((usize::from(code.touch), usize::from(code.load)), (touch.len(), load.len()));
            assert_eq!(found, fields, "{call:x?}");
        }
    }

    /// A handler may leave out what cannot read the target: the stack pointer is then where it would be.
    #[test]
    fn no_access_that_may_fail_moves_the_stack() {
        for (call, ..) in EXAMPLES {
            let (_, out, _) = written(call);
            let mut at = 0;
            while let Some(inst) =
                out.get(at..).filter(|rest| !rest.is_empty()).and_then(|rest| full(rest, 0))
            {
                let operands = 0..inst.op_count();
                let mut kinds = operands.map(|i| inst.op_kind(i));
                let accesses = kinds.any(|kind| kind == OpKind::Memory) && inst.mnemonic() != Mnemonic::Lea;
                assert!(!(accesses && inst.stack_pointer_increment() != 0), "{inst} in front of {call:x?}");
                at += inst.len();
            }
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
