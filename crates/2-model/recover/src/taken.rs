//! Functions whose address something has, and what may be done with it besides calling them.

use crate::code::Code;
use crate::meanings::Meaning;
use crate::scan::Event;
use crate::sums::Sum;
use afterlink_core::{InputAddr, Refusal};
use afterlink_image::Image;
use afterlink_program::DataPointer;

/// For each piece whether the address of its entry is taken, by code or by data.
pub(crate) fn entries(code: &Code, pointers: &[DataPointer], taking: &[(usize, Event)]) -> Vec<bool> {
    let mut taken = vec![false; code.pieces.len()];
    let mut take = |address: InputAddr| {
        if let Ok(piece) = code.pieces.binary_search_by_key(&address, |p| p.range.start) {
            taken[piece] = true;
        }
    };
    pointers.iter().for_each(|p| take(p.target));
    taking.iter().for_each(|(_, event)| take(event.target));
    taken
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
/// at most the section's and at most what the address shows.
pub(crate) fn alignment(image: &Image, entry: InputAddr) -> u64 {
    /// A cache line; a page and more are asked for by nobody who has the functions' addresses only.
    const MOST: u64 = 64;
    let section = image.section_at(entry).map_or(1, |id| image.sections[id].alignment);
    let shown = 1 << entry.get().trailing_zeros().min(63);
    section.clamp(1, MOST).min(shown)
}
