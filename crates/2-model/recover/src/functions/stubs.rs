//! Where the jump to its new place can stand at a function's old entry: there must be room up to the next place that anything names.
//!
//! Without it the old code stays as it was, and runs where it is if somebody comes there. Branches of one byte are refused it: code
//! that stays could not follow the function to its new place.

use crate::code::Code;
use crate::code::pieces::Piece;
use crate::evidence::Evidence;
use crate::references::pointers::Pointer;
use afterlink_core::{InputAddr, Refusal};
use afterlink_image::elf;
use rayon::prelude::*;

/// Bytes of the longest instruction.
const LONGEST: u64 = 15;

/// Bytes that the jump takes at `entry`.
pub(crate) fn size(code: &Code, entry: InputAddr) -> u64 {
    let bytes = (1..=LONGEST as usize).rev().find_map(|len| code.image.bytes_at(entry, len));
    code.image.arch.entry_stub_size(bytes.unwrap_or(&[]))
}

/// For each piece whether the jump has room at its start: the piece's own bytes and the padding behind it, up to the next name. What
/// looks like padding may be code or data of no name, so whatever leads there or reads there names it, too.
pub(crate) fn rooms(code: &Code, evidence: &Evidence, pointers: &[Pointer]) -> Vec<bool> {
    let symbols = code.image.symbols.iter().filter(|s| {
        s.is_defined() && (s.is_function() || s.kind == elf::STT_NOTYPE.0 && !s.name().is_empty())
    });
    let mut names: Vec<InputAddr> = symbols.map(|s| s.address).collect();
    names.extend(code.pieces.iter().map(|p| p.range.start));
    names.sort_unstable();
    let behind = behind_short(code, &names);
    let is_behind = |place: &InputAddr| {
        let next = behind.partition_point(|range| range.0 <= *place);
        next.checked_sub(1).is_some_and(|last| *place < behind[last].1)
    };
    let in_code = code.scans.par_iter().flat_map_iter(|scan| scan.events.iter().map(|event| event.target));
    names.par_extend(in_code.filter(is_behind));
    let in_data = pointers.iter().map(|p| p.target).chain(evidence.relative.iter().map(|field| field.named));
    names.extend(in_data.filter(is_behind));
    names.sort_unstable();
    names.dedup();
    code.pieces.iter().map(|piece| has_room(code, piece.range.start, piece.range.end(), &names)).collect()
}

/// Where jumps would stand behind pieces that are too short for them, up to the next of the `names`: first addresses, and those behind
/// the last; ascending and apart. Names ascend, and the start of each piece is one.
fn behind_short(code: &Code, names: &[InputAddr]) -> Vec<(InputAddr, InputAddr)> {
    let behind = |piece: &Piece| {
        let (entry, start) = (piece.range.start, piece.range.end());
        let end = (entry + size(code, entry)).min(next_name(names, entry).unwrap_or(InputAddr(u64::MAX)));
        (start < end).then_some((start, end))
    };
    code.pieces.iter().filter_map(behind).collect()
}

fn next_name(names: &[InputAddr], place: InputAddr) -> Option<InputAddr> {
    names.get(names.partition_point(|&name| name <= place)).copied()
}

/// Whether the jump has room at `entry` of a piece that ends at `end`.
fn has_room(code: &Code, entry: InputAddr, mut end: InputAddr, names: &[InputAddr]) -> bool {
    let wanted = entry + size(code, entry);
    let next = next_name(names, entry).unwrap_or(end + LONGEST);
    while end < wanted && end < next {
        let Some(first) = code.image.bytes_at(end, 1) else { break };
        let bytes = code.image.bytes_at(end, next.since(end).min(LONGEST) as usize).unwrap_or(first);
        match code.image.arch.padding(bytes) {
            Some(size) => end = end + u64::from(size),
            None => break,
        }
    }
    end.min(next) >= wanted
}

/// Refuses what has no room and is the target of another piece's branch that has a displacement of one byte.
pub(crate) fn refuse_short_targets(code: &mut Code, rooms: &[bool]) {
    let targets = code.collect_events(|piece, event| {
        let is_short = event.is_direct_jump() && event.len - event.field == 1;
        let to = if is_short { code.piece_at(event.target) } else { None };
        to.filter(|&to| to != piece && !rooms[to])
    });
    targets.into_iter().for_each(|piece| code.refuse(piece, Refusal::EnteredInside));
}
