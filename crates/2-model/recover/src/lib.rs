//! Image in, [`Program`] out: finds functions, cuts them into blocks, and finds every reference to code.
//!
//! Nothing here fails because of one function: what is not understood is refused ([`Refusal`]) and stays as
//! it is. The steps are those of [`recover`], top to bottom.

mod blocks;
mod checked_calls;
mod code;
mod computed;
mod families;
mod faults;
mod jump_tables;
mod labels;
mod meanings;
mod patched_code;
mod pieces;
mod pointers;
mod relocations;
mod runtime_tables;
mod scan;
mod sorted_tables;
mod sums;
mod taken;
mod thunks;
mod unknown_code;
mod unwind;
mod uses;

use afterlink_core::{InputAddr, Refusal, Result};
use afterlink_frames::RowTable;
use afterlink_image::Image;
use afterlink_program::{FuncId, Function, Program, Range};
use code::Code;
use rayon::prelude::*;

/// Recovers the program that `image` holds.
///
/// # Errors
/// If `.eh_frame` is damaged as a whole.
pub fn recover<'a>(image: &Image<'a>) -> Result<Program<'a>> {
    let frames = unwind::read(image)?;
    let code_ranges = code::code_ranges(image);
    let is_code = |address: InputAddr| code_ranges.iter().any(|r| r.contains(address));
    let pieces = pieces::find(image, &unwind::ranges(&frames));
    let symbols = meanings::Symbols::read(image);
    let evidence = relocations::gather(image, &symbols, &is_code);
    let sums = sums::gather(image, &symbols, &pieces);
    let mut code = scan_all(image, pieces, &evidence);
    let mut pointers = pointers::find(&mut code, &evidence, &is_code);
    let tables = jump_tables::claim(&mut code, &evidence.relative, &mut pointers);
    let labels = labels::find(&mut code, &pointers, &tables);
    sums::refuse(&mut code, &sums);
    let taking = uses::taking(&code);
    uses::refuse(&mut code, &taking);
    sorted_tables::refuse(&mut code, &evidence, &symbols);
    pointers.extend(unknown_code::pointers(&mut code, &evidence, &unwind::ranges(&frames)));
    let taken = taken::entries(&code, &pointers, &taking);
    taken::refuse_compared_with_text(&mut code, &sums, &taken);
    let families = families::group(&code, &tables);
    let mut functions: Vec<Function> =
        families.par_iter().map(|members| blocks::build(&code, members, &labels, &tables, &taken)).collect();
    let mut rows = RowTable::new();
    unwind::attach(&frames, &mut functions, &mut rows);
    functions.par_iter_mut().for_each(|function| computed::refuse(&code, function, &labels.starts));
    pointers.sort_by_key(|p| p.field);
    pointers.dedup_by_key(|p| p.field);
    let extents = extents(&functions);
    Ok(Program { functions: functions.into(), extents, pointers, frames, rows })
}

fn scan_all<'i, 'a>(
    image: &'i Image<'a>,
    pieces: Vec<pieces::Piece<'a>>,
    evidence: &relocations::Evidence,
) -> Code<'i, 'a> {
    let scans = pieces.par_iter().map(|piece| scan::scan(image, piece.range, evidence)).collect();
    let mut code = Code::new(image, pieces, scans);
    for piece in 0..code.pieces.len() {
        if !code.scans[piece].complete {
            // Takes precedence: nothing else that is known of such a piece can be trusted.
            code.pieces[piece].refusal = Some(Refusal::Undecodable);
        }
    }
    checked_calls::refuse(&mut code);
    runtime_tables::refuse(&mut code);
    patched_code::refuse(&mut code);
    code
}

fn extents(functions: &[Function]) -> Vec<(Range, FuncId)> {
    let ranges =
        functions.iter().enumerate().flat_map(|(i, f)| f.ranges.iter().map(move |r| (*r, FuncId(i as u32))));
    let mut extents: Vec<(Range, FuncId)> = ranges.collect();
    extents.sort_by_key(|(range, _)| range.start);
    extents
}
