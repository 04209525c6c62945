//! Functions that come back with the stack elsewhere than right behind their return address: they take their own arguments off it (`ret $8`, as
//! clang's `tailcc`, `swifttailcc` and `swiftasynccall` do), or jump to code that does. Their callers count on it; whatever takes a call for one that
//! leaves the stack as it was must not have them.

use crate::code::Code;
use crate::code::event::EventKind;

/// Marks the pieces of which that is known.
pub(crate) fn mark(code: &mut Code) {
    let arch = code.image.arch;
    let mut open = code.collect_events(|piece, e| {
        let bytes = code.bytes(piece).get(e.offset as usize..e.end() as usize)?;
        let is_other = e.kind == EventKind::Return && !arch.is_plain_return(bytes);
        (is_other && arch.return_moves_stack(bytes)).then_some(piece)
    });
    if open.is_empty() {
        return;
    }
    let mut jumps = code.collect_events(|piece, e| {
        let to = code.piece_at(code.callee(e.target)).filter(|to| e.is_direct_jump() && *to != piece)?;
        Some((to, piece))
    });
    jumps.sort_unstable();
    while let Some(piece) = open.pop() {
        if !std::mem::replace(&mut code.pieces[piece].moves_stack, true) {
            let first = jumps.partition_point(|jump| jump.0 < piece);
            open.extend(jumps[first..].iter().take_while(|jump| jump.0 == piece).map(|jump| jump.1));
        }
    }
}

/// Whether a piece calls one of them.
pub(crate) fn is_called_by(code: &Code, piece: usize) -> bool {
    let moves = |address| code.piece_at(code.callee(address)).is_some_and(|to| code.pieces[to].moves_stack);
    code.scans[piece].events.iter().any(|e| e.kind == EventKind::Call && moves(e.target))
}
