//! Functions whose address something has, and what may be done with it besides calling them.

use crate::code::Code;
use crate::doubts::sums::Sum;
use crate::evidence::symbols::{Meaning, Symbols};
use crate::references::pointers::Pointer;
use crate::references::uses::Taking;
use afterlink_core::{InputAddr, Refusal};
use afterlink_image::Image;
use afterlink_program::Range;
use std::cell::LazyCell;

/// For each piece whether the address of its entry is taken, by code, by data or by other objects.
pub(crate) fn entries(code: &Code, pointers: &[Pointer], taking: &[Taking]) -> Vec<bool> {
    let mut taken = vec![false; code.pieces.len()];
    let mut take = |address: InputAddr| {
        if let Some(piece) = code.piece_from(address) {
            taken[piece] = true;
        }
    };
    pointers.iter().for_each(|p| take(p.target));
    taking.iter().for_each(|taking| take(taking.function));
    code.image.exported_functions().for_each(take);
    taken
}

/// A symbol of a wrong size swallows functions that stand behind its own, each with a name and an unwind entry of its own. If one
/// of them shows an alignment that whoever has its address may count on, everything stays: the whole is moved as one.
pub(crate) fn refuse_swallowing(
    code: &mut Code,
    pointers: &[Pointer],
    symbols: &Symbols,
    unwind_ranges: &[Range],
) {
    let places = LazyCell::new(|| symbols.places_in_code());
    let is_named = |address: InputAddr| places.binary_search(&address).is_ok();
    let swallowing = swallowing(code, unwind_ranges, is_named);
    if swallowing.is_empty() {
        return;
    }
    let mut found = code.collect_events(|_, e| e.takes_address().then_some(e.target));
    found.extend(pointers.iter().map(|p| p.target));
    for target in found {
        if let Some(piece) = code.piece_at(target).filter(|piece| swallowing.binary_search(piece).is_ok())
            && !code.is_entry(target)
            && alignment(code.image, target) > 1
            && is_named(target)
        {
            code.refuse(piece, Refusal::EnteredInside);
        }
    }
}

/// The pieces inside of which something with a name and an unwind entry of its own starts, ascending.
fn swallowing(code: &Code, unwind_ranges: &[Range], is_named: impl Fn(InputAddr) -> bool) -> Vec<usize> {
    let mut piece = 0;
    let mut found = Vec::new();
    for start in unwind_ranges.iter().map(|r| r.start) {
        while code.pieces.get(piece).is_some_and(|p| p.range.end() <= start) {
            piece += 1;
        }
        if code.pieces.get(piece).is_some_and(|p| p.range.start < start) && is_named(start) {
            found.push(piece);
        }
    }
    found.dedup();
    found
}

/// The program has the address at which its text ends, and may ask of any address whether it lies before: functions that
/// moved would not.
pub(crate) fn refuse_compared_with_text(code: &mut Code, sums: &[Sum], taken: &[bool]) {
    if sums.iter().any(|s| s.meaning == Meaning::TextEnd) {
        for piece in (0..taken.len()).filter(|&piece| taken[piece]) {
            code.refuse(piece, Refusal::Ordered);
        }
    }
}

/// The alignment of an entry that whoever has its address may count on, as a tag in the low bits does. What was asked for is
/// at most the section's and at most what the address shows. Where nobody asked for more than usual, the section's is no more than 64.
pub(crate) fn alignment(image: &Image, entry: InputAddr) -> u64 {
    let section = image.section_at(entry).map_or(1, |id| image.sections[id].alignment);
    let shown = 1 << entry.get().trailing_zeros().min(63);
    section.max(1).min(shown)
}
