//! Unwind rows of code that runs in place of a call: they lead to the caller's caller at once.

use afterlink_core::InputAddr;
use afterlink_program::{FuncId, Program};
use afterlink_unwind::{CfaRule, RegisterRule, Row, RowId};

/// The number that DWARF gives the stack pointer of x86-64, and the column of the return address.
const STACK_POINTER: u16 = 7;
const RETURN_ADDRESS: u16 = 16;
/// Bytes of a return address.
const WORD: i64 = 8;

/// The caller's row at the call.
pub(super) struct AtCall {
    id: RowId,
    row: Row,
    /// Whether room for a return address is made.
    has_room: bool,
}

impl AtCall {
    pub fn find(program: &Program, caller: FuncId, call: InputAddr, has_room: bool) -> Option<Self> {
        let (_, id) = program.functions[caller].unwind_row_at(call)?;
        let row = program.rows[id].clone();
        matches!(row.cfa, CfaRule::Offset(..)).then_some(Self { id, row, has_room })
    }

    /// What holds where the stack is as at the call.
    pub fn id(&self) -> RowId {
        self.id
    }

    /// What holds where the room for a return address is there, and nothing below it.
    pub fn with_room(&self) -> Row {
        let mut row = self.row.clone();
        if let (CfaRule::Offset(STACK_POINTER, offset), true) = (&row.cfa, self.has_room) {
            row.cfa = CfaRule::Offset(STACK_POINTER, offset + WORD);
        }
        row
    }

    /// What holds where the callee would have `row`, with the stack's top so many bytes lower than there.
    pub fn around(&self, callee: &Row, lower: i64) -> Option<Row> {
        let CfaRule::Offset(STACK_POINTER, to_frame) = callee.cfa else { return None };
        let mut row = self.row.clone();
        // Where the callee's frame would be from the caller's.
        let shift = if self.has_room { 0 } else { WORD };
        let frame = match row.cfa {
            CfaRule::Offset(STACK_POINTER, offset) => {
                row.cfa = CfaRule::Offset(STACK_POINTER, offset + to_frame - shift + lower);
                Some(shift - offset)
            }
            _ => None,
        };
        if callee.args_size != 0 || callee.is_signed {
            return None;
        }
        for (register, rule) in callee.registers() {
            let RegisterRule::Offset(at) = rule else { return None };
            if *register == RETURN_ADDRESS {
                if *at != -WORD {
                    return None;
                }
                continue;
            }
            // The register that the caller's frame is counted from must not change.
            if matches!(row.cfa, CfaRule::Offset(from, _) if from == *register) {
                return None;
            }
            match row.rule(*register) {
                Some(RegisterRule::Offset(_)) => {}
                Some(_) => return None,
                None => row.set_rule(*register, Some(RegisterRule::Offset(at + frame?))),
            }
        }
        Some(row)
    }
}
