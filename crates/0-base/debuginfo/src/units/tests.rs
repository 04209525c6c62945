use super::*;
use crate::lines::Calls;
use crate::moves::{Folded, Inside, Piece};
use afterlink_core::DebugUnit;

/// A unit of one entry, `low_pc` and `high_pc` (a size), DWARF 4.
fn unit(low: u64, size: u64) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1];
    bytes.extend_from_slice(&low.to_le_bytes());
    bytes.extend_from_slice(&size.to_le_bytes());
    bytes[0] = bytes.len() as u8 - 4;
    bytes
}

const ABBREVIATIONS: [u8; 10] = [1, 0x11, 0, 0x11, 0x01, 0x12, 0x07, 0, 0, 0];

/// Sixteen bytes of code that moved as they are.
fn piece(input: u64, output: u64) -> Piece {
    Piece { input, input_size: 16, output, output_size: 16, jump_size: 0, inside: Inside::Each }
}

fn led(low: u64, size: u64) -> (u64, u64) {
    let pieces = vec![
        piece(0x1000, 0x2000),
        Piece {
            input: 0x1010,
            input_size: 16,
            output: 0x2010,
            output_size: 4,
            jump_size: 0,
            inside: Inside::FromEnd,
        },
    ];
    let moves = Moves::new(pieces, Vec::new(), vec![(0x1000, 0x1020)]);
    let sections = Sections { abbrev: &ABBREVIATIONS, ..Sections::default() };
    let bytes = unit(low, size);
    let (lines, kept_addresses) = (&Lines::default(), &BTreeSet::new());
    let (tables, parts) = (&Tables::default(), &crate::NoParts);
    let all = Led { sections: &sections, moves: &moves, lines, kept_addresses, tables, parts };
    let Ok(led) = update(&all, &bytes, false, None) else { panic!("a whole unit") };
    assert!(led.abbreviations.is_none(), "it stays one run");
    let number = |at| Reader::new(&led.bytes, at).number(8).expect("a whole unit");
    (number(12), number(20))
}

#[test]
fn a_run_of_whole_code() {
    assert_eq!(led(0x1000, 0x20), (0x2000, 0x14));
    assert_eq!(led(0x1008, 8), (0x2008, 8));
}

/// The entry of a function that another one stands for is entered there, and has no code, nor have the blocks in it.
#[test]
fn a_function_that_was_folded() {
    let folded = Folded { input: 0x1010, input_size: 0xe, padding: 2, into: 0x1000 };
    let led = |tag, low, size: u64| {
        let abbreviations = [1, tag, 0, 0x11, 0x01, 0x12, 0x07, 0, 0, 0];
        let moves = Moves::new(vec![piece(0x1000, 0x2000)], vec![folded], vec![(0x1000, 0x1030)]);
        let sections = Sections { abbrev: &abbreviations, ..Sections::default() };
        let (lines, kept_addresses) = (&Lines::default(), &BTreeSet::new());
        let (tables, parts) = (&Tables::default(), &crate::NoParts);
        let all = Led { sections: &sections, moves: &moves, lines, kept_addresses, tables, parts };
        let Ok(led) = update(&all, &unit(low, size), false, None) else { panic!("a whole unit") };
        let number = |at| Reader::new(&led.bytes, at).number(8).expect("a whole unit");
        (number(12), number(20), led.tally.folded)
    };
    let (subprogram, lexical_block) = (0x2e, 0x0b);
    assert_eq!(led(subprogram, 0x1010, 0x0e), (0x2000, 0, 1));
    assert_eq!(led(lexical_block, 0x1014, 0x06), (0x2004, 0, 1));
    assert_eq!(led(subprogram, 0x1000, 0x10), (0x2000, 0x10, 0));
    // Of a run of several functions the others' code is left.
    assert_eq!(led(lexical_block, 0x1000, 0x20), (0x2000, 0x10, 0));
    assert_eq!(led(subprogram, 0x1020, 0x10), (0x1020, 0x10, 0));
}

/// Nothing in the output corresponds to it, so it is empty there.
#[test]
fn a_run_inside_of_code_that_was_replaced() {
    assert_eq!(led(0x1014, 8), (0x2010, 0));
    assert_eq!(led(0x101c, 4), (0x2010, 4));
}

/// Sizes of few bytes that must hold a list's place, as `dwz` writes them: the list stands in `low_pc`, and starts where code is entered.
#[test]
fn a_run_that_is_cut_beside_a_short_size() {
    let abbreviations = [1, 0x2e, 0, 0x11, 0x01, 0x12, 0x0f, 0, 0, 0];
    let mut bytes = vec![18, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1];
    bytes.extend_from_slice(&0x1010u64.to_le_bytes());
    bytes.extend_from_slice(&[0xb0, 0x00]);
    // The third block stands in front of the first, the second one apart.
    let pieces = vec![piece(0x1010, 0x2010), piece(0x1020, 0x3000), piece(0x1030, 0x2000)];
    let moves = Moves::new(pieces, Vec::new(), vec![(0x1000, 0x1040)]);
    let sections = Sections { abbrev: &abbreviations, ..Sections::default() };
    let (lines, kept_addresses) = (&Lines::default(), &BTreeSet::new());
    let (tables, parts) = (&Tables::default(), &crate::NoParts);
    let all = Led { sections: &sections, moves: &moves, lines, kept_addresses, tables, parts };
    let Ok(led) = update(&all, &bytes, false, None) else { panic!("a whole unit") };
    assert_eq!(led.ranges.fields, [(12, 4, 0)]);
    // Nothing is left of the size, in as many bytes.
    assert_eq!(led.bytes[12..], [0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0]);
    let word = |at| Reader::new(&led.ranges.bytes, at).number(8).expect("a whole list");
    let words: Vec<u64> = (0..led.ranges.bytes.len()).step_by(8).map(word).collect();
    assert_eq!(words, [u64::MAX, 0, 0x2010, 0x2020, 0x3000, 0x3010, 0x2000, 0x2010, 0, 0]);
    let table = led.abbreviations.expect("another table");
    // DW_AT_ranges as an offset, four bytes that pad, and the size.
    assert_eq!(table[..3], abbreviations[..3]);
    assert_eq!(table[3..5], [0x55, 0x17]);
}

/// As found by fuzzing: sixteen bytes are no place of a line table, whether the unit is led or stays.
#[test]
fn an_offset_of_sixteen_bytes() {
    let abbreviations = [1, 0x11, 0, 0x10, 0x1e, 0, 0, 0];
    let mut bytes = vec![25, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1];
    bytes.extend_from_slice(&[0; 16]);
    bytes.push(9);
    let moves = Moves::new(vec![], Vec::new(), vec![]);
    let sections = Sections { abbrev: &abbreviations, ..Sections::default() };
    let lines = &crate::lines::update(&[0xff], &[], (&moves, &Calls::default()), &mut Tally::default());
    assert!(lines.place(0).is_ok(), "the place of what is not understood is known");
    let (kept_addresses, tables, parts) = (&BTreeSet::new(), &Tables::default(), &crate::NoParts);
    let all = Led { sections: &sections, moves: &moves, lines, kept_addresses, tables, parts };
    let Err(left) = update(&all, &bytes, false, None) else { panic!("no entry has the code 9") };
    assert_eq!(left.bytes, bytes);
}

/// One odd unit stays, and the one behind it is led as it is alone.
#[test]
fn one_odd_unit_leaves_the_others() {
    let good = unit(0x1000, 0x10);
    let moves = Moves::new(vec![piece(0x1000, 0x2000)], Vec::new(), vec![(0x1000, 0x1020)]);
    let led_but = |info: &[u8], unproven: &[DebugUnit]| {
        let sections = Sections { abbrev: &ABBREVIATIONS, info, unproven, ..Sections::default() };
        let places = crate::Places { files: &afterlink_core::NoSplitFiles, machine: 0 };
        let (mut led, _) = crate::update(&sections, &moves, &crate::NoParts, places, &|| {}).expect("memory");
        (led.info.bytes().expect("memory").bytes().to_vec(), led.tally)
    };
    let led = |info: &[u8]| led_but(info, &[]);
    let (alone, tally) = led(&good);
    assert!(alone != good && tally.left.is_empty());
    for (field, value, why) in
        [(4, 9, Left::Version), (10, 4, Left::AddressSize), (11, 2, Left::Damaged), (6, 0xff, Left::Damaged)]
    {
        let mut odd = good.clone();
        odd[field] = value;
        let (both, tally) = led(&[&odd[..], &good].concat());
        assert_eq!(both, [&odd[..], &alone].concat(), "{why:?}");
        assert_eq!((tally.left, tally.units), ([(why, 1)].into(), 2));
    }
    let (both, size) = ([&good[..], &good].concat(), good.len() as u64);
    for (start, expected) in [(0, [&good, &alone]), (size, [&alone, &good])] {
        let (some, tally) = led_but(&both, &[DebugUnit::Entries(start), DebugUnit::Types(size - start)]);
        assert_eq!(some, expected.map(|unit| &unit[..]).concat());
        assert_eq!((tally.left, tally.units), ([(Left::Unproven, 1)].into(), 2));
    }
}

/// Of two functions with one abbreviation the one that was cut has a list, by another abbreviation; the one that stayed keeps its bytes.
#[test]
fn only_what_was_cut_has_a_list() {
    let abbreviations = [1, 0x11, 1, 0, 0, 2, 0x2e, 0, 0x11, 0x01, 0x12, 0x07, 0, 0, 0];
    let entry = |low: u64, size: u64| [&[2][..], &low.to_le_bytes(), &size.to_le_bytes()].concat();
    let (cut, stays) = (entry(0x1010, 0x20), entry(0x1040, 0x10));
    let body = [&[4, 0, 0, 0, 0, 0, 8, 1], &cut[..], &stays, &[0]].concat();
    let bytes = [&(body.len() as u32).to_le_bytes()[..], &body].concat();
    let moves =
        Moves::new(vec![piece(0x1010, 0x2010), piece(0x1020, 0x3000)], vec![], vec![(0x1000, 0x1050)]);
    let led = |abbreviations: &[u8]| {
        let sections = Sections { abbrev: abbreviations, ..Sections::default() };
        let (lines, kept_addresses) = (&Lines::default(), &BTreeSet::new());
        let (tables, parts) = (&Tables::default(), &crate::NoParts);
        let all = Led { sections: &sections, moves: &moves, lines, kept_addresses, tables, parts };
        let Ok(led) = update(&all, &bytes, false, None) else { panic!("a whole unit") };
        (led.bytes, led.ranges.fields.len(), led.abbreviations.expect("another table"))
    };
    let (first, second) = (12, 12 + cut.len());
    let (bytes, lists, table) = led(&abbreviations);
    assert_eq!((bytes[first], &bytes[second..bytes.len() - 1], lists), (3, &stays[..], 1));
    assert_eq!(table[..abbreviations.len() - 1], abbreviations[..abbreviations.len() - 1]);
    // Where nearly all codes are taken, all have lists.
    let others = (3..=120).flat_map(|code| [code, 0x34, 0, 0, 0]);
    let many: Vec<u8> =
        abbreviations[..abbreviations.len() - 1].iter().copied().chain(others).chain([0]).collect();
    let (bytes, lists, _) = led(&many);
    assert_eq!((bytes[first], bytes[second], lists), (2, 2, 2));
}

/// Where a function's entry holds the declaration of another one, its name stands elsewhere in it; a declaration of the function itself has the name all the same.
#[test]
fn a_declaration_of_a_function_whose_entry_holds_another_one() {
    const LOW_HIGH_NAME: [u8; 8] = [0x11, 0x01, 0x12, 0x07, 0x03, 0x08, 0, 0];
    let kind = |code, children| [&[code, 0x2e, children][..], &LOW_HIGH_NAME].concat();
    let unit_and_caller = [1, 0x11, 1, 0, 0, 5, 0x2e, 1, 0, 0];
    // The entry of a call names where it comes back, and its callee.
    let call = [3, 0x89, 0x82, 0x01, 0, 0x11, 0x01, 0x31, 0x13, 0, 0];
    let abbreviations = [&unit_and_caller[..], &call, &kind(2, 1), &kind(4, 0), &[0]].concat();
    let entry = |code: u8, low: u64, name: u8| {
        [&[code][..], &low.to_le_bytes(), &0x30u64.to_le_bytes(), &[name, 0]].concat()
    };
    // The middle one has no children, so no declaration stands behind its own entry.
    let functions =
        [entry(2, 0x1000, b'c'), vec![0], entry(4, 0x1040, b'b'), entry(2, 0x1080, b'a'), vec![0]];
    let (first, second, third) = (12u32, 32u32, 51u32);
    let call = |callee: u32| [&[3][..], &0x1100u64.to_le_bytes(), &callee.to_le_bytes()].concat();
    let calls = [vec![5], call(second), call(third), vec![0, 0]].concat();
    let body = [&[4, 0, 0, 0, 0, 0, 8, 1][..], &functions.concat(), &calls].concat();
    let bytes = [&(body.len() as u32).to_le_bytes()[..], &body].concat();
    let scattered = |at: u64| [0, 1, 2].map(|i| piece(at + 0x10 * i, at + 0x1000 * (i + 1)));
    let pieces = [0x1000, 0x1040, 0x1080].map(scattered).concat();
    let moves = Moves::new(pieces, vec![], vec![(0x1000, 0x1100)]);
    let sections = Sections { abbrev: &abbreviations, ..Sections::default() };
    let (lines, kept_addresses) = (&Lines::default(), &BTreeSet::new());
    let (tables, parts) = (&Tables::default(), &crate::NoParts);
    let all = Led { sections: &sections, moves: &moves, lines, kept_addresses, tables, parts };
    let Ok(led) = update(&all, &bytes, false, None) else { panic!("a whole unit") };
    let ending = |start: u32| &led.bytes[start as usize + 17..start as usize + 19];
    assert_eq!([ending(first), ending(third)], [b"a\0", b"b\0"]);
}
