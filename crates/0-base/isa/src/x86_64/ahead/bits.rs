//! Shifts, rotations, and instructions that look for bits.

use super::Machine;
use super::arithmetic::{difference, logic};
use crate::x86_64::ahead::state::{Flags, extended, is_negative, low};
use iced_x86::{Instruction, Mnemonic, OpKind};

impl Machine<'_> {
    /// Gives whether it was one of these.
    pub(super) fn bits(&mut self, inst: &Instruction) -> bool {
        let size = Self::size(inst, 0);
        match inst.mnemonic() {
            Mnemonic::Shl | Mnemonic::Sal | Mnemonic::Shr | Mnemonic::Sar | Mnemonic::Rol | Mnemonic::Ror => {
                self.shift(inst, size);
            }
            Mnemonic::Shld | Mnemonic::Shrd => self.shift_two(inst, size),
            Mnemonic::Shlx | Mnemonic::Shrx | Mnemonic::Sarx | Mnemonic::Rorx => self.shift_apart(inst, size),
            Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc => return self.one_bit(inst, size),
            Mnemonic::Bsf | Mnemonic::Bsr | Mnemonic::Tzcnt | Mnemonic::Lzcnt | Mnemonic::Popcnt => {
                self.find_bits(inst, size);
            }
            Mnemonic::Bswap => {
                let value = self.operand(inst, 0);
                self.put(inst, 0, value.map(|value| value.swap_bytes() >> (64 - 8 * size)));
            }
            Mnemonic::Andn | Mnemonic::Blsr | Mnemonic::Blsi | Mnemonic::Blsmsk | Mnemonic::Bzhi => {
                self.mask_bits(inst, size);
            }
            _ => return false,
        }
        true
    }

    /// How far is shifted: what does not fit the operand's size wraps.
    fn distance(&mut self, inst: &Instruction, operand: u32, size: u32) -> Option<u32> {
        let wrap = if size == 8 { 63 } else { 31 };
        self.operand(inst, operand).map(|value| value as u32 & wrap)
    }

    fn shift(&mut self, inst: &Instruction, size: u32) {
        let by = self.distance(inst, 1, size);
        let value = self.operand(inst, 0);
        match value.zip(by) {
            Some((_, 0)) => {
                // Of four bytes the upper ones are cleared all the same.
                self.put(inst, 0, value);
            }
            Some((value, by)) => {
                let result = shifted(inst.mnemonic(), value, by, size, self.flags());
                self.put(inst, 0, Some(result));
            }
            None => self.finish(inst, None),
        }
    }

    fn shift_two(&mut self, inst: &Instruction, size: u32) {
        let by = self.distance(inst, 2, size).filter(|&by| by < 8 * size);
        let values = self.operand(inst, 0).zip(self.operand(inst, 1));
        let result = values.zip(by).map(|((value, other), by)| {
            let bits = 8 * size;
            if by == 0 {
                return value;
            }
            let left = inst.mnemonic() == Mnemonic::Shld;
            let result =
                if left { value << by | other >> (bits - by) } else { value >> by | other << (bits - by) };
            let out = if left { value >> (bits - by) } else { value >> (by - 1) };
            let flags = self.flags();
            flags.of_result(Some(low(result, size)), size);
            flags.carry = Some(out & 1 != 0);
            flags.overflow = None;
            result
        });
        self.finish(inst, result);
    }

    /// Shifts of BMI2, which leave the flags.
    fn shift_apart(&mut self, inst: &Instruction, size: u32) {
        let by = self.distance(inst, 2, size);
        let value = self.operand(inst, 1);
        let like = match inst.mnemonic() {
            Mnemonic::Shlx => Mnemonic::Shl,
            Mnemonic::Shrx => Mnemonic::Shr,
            Mnemonic::Sarx => Mnemonic::Sar,
            _ => Mnemonic::Ror,
        };
        let unused = &mut Flags::default();
        let result = value
            .zip(by)
            .map(|(value, by)| if by == 0 { value } else { shifted(like, value, by, size, unused) });
        self.put(inst, 0, result);
    }

    fn one_bit(&mut self, inst: &Instruction, size: u32) -> bool {
        // A register may name a bit of memory far from the operand.
        if inst.op0_kind() == OpKind::Memory && inst.op1_kind() == OpKind::Register {
            return false;
        }
        let operands = self.operand(inst, 0).zip(self.operand(inst, 1));
        let mnemonic = inst.mnemonic();
        let result = operands.map(|(value, bit)| {
            let bit = 1 << (bit % u64::from(8 * size));
            self.flags().carry = Some(value & bit != 0);
            match mnemonic {
                Mnemonic::Bts => value | bit,
                Mnemonic::Btr => value & !bit,
                Mnemonic::Btc => value ^ bit,
                _ => value,
            }
        });
        if result.is_none() {
            self.flags().carry = None;
        }
        if mnemonic != Mnemonic::Bt {
            self.put(inst, 0, result);
        }
        true
    }

    fn find_bits(&mut self, inst: &Instruction, size: u32) {
        let bits = u64::from(8 * size);
        let Some(value) = self.operand(inst, 1).map(|value| low(value, size)) else {
            self.finish(inst, None);
            return;
        };
        let lowest = u64::from(value.trailing_zeros()).min(bits);
        let above = u64::from(value.leading_zeros()) - (64 - bits);
        self.flags().forget_all();
        let flags = self.flags();
        let result = match inst.mnemonic() {
            // Of zero, the result stays as it was.
            Mnemonic::Bsf | Mnemonic::Bsr if value == 0 => {
                flags.zero = Some(true);
                return;
            }
            Mnemonic::Bsf => lowest,
            Mnemonic::Bsr => bits - 1 - above,
            Mnemonic::Popcnt => u64::from(value.count_ones()),
            Mnemonic::Tzcnt => lowest,
            _ => above,
        };
        match inst.mnemonic() {
            Mnemonic::Bsf | Mnemonic::Bsr => flags.zero = Some(false),
            Mnemonic::Popcnt => {
                let all_clear = Some(false);
                flags.zero = Some(value == 0);
                (flags.carry, flags.sign, flags.overflow, flags.parity) =
                    (all_clear, all_clear, all_clear, all_clear);
            }
            _ => {
                flags.carry = Some(value == 0);
                flags.zero = Some(result == 0);
            }
        }
        self.put(inst, 0, Some(result));
    }

    /// Instructions of BMI1 and BMI2 that keep a part of a number.
    fn mask_bits(&mut self, inst: &Instruction, size: u32) {
        let first = self.operand(inst, 1);
        let second = if inst.op_count() > 2 { self.operand(inst, 2) } else { Some(0) };
        let result = first.zip(second).map(|(a, b)| {
            let flags = self.flags();
            let a = low(a, size);
            let less = difference(a, 1, 0, size, &mut Flags::default());
            let (result, carry) = match inst.mnemonic() {
                Mnemonic::Andn => (!a & b, false),
                Mnemonic::Blsr => (a & less, a == 0),
                Mnemonic::Blsi => (a & a.wrapping_neg(), a != 0),
                Mnemonic::Blsmsk => (a ^ less, a == 0),
                _ => {
                    let keep = b & 0xff;
                    let all = keep >= u64::from(8 * size);
                    (if all { a } else { a & ((1 << keep) - 1) }, all)
                }
            };
            let result = logic(low(result, size), size, flags);
            flags.carry = Some(carry);
            result
        });
        self.finish(inst, result);
    }
}

/// A number shifted or rotated by at least one bit.
fn shifted(how: Mnemonic, value: u64, by: u32, size: u32, flags: &mut Flags) -> u64 {
    let bits = 8 * size;
    let value = low(value, size);
    let rotated = by % bits;
    let wide = u128::from(value);
    let (result, out) = match how {
        Mnemonic::Shl | Mnemonic::Sal => {
            let moved = wide << by;
            (moved as u64, moved >> bits & 1 != 0)
        }
        Mnemonic::Shr => ((wide >> by) as u64, wide >> (by - 1) & 1 != 0),
        Mnemonic::Sar => {
            let wide = i128::from(extended(value, size) as i64);
            ((wide >> by) as u64, wide >> (by - 1) & 1 != 0)
        }
        Mnemonic::Rol => {
            let result = low((wide << rotated | wide >> (bits - rotated)) as u64, size);
            flags.carry = Some(result & 1 != 0);
            flags.overflow = None;
            return result;
        }
        _ => {
            let result = low((wide >> rotated | wide << (bits - rotated)) as u64, size);
            flags.carry = Some(is_negative(result, size));
            flags.overflow = None;
            return result;
        }
    };
    let result = low(result, size);
    flags.of_result(Some(result), size);
    flags.carry = Some(out);
    flags.overflow = match how {
        _ if by != 1 => None,
        Mnemonic::Sar => Some(false),
        Mnemonic::Shr => Some(is_negative(value, size)),
        _ => Some(is_negative(result, size) != out),
    };
    result
}
