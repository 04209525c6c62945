//! Tables of ranges of code whose ends are the names of the functions that follow: `{ copy, copy_end, … }`, as a handler of signals looks up where it may
//! go on, since C has no other name for the end of a function. It holds an address against two neighbouring words, which lead to a function and to
//! the one right behind it: both stay.
//!
//! Neighbours that lead to neighbours are common, since tables list functions as they are written. So the code that names the
//! object with the words must ask as well whether something lies between two neighbouring words in memory.

use crate::code::Code;
use crate::doubts::columns::{Object, Word};
use crate::doubts::sorted_tables::{Comparand, NEAR, comparands, each_named, is_asked, semantics};
use crate::evidence::symbols::Symbols;
use afterlink_core::{InputAddr, Refusal};
use afterlink_isa::semantics::{Memory, Operation};
use rayon::prelude::*;

/// Bytes of a pointer.
const WORD: u64 = 8;

/// `words` are all pointers to functions in data, and `objects` all that symbols tell of, by ascending address.
pub(crate) fn refuse(code: &mut Code, words: &[Word], objects: &[Object], symbols: &Symbols) {
    let pairs: Vec<(InputAddr, [usize; 2])> =
        words.windows(2).filter_map(|w| Some((w[0].0, neighbours(code, [w[0], w[1]])?))).collect();
    let objects = self::objects(objects, &pairs);
    let Some(first) = objects.first() else { return };
    let mut uses = Vec::new();
    let (first, last) = (first.0, objects.iter().map(|o| o.1).fold(InputAddr(0), InputAddr::max));
    each_named(code, symbols, first..=last, |at, named| {
        let behind = objects.partition_point(|object| object.0 <= named);
        // Where one object ends another may begin, and who searches names where it starts.
        let last = behind.checked_sub(1).filter(|&last| named < objects[last].1);
        uses.extend(last.and_then(|object| Some((code.piece_at(at)?, object))));
    });
    uses.sort_unstable();
    uses.dedup();
    let searched: Vec<usize> = uses
        .par_chunk_by(|a, b| a.0 == b.0)
        .flat_map_iter(|of_piece| {
            let asks = asks_between(code, of_piece[0].0);
            of_piece.iter().filter(move |_| asks).map(|used| used.1)
        })
        .collect();
    for object in searched {
        for &piece in objects[object].2.iter().flat_map(|&pair| &pairs[pair].1) {
            code.refuse(piece, Refusal::Ordered);
        }
    }
}

/// The pieces that two words lead to, if these and they are neighbours.
fn neighbours(code: &Code, [one, other]: [Word; 2]) -> Option<[usize; 2]> {
    let piece = code.piece_at(one.1).filter(|_| other.0.since(one.0) == WORD)?;
    let next = code.pieces.get(piece + 1)?;
    (next.range.start == other.1).then_some([piece, piece + 1])
}

/// Those of `sized` in which the pairs lie, ascending: start, end, and pairs. What has no symbol compilers only copy, as they do for local arrays.
fn objects(sized: &[Object], pairs: &[(InputAddr, [usize; 2])]) -> Vec<(InputAddr, InputAddr, Vec<usize>)> {
    let mut objects: Vec<(InputAddr, InputAddr, Vec<usize>)> = Vec::new();
    for (pair, &(at, _)) in pairs.iter().enumerate() {
        let last = sized[..sized.partition_point(|o| o.0 <= at)].last();
        let Some(&(start, end)) = last.filter(|own| at + 2 * WORD <= own.1) else { continue };
        match objects.last_mut().filter(|object| (object.0, object.1) == (start, end)) {
            Some(object) => object.2.push(pair),
            None => objects.push((start, end, vec![pair])),
        }
    }
    objects.sort_unstable_by_key(|object| object.0);
    objects
}

/// Whether the piece asks whether something lies between two words that stand side by side.
fn asks_between(code: &Code, piece: usize) -> bool {
    let (insts, stack) = semantics(code, piece);
    let of_inst = |i: usize| comparands(&insts, i, stack).map(move |compared| (i, compared));
    let asked = (0..insts.len()).filter(|&i| is_asked(&insts, i, &[Operation::Compare]));
    let compared: Vec<(usize, Comparand)> = asked.flat_map(of_inst).collect();
    compared.iter().enumerate().any(|(n, (at, one))| {
        let mut near = compared[n + 1..].iter().take_while(|(other, _)| other - at <= 2 * NEAR);
        near.any(|(other, two)| other > at && are_bounds(one, two))
    })
}

/// Whether two words are of one row: side by side, or found by the same registers and held against the same number, where a step to the next row may
/// lie between the two.
fn are_bounds(one: &Comparand, other: &Comparand) -> bool {
    let place = |m: &Memory| (m.base, m.index, m.scale, m.is_relative, m.is_narrow);
    let distance = one.memory.displacement.wrapping_sub(other.memory.displacement) as i64;
    let same_number = one.against.is_some() && one.against == other.against;
    place(&one.memory) == place(&other.memory)
        && (distance.unsigned_abs() == WORD || same_number && distance != 0)
}
