use super::*;
use crate::moves::{Inside, Piece};

/// A unit of one entry, `low_pc` and `high_pc` (a size), DWARF 4.
fn unit(low: u64, size: u64) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1];
    bytes.extend_from_slice(&low.to_le_bytes());
    bytes.extend_from_slice(&size.to_le_bytes());
    bytes[0] = bytes.len() as u8 - 4;
    bytes
}

const ABBREVIATIONS: [u8; 10] = [1, 0x11, 0, 0x11, 0x01, 0x12, 0x07, 0, 0, 0];

fn led(low: u64, size: u64) -> (u64, u64) {
    let pieces = vec![
        Piece { input: 0x1000, input_size: 16, output: 0x2000, output_size: 16, inside: Inside::Each },
        Piece { input: 0x1010, input_size: 16, output: 0x2010, output_size: 4, inside: Inside::FromEnd },
    ];
    let moves = Moves::new(pieces, vec![(0x1000, 0x1020)]);
    let sections = Sections { abbrev: &ABBREVIATIONS, ..Sections::default() };
    let bytes = unit(low, size);
    let led = update(&sections, &moves, &FxHashMap::default(), &bytes, false).expect("a whole unit");
    assert!(led.abbreviations.is_none(), "it stays one run");
    let number = |at| Reader::new(&led.bytes, at).number(8).expect("a whole unit");
    (number(12), number(20))
}

#[test]
fn a_run_of_whole_code() {
    assert_eq!(led(0x1000, 0x20), (0x2000, 0x14));
    assert_eq!(led(0x1008, 8), (0x2008, 8));
}

/// Nothing in the output corresponds to it, so it is empty there.
#[test]
fn a_run_inside_of_code_that_was_replaced() {
    assert_eq!(led(0x1014, 8), (0x2010, 0));
    assert_eq!(led(0x101c, 4), (0x2010, 4));
}
