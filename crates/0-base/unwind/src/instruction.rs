//! Call frame instructions, decoded: the byte stream of a CIE or FDE becomes [`Instruction`]s whose operands are
//! already multiplied by the CIE's alignment factors (DWARF 5, section 6.4.2).

use crate::cursor::{Cursor, Fault};
use crate::dwarf::*;
use crate::expression::Expression;
use crate::pointer::{Places, PointerEncoding};
use crate::row::{MAX_EXPRESSION_BYTES, Register, RegisterRule};
use afterlink_isa::UnwindNumbers;

/// What the operands of an instruction depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    pub numbers: &'static UnwindNumbers,
    /// Bytes by which `advance_loc` counts; not zero.
    pub code_alignment: u64,
    /// Bytes by which saved registers' offsets count; not zero.
    pub data_alignment: i64,
    /// Encoding of `set_loc`'s operand.
    pub pointers: PointerEncoding,
    pub places: Places,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    Nop,
    /// Bytes to go forward.
    AdvanceLoc(u64),
    /// Address to go to.
    SetLoc(u64),
    DefCfa(Register, i64),
    DefCfaRegister(Register),
    DefCfaOffset(i64),
    DefCfaExpression(Expression),
    Set(Register, RegisterRule),
    Restore(Register),
    RememberState,
    RestoreState,
    ArgsSize(u64),
    /// From here on the return address is signed, or no longer.
    NegateSigned,
}

/// Decodes the next instruction; the cursor must not be at its end.
pub(crate) fn decode(cursor: &mut Cursor, context: &Context) -> Result<Instruction, Fault> {
    let byte = cursor.u8()?;
    let low = u16::from(byte & 0x3f);
    match byte & 0xc0 {
        DW_CFA_ADVANCE_LOC => context.advance(u64::from(low)),
        DW_CFA_OFFSET => {
            let offset = context.unsigned_offset(cursor)?;
            Ok(Instruction::Set(low, RegisterRule::Offset(offset)))
        }
        DW_CFA_RESTORE => Ok(Instruction::Restore(low)),
        _ => decode_extended(byte, cursor, context),
    }
}

fn decode_extended(byte: u8, cursor: &mut Cursor, context: &Context) -> Result<Instruction, Fault> {
    use Instruction as I;
    Ok(match byte {
        DW_CFA_NOP => I::Nop,
        DW_CFA_SET_LOC => I::SetLoc(context.pointers.read(cursor, &context.places)?),
        DW_CFA_ADVANCE_LOC1 => return context.advance(u64::from(cursor.u8()?)),
        DW_CFA_ADVANCE_LOC2 => return context.advance(u64::from(cursor.u16()?)),
        DW_CFA_ADVANCE_LOC4 => return context.advance(u64::from(cursor.u32()?)),
        DW_CFA_RESTORE_EXTENDED => I::Restore(context.register(cursor)?),
        DW_CFA_REMEMBER_STATE => I::RememberState,
        DW_CFA_RESTORE_STATE => I::RestoreState,
        DW_CFA_DEF_CFA => I::DefCfa(context.register(cursor)?, plain_offset(cursor)?),
        DW_CFA_DEF_CFA_SF => I::DefCfa(context.register(cursor)?, context.signed_offset(cursor)?),
        DW_CFA_DEF_CFA_REGISTER => I::DefCfaRegister(context.register(cursor)?),
        DW_CFA_DEF_CFA_OFFSET => I::DefCfaOffset(plain_offset(cursor)?),
        DW_CFA_DEF_CFA_OFFSET_SF => I::DefCfaOffset(context.signed_offset(cursor)?),
        DW_CFA_DEF_CFA_EXPRESSION => I::DefCfaExpression(expression(cursor)?),
        DW_CFA_GNU_ARGS_SIZE => I::ArgsSize(cursor.uleb()?),
        DW_CFA_NEGATE_RA_STATE if context.numbers.signs_return_addresses => I::NegateSigned,
        _ => {
            let register = match byte {
                DW_CFA_OFFSET_EXTENDED..=DW_CFA_REGISTER
                | DW_CFA_EXPRESSION
                | DW_CFA_OFFSET_EXTENDED_SF
                | DW_CFA_VAL_OFFSET..=DW_CFA_VAL_EXPRESSION
                | DW_CFA_GNU_NEGATIVE_OFFSET_EXTENDED => context.register(cursor)?,
                _ => return Err(Fault("an unwind instruction is unknown")),
            };
            I::Set(register, decode_rule(byte, cursor, context)?)
        }
    })
}

/// The rule that an instruction gives the register it has named.
fn decode_rule(byte: u8, cursor: &mut Cursor, context: &Context) -> Result<RegisterRule, Fault> {
    use RegisterRule as R;
    Ok(match byte {
        DW_CFA_UNDEFINED => R::Undefined,
        DW_CFA_SAME_VALUE => R::SameValue,
        DW_CFA_OFFSET_EXTENDED => R::Offset(context.unsigned_offset(cursor)?),
        DW_CFA_OFFSET_EXTENDED_SF => R::Offset(context.signed_offset(cursor)?),
        DW_CFA_GNU_NEGATIVE_OFFSET_EXTENDED => R::Offset(context.unsigned_offset(cursor)?.wrapping_neg()),
        DW_CFA_VAL_OFFSET => R::ValOffset(context.unsigned_offset(cursor)?),
        DW_CFA_VAL_OFFSET_SF => R::ValOffset(context.signed_offset(cursor)?),
        DW_CFA_REGISTER => R::Register(context.register(cursor)?),
        DW_CFA_EXPRESSION => R::Expression(expression(cursor)?),
        DW_CFA_VAL_EXPRESSION => R::ValExpression(expression(cursor)?),
        _ => return Err(Fault("an unwind instruction is unknown")),
    })
}

impl Context {
    fn register(&self, cursor: &mut Cursor) -> Result<Register, Fault> {
        let number = cursor.uleb()?;
        u16::try_from(number)
            .ok()
            .filter(|&r| r < self.numbers.register_count)
            .ok_or(Fault("an unwind instruction names a register that does not exist"))
    }

    fn advance(&self, count: u64) -> Result<Instruction, Fault> {
        let bytes = count
            .checked_mul(self.code_alignment)
            .ok_or(Fault("an unwind instruction leaves the address space"))?;
        Ok(Instruction::AdvanceLoc(bytes))
    }

    fn unsigned_offset(&self, cursor: &mut Cursor) -> Result<i64, Fault> {
        Ok(plain_offset(cursor)?.wrapping_mul(self.data_alignment))
    }

    fn signed_offset(&self, cursor: &mut Cursor) -> Result<i64, Fault> {
        Ok(cursor.sleb()?.wrapping_mul(self.data_alignment))
    }
}

/// An offset without a factor. LLVM's assembler writes negative ones as unsigned numbers of 64 bits, and libgcc reads
/// them so; hence the wrapping arithmetic here and above.
fn plain_offset(cursor: &mut Cursor) -> Result<i64, Fault> {
    Ok(cursor.uleb()? as i64)
}

fn expression(cursor: &mut Cursor) -> Result<Expression, Fault> {
    let len = cursor.uleb()?;
    if len > MAX_EXPRESSION_BYTES as u64 {
        return Err(Fault("an unwind expression is longer than any compiler's"));
    }
    Ok(Expression::new(cursor.take(len)?))
}
