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

/// What may bound code: where it is, and whether it is a label.
type Bound = (InputAddr, bool);

/// Refuses what lies between labels of which one function, or words of data side by side, have the addresses.
pub(crate) fn refuse_between(
    code: &mut Code,
    labels: &[TakenLabel],
    taking: &[Taking],
    pointers: &[Pointer],
) {
    let mut takers: BTreeMap<usize, BTreeSet<Bound>> = BTreeMap::new();
    let mut words = Vec::new();
    for taken in labels.iter().filter(|taken| !is_jumped_to(code, taken.label)) {
        match (code.piece_at(taken.field), code.image.file_offset(taken.field)) {
            (Some(piece), _) => {
                takers.entry(piece).or_default().insert((taken.label, true));
            }
            (None, Some(at)) => words.push((at, taken.label)),
            (None, None) => {}
        }
    }
    for taking in taking {
        if let Some(bounds) = takers.get_mut(&taking.piece) {
            bounds.insert((taking.function, false));
        }
    }
    let tables = if words.is_empty() { Vec::new() } else { tables(&words, pointers) };
    for (low, high) in takers.into_values().chain(tables).flat_map(brackets) {
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

/// The bounds in each run of words that holds one of the labels.
fn tables(labels: &[(FileOffset, InputAddr)], pointers: &[Pointer]) -> Vec<BTreeSet<Bound>> {
    let of_labels = labels.iter().map(|&(at, label)| (at, (label, true)));
    let is_label = |at| labels.iter().any(|l| l.0 == at);
    let others = pointers.iter().filter(|p| !is_label(p.field)).map(|p| (p.field, (p.target, false)));
    let mut words: Vec<(FileOffset, Bound)> = of_labels.chain(others).collect();
    words.sort_unstable();
    let runs = words.chunk_by(|a, b| b.0.get() - a.0.get() <= 8);
    let with_label = runs.filter(|run| run.iter().any(|(_, bound)| bound.1));
    with_label.map(|run| run.iter().map(|(_, bound)| *bound).collect()).collect()
}

/// What the bounds enclose. A label closes what the last function or label before it opened; one that is left over may belong
/// to any.
fn brackets(mut bounds: BTreeSet<Bound>) -> Vec<(InputAddr, InputAddr)> {
    let mut found = Vec::new();
    let mut open: Option<Bound> = None;
    // A label may stand where a function starts.
    let labels: Vec<Bound> = bounds.iter().filter(|bound| bound.1).copied().collect();
    for (label, _) in labels {
        bounds.remove(&(label, false));
    }
    for &(address, is_label) in &bounds {
        match open {
            Some((start, _)) if is_label => {
                found.push((start, address));
                open = None;
            }
            Some((_, true)) => {}
            _ => open = Some((address, is_label)),
        }
    }
    let first_label = bounds.iter().find(|bound| bound.1);
    if let (Some((last, true)), Some(&(first, _))) = (open, first_label)
        && first < last
    {
        found.push((first, last));
    }
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

    fn brackets_of(bounds: &[(u64, bool)]) -> Vec<(u64, u64)> {
        let bounds = bounds.iter().map(|&(at, is_label)| (InputAddr(at), is_label)).collect();
        brackets(bounds).into_iter().map(|(low, high)| (low.get(), high.get())).collect()
    }

    #[test]
    fn a_label_closes_what_stands_open() {
        assert_eq!(brackets_of(&[(1, false), (2, true), (3, true), (4, true)]), [(1, 2), (3, 4)]);
        assert_eq!(brackets_of(&[(1, false), (5, false), (9, true)]), [(5, 9)]);
    }

    #[test]
    fn functions_between_labels_are_inside() {
        assert_eq!(brackets_of(&[(1, true), (5, false), (9, true), (12, false)]), [(1, 9)]);
        assert_eq!(brackets_of(&[(1, false), (1, true), (9, false), (9, true)]), [(1, 9)]);
    }

    #[test]
    fn a_label_without_another_may_belong_to_the_first() {
        assert_eq!(brackets_of(&[(1, true), (5, true), (9, true)]), [(1, 5), (1, 9)]);
        assert_eq!(brackets_of(&[(1, true)]), []);
        assert_eq!(brackets_of(&[(1, false), (3, false)]), []);
    }
}
