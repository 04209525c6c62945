//! The note that says what afterlink did: well formed, and with the build-id of this input. What else it says is
//! for people.

use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::{Image, NOTE_SECTION, elf};

const NAME: &[u8] = b"afterlink\0\0\0";
/// Bytes of the name without padding, and the note's type.
const NAME_SIZE: u32 = 10;
const KIND: u32 = 1;

pub(crate) fn check(input: &Image, output: &Image) -> Option<Finding> {
    let id = output.section_named(NOTE_SECTION)?;
    let fits =
        output.sections[id].kind == elf::SHT_NOTE.0 && is_note(output.section_bytes(id), input.build_id);
    let what = format!("{NOTE_SECTION} is no note that says which program was rewritten");
    (!fits).then(|| Finding::new(FindingKind::Section, what))
}

fn is_note(bytes: &[u8], build_id: &[u8]) -> bool {
    let Some((head, rest)) = bytes.split_at_checked(12) else { return false };
    let Some(padded) = rest.strip_prefix(NAME) else { return false };
    let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
    let Some((text, padding)) = padded.split_at_checked(size) else { return false };
    let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let lines = std::str::from_utf8(text).is_ok_and(|text| {
        text.ends_with('\n') && text.lines().all(|line| line.contains('=')) && {
            text.lines().next_back().is_some_and(|last| last == format!("input-build-id={hex}"))
        }
    });
    head[..4] == NAME_SIZE.to_le_bytes()
        && head[8..] == KIND.to_le_bytes()
        && padding.len() == size.next_multiple_of(4) - size
        && padding.iter().all(|&byte| byte == 0)
        && lines
}
