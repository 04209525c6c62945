//! Instructions reduced to what they do with values of 64 bits.

use super::values::{Own, SUM, Value};
use afterlink_isa::x86_64::iced_x86::{
    ConditionCode, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

/// Sixteen general and thirty-two vector registers.
pub(super) const REGISTERS: usize = 48;
pub(super) const GENERAL: usize = 16;
// `iced` counts registers as the machine does.
pub(super) const RAX: u8 = 0;
pub(super) const RDX: u8 = 2;
/// `rdi`, `rsi`, `rdx`, `rcx`, `r8` and `r9`, in which a call may be given something.
pub(super) const ARGUMENTS: u64 = 1 << 7 | 1 << 6 | 1 << 2 | 1 << 1 | 1 << 8 | 1 << 9;
/// `rbx`, `rbp`, `r12` to `r15` and `rsp`, which a called function leaves alone.
pub(super) const KEPT: u64 = 1 << 3 | 1 << 4 | 1 << 5 | 0xf << 12;
pub(super) const RSP: u8 = 4;
pub(super) const RBP: u8 = 5;

/// A memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    /// The displacement, or all of the address if there is no register.
    pub address: i64,
    pub base: Option<u8>,
    pub index: Option<u8>,
    /// The index is not scaled.
    pub plain: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    Register(u8),
    Memory(Memory),
    Value(Value),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Nothing,
    /// Eight bytes.
    Copy {
        to: u8,
        from: From,
    },
    /// Four bytes, filled up with zeroes or by their sign.
    Narrow {
        to: u8,
        from: From,
        signed: bool,
    },
    /// `lea`.
    Address {
        to: u8,
        memory: Memory,
    },
    Add {
        to: u8,
        from: From,
    },
    Offset {
        to: u8,
        by: i64,
    },
    /// The stack pointer made a multiple of something.
    Align,
    /// `to`, or what stands at `from`.
    Select {
        to: u8,
        from: From,
    },
    Exchange(u8, u8),
    /// Eight bytes.
    Store {
        memory: Memory,
        from: From,
    },
    Push(From),
    Pop(u8),
    Leave,
    /// Moves parts of registers, by the set of those read, to a register or to `size` bytes of memory.
    Gather {
        read: u64,
        to: Result<u8, Memory>,
        size: u8,
    },
    /// Reads without a result.
    Compare {
        read: u64,
    },
    /// A call, maybe through a register.
    Call {
        through: Option<u8>,
    },
    /// An indirect jump; a direct one has no operand.
    Jump(Option<From>),
    /// Anything else: registers read and changed.
    Mix {
        read: u64,
        written: u64,
        memory: Option<Memory>,
    },
    /// Computes with a label's address that is part of the instruction.
    ComputesWithLabel,
}

impl Step {
    /// Whether it reads a word of memory that may be the frame's.
    pub fn loads(&self) -> bool {
        match self {
            Self::Copy { from, .. }
            | Self::Add { from, .. }
            | Self::Select { from, .. }
            | Self::Push(from) => {
                matches!(from, From::Memory(_))
            }
            Self::Jump(from) => matches!(from, Some(From::Memory(_))),
            Self::Store { from, .. } => matches!(from, From::Memory(_)),
            Self::Pop(_) | Self::Leave => true,
            _ => false,
        }
    }
}

/// The number of a register, if it is followed.
pub(super) fn number(register: Register) -> Option<u8> {
    let full = register.full_register();
    if (Register::RAX..=Register::R15).contains(&full) {
        Some((full as u32 - Register::RAX as u32) as u8)
    } else if (Register::ZMM0..=Register::ZMM31).contains(&full) {
        Some(16 + (full as u32 - Register::ZMM0 as u32) as u8)
    } else {
        None
    }
}

pub(super) fn memory(inst: &Instruction) -> Memory {
    if inst.is_ip_rel_memory_operand() {
        let address = inst.ip_rel_memory_address() as i64;
        return Memory { address, base: None, index: None, plain: true };
    }
    Memory {
        address: inst.memory_displacement64() as i64,
        base: number(inst.memory_base()),
        index: number(inst.memory_index()),
        plain: inst.memory_index_scale() == 1,
    }
}

fn is_register(inst: &Instruction, i: u32, size: usize) -> bool {
    inst.op_count() > i && inst.op_kind(i) == OpKind::Register && inst.op_register(i).size() == size
}

fn is_memory(inst: &Instruction, i: u32) -> bool {
    inst.op_count() > i && inst.op_kind(i) == OpKind::Memory
}

/// The address that an immediate operand of the instruction stands for. What a relocation does not call an address of code
/// is none.
fn immediate(inst: &Instruction, own: &Own, named: Option<u64>) -> Value {
    let number = inst.immediate(inst.op_count() - 1);
    match named {
        Some(place) if place & 0xffff_ffff == number & 0xffff_ffff => Value::Place(place),
        _ if own.is_code(number) => Value::Other(SUM),
        _ => Value::Place(number),
    }
}

/// Reduces an instruction. `named` is an address of code that a relocation puts into it as a number.
pub(super) fn step(
    factory: &mut InstructionInfoFactory,
    inst: &Instruction,
    own: &Own,
    named: Option<u64>,
    jumps: bool,
) -> Step {
    let found = simple(inst, own, named).unwrap_or_else(|| other(factory, inst));
    let label = named.filter(|&n| own.is_label(n) || jumps && n == own.entry);
    let passes = match found {
        Step::Copy { from: From::Value(_), .. }
        | Step::Store { from: From::Value(_), .. }
        | Step::Push(From::Value(_)) => true,
        Step::Address { memory, .. } => memory.base.is_none() && memory.index.is_none(),
        Step::Compare { .. } => label == Some(own.entry),
        _ => false,
    };
    if passes || label.is_none() { found } else { Step::ComputesWithLabel }
}

fn simple(inst: &Instruction, own: &Own, named: Option<u64>) -> Option<Step> {
    use Mnemonic as M;
    let from = |i: u32, size: usize| {
        if is_register(inst, i, size) {
            number(inst.op_register(i)).map(From::Register)
        } else if is_memory(inst, i) {
            Some(From::Memory(memory(inst)))
        } else {
            None
        }
    };
    let wide = is_register(inst, 0, 8);
    let to = if inst.op_count() > 0 { number(inst.op0_register()) } else { None };
    Some(match inst.mnemonic() {
        M::Nop | M::Endbr64 | M::Ret => Step::Nothing,
        M::Call => Step::Call { through: number(inst.op0_register()).filter(|_| is_register(inst, 0, 8)) },
        M::Jmp => Step::Jump(from(0, 8)),
        M::Mov if is_memory(inst, 0) => {
            let value = match inst.op1_kind() {
                OpKind::Register if inst.op1_register().size() == 8 => {
                    From::Register(number(inst.op1_register())?)
                }
                OpKind::Immediate32to64 => From::Value(immediate(inst, own, named)),
                // Four bytes hold all of an address that is so small.
                OpKind::Immediate32 if named.is_some() => From::Value(immediate(inst, own, named)),
                _ => return None,
            };
            Step::Store { memory: memory(inst), from: value }
        }
        M::Mov if wide || is_register(inst, 0, 4) => match inst.op1_kind() {
            OpKind::Register | OpKind::Memory if wide => Step::Copy { to: to?, from: from(1, 8)? },
            OpKind::Register | OpKind::Memory => Step::Narrow { to: to?, from: from(1, 4)?, signed: false },
            _ => Step::Copy { to: to?, from: From::Value(immediate(inst, own, named)) },
        },
        M::Movsxd if wide => Step::Narrow { to: to?, from: from(1, 4)?, signed: true },
        M::Cdqe => Step::Narrow { to: RAX, from: From::Register(RAX), signed: true },
        M::Lea if wide => Step::Address { to: to?, memory: memory(inst) },
        M::Add | M::Sub if wide && !matches!(inst.op1_kind(), OpKind::Register | OpKind::Memory) => {
            let by = inst.immediate(1) as i64;
            Step::Offset { to: to?, by: if inst.mnemonic() == M::Add { by } else { by.wrapping_neg() } }
        }
        M::Add if wide => Step::Add { to: to?, from: from(1, 8)? },
        M::And if wide && to == Some(RSP) => Step::Align,
        M::Xchg if wide && is_register(inst, 1, 8) => Step::Exchange(to?, number(inst.op1_register())?),
        M::Push if is_register(inst, 0, 8) || is_memory(inst, 0) => Step::Push(from(0, 8)?),
        M::Push => Step::Push(From::Value(immediate(inst, own, named))),
        M::Pop if wide => Step::Pop(to?),
        M::Leave => Step::Leave,
        M::Movq | M::Vmovq if inst.op_count() == 2 => match (is_memory(inst, 0), is_memory(inst, 1)) {
            (true, _) => {
                Step::Store { memory: memory(inst), from: From::Register(number(inst.op1_register())?) }
            }
            (_, true) => Step::Copy { to: to?, from: From::Memory(memory(inst)) },
            _ => Step::Copy { to: to?, from: From::Register(number(inst.op1_register())?) },
        },
        _ if inst.condition_code() != ConditionCode::None && wide => {
            Step::Select { to: to?, from: from(1, 8)? }
        }
        _ => return None,
    })
}

fn other(factory: &mut InstructionInfoFactory, inst: &Instruction) -> Step {
    let (mut read, mut written) = (0u64, 0u64);
    let info = factory.info(inst);
    for used in info.used_registers() {
        let Some(number) = number(used.register()) else { continue };
        match used.access() {
            OpAccess::None | OpAccess::NoMemAccess => {}
            OpAccess::Read | OpAccess::CondRead => read |= 1 << number,
            OpAccess::Write | OpAccess::CondWrite => written |= 1 << number,
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => {
                read |= 1 << number;
                written |= 1 << number;
            }
        }
    }
    let writes = |m: OpAccess| {
        matches!(m, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
    };
    let stores = info.used_memory().iter().any(|m| writes(m.access()));
    let operand = (0..inst.op_count()).any(|i| is_memory(inst, i)).then(|| memory(inst));
    if moves_parts(inst.mnemonic()) {
        let size = inst.memory_size().size().max(8) as u8;
        let to = match operand.filter(|_| stores) {
            Some(memory) => Err(memory),
            None => Ok(number(inst.op0_register()).unwrap_or(RAX)),
        };
        return Step::Gather { read, to, size };
    }
    if written == 0 && !stores {
        return Step::Compare { read };
    }
    Step::Mix { read, written, memory: operand.filter(|_| stores) }
}

/// Moves words into, out of and between vector registers.
fn moves_parts(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(mnemonic, M::Pinsrq | M::Vpinsrq | M::Punpcklqdq | M::Vpunpcklqdq | M::Unpcklpd)
        || matches!(mnemonic, M::Movaps | M::Movups | M::Movdqa | M::Movdqu | M::Movhps | M::Movlhps)
        || matches!(mnemonic, M::Vmovaps | M::Vmovups | M::Vmovdqa | M::Vmovdqu | M::Vmovhps | M::Vmovlhps)
        || matches!(mnemonic, M::Vinserti128 | M::Vinsertf128 | M::Movapd | M::Movupd | M::Movhpd)
}
