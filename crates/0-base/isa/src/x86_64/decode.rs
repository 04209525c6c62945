//! Bytes to [`Inst`].

use crate::{Condition, Flow, Inst, RipOperand};
use iced_x86::{Code, ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};

/// Decodes the instruction at the start of `bytes`; `None` if it is none or cut off.
pub fn decode(bytes: &[u8]) -> Option<Inst> {
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    let inst = decoder.decode();
    if inst.is_invalid() {
        return None;
    }
    let rip = inst.is_ip_rel_memory_operand().then(|| RipOperand {
        field: decoder.get_constant_offsets(&inst).displacement_offset() as u8,
        displacement: inst.ip_rel_memory_address().wrapping_sub(inst.len() as u64) as i64,
        address_only: inst.mnemonic() == Mnemonic::Lea,
    });
    // A 32-bit address size wraps differently and has no use in real programs.
    if rip.is_some() && inst.memory_base() == iced_x86::Register::EIP {
        return None;
    }
    let flow = flow(&inst)?;
    // The decoder reports a branch's displacement as an immediate.
    let flow_field =
        flow.displacement().map_or(0, |_| decoder.get_constant_offsets(&inst).immediate_offset() as u8);
    Some(Inst { len: inst.len() as u8, flow, flow_field, rip, nop: is_nop(&inst) })
}

/// The whole instruction as `iced-x86` gives it, as if it stood at `address`; `None` as in [`decode`].
pub fn full(bytes: &[u8], address: u64) -> Option<Instruction> {
    let inst = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
    (!inst.is_invalid()).then_some(inst)
}

/// `None` for branches that 64-bit Linux programs cannot use (far or 16-bit).
fn flow(inst: &Instruction) -> Option<Flow> {
    let near = || {
        let ok = inst.op0_kind() == OpKind::NearBranch64;
        ok.then(|| inst.near_branch64().wrapping_sub(inst.len() as u64) as i64)
    };
    Some(match inst.flow_control() {
        // Programs may not halt the processor: `_start` ends with it.
        FlowControl::Next if inst.mnemonic() == Mnemonic::Hlt => Flow::Fault,
        FlowControl::Next => Flow::Next,
        FlowControl::UnconditionalBranch => Flow::Jump(near()?),
        FlowControl::ConditionalBranch => match inst.condition_code() {
            ConditionCode::None => Flow::ShortBranch(near()?),
            // `loope` and `loopne` have a condition and a counter.
            _ if inst.is_loopcc() || inst.is_loop() || inst.is_jcx_short() => Flow::ShortBranch(near()?),
            code => Flow::Branch(condition(code)?, near()?),
        },
        FlowControl::Call if inst.op0_kind() == OpKind::NearBranch64 => Flow::Call(near()?),
        // `syscall` and its kin come back; a far call does not occur.
        FlowControl::Call => Flow::Next,
        FlowControl::IndirectCall => Flow::IndirectCall,
        FlowControl::IndirectBranch => Flow::IndirectJump,
        FlowControl::Return => Flow::Return,
        FlowControl::Interrupt if inst.mnemonic() == Mnemonic::Int3 => Flow::Breakpoint,
        FlowControl::Interrupt => Flow::Next,
        FlowControl::XbeginXabortXend if inst.mnemonic() == Mnemonic::Xbegin => Flow::Transaction(near()?),
        FlowControl::XbeginXabortXend => Flow::Next,
        FlowControl::Exception => Flow::Fault,
    })
}

fn condition(code: ConditionCode) -> Option<Condition> {
    use ConditionCode as C;
    const ORDER: [ConditionCode; 16] = [
        C::o,
        C::no,
        C::b,
        C::ae,
        C::e,
        C::ne,
        C::be,
        C::a,
        C::s,
        C::ns,
        C::p,
        C::np,
        C::l,
        C::ge,
        C::le,
        C::g,
    ];
    ORDER.iter().position(|&c| c == code).map(|i| Condition(i as u8))
}

fn is_nop(inst: &Instruction) -> bool {
    // `endbr64` and `pause` share encodings with nops but have their own mnemonics.
    inst.mnemonic() == Mnemonic::Nop
        || (inst.code() == Code::Xchg_rm16_r16 && inst.op0_register() == inst.op1_register())
}
