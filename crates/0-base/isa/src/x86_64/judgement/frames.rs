//! The stack of code that runs in place of a call: whether an instruction may stand there, judged by what it touches.

use crate::judgement::{Frame, FrameChange};
use crate::x86_64::full;
use iced_x86::{
    Code, CpuidFeature, FlowControl, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register,
};

/// `push %rax` and `lea 8(%rsp),%rsp`.
pub(crate) const ROOM: [&[u8]; 2] = [b"\x50", b"\x48\x8d\x64\x24\x08"];

/// `pop N(%rsp)`.
pub(crate) fn carries_return_address(code: &[u8]) -> Option<(i64, usize)> {
    let inst = full(code, 0)?;
    let fits = inst.code() == Code::Pop_rm64
        && is_on_stack(&inst, 0)
        // Nothing but the opcode, its operand's form, and the number.
        && code.first() == Some(&0x8f);
    fits.then(|| (inst.memory_displacement64() as i64, inst.len()))
}

/// `lea place(%rip),%rbp` and `mov %rbp,depth(%rsp)`.
pub(crate) fn names_return_address(code: &[u8], address: u64, depth: i64) -> Option<(u64, usize)> {
    let lea = full(code, address)?;
    let names = lea.code() == Code::Lea_r64_m
        && lea.op0_register() == Register::RBP
        && lea.memory_base() == Register::RIP
        && lea.segment_prefix() == Register::None;
    let rest = code.get(lea.len()..).filter(|_| names)?;
    let store = full(rest, 0)?;
    let fits = store.code() == Code::Mov_rm64_r64
        && is_on_stack(&store, 0)
        && store.op1_register() == Register::RBP
        && store.memory_displacement64() as i64 == depth;
    fits.then(|| (lea.ip_rel_memory_address(), lea.len() + store.len()))
}

/// Whether an operand is so far from the stack's top in memory.
fn is_on_stack(inst: &Instruction, operand: u32) -> bool {
    inst.op_kind(operand) == OpKind::Memory && inst.memory_base() == Register::RSP && is_base_alone(inst)
}

/// Whether nothing but a register and a number makes up an address in memory.
fn is_base_alone(inst: &Instruction) -> bool {
    inst.memory_index() == Register::None && inst.segment_prefix() == Register::None
}

/// Where the return address stands, counted from the stack pointer: so many bytes from it on, none of which may be touched.
const WORD: i64 = 8;
/// Deeper frames may have to touch their pages one by one.
const DEEPEST: i64 = 2048;

/// See [`crate::judgement::Reader::frame_change`].
pub(crate) fn change(factory: &mut InstructionInfoFactory, code: &[u8], frame: Frame) -> Option<FrameChange> {
    let inst = full(code, 0)?;
    if let Some(behind) = moved(&inst, frame) {
        let behind = behind.filter(|behind| (0..=DEEPEST).contains(&behind.depth))?;
        let sets_pointer = frame.pointer.is_none() && behind.pointer.is_some();
        return Some(FrameChange { frame: behind, needs_place: sets_pointer, sets_pointer });
    }
    let calls = match inst.flow_control() {
        FlowControl::Next => false,
        FlowControl::Call => {
            // Plain, and not of the instruction behind it.
            if inst.code() != Code::Call_rel32_64 || inst.len() != 5 || inst.near_branch64() == 5 {
                return None;
            }
            true
        }
        FlowControl::IndirectCall if inst.code() == Code::Call_rm64 => true,
        _ => return None,
    };
    if !calls && (inst.is_stack_instruction() || super::calls::asks_for_more(&inst)) {
        return None;
    }
    let reaches = reach(factory, &inst, frame, calls)?;
    // What is called there finds the return address of who calls it right above its own, and may be after it (`__fentry__`).
    if calls && frame.depth == 0 {
        return None;
    }
    Some(FrameChange { frame, needs_place: calls || reaches, sets_pointer: false })
}

/// The frame behind an instruction that is known to move the stack's top or the frame pointer; an inner `None` if it may not.
fn moved(inst: &Instruction, frame: Frame) -> Option<Option<Frame>> {
    let top = |depth: i64| Some(Frame { depth, ..frame });
    let (first, second) = (inst.op0_register(), inst.op1_register());
    let names_pointer = frame.pointer.is_some() && first == Register::RBP;
    Some(match inst.code() {
        Code::Push_r64 if first != Register::RSP && !names_pointer => top(frame.depth + WORD),
        Code::Pop_r64 if names_pointer => Some(Frame { depth: frame.depth - WORD, pointer: None }),
        Code::Pop_r64 if first != Register::RSP => top(frame.depth - WORD),
        Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 | Code::Add_rm64_imm8 | Code::Add_rm64_imm32
            if inst.op0_kind() == OpKind::Register && first == Register::RSP =>
        {
            let number = i64::from(inst.immediate(1) as i32);
            let sub = matches!(inst.code(), Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32);
            let moved = if sub { number } else { -number };
            if moved % WORD == 0 { top(frame.depth + moved) } else { None }
        }
        Code::Mov_rm64_r64 | Code::Mov_r64_rm64
            if inst.op0_kind() == OpKind::Register && inst.op1_kind() == OpKind::Register =>
        {
            match (first, second, frame.pointer) {
                // The caller's own stands in the frame.
                (Register::RBP, Register::RSP, None) if frame.depth >= WORD => {
                    Some(Frame { pointer: Some(frame.depth), ..frame })
                }
                (Register::RSP, Register::RBP, Some(pointer)) => top(pointer),
                (Register::RSP, ..) | (_, Register::RSP, _) => None,
                _ => return None,
            }
        }
        Code::Lea_r64_m if first == Register::RSP => {
            let is_plain = inst.memory_base() == Register::RBP && is_base_alone(inst);
            let by = inst.memory_displacement64() as i64;
            frame
                .pointer
                .filter(|_| is_plain && by % WORD == 0)
                .and_then(|pointer| top(pointer.checked_sub(by)?))
        }
        Code::Leaveq => frame.pointer.map(|pointer| Frame { depth: pointer - WORD, pointer: None }),
        _ => return None,
    })
}

/// Whether an instruction reaches for the stack in a way that shows where it is; `None` if it may touch the return address, what is below the
/// top, or the stack pointer itself, or the frame pointer while it names a place of the frame.
fn reach(
    factory: &mut InstructionInfoFactory,
    inst: &Instruction,
    frame: Frame,
    calls: bool,
) -> Option<bool> {
    let is_stack = |register: Register| {
        let whole = register.full_register();
        whole == Register::RSP || whole == Register::RBP && frame.pointer.is_some()
    };
    for i in 0..inst.op_count() {
        if inst.op_kind(i) == OpKind::Register && is_stack(inst.op_register(i)) {
            return None;
        }
    }
    let info = factory.info(inst);
    for used in info.used_registers() {
        let reads = matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::None);
        if is_stack(used.register()) && !reads && !calls {
            return None;
        }
    }
    if is_stack(inst.memory_index()) {
        return None;
    }
    if !is_stack(inst.memory_base()) {
        return Some(false);
    }
    if !is_base_alone(inst) {
        return None;
    }
    // Bytes from the stack's top.
    let from = match (inst.memory_base(), frame.pointer) {
        (Register::RSP, _) => 0,
        (Register::RBP, Some(pointer)) => frame.depth - pointer,
        _ => return None,
    };
    let at = from.checked_add(inst.memory_displacement64() as i64)?;
    if at < 0 {
        return None;
    }
    if matches!(inst.code(), Code::Lea_r64_m) {
        return (at != frame.depth).then_some(true);
    }
    if matches!(inst.code(), Code::Lea_r32_m | Code::Lea_r16_m) {
        return None;
    }
    let size = inst.memory_size().size() as i64;
    let behind = at.checked_add(size)?;
    let is_below = behind <= frame.depth;
    let is_above = at >= frame.depth + WORD;
    if size == 0 || inst.cpuid_features().contains(&CpuidFeature::CET_SS) || !(is_below || is_above) {
        return None;
    }
    Some(is_above || size > WORD)
}
