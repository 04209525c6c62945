//! The mark for shadow stacks may be taken off: whole, and nothing else of its words. The program then runs without one, so that
//! unwinders count no frames on it (`moved_code/in_place.rs`).

use crate::check::Check;
use crate::kept_bytes::expected::Expected;
use crate::verdict::finding::FindingKind;
use afterlink_image::SHADOW_STACK;

/// Expects the words without the mark, if the output has none any more.
pub(crate) fn expect(check: &Check, expected: &mut Vec<Expected>) {
    if check.has_shadow_stack {
        return;
    }
    for at in check.input.shadow_stack_marks() {
        let word = check.input.bytes.get(at.get() as usize..).and_then(|rest| rest.first_chunk::<4>());
        let without = u32::from_le_bytes(*word.expect("a mark lies in the file")) & !SHADOW_STACK;
        expected.push(Expected::number(at.get(), 4, u64::from(without), FindingKind::Data));
    }
}
