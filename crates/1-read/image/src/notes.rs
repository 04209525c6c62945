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
        let (name_size, size, kind) = (word(rest, 0)? as usize, word(rest, 4)? as usize, word(rest, 8)?);
        let name = rest.get(12..12usize.checked_add(name_size)?)?;
        let start = 12 + name_size.next_multiple_of(4);
        let description = rest.get(start..start.checked_add(size)?)?;
        rest = rest.get(start + size.next_multiple_of(4)..).unwrap_or(&[]);
        Some(Note { kind, name: name.strip_suffix(b"\0").unwrap_or(name), description, at: before + start })
    })
}

/// The bit of [`shadow_stack_mark`]'s word: all objects that were linked can do with a shadow stack (`GNU_PROPERTY_X86_FEATURE_1_SHSTK`).
pub const SHADOW_STACK: u32 = 2;

/// `NT_GNU_PROPERTY_TYPE_0`.
const PROPERTIES: u32 = 5;

/// Whether a note of properties may stand in `bytes`, in whatever way somebody comes to it from their start: dynamic linkers step
/// over what else is there, some by four bytes and some by eight.
pub fn may_hold_properties(bytes: &[u8]) -> bool {
    (0..bytes.len()).step_by(4).any(|at| {
        (word(bytes, at), word(bytes, at + 8)) == (Some(4), Some(PROPERTIES))
            && bytes.get(at + 12..at + 16) == Some(b"GNU\0")
    })
}

/// Where the word stands, from the first note's start, in which a note has the property by which linkers mark a program for shadow stacks (System V ABI
/// of x86-64, "Program Property": `GNU_PROPERTY_X86_FEATURE_1_AND`); `None` if it does not.
pub fn shadow_stack_mark(note: &Note) -> Option<usize> {
    const FEATURES: u32 = 0xc000_0002;
    if note.kind != PROPERTIES || note.name != b"GNU" {
        return None;
    }
    let mut at = 0;
    while let (Some(kind), Some(size)) = (word(note.description, at), word(note.description, at + 4)) {
        let marks = || word(note.description, at + 8).is_some_and(|word| word & SHADOW_STACK != 0);
        if kind == FEATURES && size >= 4 && marks() {
            return Some(note.at + at + 8);
        }
        at = at.checked_add(8 + (size as usize).next_multiple_of(8))?;
    }
    None
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..)?.get(..4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_for_shadow_stacks_is_found_among_other_properties() {
        let property = |kind: u32, size: u32, value: u32| {
            [&kind.to_le_bytes()[..], &size.to_le_bytes(), &value.to_le_bytes(), &[0; 4]].concat()
        };
        let marks = |properties: &[&[u8]], kind| {
            let description = properties.concat();
            shadow_stack_mark(&Note { kind, name: b"GNU", description: &description, at: 100 })
        };
        let [other, branches, both] =
            [property(0xc000_8002, 4, 3), property(0xc000_0002, 4, 1), property(0xc000_0002, 4, 3)];
        assert_eq!((marks(&[&both], 5), marks(&[&other, &both], 5)), (Some(108), Some(124)));
        assert_eq!((marks(&[&other, &branches], 5), marks(&[&both], 3)), (None, None));
        assert_eq!(marks(&[&both[..10]], 5), None);
    }

    #[test]
    fn properties_are_seen_wherever_a_walk_may_come_to() {
        let note = b"\x04\0\0\0\x10\0\0\0\x05\0\0\0GNU\0";
        assert!(may_hold_properties(note));
        assert!(may_hold_properties(&[&[b'X'; 4][..], note, b"rest"].concat()));
        assert!(!may_hold_properties(&note[..15]));
        assert!(!may_hold_properties(&[&b"XX"[..], note].concat()), "no walk comes there");
        let build_id = b"\x04\0\0\0\x10\0\0\0\x03\0\0\0GNU\0";
        assert!(!may_hold_properties(build_id));
    }

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
