//! Functions whose code is to run in place of a call of them: what each instruction does with the stack, and the instructions that
//! stand in for the call's and the return's own steps of the stack pointer.
//!
//! In a called function, the return address stands `depth` bytes above the stack pointer. In place of the call, that word is there but
//! holds anything; so no instruction may read it. Below the stack pointer nothing may be kept: the red zone is not followed.
//!
//! A function that has the frame pointer lead into its frame does so for who looks for frames by it (profilers, sanitizers, the program itself): there,
//! the word holds where the call would have come back.

use super::{decode, full};
use crate::Flow;
use crate::calls::{FrameState, FrameStep};
use iced_x86::{
    Code, CpuidFeature, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
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

/// `lea place(%rip),%rbp` and `mov %rbp,depth(%rsp)`, and where the field of the place stands.
pub fn name_return_address(depth: u32) -> (Vec<u8>, u32) {
    let mut code = vec![0x48, 0x8d, 0x2d, 0, 0, 0, 0];
    match i8::try_from(depth) {
        Ok(depth) => code.extend_from_slice(&[0x48, 0x89, 0x6c, 0x24, depth as u8]),
        Err(_) => {
            code.extend_from_slice(&[0x48, 0x89, 0xac, 0x24]);
            code.extend_from_slice(&depth.to_le_bytes());
        }
    }
    (code, 3)
}

/// What the instruction that `bytes` start with does with the stack; `None` if it may not run in place of a call.
pub fn frame_step(bytes: &[u8], state: FrameState) -> Option<FrameStep> {
    let inst = full(bytes, 0)?;
    let reduced = decode(bytes)?;
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
    let step = |state: FrameState, needs_place: bool| FrameStep { len: reduced.len, state, needs_place };
    if !is_call {
        let asks_for_more = inst.flow_control() != FlowControl::Next
            || inst.is_privileged()
            || inst.is_save_restore_instruction()
            || inst.cpuid_features().contains(&CpuidFeature::CET_SS)
            || matches!(inst.mnemonic(), Mnemonic::Hlt | Mnemonic::Endbr64);
        if asks_for_more {
            return None;
        }
        if let Some(moved) = state.moved(&inst) {
            // Who looks for frames by the pointer reads the return address above it.
            return moved.map(|behind| step(behind, behind.pointer.is_some()));
        }
    }
    let reaches = state.accesses(&inst)?;
    // Such counts who was called from where (`__fentry__`): it reads the return address above its own.
    if is_call && state.depth == 0 {
        return None;
    }
    Some(step(state, is_call || reaches))
}

impl FrameState {
    /// With the stack's top elsewhere, if that is in the frame, and not too far down.
    fn with_depth(self, depth: i64) -> Option<Self> {
        let depth = u32::try_from(depth).ok().filter(|depth| i64::from(*depth) <= DEEPEST)?;
        Some(Self { depth, ..self })
    }

    fn moved_by(self, bytes: i64) -> Option<Self> {
        self.with_depth(i64::from(self.depth).checked_add(bytes)?)
    }

    /// Where the frame is behind an instruction that moves the stack's top or sets the frame pointer; an inner `None` if it does so in a way that is not followed.
    fn moved(self, inst: &Instruction) -> Option<Option<Self>> {
        let registers = [0, 1].map(|i| {
            let is_there = i < inst.op_count() && inst.op_kind(i) == OpKind::Register;
            if is_there { inst.op_register(i) } else { Register::None }
        });
        let pointer = self.pointer.map(i64::from);
        Some(match (inst.mnemonic(), registers) {
            (Mnemonic::Push | Mnemonic::Pop, [register, _]) if register != Register::None => {
                let is_pointer = register == Register::RBP && pointer.is_some();
                let is_whole = register.is_gpr64() && register != Register::RSP;
                match inst.mnemonic() {
                    _ if !is_whole => None,
                    Mnemonic::Pop if is_pointer => Self { pointer: None, ..self }.moved_by(-WORD),
                    Mnemonic::Pop => self.moved_by(-WORD),
                    _ if is_pointer => None,
                    _ => self.moved_by(WORD),
                }
            }
            (Mnemonic::Add | Mnemonic::Sub, [Register::RSP, _]) => {
                let number = match inst.op1_kind() {
                    OpKind::Immediate8to64 | OpKind::Immediate32to64 => inst.immediate(1) as i64,
                    _ => return Some(None),
                };
                let by = if inst.mnemonic() == Mnemonic::Sub { Some(number) } else { number.checked_neg() };
                by.filter(|by| by % WORD == 0).and_then(|by| self.moved_by(by))
            }
            // What stood in the register is kept above.
            (Mnemonic::Mov, [Register::RBP, Register::RSP]) => (pointer.is_none()
                && i64::from(self.depth) >= WORD)
                .then_some(Self { pointer: Some(self.depth), ..self }),
            (Mnemonic::Mov, [Register::RSP, Register::RBP]) => {
                pointer.and_then(|pointer| self.with_depth(pointer))
            }
            (Mnemonic::Lea, [Register::RSP, _]) if is_plain(inst, Register::RBP) => {
                let displacement = inst.memory_displacement64() as i64;
                let depth = pointer.and_then(|pointer| pointer.checked_sub(displacement));
                depth.filter(|depth| depth % WORD == 0).and_then(|depth| self.with_depth(depth))
            }
            (Mnemonic::Leave, _) if inst.code() == Code::Leaveq => {
                pointer.and_then(|pointer| Self { pointer: None, ..self }.with_depth(pointer - WORD))
            }
            _ if inst.is_stack_instruction() => None,
            _ => return None,
        })
    }

    /// Whether an instruction does something with the stack that depends on where it is. `None`: it may see the return address, or names the
    /// stack pointer, or the frame pointer while that leads into the frame, in another way than as the base of an operand.
    fn accesses(self, inst: &Instruction) -> Option<bool> {
        let is_stack = |register: Register| match register.full_register() {
            Register::RSP => true,
            Register::RBP => self.pointer.is_some(),
            _ => false,
        };
        let calls = inst.flow_control() != FlowControl::Next;
        if (0..inst.op_count()).any(|i| inst.op_kind(i) == OpKind::Register && is_stack(inst.op_register(i)))
        {
            return None;
        }
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(inst);
        let mut named = info.used_registers().iter().filter(|u| is_stack(u.register()));
        // A call itself moves the stack pointer.
        if !calls && named.any(|u| !matches!(u.access(), OpAccess::Read | OpAccess::None)) {
            return None;
        }
        let base = inst.memory_base();
        if !is_stack(base) {
            return (!is_stack(inst.memory_index())).then_some(false);
        }
        let depth = i64::from(self.depth);
        // From the stack's top.
        let origin = match (base, self.pointer) {
            (Register::RSP, _) => 0,
            (Register::RBP, Some(pointer)) => depth - i64::from(pointer),
            _ => return None,
        };
        let start = origin.checked_add(inst.memory_displacement64() as i64)?;
        if !is_plain(inst, base) || start < 0 {
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
}

/// Whether an operand in memory is so far from what a register holds, and nothing else.
fn is_plain(inst: &Instruction, base: Register) -> bool {
    inst.memory_base() == base
        && inst.memory_index() == Register::None
        && inst.segment_prefix() == Register::None
}
