//! The mark in front of a function by which clang's `-fsanitize=function` knows that a hash of its type follows. Callers by
//! pointer look for it: a function that has it must not lose it by moving, nor another one get it.

use crate::address_map::places::Place;
use crate::check::Check;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_core::InputAddr;
use afterlink_image::Image;

const MARK: [u8; 4] = 0xc105_cafe_u32.to_le_bytes();
/// Bytes of the mark and the hash.
const BEFORE: u64 = 8;

pub(crate) fn check(check: &Check) -> Vec<Finding> {
    let entries = check.functions.rows.iter().map(|f| f.start);
    let moved = entries.filter_map(|entry| match check.place(entry) {
        Place::Moved(place) => Some((entry, place)),
        _ => None,
    });
    let marked =
        moved.filter(|&(entry, place)| is_marked(check.input, entry) || is_marked(check.output, place));
    let what = "a function moved in front of which the mark of its type stood or now seems to stand";
    marked.map(|(entry, place)| Finding::new(FindingKind::Operand, what).input(entry).output(place)).collect()
}

fn is_marked(image: &Image, entry: u64) -> bool {
    image.bytes_at(InputAddr(entry.wrapping_sub(BEFORE)), MARK.len()) == Some(&MARK[..])
}
