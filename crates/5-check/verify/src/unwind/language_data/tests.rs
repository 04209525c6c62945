use super::*;

/// Reads an area of a function of 0x100 bytes at 0x1000, in a section at 0x4000.
fn handlings(bytes: &[u8], filled: &[u64]) -> Option<Vec<Handling>> {
    let filled = Filled { words: filled.iter().copied().collect() };
    let mut reader = Reader {
        bytes,
        first: 0x4000,
        area: 0,
        filled: &filled,
        left: MOST,
        types_end: 0,
        known: FxHashMap::default(),
        seen: Vec::new(),
    };
    reader.area(0x1000, 0x1100)
}

fn run(start: u64, end: u64, landing: Landing, told: &[u8]) -> Handling {
    Handling { start, end, landing, told: told.to_vec() }
}

#[test]
fn what_is_in_no_row_ends_the_program_and_a_row_without_a_pad_goes_on() {
    let found = handlings(&[0xff, 0xff, 1, 8, 0x10, 5, 0x40, 0, 0x15, 5, 0, 0], &[]).unwrap();
    let expected = [
        run(0x1000, 0x1010, Landing::Nowhere, &[]),
        run(0x1010, 0x1015, Landing::Pad(0x1040), &[]),
        run(0x1015, 0x101a, Landing::Caller, &[]),
        run(0x101a, 0x1100, Landing::Nowhere, &[]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_pad_is_told_numbers_and_what_they_mean() {
    // The second type, then a list of the first one.
    let bytes = [0xff, 0x1b, 20, 1, 4, 0, 8, 4, 1, 2, 1, 0x7f, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    let mut found = handlings(&bytes, &[]).unwrap();
    let mut told = Vec::new();
    told.extend_from_slice(&2i64.to_le_bytes());
    told.push(1);
    told.extend_from_slice(&(0x400f + 4u64).to_le_bytes());
    told.extend_from_slice(&(-1i64).to_le_bytes());
    told.extend_from_slice(&1u64.to_le_bytes());
    told.push(0);
    told.extend_from_slice(&0u64.to_le_bytes());
    told.extend_from_slice(&0u64.to_le_bytes());
    assert_eq!(found.remove(0), run(0x1000, 0x1008, Landing::Pad(0x1004), &told));
}

#[test]
fn what_routines_would_not_read_is_nothing() {
    let broken: [&[u8]; 8] = [
        &[],
        &[0x9b, 0, 0, 0, 0, 0xff, 1, 0],
        &[0xff, 0xff, 0x11, 0],
        &[0xff, 0xff, 1, 4, 0, 8, 0, 1, 0, 0],
        &[0xff, 0xff, 1, 8, 8, 8, 0, 0, 4, 8, 0, 0],
        &[0xff, 0xff, 1, 5, 0, 0x81, 2, 0, 0],
        &[0xff, 0xff, 1, 4, 0, 8, 4, 1, 1, 0],
        &[0xff, 0xff, 1, 4, 0, 8, 4, 1, 0, 0x7f],
    ];
    for bytes in broken {
        assert_eq!(handlings(bytes, &[]), None, "{bytes:x?}");
    }
    // Four bytes are nothing that the dynamic linker fills.
    let bytes = [0xff, 0x03, 12, 1, 4, 0, 8, 4, 1, 1, 0, 0, 0, 0, 0, 0];
    assert!(handlings(&bytes, &[]).is_some());
    assert_eq!(handlings(&bytes, &[0x400b]), None);
}
