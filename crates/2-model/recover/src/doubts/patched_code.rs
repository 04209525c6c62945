//! Functions into which a tracer writes jumps and calls of its own while the program runs, at places that the compiler has
//! filled with nops and listed: `-fpatchable-function-entry`, `-mrecord-mcount`, `asm goto` with a table of jumps, XRay;
//! and those whose stack maps or fault maps (LLVM's) count from the function's start to places in it. A list may have any name
//! (`-mfentry-section=`): then the nop tells that it names.
//!
//! A list's address may stand in front of a function's entry, which no jump leads to and no symbol covers; a counter may come
//! to stand where the nops were; and nops that fill a block of their own are taken for padding. So they stay.

use crate::code::Code;
use afterlink_core::{InputAddr, Refusal};

/// The compilers' and the kernel's names for such lists.
const LISTS: [&str; 6] = [
    "__patchable_function_entries",
    "__mcount_loc",
    "__jump_table",
    "xray_instr_map",
    ".llvm_stackmaps",
    ".llvm_faultmaps",
];

pub(crate) fn refuse(code: &mut Code) {
    for place in listed(code) {
        let next = code.pieces.partition_point(|p| p.range.start <= place);
        let around = code.piece_at(place);
        let behind = (next < code.pieces.len()).then_some(next);
        let behind = behind.filter(|&next| around.is_none() || only_nops(code, place, next));
        for piece in around.into_iter().chain(behind) {
            code.refuse(piece, Refusal::PatchedCode);
        }
    }
}

/// Whether nothing but nops stand from a place to the start of the next piece: they may be that one's, and only seem to lie in what
/// stands before, which has no known size.
fn only_nops(code: &Code, place: InputAddr, next: usize) -> bool {
    let room = code.pieces[next].range.start.since(place) as usize;
    let Some(mut bytes) = code.image.bytes_at(place, room) else { return false };
    while let Some(inst) = code.image.arch.decode(bytes).filter(|inst| inst.nop) {
        let Some(rest) = bytes.get(usize::from(inst.len)..) else { return false };
        bytes = rest;
    }
    bytes.is_empty()
}

/// Whether an entry stands there, or in front of it the mark that indirect branches may land there and nothing else. Elsewhere such a nop fills up.
fn starts_function(code: &Code, place: InputAddr) -> bool {
    let Some(piece) = code.piece_at(place) else { return false };
    let start = code.pieces[piece].range.start;
    let mark = code.image.arch.mark_size(code.bytes(piece));
    place == start || place == start + u64::from(mark)
}

/// All addresses in the lists, whether absolute or relative to where they stand.
fn listed(code: &Code) -> Vec<InputAddr> {
    let image = code.image;
    let room = image.arch.room_for_call();
    let data = image.kept_relocations().filter(|(id, _)| !image.sections[*id].is_code());
    let places = data.flat_map(|(id, rows)| {
        let section = &image.sections[id];
        let (is_list, is_loaded) = (LISTS.contains(&section.name), section.is_loaded());
        rows.iter().filter_map(move |row| {
            let symbol = image.symbols.get(row.symbol).filter(|s| s.is_defined())?;
            let place = InputAddr(symbol.address.get().wrapping_add_signed(row.addend));
            let is_nop = || room.is_some_and(|room| image.bytes_at(place, room.len()) == Some(room));
            let is_room = || is_nop() && starts_function(code, place);
            (is_list || is_loaded && is_room()).then_some(place)
        })
    });
    // Tables of jumps name data, too.
    let is_code = |a: &InputAddr| image.section_at(*a).is_some_and(|id| image.sections[id].is_code());
    places.filter(is_code).collect()
}
