//! Vectors: operands, and moves of all or a part of one. Each byte of a register is known or not by itself.

use super::Machine;
use crate::x86_64::ahead::state::Vector;
use iced_x86::{EncodingKind, Instruction, MemorySize, Mnemonic, OpKind, Register};

/// Bytes of the oldest vector registers, above which instructions of their time leave the rest as it is.
pub(super) const OLD: usize = 16;

impl Machine<'_> {
    /// Gives whether it was one of these.
    pub(super) fn vectors(&mut self, inst: &Instruction) -> bool {
        let has_old =
            (0..inst.op_count()).any(|i| inst.op_kind(i) == OpKind::Register && inst.op_register(i).is_mm());
        if has_old {
            return false;
        }
        // What a mask chooses, and a memory operand that is spread, are not known.
        if inst.op_mask() != Register::None || inst.is_broadcast() {
            return self.masked(inst);
        }
        self.moves(inst)
            || self.parts(inst)
            || self.combines(inst)
            || self.rearranges(inst)
            || self.masks(inst)
    }

    /// An operand of `size` bytes; those above are zero.
    pub(super) fn vector(&mut self, inst: &Instruction, operand: u32, size: usize) -> Vector {
        let mut vector = Vector::ZERO;
        match inst.op_kind(operand) {
            OpKind::Register if inst.op_register(operand).is_vector_register() => {
                let whole = self.state.vectors[inst.op_register(operand).number()];
                vector.bytes[..size].copy_from_slice(&whole.bytes[..size]);
                vector.known = whole.known | above(size);
            }
            OpKind::Register => {
                vector.set_number(self.state.read(inst.op_register(operand)), size.min(8) as u32)
            }
            OpKind::Memory => {
                let address = self.address(inst, operand);
                let known = address.map_or(0, |address| self.memory.read(address, &mut vector.bytes[..size]));
                vector.known = known | above(size);
            }
            _ => return Vector::UNKNOWN,
        }
        vector
    }

    /// Writes the lowest `size` bytes of an operand. Instructions of the time when registers were that short leave the bytes above; later ones clear them.
    pub(super) fn put_vector(&mut self, inst: &Instruction, operand: u32, mut vector: Vector, size: usize) {
        if inst.op_kind(operand) == OpKind::Memory {
            if let Some(address) = self.address(inst, operand) {
                self.memory.write(address, &vector.bytes[..size], vector.known);
            }
            return;
        }
        let register = inst.op_register(operand);
        if register.is_gpr() {
            let value = vector.number(size.min(8) as u32);
            self.state.write(register, value);
            return;
        }
        let place = &mut self.state.vectors[register.number()];
        vector.bytes[size..].fill(0);
        vector.known |= above(size);
        if is_old(inst) {
            vector.bytes[OLD..].copy_from_slice(&place.bytes[OLD..]);
            vector.known = vector.known & !above(OLD) | place.known & above(OLD);
        }
        *place = vector;
    }

    /// Whole operands.
    fn moves(&mut self, inst: &Instruction) -> bool {
        let size = match inst.mnemonic() {
            Mnemonic::Movups
            | Mnemonic::Movaps
            | Mnemonic::Movupd
            | Mnemonic::Movapd
            | Mnemonic::Movdqu
            | Mnemonic::Movdqa
            | Mnemonic::Movntdq
            | Mnemonic::Movntps
            | Mnemonic::Lddqu
            | Mnemonic::Vmovups
            | Mnemonic::Vmovaps
            | Mnemonic::Vmovupd
            | Mnemonic::Vmovapd
            | Mnemonic::Vmovdqu
            | Mnemonic::Vmovdqa
            | Mnemonic::Vmovdqu8
            | Mnemonic::Vmovdqu16
            | Mnemonic::Vmovdqu32
            | Mnemonic::Vmovdqu64
            | Mnemonic::Vmovdqa32
            | Mnemonic::Vmovdqa64
            | Mnemonic::Vmovntdq => width(inst),
            Mnemonic::Movq | Mnemonic::Vmovq => 8,
            Mnemonic::Movd | Mnemonic::Vmovd => 4,
            Mnemonic::Movsd | Mnemonic::Vmovsd if has_memory(inst) => 8,
            Mnemonic::Movss | Mnemonic::Vmovss if has_memory(inst) => 4,
            _ => return false,
        };
        let value = self.vector(inst, 1, size);
        self.put_vector(inst, 0, value, size);
        true
    }

    /// Halves and single numbers of a register; the rest stays.
    fn parts(&mut self, inst: &Instruction) -> bool {
        if !is_old(inst) {
            return false;
        }
        let (size, from, to) = match inst.mnemonic() {
            Mnemonic::Movsd => (8, 0, 0),
            Mnemonic::Movss => (4, 0, 0),
            Mnemonic::Movlps | Mnemonic::Movlpd => (8, 0, 0),
            Mnemonic::Movhps | Mnemonic::Movhpd if inst.op0_kind() == OpKind::Memory => (8, 8, 0),
            Mnemonic::Movhps
            | Mnemonic::Movhpd
            | Mnemonic::Movlhps
            | Mnemonic::Punpcklqdq
            | Mnemonic::Unpcklpd => (8, 0, 8),
            Mnemonic::Movhlps => (8, 8, 0),
            _ => return self.interleaves(inst),
        };
        if inst.op0_kind() == OpKind::Memory {
            let source = self.vector(inst, 1, OLD);
            let part = put_in(Vector::ZERO, source, from, 0, size);
            self.put_vector(inst, 0, part, size);
            return true;
        }
        let read = if has_memory(inst) { size } else { OLD };
        let (whole, source) = (self.vector(inst, 0, OLD), self.vector(inst, 1, read));
        self.put_vector(inst, 0, put_in(whole, source, from, to, size), OLD);
        true
    }

    /// Numbers of two registers in turns: of their lower or their upper halves.
    fn interleaves(&mut self, inst: &Instruction) -> bool {
        let (size, from) = match inst.mnemonic() {
            Mnemonic::Punpcklbw => (1, 0),
            Mnemonic::Punpcklwd => (2, 0),
            Mnemonic::Punpckldq | Mnemonic::Unpcklps => (4, 0),
            Mnemonic::Punpckhbw => (1, OLD / 2),
            Mnemonic::Punpckhwd => (2, OLD / 2),
            Mnemonic::Punpckhdq | Mnemonic::Unpckhps => (4, OLD / 2),
            Mnemonic::Punpckhqdq | Mnemonic::Unpckhpd => (8, OLD / 2),
            _ => return false,
        };
        let sources = [self.vector(inst, 0, OLD), self.vector(inst, 1, OLD)];
        let mut result = Vector::ZERO;
        for i in 0..OLD / size {
            result = put_in(result, sources[i % 2], from + i / 2 * size, i * size, size);
        }
        self.put_vector(inst, 0, result, OLD);
        true
    }
}

/// The bits of all bytes from `size` on.
pub(super) fn above(size: usize) -> u64 {
    if size >= 64 { 0 } else { u64::MAX << size }
}

/// `whole` with `size` bytes of `source`, from there to there.
pub(super) fn put_in(mut whole: Vector, source: Vector, from: usize, to: usize, size: usize) -> Vector {
    whole.bytes[to..to + size].copy_from_slice(&source.bytes[from..from + size]);
    let bits = ((1 << size) - 1) << to;
    whole.known = whole.known & !bits | source.known >> from << to & bits;
    whole
}

fn is_old(inst: &Instruction) -> bool {
    inst.code().encoding() == EncodingKind::Legacy
}

fn has_memory(inst: &Instruction) -> bool {
    inst.memory_size() != MemorySize::Unknown
}

/// Bytes of the widest operand.
pub(super) fn width(inst: &Instruction) -> usize {
    let registers = (0..inst.op_count()).filter(|&i| inst.op_kind(i) == OpKind::Register);
    registers
        .map(|i| inst.op_register(i))
        .filter(|r| r.is_vector_register())
        .map(Register::size)
        .max()
        .unwrap_or(0)
}
