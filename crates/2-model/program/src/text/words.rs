//! The words of the text form that reader and writer share.

use crate::{Role, Stop};
use afterlink_isa::Encoding;

pub(super) const ROLES: [(Role, &str); 5] = [
    (Role::Call, "call"),
    (Role::Jump, "jump"),
    (Role::Address, "address"),
    (Role::Memory, "memory"),
    (Role::Data, "data"),
];

pub(super) const STOPS: [(Stop, &str); 4] = [
    (Stop::Return, "return"),
    (Stop::TailCall, "tail-call"),
    (Stop::Trap, "trap"),
    (Stop::Unknown, "unknown"),
];

/// The encoding that need not be named.
pub(super) const USUAL: Encoding = Encoding::Relative32 { end: 4 };

const PLAIN: [(Encoding, &str); 9] = [
    (USUAL, "rel32"),
    (Encoding::Relative8, "rel8"),
    (Encoding::Absolute32, "abs32"),
    (Encoding::Absolute64, "abs64"),
    (Encoding::Branch26, "branch26"),
    (Encoding::Branch19, "branch19"),
    (Encoding::Branch14, "branch14"),
    (Encoding::Adr21, "adr21"),
    (Encoding::Page21, "page21"),
];

pub(super) fn word_of<T: PartialEq>(words: &[(T, &'static str)], meant: &T) -> &'static str {
    words.iter().find(|(one, _)| one == meant).map_or("?", |(_, word)| word)
}

pub(super) fn meaning_of<T: Copy>(words: &[(T, &str)], word: &str) -> Option<T> {
    words.iter().find(|(_, known)| *known == word).map(|(meant, _)| *meant)
}

pub(super) fn encoding_word(encoding: Encoding) -> String {
    match encoding {
        USUAL => "rel32".into(),
        Encoding::Relative32 { end } => format!("rel32/{end}"),
        Encoding::Low12 { scale } => format!("low12/{scale}"),
        plain => word_of(&PLAIN, &plain).into(),
    }
}

pub(super) fn encoding_of(word: &str) -> Option<Encoding> {
    if let Some(end) = word.strip_prefix("rel32/") {
        return Some(Encoding::Relative32 { end: end.parse().ok()? });
    }
    if let Some(scale) = word.strip_prefix("low12/") {
        return Some(Encoding::Low12 { scale: scale.parse().ok().filter(|scale| *scale <= 4)? });
    }
    meaning_of(&PLAIN, word)
}

/// What is stored in a field of whole bytes that names `target`; `None` of one that is some bits of an instruction, and
/// of one that cannot hold it.
pub(super) fn field_bytes(encoding: Encoding, field: u64, target: u64) -> Option<([u8; 8], usize)> {
    let is_whole = matches!(
        encoding,
        Encoding::Relative32 { .. } | Encoding::Relative8 | Encoding::Absolute32 | Encoding::Absolute64
    );
    let mut bytes = [0; 8];
    encoding.write(is_whole.then_some(&mut bytes)?, field, target).ok()?;
    Some((bytes, usize::from(encoding.size())))
}

/// Whether a name can stand without quotes: it is a word, and none that means something else in its place.
pub(super) fn is_plain_name(name: &str) -> bool {
    let is_first = |c: u8| c.is_ascii_alphabetic() || matches!(c, b'_' | b'.' | b'$');
    let is_other = |c: u8| is_first(c) || c.is_ascii_digit() || c == b'@';
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
    let is_block = name.strip_prefix('b').is_some_and(is_number);
    let is_word = name.bytes().next().is_some_and(is_first) && name.bytes().all(is_other);
    is_word && !is_block && !matches!(name, "table" | "data")
}
