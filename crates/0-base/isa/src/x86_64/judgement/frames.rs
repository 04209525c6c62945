//! The stack of code that runs in place of a call: whether an instruction may stand there, judged by what it touches.

use crate::judgement::FrameChange;
use crate::x86_64::full;
use iced_x86::{
    Code, CpuidFeature, FlowControl, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register,
};

/// `push %rax` and `lea 8(%rsp),%rsp`.
pub(crate) const ROOM: [&[u8]; 2] = [b"\x50", b"\x48\x8d\x64\x24\x08"];

/// `pop depth(%rsp)`.
pub(crate) fn carries_return_address(code: &[u8], depth: i64) -> Option<usize> {
    let inst = full(code, 0)?;
    let fits = inst.code() == Code::Pop_rm64
        && inst.op0_kind() == OpKind::Memory
        && inst.memory_base() == Register::RSP
        && inst.memory_index() == Register::None
        && matches!(inst.segment_prefix(), Register::None)
        && inst.memory_displacement64() as i64 == depth
        // Nothing but the opcode, its operand's form, and the number.
        && code.first() == Some(&0x8f);
    fits.then_some(inst.len())
}

/// Where the return address stands, counted from the stack pointer: so many bytes from it on, none of which may be touched.
const WORD: i64 = 8;
/// Deeper frames may have to touch their pages one by one.
const DEEPEST: i64 = 2048;

/// See [`crate::judgement::Reader::frame_change`].
pub(crate) fn change(factory: &mut InstructionInfoFactory, code: &[u8], depth: i64) -> Option<FrameChange> {
    let inst = full(code, 0)?;
    let after = |moved: i64| (0..=DEEPEST).contains(&(depth + moved)).then_some(depth + moved);
    let plain = |depth: i64| FrameChange { depth, needs_place: false };
    match inst.code() {
        Code::Push_r64 | Code::Pop_r64 if inst.op0_register() != Register::RSP => {
            let moved = if inst.code() == Code::Push_r64 { WORD } else { -WORD };
            return after(moved).map(plain);
        }
        Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 | Code::Add_rm64_imm8 | Code::Add_rm64_imm32
            if inst.op0_kind() == OpKind::Register && inst.op0_register() == Register::RSP =>
        {
            let number = i64::from(inst.immediate(1) as i32);
            let sub = matches!(inst.code(), Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32);
            let moved = if sub { number } else { -number };
            return if moved % WORD == 0 { after(moved).map(plain) } else { None };
        }
        _ => {}
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
    let reaches = reach(factory, &inst, depth, calls)?;
    // What is called there finds the return address of who calls it right above its own, and may be after it (`__fentry__`).
    if calls && depth == 0 {
        return None;
    }
    Some(FrameChange { depth, needs_place: calls || reaches })
}

/// Whether an instruction reaches for the stack in a way that shows where it is; `None` if it may touch the return address, what is below the
/// top, or the stack pointer itself.
fn reach(factory: &mut InstructionInfoFactory, inst: &Instruction, depth: i64, calls: bool) -> Option<bool> {
    let is_stack = |register: Register| register.full_register() == Register::RSP;
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
    let is_plain = inst.memory_base() == Register::RSP
        && inst.memory_index() == Register::None
        && inst.segment_prefix() == Register::None;
    if !is_plain {
        return None;
    }
    let at = inst.memory_displacement64() as i64;
    if at < 0 {
        return None;
    }
    if matches!(inst.code(), Code::Lea_r64_m) {
        return (at != depth).then_some(true);
    }
    if matches!(inst.code(), Code::Lea_r32_m | Code::Lea_r16_m) {
        return None;
    }
    let size = inst.memory_size().size() as i64;
    let behind = at.checked_add(size)?;
    let is_below = behind <= depth;
    let is_above = at >= depth + WORD;
    if size == 0 || inst.cpuid_features().contains(&CpuidFeature::CET_SS) || !(is_below || is_above) {
        return None;
    }
    Some(is_above || size > WORD)
}
