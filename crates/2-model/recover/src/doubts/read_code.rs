//! Code whose bytes the program may read where they stand: between two labels, or between two functions whose addresses are
//! subtracted. A module that holds its own code against a hash, as FIPS modules do, must find what was linked. Such code is
//! left where it is, and no field of it changes either: what it calls and jumps to is found by the jump at the old entry,
//! and what it takes the address of stays.

use crate::code::Code;
use crate::code::event::EventKind;
use crate::references::pointers::Pointer;
use crate::references::uses::Taking;
use afterlink_core::{FileOffset, InputAddr, Refusal};
use std::collections::{BTreeMap, BTreeSet};

/// A label whose address is taken, and the field that holds it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TakenLabel {
    pub field: InputAddr,
    pub label: InputAddr,
}

/// From where up to where.
type Range = (InputAddr, InputAddr);

/// Refuses what lies between labels of which one function, or words of data side by side, have the addresses.
pub(crate) fn refuse_between(
    code: &mut Code,
    labels: &[TakenLabel],
    taking: &[Taking],
    pointers: &[Pointer],
) {
    let mut takers: BTreeMap<usize, BTreeSet<InputAddr>> = BTreeMap::new();
    let mut words = Vec::new();
    for taken in labels.iter().filter(|taken| !is_jumped_to(code, taken.label)) {
        match code.piece_at(taken.field) {
            Some(piece) => {
                takers.entry(piece).or_default().insert(taken.label);
            }
            None => words.push(*taken),
        }
    }
    // A label that ends a function whose address is taken beside it bounds that one.
    let mut single: Vec<Range> = Vec::new();
    for taking in taking {
        let Some(labels) = takers.get_mut(&taking.piece) else { continue };
        let is_its = |&label: &InputAddr| {
            let next = code.pieces.partition_point(|p| p.range.start < label);
            next > 0 && code.pieces[next - 1].range.start == taking.function
        };
        let ends: Vec<InputAddr> = labels.iter().copied().filter(is_its).collect();
        if !ends.is_empty() {
            labels.retain(|label| !ends.contains(label) && *label != taking.function);
        }
        single.extend(ends.into_iter().map(|end| (taking.function, end)));
    }
    let in_data = if words.is_empty() { Vec::new() } else { side_by_side(code, &words, pointers) };
    for (low, high) in takers.into_values().flat_map(pairs).chain(in_data).chain(single) {
        // What two labels of one function mean is told by that function.
        let is_part = code.piece_at(low).is_some_and(|piece| code.pieces[piece].range.end() > high);
        if !is_part {
            code.keep(low, high, Refusal::Bounded);
        }
    }
}

/// Whether the label stands inside of code that jumps indirectly, maybe there.
fn is_jumped_to(code: &Code, label: InputAddr) -> bool {
    let inside = code.piece_at(label).filter(|_| !code.is_entry(label));
    inside.is_some_and(|piece| code.scans[piece].has_indirect_jump)
}

/// What words of data enclose that hold a label, with another label or a function in the word before it.
fn side_by_side(code: &Code, labels: &[TakenLabel], pointers: &[Pointer]) -> Vec<Range> {
    const WORD: u64 = 8;
    let mut words: BTreeMap<FileOffset, InputAddr> = pointers.iter().map(|p| (p.field, p.target)).collect();
    let place = |taken: &TakenLabel| Some((code.image.file_offset(taken.field)?, taken.label));
    words.extend(labels.iter().filter_map(place));
    let before = |taken: &TakenLabel| {
        let field = InputAddr(taken.field.get().checked_sub(WORD)?);
        let same = code.image.section_at(field) == code.image.section_at(taken.field);
        let start = *words.get(&code.image.file_offset(field).filter(|_| same)?)?;
        (start < taken.label).then_some((start, taken.label))
    };
    labels.iter().filter_map(before).collect()
}

/// What labels enclose, each second one with the one before it; one that is left over may belong to any.
fn pairs(labels: BTreeSet<InputAddr>) -> Vec<Range> {
    let labels: Vec<InputAddr> = labels.into_iter().collect();
    let (pairs, rest) = labels.as_chunks::<2>();
    let mut found: Vec<Range> = pairs.iter().map(|&[low, high]| (low, high)).collect();
    found.extend(rest.first().filter(|_| !pairs.is_empty()).map(|&last| (labels[0], last)));
    found
}

/// Refuses what read code names and would not find any more. `rooms` says of each piece whether the jump has room at its start.
pub(crate) fn keep_named(code: &mut Code, rooms: &[bool]) {
    let named = code.collect_events(|piece, e| {
        let to = code.piece_at(e.target).filter(|&to| code.pieces[piece].is_read && to != piece)?;
        let is_way = e.is_direct_jump() || e.kind == EventKind::Call;
        let is_found = is_way && code.is_entry(e.target) && rooms[to];
        ((is_way || e.takes_address()) && !is_found).then_some(to)
    });
    named.into_iter().for_each(|piece| code.refuse(piece, Refusal::EnteredInside));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs_of(labels: &[u64]) -> Vec<(u64, u64)> {
        let labels = labels.iter().map(|&at| InputAddr(at)).collect();
        pairs(labels).into_iter().map(|(low, high)| (low.get(), high.get())).collect()
    }

    #[test]
    fn labels_enclose_code_two_by_two() {
        assert_eq!(pairs_of(&[1, 2, 5, 9]), [(1, 2), (5, 9)]);
        assert_eq!(pairs_of(&[1]), []);
    }

    #[test]
    fn a_label_that_is_left_over_may_belong_to_the_first() {
        assert_eq!(pairs_of(&[1, 5, 9]), [(1, 5), (1, 9)]);
    }
}
