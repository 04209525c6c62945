//! Bytes to [`Inst`].

use crate::{Access, Condition, Encoding, Field, Flow, Inst, Operand};
use iced_x86::{Code, ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};

/// Decodes the instruction at the start of `bytes`; `None` if it is none or cut off.
pub fn decode(bytes: &[u8]) -> Option<Inst> {
    Sweep::new(bytes).at(0)
}

/// Decodes one instruction of a run of code after the other: to set the decoder up takes as long as to decode.
pub struct Sweep<'a> {
    decoder: Decoder<'a>,
    inst: Instruction,
}

impl<'a> Sweep<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        let decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
        Self { decoder, inst: Instruction::default() }
    }

    /// The instruction `offset` bytes into the run, as of [`decode`].
    pub fn at(&mut self, offset: usize) -> Option<Inst> {
        self.decoder.set_position(offset).ok()?;
        self.decoder.set_ip(0);
        self.decoder.decode_out(&mut self.inst);
        reduce(&self.decoder, &self.inst)
    }
}

fn reduce(decoder: &Decoder, inst: &Instruction) -> Option<Inst> {
    if inst.is_invalid() {
        return None;
    }
    let operand = inst.is_ip_rel_memory_operand().then(|| {
        let at = decoder.get_constant_offsets(inst).displacement_offset() as u8;
        Operand {
            field: Field { at, encoding: Encoding::Relative32 { end: inst.len() as u8 - at } },
            displacement: inst.ip_rel_memory_address().wrapping_sub(inst.len() as u64) as i64,
            access: access(inst),
            base: None,
        }
    });
    // A 32-bit address size wraps differently and has no use in real programs.
    if operand.is_some() && inst.memory_base() == iced_x86::Register::EIP {
        return None;
    }
    let flow = flow(inst)?;
    // The decoder reports a branch's displacement as an immediate. It reaches to the instruction's end.
    let flow_field = flow.displacement().map(|_| {
        let at = decoder.get_constant_offsets(inst).immediate_offset() as u8;
        let end = inst.len() as u8 - at;
        let encoding = if end == 1 { Encoding::Relative8 } else { Encoding::Relative32 { end } };
        Field { at, encoding }
    });
    Some(Inst { len: inst.len() as u8, flow, flow_field, operand, nop: is_nop(inst) })
}

/// The whole instruction as `iced-x86` gives it, as if it stood at `address`; `None` as in [`decode`].
pub fn full(bytes: &[u8], address: u64) -> Option<Instruction> {
    let inst = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
    (!inst.is_invalid()).then_some(inst)
}

/// `None` for branches that 64-bit Linux programs cannot use (far or 16-bit).
pub(super) fn flow(inst: &Instruction) -> Option<Flow> {
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
    ORDER.iter().position(|&c| c == code).map(|i| Condition(i as u16))
}

fn access(inst: &Instruction) -> Access {
    match inst.mnemonic() {
        Mnemonic::Lea => Access::Address,
        Mnemonic::Prefetchit0 | Mnemonic::Prefetchit1 => Access::Prefetch,
        _ => Access::Memory,
    }
}

fn is_nop(inst: &Instruction) -> bool {
    // `endbr64` and `pause` share encodings with nops but have their own mnemonics.
    inst.mnemonic() == Mnemonic::Nop
        || (inst.code() == Code::Xchg_rm16_r16 && inst.op0_register() == inst.op1_register())
}
