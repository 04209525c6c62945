//! ELF notes: `namesz, descsz, type`, then name and description, each padded to four bytes.

/// One note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note<'a> {
    pub kind: u32,
    /// Without the terminating zero.
    pub name: &'a [u8],
    pub description: &'a [u8],
    /// Where the description starts, from the first note's start.
    pub at: usize,
}

/// The notes in a note section or segment, up to the first damaged one.
pub fn notes(bytes: &[u8]) -> impl Iterator<Item = Note<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let before = bytes.len() - rest.len();
        let word = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
        let (name_size, size, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let name = rest.get(12..12usize.checked_add(name_size)?)?;
        let start = 12 + name_size.next_multiple_of(4);
        let description = rest.get(start..start.checked_add(size)?)?;
        rest = rest.get(start + size.next_multiple_of(4)..).unwrap_or(&[]);
        Some(Note { kind, name: name.strip_suffix(b"\0").unwrap_or(name), description, at: before + start })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_walked_and_what_is_cut_off_ends_them() {
        let note = |size: u32| [8u32.to_le_bytes(), size.to_le_bytes(), 3u32.to_le_bytes()].concat();
        // Nine bytes, filled up to twelve; eight; eight of which two are there.
        let first = [&note(9)[..], b"stapsdt\0", &[1; 12]].concat();
        let bytes = [&first[..], &note(8), b"stapsdt\0", &[2; 8], &note(8), b"stapsdt\0", &[3; 2]].concat();
        let found: Vec<_> =
            notes(&bytes).map(|note| (note.name, note.description.to_vec(), note.at)).collect();
        assert_eq!(found, [(&b"stapsdt"[..], vec![1; 9], 20), (&b"stapsdt"[..], vec![2; 8], 52)]);
    }
}
