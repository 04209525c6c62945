//! What libgcc, the unwinder of nearly every program, reads in an unwind entry otherwise than the standard (DWARF 5, 6.4.2),
//! which `gimli` follows: *restore* makes a register "not saved" whatever the common entry says of it, and going back to a
//! remembered state leaves the size of pushed arguments as it is (`execute_cfa_program` in gcc's `unwind-dw2.c`). From version 4
//! on, it expects two more bytes in a common entry (`extract_cie_info`), as `.debug_frame` has them.

use crate::unwind::table::{Entry, Slice, Table};
use gimli::{CallFrameInstruction, CallFrameInstructionIter, Register};

/// libgcc ignores rules of registers behind the return address.
const REGISTERS: u16 = 17;

/// Whether libgcc expects the common entry of `entry` to be longer than the standard and `gimli` do.
pub(crate) fn is_longer(entry: &Entry) -> bool {
    entry.cie().version() > 3
}

/// Follows an entry from its start to its end.
pub(crate) struct LibgccReading<'a> {
    instructions: CallFrameInstructionIter<'a, Slice<'a>>,
    code_alignment: u64,
    /// Where the next instruction comes into force.
    address: u64,
    /// Registers of which the common entry says where they are saved.
    ruled: u32,
    /// Those of them that libgcc takes as not saved.
    lost: u32,
    remembered: Vec<u32>,
    args_size: u64,
}

impl<'a> LibgccReading<'a> {
    pub fn new(entry: &Entry<'a>, table: &'a Table<'a>) -> Self {
        let mut reading = Self {
            instructions: entry.cie().instructions(&table.frame, &table.bases),
            code_alignment: entry.cie().code_alignment_factor(),
            address: 0,
            ruled: 0,
            lost: 0,
            remembered: Vec::new(),
            args_size: 0,
        };
        while let Ok(Some(instruction)) = reading.instructions.next() {
            match instruction {
                CallFrameInstruction::SameValue { register } => reading.ruled &= !bit(register),
                _ => reading.ruled |= rule_of(&instruction).map_or(0, bit),
            }
            reading.execute(&instruction);
        }
        reading.instructions = entry.instructions(&table.frame, &table.bases);
        reading.address = entry.initial_address();
        reading
    }

    /// Bytes that [`Self::write`] writes.
    pub const SIZE: usize = 16;

    /// Appends what is in force at `address`, which is not below that of the last call, as bytes that compare.
    pub fn write(&mut self, out: &mut Vec<u8>, address: u64) {
        while self.address <= address
            // What cannot be decoded ends the entry's rows.
            && let Ok(Some(instruction)) = self.instructions.next()
        {
            self.execute(&instruction);
        }
        out.extend_from_slice(&u64::from(self.lost).to_le_bytes());
        out.extend_from_slice(&self.args_size.to_le_bytes());
    }

    /// The size of pushed arguments that was written.
    pub fn args_size(written: &[u8]) -> u64 {
        let size = written.get(8..16).and_then(|bytes| bytes.try_into().ok());
        size.map_or(0, u64::from_le_bytes)
    }

    fn execute(&mut self, instruction: &CallFrameInstruction<usize>) {
        use CallFrameInstruction as I;
        match *instruction {
            I::AdvanceLoc { delta } => {
                let bytes = u64::from(delta).wrapping_mul(self.code_alignment);
                self.address = self.address.wrapping_add(bytes);
            }
            I::SetLoc { address } => self.address = address,
            I::Restore { register } => self.lost |= self.ruled & bit(register),
            I::RememberState => self.remembered.push(self.lost),
            I::RestoreState => self.lost = self.remembered.pop().unwrap_or(self.lost),
            I::ArgsSize { size } => self.args_size = size,
            _ => self.lost &= !rule_of(instruction).map_or(0, bit),
        }
    }
}

/// The register to which an instruction gives a rule.
fn rule_of(instruction: &CallFrameInstruction<usize>) -> Option<Register> {
    use CallFrameInstruction as I;
    match *instruction {
        I::Undefined { register }
        | I::SameValue { register }
        | I::Offset { register, .. }
        | I::OffsetExtendedSf { register, .. }
        | I::ValOffset { register, .. }
        | I::ValOffsetSf { register, .. }
        | I::Expression { register, .. }
        | I::ValExpression { register, .. } => Some(register),
        I::Register { dest_register, .. } => Some(dest_register),
        _ => None,
    }
}

fn bit(register: Register) -> u32 {
    if register.0 < REGISTERS { 1 << register.0 } else { 0 }
}

#[cfg(test)]
mod tests;
