//! Jump tables whose entries the code itself counts and adds up, as on AArch64: the bound of the comparison, an entry's size,
//! and the address that it counts from.

use super::Table;
use crate::code::Code;
use crate::code::parted::targets;
use afterlink_core::{InputAddr, Refusal};
use afterlink_program::TableFormat;

/// All tables that code jumps through. Pieces with a jump that is not understood are refused.
pub(crate) fn tables(code: &mut Code) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for piece in 0..code.pieces.len() {
        let mut is_understood = !code.scans[piece].has_calculated_jump;
        for (_, jump) in &code.scans[piece].table_jumps {
            let is_own = |target: &InputAddr| {
                let to = code.piece_at(*target);
                to.is_some_and(|to| code.are_family(piece, to) && code.is_boundary(to, *target))
            };
            let targets = targets(code.image, jump).filter(|targets| targets.iter().all(is_own));
            let Some(targets) = targets else {
                is_understood = false;
                continue;
            };
            let base = InputAddr(jump.table);
            let format = TableFormat {
                entry: jump.entry,
                signed: jump.signed,
                shift: jump.shift,
                base: Some(InputAddr(jump.base)),
            };
            tables.push(Table { piece, base, format: Some(format), targets });
        }
        if !is_understood {
            code.refuse(piece, Refusal::IndirectJump);
        }
    }
    tables
}

/// The table that the indirect jump at `offset` of a piece goes through.
pub(crate) fn table_of_jump(code: &Code, piece: usize, offset: u32) -> Option<InputAddr> {
    let jumps = &code.scans[piece].table_jumps;
    jumps.iter().find(|jump| jump.0 == offset).map(|(_, jump)| InputAddr(jump.table))
}
