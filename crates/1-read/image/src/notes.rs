//! ELF notes: `namesz, descsz, type`, then name and description, each padded to four bytes.

/// One note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note<'a> {
    pub kind: u32,
    /// Without the terminating zero.
    pub name: &'a [u8],
    pub description: &'a [u8],
}

/// The notes in a note section or segment, up to the first damaged one.
pub fn notes(bytes: &[u8]) -> impl Iterator<Item = Note<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let word = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
        let (name_size, size, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let name = rest.get(12..12usize.checked_add(name_size)?)?;
        let start = 12 + name_size.next_multiple_of(4);
        let description = rest.get(start..start.checked_add(size)?)?;
        rest = rest.get(start + size.next_multiple_of(4)..).unwrap_or(&[]);
        Some(Note { kind, name: name.strip_suffix(b"\0").unwrap_or(name), description })
    })
}
