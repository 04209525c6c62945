//! The shortest call frame instructions that lead from one row to another, the inverse of evaluation; of them only those
//! that all unwinders (libgcc, LLVM's and nongnu's libunwind, gdb, elfutils) read alike.

use crate::cursor::{write_sleb, write_uleb};
use crate::dwarf::*;
use crate::expression::Expression;
use crate::row::{CfaRule, Register, RegisterRule, Row};
use afterlink_core::Error;

/// The CIE under which the instructions will be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub code_alignment: u64,
    pub data_alignment: i64,
    /// What functions start with; `None` while the CIE's own instructions are written.
    pub initial: Option<&'a Row>,
}

/// Appends the shortest instruction that goes `bytes` forward.
pub(crate) fn write_advance(out: &mut Vec<u8>, bytes: u32, frame: &Frame) -> Result<(), Error> {
    let bytes = u64::from(bytes);
    if !bytes.is_multiple_of(frame.code_alignment) {
        return Err(Error::new("an unwind row starts between two instructions"));
    }
    let count = (bytes / frame.code_alignment) as u32;
    match count {
        0 => {}
        1..=0x3f => out.push(DW_CFA_ADVANCE_LOC | count as u8),
        0x40..=0xff => out.extend_from_slice(&[DW_CFA_ADVANCE_LOC1, count as u8]),
        0x100..=0xffff => {
            out.push(DW_CFA_ADVANCE_LOC2);
            out.extend_from_slice(&(count as u16).to_le_bytes());
        }
        _ => {
            out.push(DW_CFA_ADVANCE_LOC4);
            out.extend_from_slice(&count.to_le_bytes());
        }
    }
    Ok(())
}

/// Appends the instructions that change `from` into `to`.
///
/// # Errors
/// Not every row can be reached from every other: no instruction takes the CFA away, a register loses its rule only
/// if the CIE gives it none, and offsets have to be multiples of the CIE's factor. Rows evaluated under the same
/// CIE always can, unless `restore_state` took the CFA away.
pub(crate) fn write_difference(out: &mut Vec<u8>, from: &Row, to: &Row, frame: &Frame) -> Result<(), Error> {
    if from.cfa != to.cfa {
        write_cfa(out, &from.cfa, &to.cfa, frame)?;
    }
    let (mut old, mut new) = (from.registers(), to.registers());
    loop {
        // Merges the two sorted lists: the lower register is next, or both sides of the same one.
        let register = match (old.first(), new.first()) {
            (None, None) => break,
            (Some((o, _)), Some((n, _))) => *o.min(n),
            (Some((r, _)), None) | (None, Some((r, _))) => *r,
        };
        let before = take_rule(&mut old, register);
        let after = take_rule(&mut new, register);
        if before == after {
            continue;
        }
        match (after, frame.initial) {
            (Some(rule), _) => write_rule(out, register, rule, frame)?,
            // To libgcc *restore* means "not saved" even where the CIE has a rule; so it is written only where it has none.
            (None, Some(initial)) if initial.rule(register).is_none() => {
                write_register(out, DW_CFA_RESTORE, DW_CFA_RESTORE_EXTENDED, register);
            }
            _ => return Err(unreachable_row("takes a rule of its CIE away")),
        }
    }
    if from.is_signed != to.is_signed {
        out.push(DW_CFA_NEGATE_RA_STATE);
    }
    if from.args_size != to.args_size {
        out.push(DW_CFA_GNU_ARGS_SIZE);
        write_uleb(out, to.args_size);
    }
    Ok(())
}

fn take_rule<'a>(rules: &mut &'a [(Register, RegisterRule)], register: Register) -> Option<&'a RegisterRule> {
    let ((r, rule), rest) = rules.split_first()?;
    (*r == register).then(|| {
        *rules = rest;
        rule
    })
}

fn write_cfa(out: &mut Vec<u8>, from: &CfaRule, to: &CfaRule, frame: &Frame) -> Result<(), Error> {
    let (register, offset) = match to {
        CfaRule::Unspecified => return Err(unreachable_row("takes the CFA away")),
        CfaRule::Expression(expression) => {
            out.push(DW_CFA_DEF_CFA_EXPRESSION);
            write_expression(out, expression);
            return Ok(());
        }
        CfaRule::Offset(register, offset) => (*register, *offset),
    };
    match *from {
        CfaRule::Offset(_, o) if o == offset => {
            out.push(DW_CFA_DEF_CFA_REGISTER);
            write_uleb(out, u64::from(register));
            return Ok(());
        }
        CfaRule::Offset(r, _) if r == register => {
            out.push(if offset < 0 { DW_CFA_DEF_CFA_OFFSET_SF } else { DW_CFA_DEF_CFA_OFFSET });
        }
        _ => {
            out.push(if offset < 0 { DW_CFA_DEF_CFA_SF } else { DW_CFA_DEF_CFA });
            write_uleb(out, u64::from(register));
        }
    }
    // Only the signed forms are factored.
    match u64::try_from(offset) {
        Ok(bytes) => write_uleb(out, bytes),
        Err(_) => write_sleb(out, factored(offset, frame)?),
    }
    Ok(())
}

fn write_rule(
    out: &mut Vec<u8>,
    register: Register,
    rule: &RegisterRule,
    frame: &Frame,
) -> Result<(), Error> {
    let number = u64::from(register);
    let mut opcode = |code: u8| {
        out.push(code);
        write_uleb(out, number);
    };
    match rule {
        RegisterRule::Undefined => opcode(DW_CFA_UNDEFINED),
        RegisterRule::SameValue => opcode(DW_CFA_SAME_VALUE),
        RegisterRule::Register(other) => {
            opcode(DW_CFA_REGISTER);
            write_uleb(out, u64::from(*other));
        }
        RegisterRule::Expression(expression) => {
            opcode(DW_CFA_EXPRESSION);
            write_expression(out, expression);
        }
        RegisterRule::ValExpression(expression) => {
            opcode(DW_CFA_VAL_EXPRESSION);
            write_expression(out, expression);
        }
        RegisterRule::Offset(offset) => match factored(*offset, frame)? {
            count @ 0.. => {
                write_register(out, DW_CFA_OFFSET, DW_CFA_OFFSET_EXTENDED, register);
                write_uleb(out, count as u64);
            }
            count => {
                opcode(DW_CFA_OFFSET_EXTENDED_SF);
                write_sleb(out, count);
            }
        },
        RegisterRule::ValOffset(offset) => match factored(*offset, frame)? {
            count @ 0.. => {
                opcode(DW_CFA_VAL_OFFSET);
                write_uleb(out, count as u64);
            }
            count => {
                opcode(DW_CFA_VAL_OFFSET_SF);
                write_sleb(out, count);
            }
        },
    }
    Ok(())
}

/// The instruction with the register in its opcode if that has room, else the one with an operand.
fn write_register(out: &mut Vec<u8>, short: u8, long: u8, register: Register) {
    if register < 0x40 {
        out.push(short | register as u8);
    } else {
        out.push(long);
        write_uleb(out, u64::from(register));
    }
}

fn write_expression(out: &mut Vec<u8>, expression: &Expression) {
    write_uleb(out, expression.bytes().len() as u64);
    out.extend_from_slice(expression.bytes());
}

fn factored(offset: i64, frame: &Frame) -> Result<i64, Error> {
    // `checked_rem` also covers the one overflow, i64::MIN by -1.
    match offset.checked_rem(frame.data_alignment) {
        Some(0) => Ok(offset / frame.data_alignment),
        _ => Err(unreachable_row("has an offset that is no multiple of its CIE's factor")),
    }
}

fn unreachable_row(why: &str) -> Error {
    Error::new(format!("no unwind instruction leads to a row that {why}"))
}
