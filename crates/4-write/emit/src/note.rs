//! The note that says what afterlink did, and the new build-id.

use afterlink_elf::NewSection;
use sha1::{Digest, Sha1};

/// The note's name; its description is text, one `key=value` a line.
const NAME: &[u8] = b"afterlink\0";
/// The note's type.
const KIND: u32 = 1;

/// An ELF note with `text` as its description.
pub(crate) fn note(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&(NAME.len() as u32).to_le_bytes());
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(&KIND.to_le_bytes());
    for part in [NAME, text.as_bytes()] {
        out.extend_from_slice(part);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// A build-id as long as the input's, from everything that makes the output differ from the input.
pub(crate) fn build_id(input: &[u8], note: &[u8], sections: &[NewSection]) -> Option<Vec<u8>> {
    if input.is_empty() {
        return None;
    }
    let mut hash = Sha1::new();
    hash.update(input);
    hash.update(note);
    for section in sections {
        hash.update(section.address.get().to_le_bytes());
        hash.update(&section.bytes);
    }
    let digest = hash.finalize();
    Some(digest.iter().copied().cycle().take(input.len()).collect())
}
