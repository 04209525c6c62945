//! Vectors: moves, logic, comparison byte by byte, and what C libraries search and compare strings with. Each byte of a register
//! is known or not by itself.

use super::Machine;
use crate::x86_64::ahead::state::{Vector, low};
use iced_x86::{EncodingKind, Instruction, MemorySize, Mnemonic, OpKind, Register};

/// Bytes of the oldest vector registers, above which instructions of their time leave the rest as it is.
const OLD: usize = 16;

impl Machine<'_> {
    /// Gives whether it was one of these.
    pub(super) fn vectors(&mut self, inst: &Instruction) -> bool {
        // What a mask chooses, and a memory operand that is spread, are not known.
        if inst.op_mask() != Register::None || inst.is_broadcast() {
            return self.masked(inst);
        }
        self.moves(inst) || self.parts(inst) || self.combines(inst) || self.masks(inst)
    }

    /// An operand of `size` bytes; those above are zero.
    fn vector(&mut self, inst: &Instruction, operand: u32, size: usize) -> Vector {
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
    fn put_vector(&mut self, inst: &Instruction, operand: u32, mut vector: Vector, size: usize) {
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

    /// What is done byte by byte, or number by number, with two operands.
    fn combines(&mut self, inst: &Instruction) -> bool {
        let bytes =
            |combine: fn(u8, u8) -> u8| move |a: &[u8], b: &[u8], to: &mut [u8]| to[0] = combine(a[0], b[0]);
        let number = |bytes: &[u8]| {
            let mut all = [0; 8];
            all[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(all)
        };
        let numbers = |combine: fn(u64, u64) -> u64| {
            move |a: &[u8], b: &[u8], to: &mut [u8]| {
                let size = to.len();
                to.copy_from_slice(&combine(number(a), number(b)).to_le_bytes()[..size]);
            }
        };
        let equal = |a: u64, b: u64| if a == b { u64::MAX } else { 0 };
        match inst.mnemonic() {
            Mnemonic::Pxor
            | Mnemonic::Xorps
            | Mnemonic::Xorpd
            | Mnemonic::Vpxor
            | Mnemonic::Vpxorq
            | Mnemonic::Vpxord
            | Mnemonic::Vxorps
            | Mnemonic::Vxorpd => {
                if same_registers(inst) {
                    self.put_vector(inst, 0, Vector::ZERO, width(inst));
                    return true;
                }
                self.combine_vectors(inst, 1, bytes(|a, b| a ^ b));
            }
            Mnemonic::Por | Mnemonic::Orps | Mnemonic::Orpd | Mnemonic::Vpor | Mnemonic::Vporq => {
                self.combine_vectors(inst, 1, bytes(|a, b| a | b))
            }
            Mnemonic::Pand | Mnemonic::Andps | Mnemonic::Andpd | Mnemonic::Vpand => {
                self.combine_vectors(inst, 1, bytes(|a, b| a & b))
            }
            Mnemonic::Pandn | Mnemonic::Andnps | Mnemonic::Andnpd | Mnemonic::Vpandn => {
                self.combine_vectors(inst, 1, bytes(|a, b| !a & b))
            }
            Mnemonic::Pminub | Mnemonic::Vpminub => self.combine_vectors(inst, 1, bytes(u8::min)),
            Mnemonic::Psubb | Mnemonic::Vpsubb => self.combine_vectors(inst, 1, bytes(u8::wrapping_sub)),
            Mnemonic::Paddb | Mnemonic::Vpaddb => self.combine_vectors(inst, 1, bytes(u8::wrapping_add)),
            Mnemonic::Paddd | Mnemonic::Vpaddd => self.combine_vectors(inst, 4, numbers(u64::wrapping_add)),
            Mnemonic::Paddq | Mnemonic::Vpaddq => self.combine_vectors(inst, 8, numbers(u64::wrapping_add)),
            Mnemonic::Psubd | Mnemonic::Vpsubd => self.combine_vectors(inst, 4, numbers(u64::wrapping_sub)),
            Mnemonic::Psubq | Mnemonic::Vpsubq => self.combine_vectors(inst, 8, numbers(u64::wrapping_sub)),
            Mnemonic::Pcmpeqb | Mnemonic::Vpcmpeqb if !is_mask(inst) => {
                self.combine_vectors(inst, 1, numbers(equal))
            }
            Mnemonic::Pcmpeqw | Mnemonic::Vpcmpeqw if !is_mask(inst) => {
                self.combine_vectors(inst, 2, numbers(equal))
            }
            Mnemonic::Pcmpeqd | Mnemonic::Vpcmpeqd if !is_mask(inst) => {
                self.combine_vectors(inst, 4, numbers(equal))
            }
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

    fn combine_vectors(
        &mut self,
        inst: &Instruction,
        element: usize,
        combine: impl Fn(&[u8], &[u8], &mut [u8]),
    ) {
        let size = width(inst);
        let first = u32::from(inst.op_count() > 2);
        let (a, b) = (self.vector(inst, first, size), self.vector(inst, first + 1, size));
        let mut result = Vector::ZERO;
        for at in (0..size).step_by(element) {
            let (place, bits) = (at..at + element, ((1_u64 << element) - 1) << at);
            combine(&a.bytes[place.clone()], &b.bytes[place.clone()], &mut result.bytes[place]);
            if a.known & b.known & bits != bits {
                result.known &= !bits;
            }
        }
        self.put_vector(inst, 0, result, size);
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

    /// Comparisons into masks, and masks into numbers: AVX-512.
    fn masks(&mut self, inst: &Instruction) -> bool {
        match inst.mnemonic() {
            Mnemonic::Vpcmpeqb | Mnemonic::Vpcmpb | Mnemonic::Vpcmpub => self.compare_into_mask(inst, None),
            Mnemonic::Vptestnmb | Mnemonic::Vptestmb => self.test_into_mask(inst, None),
            Mnemonic::Kmovb | Mnemonic::Kmovw | Mnemonic::Kmovd | Mnemonic::Kmovq => self.move_mask(inst),
            Mnemonic::Kortestd | Mnemonic::Kortestq | Mnemonic::Kortestw => {
                let size = mask_size(inst);
                let of = |register: Register| self.state.masks[register.number()];
                let both =
                    of(inst.op0_register()).zip(of(inst.op1_register())).map(|(a, b)| low(a | b, size));
                let flags = self.flags();
                *flags = crate::x86_64::ahead::state::Flags { down: flags.down, ..Default::default() };
                flags.zero = both.map(|both| both == 0);
                flags.carry = both.map(|both| both == low(u64::MAX, size));
                (flags.sign, flags.overflow, flags.parity) = (Some(false), Some(false), Some(false));
                true
            }
            _ => false,
        }
    }

    /// Comparisons of those bytes that a mask chooses.
    fn masked(&mut self, inst: &Instruction) -> bool {
        if inst.is_broadcast() {
            return false;
        }
        let chosen = self.state.masks[inst.op_mask().number()];
        match inst.mnemonic() {
            Mnemonic::Vpcmpeqb | Mnemonic::Vpcmpb | Mnemonic::Vpcmpub => {
                self.compare_into_mask(inst, Some(chosen))
            }
            Mnemonic::Vptestnmb | Mnemonic::Vptestmb => self.test_into_mask(inst, Some(chosen)),
            Mnemonic::Vmovdqu8 => self.move_chosen(inst, chosen),
            _ => false,
        }
    }

    /// A move of those bytes that a mask chooses; of a register the others are cleared, or stay.
    fn move_chosen(&mut self, inst: &Instruction, chosen: Option<u64>) -> bool {
        let size = width(inst);
        let Some(chosen) = chosen else { return false };
        // What is not chosen is not touched, so that it need not be there.
        let mut source = Vector::ZERO;
        let mut result = if inst.zeroing_masking() { Vector::ZERO } else { self.vector(inst, 0, size) };
        for at in (0..size).filter(|at| chosen >> at & 1 != 0) {
            if inst.op1_kind() == OpKind::Memory {
                let address = self.address(inst, 1);
                let byte = address.and_then(|address| self.memory.load(address.wrapping_add(at as u64), 1));
                source.set_number(byte, 1);
                result = put_in(result, source, 0, at, 1);
            } else {
                source = self.vector(inst, 1, size);
                result = put_in(result, source, at, at, 1);
            }
            if let (OpKind::Memory, Some(address)) = (inst.op0_kind(), self.address(inst, 0)) {
                let known = result.known >> at & 1;
                self.memory.write(address.wrapping_add(at as u64), &result.bytes[at..=at], known);
            }
        }
        if inst.op0_kind() != OpKind::Memory {
            self.put_vector(inst, 0, result, size);
        }
        true
    }

    fn compare_into_mask(&mut self, inst: &Instruction, chosen: Option<Option<u64>>) -> bool {
        let holds: fn(u8, u8) -> bool = match inst.mnemonic() {
            Mnemonic::Vpcmpeqb => |a, b| a == b,
            Mnemonic::Vpcmpub if inst.immediate8() == 1 => |a, b| a < b,
            _ if inst.immediate8() == 0 => |a, b| a == b,
            _ if inst.immediate8() == 4 => |a, b| a != b,
            _ => return false,
        };
        self.put_mask(inst, chosen, holds);
        true
    }

    fn test_into_mask(&mut self, inst: &Instruction, chosen: Option<Option<u64>>) -> bool {
        match inst.mnemonic() {
            Mnemonic::Vptestmb => self.put_mask(inst, chosen, |a, b| a & b != 0),
            _ => self.put_mask(inst, chosen, |a, b| a & b == 0),
        }
        true
    }

    fn put_mask(&mut self, inst: &Instruction, chosen: Option<Option<u64>>, holds: fn(u8, u8) -> bool) {
        let size = inst.op1_register().size();
        let (a, b) = (self.vector(inst, 1, size), self.vector(inst, 2, size));
        let bit = |i: usize| u64::from(holds(a.bytes[i], b.bytes[i])) << i;
        let all: u64 = (0..size).map(bit).sum();
        let known = a.known & b.known == u64::MAX;
        let result = chosen.unwrap_or(Some(u64::MAX)).filter(|_| known).map(|chosen| all & chosen);
        self.state.masks[inst.op0_register().number()] = result;
    }

    fn move_mask(&mut self, inst: &Instruction) -> bool {
        let size = mask_size(inst);
        let value = match inst.op1_kind() {
            OpKind::Register if inst.op1_register().is_k() => self.state.masks[inst.op1_register().number()],
            _ => self.operand(inst, 1),
        };
        let value = value.map(|value| low(value, size));
        if inst.op0_kind() == OpKind::Register && inst.op0_register().is_k() {
            self.state.masks[inst.op0_register().number()] = value;
        } else {
            self.put(inst, 0, value);
        }
        true
    }
}

/// The bits of all bytes from `size` on.
fn above(size: usize) -> u64 {
    if size >= 64 { 0 } else { u64::MAX << size }
}

/// `whole` with `size` bytes of `source`, from there to there.
fn put_in(mut whole: Vector, source: Vector, from: usize, to: usize, size: usize) -> Vector {
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

fn same_registers(inst: &Instruction) -> bool {
    let last = inst.op_count() - 1;
    inst.op_kind(last) == OpKind::Register && inst.op_register(last) == inst.op_register(last - 1)
}

/// Whether the result goes into a mask.
fn is_mask(inst: &Instruction) -> bool {
    inst.op0_register().is_k()
}

/// Bytes of the widest operand.
fn width(inst: &Instruction) -> usize {
    let registers = (0..inst.op_count()).filter(|&i| inst.op_kind(i) == OpKind::Register);
    registers
        .map(|i| inst.op_register(i))
        .filter(|r| r.is_vector_register())
        .map(Register::size)
        .max()
        .unwrap_or(0)
}

/// Bytes of a mask that an instruction reads.
fn mask_size(inst: &Instruction) -> u32 {
    match inst.mnemonic() {
        Mnemonic::Kmovb => 1,
        Mnemonic::Kmovw | Mnemonic::Kortestw => 2,
        Mnemonic::Kmovd | Mnemonic::Kortestd => 4,
        _ => 8,
    }
}
