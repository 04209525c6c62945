use super::*;
use crate::lists::{Entry, moved_locations};
use smallvec::SmallVec;

/// A function of two blocks, the second in front of the first; its first ends with a jump that became longer, and padding.
fn moves() -> Moves {
    let exact = |input, input_size, output, output_size| Piece {
        input,
        input_size,
        output,
        output_size,
        jump_size: 0,
        inside: Inside::Each,
    };
    let first = exact(0x1000, 0x10, 0x9040, 0x10);
    let jump = Piece {
        input: 0x1010,
        input_size: 4,
        output: 0x9050,
        output_size: 5,
        jump_size: 0,
        inside: Inside::Behind,
    };
    // A jump was added behind it.
    let second = exact(0x1014, 0x0c, 0x9000, 0x11);
    Moves::new(vec![second, jump, first], Vec::new(), vec![(0x1000, 0x2000)])
}

#[test]
fn places_follow_their_instructions() {
    let moves = moves();
    assert_eq!(moves.point(0x1000), 0x9040);
    assert_eq!(moves.point(0x1010), 0x9050);
    assert_eq!(moves.point(0x1014), 0x9000);
    assert_eq!(moves.point(0x1020), 0x1020);
    // Padding behind the jump is gone.
    assert_eq!(moves.point(0x1012), 0x9055);
}

#[test]
fn a_call_comes_back_in_its_own_block() {
    assert_eq!(moves().behind(0x1010), 0x9050);
    assert_eq!(moves().behind(0x1014), 0x9055);
    // The jump behind the block is not where the call comes back, but it is the first thing there.
    assert_eq!(moves().behind(0x1020), 0x900c);
}

/// What stands for a call may be longer than it, and a jump may have been added behind that.
#[test]
fn a_call_that_was_replaced_comes_back_in_front_of_the_jump() {
    let call = Piece {
        input: 0x1000,
        input_size: 5,
        output: 0x9000,
        output_size: 11,
        jump_size: 5,
        inside: Inside::FromEnd,
    };
    let moves = Moves::new(vec![call], Vec::new(), vec![(0x1000, 0x2000)]);
    assert_eq!((moves.behind(0x1005), moves.point(0x1004)), (0x9006, 0x9005));
    assert_eq!(moves.ranges(0x1000, 0x1005), [(0x9000, 0x900b)]);
}

#[test]
fn a_run_is_cut_and_starts_where_it_started() {
    assert_eq!(moves().ranges(0x1000, 0x1020), [(0x9040, 0x9055), (0x9000, 0x9011)]);
    assert_eq!(moves().ranges(0x1008, 0x1010), [(0x9048, 0x9050)]);
    assert_eq!(moves().ranges(0x1018, 0x1030), [(0x9004, 0x9011), (0x1020, 0x1030)]);
    assert_eq!(moves().ranges(0x1014, 0x1014), [(0x9000, 0x9000)]);
}

#[test]
fn what_a_linker_removed_is_no_code() {
    for mark in [0, 1, u64::MAX - 1, u64::MAX] {
        assert!(!moves().is_code(mark));
        assert_eq!(moves().point(mark), mark);
    }
}

/// Its places are those of the function that stands for it, at the same distances, and no run is its own.
#[test]
fn a_folded_function_has_places_and_no_code() {
    let piece = |input, output| Piece {
        input,
        input_size: 0x10,
        output,
        output_size: 0x10,
        jump_size: 0,
        inside: Inside::Each,
    };
    let folded = |input| Folded { input, input_size: 0xc, padding: 4, into: 0x1000 };
    let pieces = vec![piece(0x1000, 0x9000), piece(0x1020, 0x9040)];
    let moves = Moves::new(pieces, vec![folded(0x1030), folded(0x1010)], vec![(0x1000, 0x2000)]);
    assert_eq!((moves.point(0x1010), moves.point(0x1038), moves.point(0x101e)), (0x9000, 0x9008, 0x900c));
    assert_eq!((moves.behind(0x1014), moves.behind(0x103c)), (0x9004, 0x900c));
    assert_eq!((moves.ranges(0x1010, 0x1018), moves.ranges(0x1014, 0x1020)), (vec![], vec![]));
    assert_eq!(moves.parts(0x1030, 0x103c), []);
    assert_eq!(moves.ranges(0x1000, 0x1048), [(0x9000, 0x9010), (0x1040, 0x1048), (0x9040, 0x9050)]);
    assert!(moves.touches(0x1032, 0x1034) && moves.is_folded(0x1032, 0x1034));
    assert!(!moves.touches(0x1040, 0x1050) && !moves.is_folded(0x1008, 0x1018));
    // A place is one, as of any other code.
    assert_eq!(moves.parts(0x1034, 0x1034), [Part { input: 0x1034, start: 0x9004, end: 0x9004 }]);
}

/// Where one instruction leads into the code in place of a call, nothing is left of the first bytes of the call; where its block stands a second time, they
/// are all there, and hold what they held.
#[test]
fn the_first_bytes_of_a_call_that_stands_a_second_time() {
    let piece = |input, input_size, output, output_size, inside| Piece {
        input,
        input_size,
        output,
        output_size,
        jump_size: 0,
        inside,
    };
    let own = vec![piece(0x1000, 4, 0x9000, 4, Inside::Each), piece(0x1004, 5, 0x9004, 1, Inside::FromEnd)];
    let twice = piece(0x1000, 9, 0xa000, 9, Inside::Each);
    let moves = Moves::new(own, Vec::new(), vec![(0x1000, 0x2000)]).with_duplicates(vec![vec![twice]]);
    let expression: SmallVec<[u8; 24]> = [0x50].as_slice().into();
    let entry =
        |start, end| Entry { start, end, expression: expression.clone(), views: (0, 0), is_default: false };
    let led = moved_locations(vec![entry(0x1004, 0x1008)], &moves);
    let runs: Vec<(u64, u64)> = led.iter().map(|entry| (entry.start, entry.end)).collect();
    assert_eq!(runs, [(0xa004, 0xa008)]);
}
