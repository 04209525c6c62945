//! Image in, [`Program`] out: finds functions, cuts them into blocks, and finds every reference to code.
//!
//! Nothing here fails because of one function: what is not understood is refused ([`Refusal`]) and stays as
//! it is. The steps are those of [`recover`], top to bottom.

mod code;
mod doubts;
mod evidence;
mod functions;
mod jump_tables;
mod references;

use afterlink_core::{InputAddr, Refusal, Result};
use afterlink_image::Image;
use afterlink_program::{Function, Program};
use afterlink_unwind::RowTable;
use code::{Code, pieces, sweep};
use doubts::{
    absolute_symbols, checked_calls, columns, computed, moved_stack, patched_code, range_tables, read_code,
    restartable, runtime_tables, sorted_tables, sums,
};
use evidence::Evidence;
use evidence::symbols::Symbols;
use functions::landing_pads::LandingPads;
use functions::{blocks, families, link, stubs, surroundings, unwind};
use rayon::prelude::*;
use references::{labels, pointers, taken, unknown_code, uses};

/// Refuses what is found by searching tables of functions' addresses.
fn refuse_searched(code: &mut Code, evidence: &Evidence, symbols: &Symbols) {
    let words = sorted_tables::words(code, evidence, symbols);
    let objects = columns::objects(code.image, |_| true);
    sorted_tables::refuse(code, &words, &objects, symbols);
    sorted_tables::refuse_relative(code, evidence, &objects, symbols);
    range_tables::refuse(code, &words, &objects, symbols);
}

/// Recovers the program that `image` holds.
///
/// # Errors
/// If `.eh_frame` is damaged as a whole.
pub fn recover<'a>(image: &Image<'a>) -> Result<Program<'a>> {
    let frames = unwind::read(image)?;
    let code_ranges = code::code_ranges(image);
    let is_code = |address: InputAddr| code_ranges.iter().any(|r| r.contains(address));
    let unwind_ranges = unwind::ranges(&frames);
    let pads = LandingPads::read(image, &frames);
    let (pieces, (symbols, evidence)) =
        rayon::join(|| pieces::find(image, &unwind_ranges), || symbols_and_evidence(image, &is_code));
    let mut sums = sums::gather(image, &symbols, &pieces);
    let mut code = scan_all(image, pieces, &evidence);
    let explained = restartable::refuse(&mut code, &evidence);
    sums.retain(|sum| !explained.contains(&sum.field));
    let mut pointers = pointers::find(&mut code, &evidence, &symbols, &is_code);
    // What moving would break is looked for where code is moved.
    let is_rewritten = image.arch.is_written();
    let mut tables = if is_rewritten {
        jump_tables::relative::claim(&mut code, &evidence.relative, &mut pointers)
    } else {
        jump_tables::counted::tables(&mut code)
    };
    let labels = labels::find(&mut code, &evidence, &pointers, &tables, &pads);
    let (taking, rooms) = (uses::taking(&code), stubs::rooms(&code, &evidence, &pointers));
    let mut summed = Vec::new();
    if is_rewritten {
        let taken_labels = sums::refuse(&mut code, &sums, &unwind_ranges);
        read_code::refuse_between(&mut code, &taken_labels, &taking, &pointers);
        summed = uses::refuse(&mut code, &taking);
        refuse_searched(&mut code, &evidence, &symbols);
        pointers.extend(unknown_code::pointers(&mut code, &evidence, &unwind_ranges, &rooms));
    }
    let taken = taken::entries(&code, &pointers, &taking);
    let exported = code.exported_pieces();
    if is_rewritten {
        taken::refuse_compared_with_text(&mut code, &sums, &taken);
        taken::refuse_swallowing(&mut code, &pointers, &symbols, &unwind_ranges);
        stubs::refuse_short_targets(&mut code, &rooms);
        read_code::keep_named(&mut code, &rooms);
    }
    let families = families::group(&code, &tables, &frames, &pads);
    tables.sort_by_key(|table| table.piece);
    let mut functions: Vec<Function> =
        families.par_iter().map(|members| blocks::build(&code, members, &labels, &tables, &taken)).collect();
    for (function, members) in functions.iter_mut().zip(&families) {
        function.has_stub_room = rooms[members[0]];
        function.is_exported = members.iter().any(|member| exported[*member]);
    }
    let mut rows = RowTable::new();
    unwind::attach(image, &frames, &pads, &mut functions, &mut rows);
    drop(pads);
    if is_rewritten {
        computed::refuse(&code, &mut functions, (&labels.entered(), &summed), &unwind_ranges);
    }
    pointers.sort_by_key(|p| p.field);
    pointers.dedup_by_key(|p| p.field);
    drop(code);
    let mut program = Program { rows, ..Program::of(image.arch, functions.into(), frames) };
    link::link(image, &mut program, pointers);
    surroundings::add(image, &mut program);
    Ok(program)
}

fn symbols_and_evidence(image: &Image, is_code: &dyn Fn(InputAddr) -> bool) -> (Symbols, Evidence) {
    let symbols = Symbols::read(image);
    let evidence = evidence::gather(image, &symbols, is_code);
    (symbols, evidence)
}

/// Pieces that are scanned by one thread at a time.
const GROUP: usize = 128;

fn scan_all<'i, 'a>(
    image: &'i Image<'a>,
    pieces: Vec<pieces::Piece<'a>>,
    evidence: &Evidence,
) -> Code<'i, 'a> {
    let groups = pieces.par_chunks(GROUP);
    let scans = groups.flat_map_iter(|group| sweep::scan_all(image, group, evidence)).collect();
    let mut code = Code::new(image, pieces, scans);
    for piece in 0..code.pieces.len() {
        if !code.scans[piece].complete {
            // Takes precedence: nothing else that is known of such a piece can be trusted.
            code.pieces[piece].refusal = Some(Refusal::Undecodable);
        }
    }
    if image.arch.is_written() {
        checked_calls::refuse(&mut code);
        moved_stack::mark(&mut code);
    }
    runtime_tables::refuse(&mut code);
    absolute_symbols::refuse(&mut code);
    patched_code::refuse(&mut code);
    code
}
