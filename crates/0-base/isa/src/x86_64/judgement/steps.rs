//! Instructions reduced to what they do with values of 64 bits.

use crate::judgement::{Memory, Source, Step};
use iced_x86::{ConditionCode, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

// The decoder counts registers as the machine does.
pub(super) const RAX: u8 = 0;
pub(super) const RSP: u8 = 4;

/// The number of a register, if it is followed.
fn number(register: Register) -> Option<u8> {
    let full = register.full_register();
    if (Register::RAX..=Register::R15).contains(&full) {
        Some((full as u32 - Register::RAX as u32) as u8)
    } else if (Register::ZMM0..=Register::ZMM31).contains(&full) {
        Some(16 + (full as u32 - Register::ZMM0 as u32) as u8)
    } else {
        None
    }
}

fn memory(inst: &Instruction) -> Memory {
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

/// The number in an instruction.
fn immediate(inst: &Instruction) -> Source<u64> {
    Source::Number(inst.immediate(inst.op_count() - 1))
}

/// Reduces an instruction; `is_named`: a relocation puts an address of code into it as a number.
pub(super) fn read(factory: &mut InstructionInfoFactory, inst: &Instruction, is_named: bool) -> Step<u64> {
    simple(inst, is_named).unwrap_or_else(|| other(factory, inst))
}

fn simple(inst: &Instruction, is_named: bool) -> Option<Step<u64>> {
    use Mnemonic as M;
    let from = |i: u32, size: usize| {
        if is_register(inst, i, size) {
            number(inst.op_register(i)).map(Source::Register)
        } else if is_memory(inst, i) {
            Some(Source::Memory(memory(inst)))
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
        M::Mov if is_memory(inst, 0) => Step::Store { memory: memory(inst), from: stored(inst, is_named)? },
        M::Mov if wide || is_register(inst, 0, 4) => match inst.op1_kind() {
            OpKind::Register | OpKind::Memory if wide => Step::Copy { to: to?, from: from(1, 8)? },
            OpKind::Register | OpKind::Memory => Step::Narrow { to: to?, from: from(1, 4)?, signed: false },
            _ => Step::Copy { to: to?, from: immediate(inst) },
        },
        M::Movsxd if wide => Step::Narrow { to: to?, from: from(1, 4)?, signed: true },
        M::Cdqe => Step::Narrow { to: RAX, from: Source::Register(RAX), signed: true },
        M::Lea if wide => Step::Address { to: to?, memory: memory(inst) },
        M::Add | M::Sub if wide && !matches!(inst.op1_kind(), OpKind::Register | OpKind::Memory) => {
            let by = inst.immediate(1) as i64;
            Step::Offset { to: to?, by: if inst.mnemonic() == M::Add { by } else { by.wrapping_neg() } }
        }
        M::Add if wide => Step::Add { to: to?, from: from(1, 8)? },
        M::And if wide && to == Some(RSP) => Step::Align,
        M::Xchg if wide && is_register(inst, 1, 8) => Step::Exchange(to?, number(inst.op1_register())?),
        M::Push if is_register(inst, 0, 8) || is_memory(inst, 0) => Step::Push(from(0, 8)?),
        M::Push => Step::Push(immediate(inst)),
        M::Pop if wide => Step::Pop(to?),
        M::Leave => Step::Leave,
        M::Movq | M::Vmovq if inst.op_count() == 2 => match (is_memory(inst, 0), is_memory(inst, 1)) {
            (true, _) => {
                Step::Store { memory: memory(inst), from: Source::Register(number(inst.op1_register())?) }
            }
            (_, true) => Step::Copy { to: to?, from: Source::Memory(memory(inst)) },
            _ => Step::Copy { to: to?, from: Source::Register(number(inst.op1_register())?) },
        },
        _ if inst.condition_code() != ConditionCode::None && wide => {
            Step::Select { to: to?, from: from(1, 8)? }
        }
        _ => return None,
    })
}

/// What a `mov` to memory stores, if an address fits into it.
fn stored(inst: &Instruction, is_named: bool) -> Option<Source<u64>> {
    Some(match inst.op1_kind() {
        OpKind::Register if inst.op1_register().size() == 8 => Source::Register(number(inst.op1_register())?),
        OpKind::Immediate32to64 => immediate(inst),
        // Four bytes hold all of an address that is so small.
        OpKind::Immediate32 if is_named => immediate(inst),
        _ => return None,
    })
}

fn other(factory: &mut InstructionInfoFactory, inst: &Instruction) -> Step<u64> {
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
