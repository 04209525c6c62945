//! How much work instructions are.

use crate::Work;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic as M, OpKind};

/// Length and work of the instruction at the start of `bytes`.
pub(crate) fn work(bytes: &[u8]) -> Option<(u8, Work)> {
    let inst = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
    (!inst.is_invalid()).then(|| (inst.len() as u8, kind(&inst)))
}

fn kind(inst: &Instruction) -> Work {
    if inst.has_rep_prefix() || inst.has_repne_prefix() || inst.has_lock_prefix() {
        return Work::Slow;
    }
    match inst.flow_control() {
        FlowControl::Next => {}
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => return Work::Jump,
        FlowControl::ConditionalBranch => return Work::Branch,
        FlowControl::Call if inst.op0_kind() == OpKind::NearBranch64 => return Work::Call,
        FlowControl::IndirectCall => return Work::Call,
        FlowControl::Return => return Work::Return,
        _ => return Work::Slow,
    }
    match inst.mnemonic() {
        M::Lea => Work::Address,
        M::Push => Work::Push,
        M::Pop | M::Leave => Work::Pop,
        M::Div | M::Idiv | M::Divss | M::Divsd | M::Sqrtss | M::Sqrtsd => Work::Divide,
        M::Mul | M::Imul => Work::Multiply,
        M::Cpuid | M::Rdtsc | M::Mfence => Work::Slow,
        mnemonic => of_operands(inst, mnemonic),
    }
}

fn of_operands(inst: &Instruction, mnemonic: M) -> Work {
    let is_memory = |i: u32| inst.op_kind(i) == OpKind::Memory;
    let is_move = matches!(mnemonic, M::Mov | M::Movzx | M::Movsx | M::Movsxd) || is_vector_move(mnemonic);
    let compares = matches!(mnemonic, M::Cmp | M::Test);
    if mnemonic == M::Nop || !(0..inst.op_count()).any(is_memory) {
        return if is_vector(inst) {
            Work::Vector
        } else if is_move {
            Work::Move
        } else {
            Work::Plain
        };
    }
    match (compares, is_move, is_memory(0)) {
        (true, ..) => Work::Compare,
        (_, true, true) => Work::Store,
        (_, true, false) => Work::Load,
        (_, false, true) => Work::Update,
        (_, false, false) => Work::Operate,
    }
}

fn is_vector_move(mnemonic: M) -> bool {
    matches!(
        mnemonic,
        M::Movaps | M::Movups | M::Movapd | M::Movupd | M::Movdqa | M::Movdqu | M::Movss | M::Movsd
    ) || matches!(mnemonic, M::Movq | M::Movd | M::Movhps | M::Movlps | M::Movhpd | M::Movlpd)
}

fn is_vector(inst: &Instruction) -> bool {
    (0..inst.op_count())
        .any(|i| inst.op_kind(i) == OpKind::Register && inst.op_register(i).is_vector_register())
}
