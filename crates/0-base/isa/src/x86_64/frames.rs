//! Functions whose code is to run in place of a call of them: what each instruction does with the stack, and the instructions that
//! stand in for the call's and the return's own steps of the stack pointer.
//!
//! In a called function, the return address stands `depth` bytes above the stack pointer. In place of the call, that word is there but
//! holds anything; so no instruction may read it. Below the stack pointer nothing may be kept: the red zone is not followed.

use super::{decode, full};
use crate::Flow;
use crate::calls::FrameStep;
use iced_x86::{
    CpuidFeature, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

/// `push %rax`: room for the return address, which a call would have written to as well. No flag touched.
pub const MAKE_ROOM: [u8; 1] = [0x50];
pub const NOP: u8 = 0x90;
/// `lea 8(%rsp),%rsp`.
pub const GIVE_ROOM_BACK: [u8; 5] = [0x48, 0x8d, 0x64, 0x24, 8];

/// Bytes of the return address.
const WORD: i64 = 8;
/// More than a page of stack may need to be touched page by page.
const DEEPEST: i64 = 2048;

/// `pop depth(%rsp)`: the word on top of the stack goes to where a return address stands so far above what is then the top.
pub fn put_return_address(depth: u32) -> Vec<u8> {
    match i8::try_from(depth) {
        Ok(depth) => vec![0x8f, 0x44, 0x24, depth as u8],
        Err(_) => [&[0x8f, 0x84, 0x24][..], &depth.to_le_bytes()].concat(),
    }
}

/// Whether `bytes` start with a return that takes more, or something else, off the stack than a return address.
pub fn return_moves_stack(bytes: &[u8]) -> bool {
    let Some(inst) = full(bytes, 0) else { return false };
    let is_near = inst.mnemonic() == Mnemonic::Ret && i64::from(inst.stack_pointer_increment()) == WORD;
    inst.flow_control() == FlowControl::Return && !is_near
}

/// What the instruction that `bytes` start with does with the stack, where the return address stands `depth` bytes above its top; `None`
/// if it may not run in place of a call.
pub fn frame_step(bytes: &[u8], depth: u32) -> Option<FrameStep> {
    let inst = full(bytes, 0)?;
    let reduced = decode(bytes)?;
    let depth = i64::from(depth);
    let len = reduced.len;
    let is_call = match reduced.flow {
        Flow::Next => false,
        // A call of what follows only takes the address.
        Flow::Call(displacement) => {
            if displacement == 0 || bytes.first() != Some(&0xe8) {
                return None;
            }
            true
        }
        Flow::IndirectCall => true,
        _ => return None,
    };
    let step = |depth: i64, needs_place: bool| {
        (0..=DEEPEST).contains(&depth).then_some(FrameStep { len, depth: depth as u32, needs_place })
    };
    if !is_call {
        let asks_for_more = inst.flow_control() != FlowControl::Next
            || inst.is_privileged()
            || inst.is_save_restore_instruction()
            || inst.cpuid_features().contains(&CpuidFeature::CET_SS)
            || matches!(inst.mnemonic(), Mnemonic::Hlt | Mnemonic::Endbr64);
        if asks_for_more {
            return None;
        }
        let is_whole = |register: Register| register.is_gpr64() && register != Register::RSP;
        match inst.mnemonic() {
            Mnemonic::Push | Mnemonic::Pop if inst.op0_kind() == OpKind::Register => {
                let moves = if inst.mnemonic() == Mnemonic::Push { WORD } else { -WORD };
                return if is_whole(inst.op0_register()) { step(depth + moves, false) } else { None };
            }
            Mnemonic::Add | Mnemonic::Sub
                if inst.op0_kind() == OpKind::Register && inst.op0_register() == Register::RSP =>
            {
                let number = match inst.op1_kind() {
                    OpKind::Immediate8to64 | OpKind::Immediate32to64 => inst.immediate(1) as i64,
                    _ => return None,
                };
                let moves = if inst.mnemonic() == Mnemonic::Sub { number } else { number.checked_neg()? };
                return (moves % WORD == 0).then(|| step(depth.checked_add(moves)?, false)).flatten();
            }
            _ if inst.is_stack_instruction() => return None,
            _ => {}
        }
    }
    let reaches = accesses(&inst, depth)?;
    // Such counts who was called from where (`__fentry__`): it reads the return address above its own.
    if is_call && depth == 0 {
        return None;
    }
    step(depth, is_call || reaches)
}

/// Whether an instruction does something with the stack that depends on where it is. `None`: it may see the return address, or names the
/// stack pointer in another way than as the base of an operand.
fn accesses(inst: &Instruction, depth: i64) -> Option<bool> {
    let is_stack = |register: Register| register.full_register() == Register::RSP;
    let calls = inst.flow_control() != FlowControl::Next;
    if (0..inst.op_count()).any(|i| inst.op_kind(i) == OpKind::Register && is_stack(inst.op_register(i))) {
        return None;
    }
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(inst);
    let mut named = info.used_registers().iter().filter(|u| is_stack(u.register()));
    // A call itself moves the stack pointer.
    if !calls && named.any(|u| !matches!(u.access(), OpAccess::Read | OpAccess::None)) {
        return None;
    }
    if !is_stack(inst.memory_base()) {
        return Some(false);
    }
    let is_plain = inst.memory_base() == Register::RSP
        && inst.memory_index() == Register::None
        && inst.segment_prefix() == Register::None;
    let start = inst.memory_displacement64() as i64;
    if !is_plain || start < 0 {
        return None;
    }
    if inst.mnemonic() == Mnemonic::Lea {
        return (inst.op0_register().is_gpr64() && start != depth).then_some(true);
    }
    let size = inst.memory_size().size() as i64;
    let end = start.checked_add(size)?;
    let is_apart = size > 0 && (end <= depth || start >= depth + WORD);
    is_apart.then_some(end > depth || size > WORD)
}
