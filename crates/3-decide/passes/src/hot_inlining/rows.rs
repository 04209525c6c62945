//! Unwind rows of code that runs in place of a call: they lead to the caller as if the call had been made.
//!
//! The frame is the callee's own, wherever its instructions have it. Only the return address is not in memory, but where rows count from the frame pointer: it follows
//! from the place, so that no row has a rule for it, until addresses are known.

use afterlink_core::InputAddr;
use afterlink_isa::FrameState;
use afterlink_program::{FuncId, Program};
use afterlink_unwind::{CfaRule, RegisterRule, Row, RowId};

/// The numbers that DWARF gives the frame pointer and the stack pointer of x86-64, and the column of the return address.
const FRAME_POINTER: u16 = 6;
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

    /// What holds where the callee would have `row`.
    pub fn in_callee(&self, callee: &Row) -> Option<Row> {
        let mut row = plain(callee)?;
        let shift = if self.has_room { 0 } else { WORD };
        let CfaRule::Offset(register, to_frame) = row.cfa else { return None };
        // The caller finds its stack where the frame ends.
        row.cfa = CfaRule::Offset(register, to_frame - shift);
        // Where the frame pointer leads into the frame, a return address stands above it.
        if register == STACK_POINTER {
            row.set_rule(RETURN_ADDRESS, None);
        }
        let saved: Vec<(u16, RegisterRule)> = row.registers().to_vec();
        for (register, rule) in saved {
            let RegisterRule::Offset(at) = rule else { return None };
            row.set_rule(register, Some(RegisterRule::Offset(at + shift)));
        }
        Some(row)
    }
}

/// What holds where the callee would have `row`, while its return address is still on the stack's top, below `depth` bytes of frame.
pub(super) fn with_address_on_top(callee: &Row, depth: u32) -> Option<Row> {
    let mut row = plain(callee)?;
    if let CfaRule::Offset(STACK_POINTER, to_frame) = row.cfa {
        row.cfa = CfaRule::Offset(STACK_POINTER, to_frame + WORD);
    }
    row.set_rule(RETURN_ADDRESS, Some(RegisterRule::Offset(-i64::from(depth) - 2 * WORD)));
    Some(row)
}

/// Whether a row says that the return address stands where it is followed to.
pub(super) fn agrees(row: &Row, state: FrameState) -> bool {
    let distance = match row.cfa {
        CfaRule::Offset(STACK_POINTER, distance) => Some((distance, state.depth)),
        CfaRule::Offset(FRAME_POINTER, distance) => state.pointer.map(|pointer| (distance, pointer)),
        _ => None,
    };
    distance.is_some_and(|(distance, followed)| distance == i64::from(followed) + WORD)
}

/// Whether a row says where the frame pointer of the function's caller is kept.
pub(super) fn keeps_frame_pointer(row: &Row) -> bool {
    matches!(row.rule(FRAME_POINTER), Some(RegisterRule::Offset(_)))
}

/// Whether the file's unwind entries say that the return address is not on the stack's top at a place.
pub(super) fn is_told_other(program: &Program, place: InputAddr) -> bool {
    let entry = program.eh_frame.fdes.iter().find(|(_, fde)| fde.contains(place));
    let rows = entry.and_then(|(_, fde)| Some((fde.start, program.eh_frame.rows(fde).ok()?)));
    rows.is_some_and(|(start, rows)| {
        let behind = rows.partition_point(|(at, _)| u64::from(*at) <= place.since(start));
        let row = behind.checked_sub(1).map(|i| &rows[i].1);
        row.is_some_and(|row| {
            matches!(row.cfa, CfaRule::Offset(STACK_POINTER, _)) && !agrees(row, FrameState::default())
        })
    })
}

/// The row, if it counts the frame from the stack's top or the frame pointer, and says of registers where they are saved, and nothing else.
fn plain(callee: &Row) -> Option<Row> {
    let is_known = |(register, rule): &(u16, RegisterRule)| match rule {
        RegisterRule::Offset(at) => *register != RETURN_ADDRESS || *at == -WORD,
        _ => false,
    };
    let is_plain = matches!(callee.cfa, CfaRule::Offset(FRAME_POINTER | STACK_POINTER, _))
        && callee.args_size == 0
        && !callee.is_signed
        && callee.rule(RETURN_ADDRESS).is_some()
        && callee.registers().iter().all(is_known);
    is_plain.then(|| callee.clone())
}
