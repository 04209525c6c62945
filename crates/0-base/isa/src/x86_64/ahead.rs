//! [`crate::ahead`] for x86-64: one instruction after the other, by the meaning that the processor's manual gives it. General-purpose
//! instructions of 64-bit mode are known, and of vectors what moves, compares and adds up; of all others only what they write, which
//! becomes unknown.

mod arithmetic;
mod bits;
mod flow;
mod lanes;
mod masks;
mod memory;
mod saved;
mod scalar;
mod state;
mod strings;
mod vectors;

#[cfg(test)]
mod tests;

pub use saved::FLOAT_REGISTER_SETS;
pub use state::{calling_again, is_in_system_call};

use crate::ahead::{End, Jump, Memory, Way};
use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register, UsedMemory,
};
use memory::Overlay;
use state::{Flags, State, Value, low};

/// Bytes of the longest instruction.
const LONGEST: usize = 15;

/// A thread, as far as it is known, with what it has written since it was held.
struct Machine<'m> {
    state: State,
    memory: Overlay<'m>,
    info: InstructionInfoFactory,
}

/// Where control goes behind an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Follows,
    Jumps(u64),
    Ends(End),
}

/// As of [`crate::Arch::way_ahead`].
pub fn way_ahead(
    registers: &[u8],
    float_registers: &[u8],
    memory: &mut dyn Memory,
    most: u32,
) -> Option<Way> {
    let (state, mut at) = State::of_thread(registers, saved::registers(float_registers)?)?;
    let mut machine = Machine { state, memory: Overlay::new(memory), info: InstructionInfoFactory::new() };
    let mut jumps = Vec::new();
    let mut instructions = 0;
    let end = loop {
        if instructions == most {
            break End::Length;
        }
        let Some(inst) = machine.fetch(at) else { break End::NoCode };
        match machine.execute(&inst) {
            Next::Ends(end) => break end,
            Next::Follows => at = inst.next_ip(),
            Next::Jumps(to) => {
                jumps.push(Jump { from: at, to });
                at = to;
            }
        }
        instructions += 1;
    };
    Some(Way { jumps, instructions, at, end })
}

impl Machine<'_> {
    /// The instruction at an address; code that was written since the thread was held is not looked for.
    fn fetch(&mut self, at: u64) -> Option<Instruction> {
        let mut bytes = [0; LONGEST];
        // The last instruction of a mapping is shorter.
        let there = (1..=LONGEST).rev().find(|&size| self.memory.read_code(at, &mut bytes[..size]))?;
        let inst = Decoder::with_ip(64, &bytes[..there], at, DecoderOptions::NONE).decode();
        (!inst.is_invalid()).then_some(inst)
    }

    fn execute(&mut self, inst: &Instruction) -> Next {
        if let Some(next) = self.strings(inst).or_else(|| self.flow(inst)) {
            return next;
        }
        let known = self.arithmetic(inst) || self.bits(inst) || self.vectors(inst) || self.scalar(inst);
        if known { Next::Follows } else { self.forget_written(inst) }
    }

    /// Whatever an instruction that is not understood writes is unknown.
    fn forget_written(&mut self, inst: &Instruction) -> Next {
        let writes = |access: OpAccess| {
            matches!(
                access,
                OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            )
        };
        let info = self.info.info(inst);
        let registers: Vec<Register> = info
            .used_registers()
            .iter()
            .filter(|used| writes(used.access()))
            .map(|used| used.register())
            .collect();
        let places: Vec<UsedMemory> =
            info.used_memory().iter().filter(|used| writes(used.access())).copied().collect();
        for register in registers {
            self.state.forget(register);
        }
        for place in places {
            let size = place.memory_size().size() as u64;
            let address = place.virtual_address(0, |register, _, _| self.state.base(register));
            match address {
                Some(address) if size > 0 => self.memory.forget(address, size),
                _ => {}
            }
        }
        self.state.flags.forget(inst.rflags_modified());
        Next::Follows
    }

    /// Bytes of an operand.
    fn size(inst: &Instruction, operand: u32) -> u32 {
        match inst.op_kind(operand) {
            OpKind::Register => inst.op_register(operand).size() as u32,
            OpKind::Memory => inst.memory_size().size() as u32,
            // An immediate is as wide as what it is combined with.
            _ if operand > 0 => Self::size(inst, 0),
            _ => 8,
        }
    }

    /// Where an operand in memory stands.
    fn address(&self, inst: &Instruction, operand: u32) -> Value {
        inst.virtual_address(operand, 0, |register, _, _| self.state.base(register))
    }

    /// The value of an operand: a general-purpose register, memory of up to eight bytes, or an immediate, sign-extended.
    fn operand(&mut self, inst: &Instruction, operand: u32) -> Value {
        match inst.op_kind(operand) {
            OpKind::Register => self.state.read(inst.op_register(operand)),
            OpKind::Memory => {
                let address = self.address(inst, operand)?;
                self.memory.load(address, Self::size(inst, operand))
            }
            _ => inst.try_immediate(operand).ok(),
        }
    }

    /// Writes an operand: a general-purpose register, or memory.
    fn put(&mut self, inst: &Instruction, operand: u32, value: Value) {
        match inst.op_kind(operand) {
            OpKind::Register => self.state.write(inst.op_register(operand), value),
            OpKind::Memory => {
                let size = Self::size(inst, operand);
                if let Some(address) = self.address(inst, operand) {
                    self.memory.store(address, size, value.map(|value| low(value, size)));
                }
            }
            _ => {}
        }
    }

    fn flags(&mut self) -> &mut Flags {
        &mut self.state.flags
    }
}
