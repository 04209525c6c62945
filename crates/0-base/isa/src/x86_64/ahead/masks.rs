//! Masks of AVX-512: comparisons into them, and moves of what they choose.

use super::Machine;
use super::vectors::{put_in, width};
use crate::x86_64::ahead::state::{Flags, Vector, low};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

impl Machine<'_> {
    /// Comparisons into masks, and masks into numbers: AVX-512.
    pub(super) fn masks(&mut self, inst: &Instruction) -> bool {
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
                *flags = Flags { down: flags.down, ..Flags::default() };
                flags.zero = both.map(|both| both == 0);
                flags.carry = both.map(|both| both == low(u64::MAX, size));
                (flags.sign, flags.overflow, flags.parity) = (Some(false), Some(false), Some(false));
                true
            }
            _ => false,
        }
    }

    /// Comparisons of those bytes that a mask chooses.
    pub(super) fn masked(&mut self, inst: &Instruction) -> bool {
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
        // What is not chosen is not compared.
        let known = |chosen: &u64| a.known & b.known | !chosen == u64::MAX;
        let result = chosen.unwrap_or(Some(u64::MAX)).filter(known).map(|chosen| all & chosen);
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

/// Bytes of a mask that an instruction reads.
fn mask_size(inst: &Instruction) -> u32 {
    match inst.mnemonic() {
        Mnemonic::Kmovb => 1,
        Mnemonic::Kmovw | Mnemonic::Kortestw => 2,
        Mnemonic::Kmovd | Mnemonic::Kortestd => 4,
        _ => 8,
    }
}
