//! Arithmetic of single floating-point numbers, and conversions between them and integers.

use super::Machine;
use crate::x86_64::ahead::state::{Value, extended};
use iced_x86::{EncodingKind, Instruction, Mnemonic, OpKind};

impl Machine<'_> {
    /// Gives whether it was one of these. Later encodings, which take three operands, are not known.
    pub(super) fn scalar(&mut self, inst: &Instruction) -> bool {
        if inst.code().encoding() != EncodingKind::Legacy {
            return false;
        }
        let double = |combine: fn(f64, f64) -> f64| {
            move |a: u64, b: u64| combine(f64::from_bits(a), f64::from_bits(b)).to_bits()
        };
        let single = |combine: fn(f32, f32) -> f32| {
            move |a: u64, b: u64| {
                u64::from(combine(f32::from_bits(a as u32), f32::from_bits(b as u32)).to_bits())
            }
        };
        match inst.mnemonic() {
            Mnemonic::Addsd => self.calculate(inst, 8, double(|a, b| a + b)),
            Mnemonic::Subsd => self.calculate(inst, 8, double(|a, b| a - b)),
            Mnemonic::Mulsd => self.calculate(inst, 8, double(|a, b| a * b)),
            Mnemonic::Divsd => self.calculate(inst, 8, double(|a, b| a / b)),
            Mnemonic::Sqrtsd => self.calculate(inst, 8, double(|_, b| b.sqrt())),
            // The second operand is the result where the numbers are equal, or one is none.
            Mnemonic::Minsd => self.calculate(inst, 8, double(|a, b| if a < b { a } else { b })),
            Mnemonic::Maxsd => self.calculate(inst, 8, double(|a, b| if a > b { a } else { b })),
            Mnemonic::Addss => self.calculate(inst, 4, single(|a, b| a + b)),
            Mnemonic::Subss => self.calculate(inst, 4, single(|a, b| a - b)),
            Mnemonic::Mulss => self.calculate(inst, 4, single(|a, b| a * b)),
            Mnemonic::Divss => self.calculate(inst, 4, single(|a, b| a / b)),
            Mnemonic::Comisd | Mnemonic::Ucomisd => self.compare_numbers(inst, 8, f64::from_bits),
            Mnemonic::Comiss | Mnemonic::Ucomiss => {
                self.compare_numbers(inst, 4, |bits| f64::from(f32::from_bits(bits as u32)));
            }
            Mnemonic::Fnstcw => self.put(inst, 0, self.state.float_control),
            Mnemonic::Fldcw => self.state.float_control = self.operand(inst, 0),
            Mnemonic::Fninit | Mnemonic::Fldenv | Mnemonic::Frstor | Mnemonic::Fxrstor | Mnemonic::Xrstor => {
                self.state.float_control = None;
                return false;
            }
            _ => return self.convert(inst),
        }
        true
    }

    /// The lowest bytes of a vector register, or memory.
    fn number(&mut self, inst: &Instruction, operand: u32, size: u32) -> Value {
        if inst.op_kind(operand) == OpKind::Memory {
            let address = self.address(inst, operand)?;
            return self.memory.load(address, size);
        }
        let register = inst.op_register(operand);
        if register.is_gpr() {
            return self.state.read(register);
        }
        self.state.vectors[register.number()].number(size)
    }

    fn set_number(&mut self, inst: &Instruction, value: Value, size: u32) {
        self.state.vectors[inst.op0_register().number()].set_number(value, size);
    }

    fn calculate(&mut self, inst: &Instruction, size: u32, combine: impl Fn(u64, u64) -> u64) {
        let operands = self.number(inst, 0, size).zip(self.number(inst, 1, size));
        self.set_number(inst, operands.map(|(a, b)| combine(a, b)), size);
    }

    fn compare_numbers(&mut self, inst: &Instruction, size: u32, number: impl Fn(u64) -> f64) {
        let operands = self.number(inst, 0, size).zip(self.number(inst, 1, size));
        let ordering = operands.map(|(a, b)| number(a).partial_cmp(&number(b)));
        let flags = self.flags();
        flags.forget_all();
        let Some(ordering) = ordering else { return };
        let is = |which: std::cmp::Ordering| Some(ordering.is_none_or(|ordering| ordering == which));
        flags.zero = is(std::cmp::Ordering::Equal);
        flags.carry = is(std::cmp::Ordering::Less);
        flags.parity = Some(ordering.is_none());
        (flags.sign, flags.overflow) = (Some(false), Some(false));
    }

    fn convert(&mut self, inst: &Instruction) -> bool {
        let from = Self::size(inst, 1);
        match inst.mnemonic() {
            Mnemonic::Cvtsi2sd => {
                let value =
                    self.number(inst, 1, from).map(|value| (extended(value, from) as i64 as f64).to_bits());
                self.set_number(inst, value, 8);
            }
            Mnemonic::Cvtsi2ss => {
                let value = self
                    .number(inst, 1, from)
                    .map(|value| u64::from((extended(value, from) as i64 as f32).to_bits()));
                self.set_number(inst, value, 4);
            }
            Mnemonic::Cvttsd2si => {
                let value = self.number(inst, 1, 8).map(f64::from_bits);
                self.put(inst, 0, value.map(|value| truncated(value, Self::size(inst, 0))));
            }
            Mnemonic::Cvttss2si => {
                let value = self.number(inst, 1, 4).map(|bits| f64::from(f32::from_bits(bits as u32)));
                self.put(inst, 0, value.map(|value| truncated(value, Self::size(inst, 0))));
            }
            Mnemonic::Cvtss2sd => {
                let value =
                    self.number(inst, 1, 4).map(|bits| f64::from(f32::from_bits(bits as u32)).to_bits());
                self.set_number(inst, value, 8);
            }
            Mnemonic::Cvtsd2ss => {
                let value =
                    self.number(inst, 1, 8).map(|bits| u64::from((f64::from_bits(bits) as f32).to_bits()));
                self.set_number(inst, value, 4);
            }
            _ => return false,
        }
        true
    }
}

/// A number without its fraction; what fits no integer of the size becomes the lowest one.
fn truncated(value: f64, size: u32) -> u64 {
    let lowest = if size == 8 { i64::MIN } else { i64::from(i32::MIN) };
    let fits = value > lowest as f64 - 1.0 && value < -(lowest as f64);
    if fits { value as i64 as u64 } else { lowest as u64 }
}
