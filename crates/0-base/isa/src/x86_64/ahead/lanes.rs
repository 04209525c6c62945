//! What is done with vectors number by number: logic, sums and comparisons; numbers in another order; and what C libraries search texts with.

use super::Machine;
use super::vectors::{OLD, above, put_in, width};
use crate::x86_64::ahead::state::Vector;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// A number made of two.
type Combine = fn(u64, u64) -> u64;

/// What an instruction does with each pair of numbers, and how many bytes they have.
fn combination(inst: &Instruction) -> Option<(usize, Combine)> {
    let equal: Combine = |a, b| if a == b { u64::MAX } else { 0 };
    // Later forms of comparisons write masks.
    let into_mask = inst.op0_register().is_k();
    Some(match inst.mnemonic() {
        Mnemonic::Pxor | Mnemonic::Xorps | Mnemonic::Xorpd => (1, |a, b| a ^ b),
        Mnemonic::Vpxor | Mnemonic::Vpxorq | Mnemonic::Vpxord | Mnemonic::Vxorps | Mnemonic::Vxorpd => {
            (1, |a, b| a ^ b)
        }
        Mnemonic::Por | Mnemonic::Orps | Mnemonic::Orpd | Mnemonic::Vpor | Mnemonic::Vporq => {
            (1, |a, b| a | b)
        }
        Mnemonic::Pand | Mnemonic::Andps | Mnemonic::Andpd | Mnemonic::Vpand => (1, |a, b| a & b),
        Mnemonic::Pandn | Mnemonic::Andnps | Mnemonic::Andnpd | Mnemonic::Vpandn => (1, |a, b| !a & b),
        Mnemonic::Pminub | Mnemonic::Vpminub => (1, u64::min),
        Mnemonic::Psubb | Mnemonic::Vpsubb => (1, u64::wrapping_sub),
        Mnemonic::Paddb | Mnemonic::Vpaddb => (1, u64::wrapping_add),
        Mnemonic::Paddd | Mnemonic::Vpaddd => (4, u64::wrapping_add),
        Mnemonic::Paddq | Mnemonic::Vpaddq => (8, u64::wrapping_add),
        Mnemonic::Psubd | Mnemonic::Vpsubd => (4, u64::wrapping_sub),
        Mnemonic::Psubq | Mnemonic::Vpsubq => (8, u64::wrapping_sub),
        Mnemonic::Pcmpeqb | Mnemonic::Vpcmpeqb if !into_mask => (1, equal),
        Mnemonic::Pcmpeqw | Mnemonic::Vpcmpeqw if !into_mask => (2, equal),
        Mnemonic::Pcmpeqd | Mnemonic::Vpcmpeqd if !into_mask => (4, equal),
        _ => return None,
    })
}

/// Whether an instruction combines a register with itself so that the result is zero, whatever is in it.
fn is_cleared(inst: &Instruction) -> bool {
    let last = inst.op_count() - 1;
    let same = inst.op_kind(last) == OpKind::Register && inst.op_register(last) == inst.op_register(last - 1);
    let xor = [
        Mnemonic::Pxor,
        Mnemonic::Xorps,
        Mnemonic::Xorpd,
        Mnemonic::Vpxor,
        Mnemonic::Vpxorq,
        Mnemonic::Vpxord,
        Mnemonic::Vxorps,
        Mnemonic::Vxorpd,
    ];
    same && xor.contains(&inst.mnemonic())
}

impl Machine<'_> {
    /// What is done with two vectors, number by number. Gives whether it was that.
    pub(super) fn combines(&mut self, inst: &Instruction) -> bool {
        let Some((element, combine)) = combination(inst) else { return false };
        let size = width(inst);
        if is_cleared(inst) {
            self.put_vector(inst, 0, Vector::ZERO, size);
            return true;
        }
        let first = u32::from(inst.op_count() > 2);
        let (a, b) = (self.vector(inst, first, size), self.vector(inst, first + 1, size));
        let mut result = Vector::ZERO;
        for at in (0..size).step_by(element) {
            let (place, bits) = (at..at + element, ((1_u64 << element) - 1) << at);
            let number = |vector: &Vector| {
                let mut all = [0; 8];
                all[..element].copy_from_slice(&vector.bytes[place.clone()]);
                u64::from_le_bytes(all)
            };
            let combined = combine(number(&a), number(&b)).to_le_bytes();
            result.bytes[place.clone()].copy_from_slice(&combined[..element]);
            if a.known & b.known & bits != bits {
                result.known &= !bits;
            }
        }
        self.put_vector(inst, 0, result, size);
        true
    }

    /// What puts numbers in another order, or makes others of them. Gives whether it was that.
    pub(super) fn rearranges(&mut self, inst: &Instruction) -> bool {
        match inst.mnemonic() {
            Mnemonic::Pmovmskb | Mnemonic::Vpmovmskb => self.highest_bits(inst, 1),
            Mnemonic::Movmskps => self.highest_bits(inst, 4),
            Mnemonic::Movmskpd => self.highest_bits(inst, 8),
            Mnemonic::Pshufd | Mnemonic::Pshuflw | Mnemonic::Pshufhw => self.shuffle(inst),
            Mnemonic::Pshufb => self.shuffle_bytes(inst),
            Mnemonic::Pcmpistri => return self.search_text(inst),
            Mnemonic::Vpbroadcastb => self.spread_byte(inst),
            Mnemonic::Vpternlogd | Mnemonic::Vpternlogq => self.choose_bits(inst),
            Mnemonic::Vzeroupper => {
                for vector in &mut self.state.vectors[..OLD] {
                    vector.bytes[OLD..].fill(0);
                    vector.known |= above(OLD);
                }
            }
            _ => return false,
        }
        true
    }

    /// The highest bit of each element, as a number.
    fn highest_bits(&mut self, inst: &Instruction, element: usize) {
        let size = inst.op1_register().size();
        let vector = self.vector(inst, 1, size);
        let bit = |i: usize| u64::from(vector.bytes[i * element + element - 1] >> 7) << i;
        let value = (0..size / element).map(bit).sum();
        self.put(inst, 0, (vector.known == u64::MAX).then_some(value));
    }

    /// Four numbers in another order: of the whole register, or of one half of it.
    fn shuffle(&mut self, inst: &Instruction) {
        let (size, start) = match inst.mnemonic() {
            Mnemonic::Pshuflw => (2, 0),
            Mnemonic::Pshufhw => (2, OLD / 2),
            _ => (4, 0),
        };
        let source = self.vector(inst, 1, OLD);
        let order = inst.immediate8();
        let mut result = source;
        for i in 0..4 {
            result = put_in(
                result,
                source,
                start + usize::from(order >> (2 * i) & 3) * size,
                start + i * size,
                size,
            );
        }
        self.put_vector(inst, 0, result, OLD);
    }

    fn shuffle_bytes(&mut self, inst: &Instruction) {
        let (source, order) = (self.vector(inst, 0, OLD), self.vector(inst, 1, OLD));
        let mut result = Vector::ZERO;
        for (i, &from) in order.bytes[..OLD].iter().enumerate() {
            if from & 0x80 == 0 {
                result = put_in(result, source, usize::from(from) % OLD, i, 1);
            }
        }
        result.known &= order.known;
        self.put_vector(inst, 0, result, OLD);
    }

    /// `pcmpistri` of texts of bytes that end with a zero, with the first place that is found as the result.
    fn search_text(&mut self, inst: &Instruction) -> bool {
        let how = inst.immediate8();
        let (any, each) = (how & 0xc == 0, how & 0xc == 8);
        if how & 0x41 != 0 || !any && !each {
            return false;
        }
        let (first, second) = (self.vector(inst, 0, OLD), self.vector(inst, 1, OLD));
        let known = first.known & second.known == u64::MAX;
        let length = |text: &Vector| text.bytes[..OLD].iter().position(|&byte| byte == 0).unwrap_or(OLD);
        let (set, text) = (&first.bytes[..length(&first)], &second.bytes[..length(&second)]);
        let is_found = |i: usize| {
            if any { text.get(i).is_some_and(|byte| set.contains(byte)) } else { text.get(i) == set.get(i) }
        };
        let is_negated = |i: usize| how & 0x10 != 0 && (how & 0x20 == 0 || i < text.len());
        let found = (0..OLD).map(|i| is_found(i) != is_negated(i)).collect::<Vec<bool>>();
        let place = found.iter().position(|&found| found);
        let (is_first, text_ends, set_ends) = (found[0], text.len() < OLD, set.len() < OLD);
        let flag = |value: bool| known.then_some(value);
        let flags = self.flags();
        (flags.carry, flags.zero, flags.sign) = (flag(place.is_some()), flag(text_ends), flag(set_ends));
        (flags.overflow, flags.parity) = (flag(is_first), flag(false));
        self.state.write(Register::ECX, known.then_some(place.unwrap_or(OLD) as u64));
        true
    }

    fn spread_byte(&mut self, inst: &Instruction) {
        let byte = self.vector(inst, 1, 1).number(1);
        let vector = byte.map_or(Vector::UNKNOWN, |byte| Vector { bytes: [byte as u8; 64], known: u64::MAX });
        self.put_vector(inst, 0, vector, width(inst));
    }

    /// Each bit of the result stands in a table of eight, at the number that three bits make.
    fn choose_bits(&mut self, inst: &Instruction) {
        let size = width(inst);
        let [a, b, c] = [0, 1, 2].map(|operand| self.vector(inst, operand, size));
        let table = inst.immediate8();
        let mut result = Vector { bytes: [0; 64], known: a.known & b.known & c.known };
        for (i, byte) in result.bytes[..size].iter_mut().enumerate() {
            let bit = |byte: u8, at: u32| byte >> at & 1;
            let number = |at| bit(a.bytes[i], at) << 2 | bit(b.bytes[i], at) << 1 | bit(c.bytes[i], at);
            *byte = (0..8).map(|at| (table >> number(at) & 1) << at).sum();
        }
        self.put_vector(inst, 0, result, size);
    }
}
