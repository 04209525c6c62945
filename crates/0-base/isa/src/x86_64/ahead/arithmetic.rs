//! Moves, sums, products, logic and the stack, with their flags.

use super::Machine;
use crate::x86_64::ahead::state::{Flags, Value, extended, is_negative, low};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

impl Machine<'_> {
    /// Gives whether it was one of these.
    pub(super) fn arithmetic(&mut self, inst: &Instruction) -> bool {
        let size = Self::size(inst, 0);
        match inst.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movnti => {
                let value = self.operand(inst, 1);
                self.put(inst, 0, value);
            }
            Mnemonic::Movsx | Mnemonic::Movsxd => {
                let from = Self::size(inst, 1);
                let value = self.operand(inst, 1).map(|value| extended(value, from));
                self.put(inst, 0, value);
            }
            Mnemonic::Lea => {
                let address = self.address(inst, 1);
                self.put(inst, 0, address);
            }
            Mnemonic::Add => self.combine(inst, |a, b, flags| sum(a, b, 0, size, flags)),
            Mnemonic::Sub => self.combine(inst, |a, b, flags| difference(a, b, 0, size, flags)),
            Mnemonic::Cmp => self.compare(inst, |a, b, flags| difference(a, b, 0, size, flags)),
            Mnemonic::Adc | Mnemonic::Sbb => self.with_carry(inst, size),
            Mnemonic::And => self.combine(inst, |a, b, flags| logic(a & b, size, flags)),
            Mnemonic::Or => self.combine(inst, |a, b, flags| logic(a | b, size, flags)),
            Mnemonic::Xor => self.combine(inst, |a, b, flags| logic(a ^ b, size, flags)),
            Mnemonic::Test => self.compare(inst, |a, b, flags| logic(a & b, size, flags)),
            Mnemonic::Inc => self.count(inst, |a, flags| sum(a, 1, 0, size, flags)),
            Mnemonic::Dec => self.count(inst, |a, flags| difference(a, 1, 0, size, flags)),
            Mnemonic::Neg => {
                let value = self.operand(inst, 0);
                let result = value.map(|value| difference(0, value, 0, size, self.flags()));
                self.finish(inst, result);
            }
            Mnemonic::Not => {
                let value = self.operand(inst, 0);
                self.put(inst, 0, value.map(|value| !value));
            }
            Mnemonic::Imul if inst.op_count() > 1 => self.multiply(inst, size),
            Mnemonic::Mul | Mnemonic::Imul => self.multiply_wide(inst, size),
            Mnemonic::Div | Mnemonic::Idiv => self.divide(inst, size),
            Mnemonic::Xchg => {
                let (a, b) = (self.operand(inst, 0), self.operand(inst, 1));
                self.put(inst, 0, b);
                self.put(inst, 1, a);
            }
            Mnemonic::Xadd => {
                let (a, b) = (self.operand(inst, 0), self.operand(inst, 1));
                let result = a.zip(b).map(|(a, b)| sum(a, b, 0, size, self.flags()));
                self.put(inst, 1, a);
                self.finish(inst, result);
            }
            Mnemonic::Cmpxchg => self.compare_and_exchange(inst, size),
            _ => return self.widened(inst) || self.stack(inst) || self.flags_alone(inst),
        }
        true
    }

    /// Whether an instruction combines a register with itself, whose value then may not matter.
    fn is_with_itself(inst: &Instruction) -> bool {
        inst.op1_kind() == OpKind::Register
            && inst.op0_kind() == OpKind::Register
            && inst.op0_register() == inst.op1_register()
    }

    fn both(&mut self, inst: &Instruction) -> Option<(u64, u64)> {
        if matches!(inst.mnemonic(), Mnemonic::Xor | Mnemonic::Sub) && Self::is_with_itself(inst) {
            return Some((0, 0));
        }
        self.operand(inst, 0).zip(self.operand(inst, 1))
    }

    fn combine(&mut self, inst: &Instruction, combine: impl Fn(u64, u64, &mut Flags) -> u64) {
        let result = self.both(inst).map(|(a, b)| combine(a, b, self.flags()));
        self.finish(inst, result);
    }

    /// Writes a result; where it is unknown, its flags are, too.
    pub(super) fn finish(&mut self, inst: &Instruction, result: Value) {
        if result.is_none() {
            self.flags().forget_all();
        }
        self.put(inst, 0, result);
    }

    fn compare(&mut self, inst: &Instruction, combine: impl Fn(u64, u64, &mut Flags) -> u64) {
        let result =
            self.operand(inst, 0).zip(self.operand(inst, 1)).map(|(a, b)| combine(a, b, self.flags()));
        if result.is_none() {
            self.flags().forget_all();
        }
    }

    /// `inc` and `dec` leave the carry.
    fn count(&mut self, inst: &Instruction, combine: impl Fn(u64, &mut Flags) -> u64) {
        let carry = self.flags().carry;
        let value = self.operand(inst, 0);
        let result = value.map(|value| combine(value, self.flags()));
        self.finish(inst, result);
        self.flags().carry = carry;
    }

    fn with_carry(&mut self, inst: &Instruction, size: u32) {
        let adds = inst.mnemonic() == Mnemonic::Adc;
        let carry = self.flags().carry.map(u64::from);
        let operands = if !adds && Self::is_with_itself(inst) {
            Some((0, 0))
        } else {
            self.operand(inst, 0).zip(self.operand(inst, 1))
        };
        let result = operands.zip(carry).map(|((a, b), carry)| {
            let combine = if adds { sum } else { difference };
            combine(a, b, carry, size, self.flags())
        });
        self.finish(inst, result);
    }

    /// `imul` with two or three operands.
    fn multiply(&mut self, inst: &Instruction, size: u32) {
        let (a, b) = if inst.op_count() == 3 { (1, 2) } else { (0, 1) };
        let operands = self.operand(inst, a).zip(self.operand(inst, b));
        self.flags().forget_all();
        let result = operands.map(|(a, b)| {
            let product = i128::from(extended(a, size) as i64) * i128::from(extended(b, size) as i64);
            let fits = product == i128::from(extended(product as u64, size) as i64);
            self.flags().carry = Some(!fits);
            self.flags().overflow = Some(!fits);
            product as u64
        });
        self.put(inst, 0, result);
    }

    /// The registers that hold the lower and the upper half of what is twice as wide.
    fn halves(size: u32) -> (Register, Register) {
        match size {
            8 => (Register::RAX, Register::RDX),
            4 => (Register::EAX, Register::EDX),
            2 => (Register::AX, Register::DX),
            _ => (Register::AL, Register::AH),
        }
    }

    fn multiply_wide(&mut self, inst: &Instruction, size: u32) {
        let (lower, upper) = Self::halves(size);
        let signed = inst.mnemonic() == Mnemonic::Imul;
        let operands = self.state.read(lower).zip(self.operand(inst, 0));
        self.flags().forget_all();
        let product = operands.map(|(a, b)| {
            let wide = |value: u64| {
                if signed { i128::from(extended(value, size) as i64) } else { i128::from(value) }
            };
            // Two unsigned numbers of eight bytes may need all of sixteen.
            let product = wide(a).wrapping_mul(wide(b)) as u128;
            let fits = if signed {
                product == i128::from(extended(product as u64, size) as i64) as u128
            } else {
                product >> (8 * size) == 0
            };
            self.flags().carry = Some(!fits);
            self.flags().overflow = Some(!fits);
            product
        });
        self.state.write(lower, product.map(|product| low(product as u64, size)));
        self.state.write(upper, product.map(|product| low((product >> (8 * size)) as u64, size)));
    }

    /// A division that faults ends nothing here: what follows is unknown.
    fn divide(&mut self, inst: &Instruction, size: u32) {
        let (lower, upper) = Self::halves(size);
        let signed = inst.mnemonic() == Mnemonic::Idiv;
        let halves = self.state.read(upper).zip(self.state.read(lower));
        let operands = halves.zip(self.operand(inst, 0)).filter(|(_, by)| *by != 0);
        self.flags().forget_all();
        let result = operands.and_then(|((upper, lower), by)| {
            let whole = u128::from(upper) << (8 * size) | u128::from(lower);
            if !signed {
                let by = u128::from(by);
                return Some(((whole / by) as u64, (whole % by) as u64));
            }
            let unused = 128 - 16 * size;
            let whole = (whole << unused) as i128 >> unused;
            let by = i128::from(extended(by, size) as i64);
            Some((whole.checked_div(by)? as u64, whole.checked_rem(by)? as u64))
        });
        self.state.write(lower, result.map(|(quotient, _)| low(quotient, size)));
        self.state.write(upper, result.map(|(_, rest)| low(rest, size)));
    }

    fn compare_and_exchange(&mut self, inst: &Instruction, size: u32) {
        let (expected, _) = Self::halves(size);
        let (old, new) = (self.operand(inst, 0), self.operand(inst, 1));
        let wanted = self.state.read(expected);
        match wanted.zip(old) {
            Some((wanted, old)) => {
                difference(wanted, old, 0, size, self.flags());
                if wanted == old {
                    self.put(inst, 0, new);
                } else {
                    self.state.write(expected, Some(old));
                }
            }
            None => {
                self.flags().forget_all();
                self.put(inst, 0, None);
                self.state.write(expected, None);
            }
        }
    }

    /// Sign extension inside of the accumulator.
    fn widened(&mut self, inst: &Instruction) -> bool {
        let (from, to, above) = match inst.mnemonic() {
            Mnemonic::Cbw => (Register::AL, Register::AX, false),
            Mnemonic::Cwde => (Register::AX, Register::EAX, false),
            Mnemonic::Cdqe => (Register::EAX, Register::RAX, false),
            Mnemonic::Cwd => (Register::AX, Register::DX, true),
            Mnemonic::Cdq => (Register::EAX, Register::EDX, true),
            Mnemonic::Cqo => (Register::RAX, Register::RDX, true),
            _ => return false,
        };
        let wide = self.state.read(from).map(|value| extended(value, from.size() as u32));
        let sign = |value: u64| ((value as i64) >> 63) as u64;
        self.state.write(to, if above { wide.map(sign) } else { wide });
        true
    }

    fn stack(&mut self, inst: &Instruction) -> bool {
        match inst.mnemonic() {
            Mnemonic::Push if inst.stack_pointer_increment() == -8 => {
                let value = self.operand(inst, 0);
                self.push(value);
            }
            Mnemonic::Pop if inst.stack_pointer_increment() == 8 => {
                let value = self.pop();
                self.put(inst, 0, value);
            }
            Mnemonic::Leave => {
                let frame = self.state.read(Register::RBP);
                self.state.write(Register::RSP, frame);
                let value = self.pop();
                self.state.write(Register::RBP, value);
            }
            _ => return false,
        }
        true
    }

    fn flags_alone(&mut self, inst: &Instruction) -> bool {
        let flags = self.flags();
        match inst.mnemonic() {
            Mnemonic::Clc => flags.carry = Some(false),
            Mnemonic::Stc => flags.carry = Some(true),
            Mnemonic::Cmc => flags.carry = flags.carry.map(|carry| !carry),
            Mnemonic::Cld => flags.down = Some(false),
            Mnemonic::Std => flags.down = Some(true),
            Mnemonic::Nop | Mnemonic::Endbr64 | Mnemonic::Pause => {}
            _ => return false,
        }
        true
    }
}

pub(super) fn sum(a: u64, b: u64, carry: u64, size: u32, flags: &mut Flags) -> u64 {
    let (a, b) = (low(a, size), low(b, size));
    let whole = u128::from(a) + u128::from(b) + u128::from(carry);
    let result = low(whole as u64, size);
    flags.of_result(Some(result), size);
    flags.carry = Some(whole >> (8 * size) != 0);
    flags.overflow = Some(is_negative(!(a ^ b) & (a ^ result), size));
    result
}

pub(super) fn difference(a: u64, b: u64, carry: u64, size: u32, flags: &mut Flags) -> u64 {
    let (a, b) = (low(a, size), low(b, size));
    let result = low(a.wrapping_sub(b).wrapping_sub(carry), size);
    flags.of_result(Some(result), size);
    flags.carry = Some(u128::from(a) < u128::from(b) + u128::from(carry));
    flags.overflow = Some(is_negative((a ^ b) & (a ^ result), size));
    result
}

pub(super) fn logic(result: u64, size: u32, flags: &mut Flags) -> u64 {
    flags.of_result(Some(result), size);
    flags.carry = Some(false);
    flags.overflow = Some(false);
    result
}
