use super::*;
use crate::moves::{Inside, Piece};

/// A line table of version 4 without files: its program stands behind 13 standard opcodes.
fn table(program: &[u8]) -> Vec<u8> {
    let head = [1u8, 1, 1, (-5i8) as u8, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0];
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(&[4, 0]);
    bytes.extend_from_slice(&(head.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&head);
    bytes.extend_from_slice(program);
    let size = bytes.len() as u64 - 4;
    put(&mut bytes, 0, 4, size);
    bytes
}

/// Starts a sequence at 0x1000 with line 1, goes on at 0x1008 with line 3, and ends at 0x1020.
fn program() -> Vec<u8> {
    let mut program = vec![0, 9, 2];
    program.extend_from_slice(&0x1000u64.to_le_bytes());
    program.extend_from_slice(&[1, 5, 7, 2, 8, 3, 2, 10, 1, 2, 0x18, 0, 1, 1]);
    program
}

fn rows(bytes: &[u8]) -> Vec<(Vec<Row>, u64)> {
    let header = Header::read(bytes).unwrap();
    let (mut r, mut all) = (Reader::new(bytes, header.program), Vec::new());
    let mut rows = Vec::new();
    while let Some(end) = sequence(&mut r, &header, &mut rows).unwrap() {
        all.push((std::mem::take(&mut rows), end));
    }
    all
}

fn led(bytes: &[u8], moves: &Moves) -> Lines {
    let mut tally = Tally::default();
    let lines = update(bytes, &[], (moves, &Calls::default()), &mut tally);
    assert!(tally.left.is_empty());
    lines
}

#[test]
fn a_table_of_code_that_stays_is_the_same() {
    let bytes = table(&program());
    let lines = led(&bytes, &Moves::new(Vec::new(), Vec::new(), vec![(0x1000, 0x2000)]));
    assert_eq!(lines.bytes, bytes);
}

#[test]
fn rows_are_cut_with_their_blocks() {
    let piece = |input, output| Piece {
        input,
        input_size: 0x10,
        output,
        output_size: 0x10,
        jump_size: 0,
        inside: Inside::Each,
    };
    let moves =
        Moves::new(vec![piece(0x1000, 0x9100), piece(0x1010, 0x9000)], Vec::new(), vec![(0x1000, 0x2000)]);
    let lines = led(&table(&program()), &moves);
    let found = rows(&lines.bytes);
    let told = |row: &Row| (row.address, row.line, row.column, row.is_stmt, row.prologue_end);
    let told: Vec<_> =
        found.iter().map(|(rows, end)| (rows.iter().map(told).collect::<Vec<_>>(), *end)).collect();
    // The second block starts with the row that it is in, as no statement of its own.
    let second = vec![(0x9000, 3, 7, false, false)];
    let first = vec![(0x9100, 1, 0, true, false), (0x9108, 3, 7, true, true)];
    assert_eq!(told, [(second, 0x9010), (first, 0x9110)]);
}

#[test]
fn what_is_cut_off_stays() {
    let bytes = table(&program());
    let moves = Moves::new(Vec::new(), Vec::new(), Vec::new());
    for cut in 1..bytes.len() {
        let mut tally = Tally::default();
        let lines = update(&bytes[..cut], &[], (&moves, &Calls::default()), &mut tally);
        assert_eq!((&lines.bytes[..], tally.left.get(&Left::Rows)), (&bytes[..cut], Some(&1)));
    }
}

/// An unknown extension in one table leaves that table alone, and the next one is led to its new place.
#[test]
fn one_odd_table_leaves_the_others() {
    let mut odd = program();
    odd.splice(0..0, [0, 2, 0x80, 0]);
    let (odd, good) = (table(&odd), table(&program()));
    let piece = Piece {
        input: 0x1000,
        input_size: 0x20,
        output: 0x9000,
        output_size: 0x20,
        jump_size: 0,
        inside: Inside::Each,
    };
    let moves = Moves::new(vec![piece], Vec::new(), vec![(0x1000, 0x2000)]);
    let mut tally = Tally::default();
    let lines = update(&[&odd[..], &good, &[1]].concat(), &[], (&moves, &Calls::default()), &mut tally);
    assert_eq!(tally.left, [(Left::Rows, 2)].into());
    let alone = led(&good, &moves).bytes;
    assert_ne!(alone, good);
    assert_eq!(lines.bytes, [&odd[..], &alone, &[1]].concat());
    let (first, second) = (odd.len() as u64, (odd.len() + good.len()) as u64);
    assert_eq!(lines.place(first), Ok(first));
    assert_eq!(lines.place(second), Ok(first + alone.len() as u64));
    assert_eq!(lines.place(first + 1), Err(Damaged));

    let (both, mut tally) = ([&good[..], &good].concat(), Tally::default());
    let lines = update(
        &both,
        &[DebugUnit::Rows(good.len() as u64), DebugUnit::Entries(0)],
        (&moves, &Calls::default()),
        &mut tally,
    );
    assert_eq!(lines.bytes, [&alone[..], &good].concat());
    assert_eq!(tally.left, [(Left::UnprovenRows, 1)].into());
}
