//! Evaluates call frame instructions: takes a CIE's or FDE's instructions, gives the unwind rows, each with the
//! offset at which it comes into force (DWARF 5, section 6.4.3, as libgcc's unwinder reads it).

use crate::cursor::{Cursor, Fault};
use crate::instruction::{Context, Instruction, decode};
use crate::row::{CfaRule, MAX_EXPRESSION_BYTES, MAX_RULES, Register, RegisterRule, Row};

/// Deeper nesting of `remember_state` than this is no compiler's.
const MAX_REMEMBERED: usize = 32;

/// The row that a CIE's instructions set up; each of its FDEs starts with it.
pub(crate) fn initial_row(mut instructions: Cursor, context: &Context) -> Result<Row, Fault> {
    let mut machine = Machine { row: Row::default(), initial: None, remembered: Vec::new() };
    while !instructions.is_at_end() {
        match decode(&mut instructions, context)? {
            Instruction::AdvanceLoc(_) | Instruction::SetLoc(_) => {
                return Err(Fault("a CIE moves the location"));
            }
            other => machine.execute(other)?,
        }
    }
    Ok(machine.row)
}

/// Hands the rows of a function of `size` bytes at `start` to `store`: ascending offsets, the first 0. Neighbours may be
/// equal. Instructions for places behind the function's end are not looked at, as an unwinder never reaches them.
pub(crate) fn function_rows(
    mut instructions: Cursor,
    context: &Context,
    initial: &Row,
    (start, size): (u64, u64),
    mut store: impl FnMut(u32, &Row),
) -> Result<(), Fault> {
    if size > u64::from(u32::MAX) {
        return Err(Fault("the function is larger than 4 GiB"));
    }
    let mut machine = Machine { row: initial.clone(), initial: Some(initial), remembered: Vec::new() };
    let mut at = 0u64;
    while !instructions.is_at_end() {
        let next = match decode(&mut instructions, context)? {
            Instruction::AdvanceLoc(bytes) => at.checked_add(bytes),
            Instruction::SetLoc(address) => address.checked_sub(start).filter(|&next| next >= at),
            other => {
                machine.execute(other)?;
                continue;
            }
        };
        let next = next.ok_or(Fault("an unwind instruction moves the location backwards"))?;
        if next > at {
            // Invariant: `at` is 0 or less than `size`, which fits in 32 bits.
            store(at as u32, &machine.row);
            if next >= size {
                return Ok(());
            }
            at = next;
        }
    }
    store(at as u32, &machine.row);
    Ok(())
}

struct Machine<'a> {
    row: Row,
    /// `None` in a CIE.
    initial: Option<&'a Row>,
    remembered: Vec<Row>,
}

impl Machine<'_> {
    /// Executes an instruction that is not about the location.
    fn execute(&mut self, instruction: Instruction) -> Result<(), Fault> {
        match instruction {
            Instruction::Nop => {}
            Instruction::DefCfa(register, offset) => self.row.cfa = CfaRule::Offset(register, offset),
            Instruction::DefCfaRegister(register) => {
                let offset = match self.row.cfa {
                    CfaRule::Offset(_, offset) => offset,
                    CfaRule::Unspecified => 0,
                    CfaRule::Expression(_) => {
                        return Err(Fault("a CFA register is set on top of an expression"));
                    }
                };
                self.row.cfa = CfaRule::Offset(register, offset);
            }
            Instruction::DefCfaOffset(offset) => match self.row.cfa {
                CfaRule::Offset(register, _) => self.row.cfa = CfaRule::Offset(register, offset),
                _ => return Err(Fault("a CFA offset is set without a register")),
            },
            Instruction::DefCfaExpression(e) => self.row.cfa = CfaRule::Expression(e),
            Instruction::Set(register, rule) => self.set_rule(register, rule)?,
            Instruction::Restore(register) => {
                let initial = self.initial.ok_or(Fault("a CIE restores a register"))?;
                // The standard goes back to the CIE's rule, libgcc to none.
                if !matches!(initial.rule(register), None | Some(RegisterRule::SameValue)) {
                    return Err(Fault("unwinders read the restored register's rule in different ways"));
                }
                self.row.set_rule(register, initial.rule(register).cloned());
            }
            Instruction::RememberState if self.remembered.len() == MAX_REMEMBERED => {
                return Err(Fault("too many unwind states are remembered"));
            }
            Instruction::RememberState => self.remembered.push(self.row.clone()),
            Instruction::RestoreState => {
                // The size of the arguments is no part of the state, neither for gcc nor for libgcc.
                let args_size = self.row.args_size;
                self.row = self.remembered.pop().ok_or(Fault("no unwind state is there to be restored"))?;
                self.row.args_size = args_size;
            }
            Instruction::ArgsSize(bytes) => self.row.args_size = bytes,
            Instruction::NegateSigned => self.row.is_signed = !self.row.is_signed,
            Instruction::AdvanceLoc(_) | Instruction::SetLoc(_) => {
                unreachable!("the callers handle instructions about the location")
            }
        }
        Ok(())
    }

    fn set_rule(&mut self, register: Register, rule: RegisterRule) -> Result<(), Fault> {
        let added = rule.expression().map_or(0, |e| e.bytes().len());
        if added > 0 && self.row.expression_bytes() + added > MAX_EXPRESSION_BYTES {
            return Err(Fault("the unwind expressions of a row are longer than any compiler's"));
        }
        self.row.set_rule(register, Some(rule));
        if self.row.registers().len() > MAX_RULES {
            return Err(Fault("an unwind row has more rules than any compiler's"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
