//! Takes the bytes of `.eh_frame`, gives its records and where in them a later place of the function is reached: found by
//! walking the few instructions that compilers use.

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Offset and whole size of each record, with its identifier.
pub fn records(frames: &[u8]) -> Vec<(usize, usize, u32)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let (Some(length), Some(id)) = (word(frames, at).filter(|&l| l != 0), word(frames, at + 4)) {
        found.push((at, length as usize + 4, id));
        at += length as usize + 4;
    }
    found
}

/// The entry of the function at `function`: its offset and whole size, if the section stands at `address`.
pub fn entry_of(frames: &[u8], address: u64, function: u64) -> Option<(usize, usize)> {
    let starts = |at: usize| {
        let distance = word(frames, at + 8).unwrap_or(0) as i32;
        (address + at as u64 + 8).wrapping_add_signed(i64::from(distance)) == function
    };
    let found = records(frames).into_iter().find(|&(at, _, id)| id != 0 && starts(at))?;
    Some((found.0, found.1))
}

/// Offsets of `DW_CFA_advance_loc` in the function's entry at `at`: bytes 0x41 to 0x7f.
pub fn advances(frames: &[u8], at: usize, size: usize) -> Vec<usize> {
    let mut found = Vec::new();
    // Length, identifier, start, size, and an augmentation length of zero.
    let (mut at, end) = (at + 17, at + size);
    while at < end {
        at += match frames[at] {
            0x40..=0x7f => {
                found.push(at);
                1
            }
            0x80..=0xbf | 0x02 | 0x0d | 0x0e | 0x2e => 2,
            0x0c | 0x03 => 3,
            0x04 => 5,
            0x00 | 0x0a | 0x0b | 0xc0..=0xff => 1,
            _ => break,
        };
    }
    found
}
