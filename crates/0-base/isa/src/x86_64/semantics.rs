//! Bytes to [`Semantics`].

use super::{ENDBR64, JUMP_LONG, TRAP, decode, full};
use crate::semantics::{
    Control, Convention, Memory, Operand, Operation, Order, Register, Registers, Semantics,
};
use iced_x86::{
    ConditionCode, FlowControl, Instruction, InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind,
};

const RAX: Register = Register::general(0);
const RCX: Register = Register::general(1);
const RDX: Register = Register::general(2);
const RBX: Register = Register::general(3);
const RSP: Register = Register::general(4);
const RBP: Register = Register::general(5);
const RSI: Register = Register::general(6);
const RDI: Register = Register::general(7);
const R8: Register = Register::general(8);
const R9: Register = Register::general(9);

/// System V ABI, 3.2.
pub(crate) const CONVENTION: Convention = Convention {
    stack_pointer: RSP,
    frame_pointer: RBP,
    kept: set(&[
        RBX,
        RBP,
        Register::general(12),
        Register::general(13),
        Register::general(14),
        Register::general(15),
    ]),
    arguments: set(&[RDI, RSI, RDX, RCX, R8, R9]),
    results: set(&[RAX, RDX]),
    result: RAX,
};

const fn set(registers: &[Register]) -> Registers {
    let mut set = Registers::EMPTY;
    let mut i = 0;
    while i < registers.len() {
        set = set.with(registers[i]);
        i += 1;
    }
    set
}

/// Reads semantics; keeps what the decoder needs between two instructions.
pub struct SemanticsReader {
    factory: InstructionInfoFactory,
}

impl Default for SemanticsReader {
    fn default() -> Self {
        Self { factory: InstructionInfoFactory::new() }
    }
}

impl SemanticsReader {
    /// The instruction at the start of `bytes`, as if it stood at `address`; `None` if it is none.
    pub fn read(&mut self, bytes: &[u8], address: u64) -> Option<Semantics> {
        let inst = full(bytes, address)?;
        let info = self.factory.info(&inst);
        let touched = |wanted: fn(OpAccess) -> bool| {
            let used = info.used_registers().iter().filter(|used| wanted(used.access()));
            used.fold(Registers::EMPTY, |set, used| set.with(whole(used.register())))
        };
        use OpAccess as A;
        Some(Semantics {
            address,
            len: inst.len() as u8,
            operation: operation(&inst),
            control: control(&inst),
            asks: asks(&inst),
            operands: [0, 1].map(|i| operand(&inst, i)),
            operand_count: inst.op_count() as u8,
            memory: memory(&inst, info),
            reads: touched(|access| !matches!(access, A::None | A::Write | A::CondWrite | A::NoMemAccess)),
            writes: touched(|access| matches!(access, A::Write | A::ReadWrite | A::CondWrite)),
            may_write: touched(|access| access == A::ReadCondWrite),
            changes_flags: inst.rflags_modified() != 0,
        })
    }
}

fn operation(inst: &Instruction) -> Operation {
    use Mnemonic as M;
    match inst.mnemonic() {
        M::Nop => Operation::Nothing,
        M::Endbr64 => Operation::LandingMark,
        M::Mov => Operation::Move,
        M::Movsxd => Operation::MoveSigned,
        M::Cdqe => Operation::ExtendSign,
        M::Movq | M::Vmovq => Operation::MoveWord,
        M::Lea => Operation::Address,
        M::Add => Operation::Add,
        M::Sub => Operation::Subtract,
        M::Sbb => Operation::SubtractBorrow,
        M::Neg | M::Not => Operation::Negate,
        M::Cmp => Operation::Compare,
        M::Test => Operation::Test,
        M::Xchg => Operation::Exchange,
        M::Push => Operation::Push,
        M::Pop => Operation::Pop,
        M::Leave => Operation::Leave,
        M::Call => Operation::Call,
        M::Syscall => Operation::SystemCall,
        M::Jmp => Operation::Jump,
        M::Ret => Operation::Return,
        mnemonic if is_select(mnemonic) => Operation::Select,
        mnemonic if is_vector_move(mnemonic) => Operation::MoveVector,
        _ => Operation::Other,
    }
}

fn is_select(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Cmova | M::Cmovae | M::Cmovb | M::Cmovbe | M::Cmove | M::Cmovne | M::Cmovg | M::Cmovge
    ) || matches!(mnemonic, M::Cmovl | M::Cmovle | M::Cmovs | M::Cmovns)
        || matches!(mnemonic, M::Cmovo | M::Cmovno | M::Cmovp | M::Cmovnp)
}

fn is_vector_move(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(mnemonic, M::Pinsrq | M::Vpinsrq | M::Punpcklqdq | M::Vpunpcklqdq)
        || matches!(
            mnemonic,
            M::Movaps | M::Movups | M::Movdqa | M::Movdqu | M::Movhps | M::Movlhps | M::Unpcklpd
        )
        || matches!(mnemonic, M::Vmovaps | M::Vmovups | M::Vmovdqa | M::Vmovdqu | M::Vmovhps | M::Vmovlhps)
        || matches!(mnemonic, M::Vinserti128 | M::Vinsertf128 | M::Movapd | M::Movupd | M::Movhpd)
}

fn control(inst: &Instruction) -> Control {
    match inst.flow_control() {
        FlowControl::Next => Control::Next,
        FlowControl::ConditionalBranch => Control::Branch,
        FlowControl::Call | FlowControl::IndirectCall => Control::Call,
        _ => Control::Away,
    }
}

fn asks(inst: &Instruction) -> Option<Order> {
    use ConditionCode as C;
    match inst.condition_code() {
        C::b | C::ae | C::be | C::a => Some(Order::Unsigned),
        C::l | C::ge | C::le | C::g => Some(Order::Signed),
        C::s | C::ns => Some(Order::OfDifference),
        _ => None,
    }
}

fn operand(inst: &Instruction, i: u32) -> Operand {
    if i >= inst.op_count() {
        return Operand::None;
    }
    match inst.op_kind(i) {
        OpKind::Register => {
            let register = inst.op_register(i);
            Operand::Register { register: whole(register), size: register.size() as u8 }
        }
        OpKind::Memory => Operand::Memory,
        _ => inst.try_immediate(i).map_or(Operand::None, Operand::Number),
    }
}

fn memory(inst: &Instruction, info: &InstructionInfo) -> Option<Memory> {
    let is_there = (0..inst.op_count()).any(|i| inst.op_kind(i) == OpKind::Memory);
    let is_relative = inst.is_ip_rel_memory_operand();
    let register = |register: iced_x86::Register| {
        (register != iced_x86::Register::None && !is_relative).then(|| whole(register))
    };
    let (base, index) = (inst.memory_base(), inst.memory_index());
    use OpAccess as A;
    let is_written = info
        .used_memory()
        .iter()
        .any(|m| matches!(m.access(), A::Write | A::CondWrite | A::ReadWrite | A::ReadCondWrite));
    is_there.then(|| Memory {
        base: register(base),
        index: register(index),
        scale: inst.memory_index_scale() as u8,
        displacement: inst.memory_displacement64(),
        is_relative,
        is_narrow: base.size() == 4 || index.size() == 4,
        size: inst.memory_size().size() as u8,
        is_written,
    })
}

/// The register of which `register` is a part.
fn whole(register: iced_x86::Register) -> Register {
    use iced_x86::Register as R;
    let full = register.full_register();
    let number = |first: R| full as u8 - first as u8;
    if full.is_gpr() {
        Register::general(full.number() as u8)
    } else if full.is_vector_register() {
        Register::vector(full.number() as u8)
    } else if full.is_k() {
        Register::other(number(R::K0))
    } else if full.is_mm() {
        Register::other(8 + number(R::MM0))
    } else if full.is_segment_register() {
        Register::other(16 + number(R::ES))
    } else if full.is_st() {
        Register::other(24 + number(R::ST0))
    } else {
        // Of what only the kernel names no value is followed.
        Register::other(63)
    }
}

/// See [`Arch::is_padded_jump`](crate::Arch::is_padded_jump).
pub(crate) fn is_padded_jump(bytes: &[u8]) -> bool {
    let code = bytes.strip_prefix(&ENDBR64).unwrap_or(bytes);
    let parts = code.split_at_checked(JUMP_LONG as usize);
    parts.is_some_and(|(jump, rest)| jump[0] == 0xe9 && !rest.is_empty() && rest.iter().all(|&b| b == TRAP))
}

/// See [`Arch::filler`](crate::Arch::filler): nops, `int3` and `ud2`.
pub(crate) fn filler(bytes: &[u8]) -> Option<u8> {
    let inst = decode(bytes)?;
    (inst.nop || bytes[0] == TRAP || bytes.starts_with(&[0x0f, 0x0b])).then_some(inst.len)
}

#[cfg(test)]
mod tests;
