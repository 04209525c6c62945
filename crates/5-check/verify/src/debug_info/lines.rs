//! Line tables, walked in step. In each piece of code that stays together, a block or what lies between moved code, the output
//! has the rows of the input at the corresponding places. Where a piece begins in the middle of a row, that row begins
//! again, as no statement, unless it goes on from what stands in front of the piece now.

use super::callees::{Callees, Files, Side, is_same_head};
use super::counterparts::{Counterparts, part_of_duplicate, place_in_duplicate};
use super::fault::Fault;
use super::rows::{CallRows, Expected, InlinedCall, Piece, Row, Rows, Said, piece, program, rows, size_at};
use super::unit::R;
use super::{BYTES_AT_ONCE, Found};
use crate::address_map::places::{Block, Reason, first_code};
use afterlink_core::DebugUnit;
use gimli::IncompleteLineProgram;

/// Walks all line tables. Gives where each is in the output, and what is wrong.
pub(crate) fn judge<'a>(
    counterparts: &Counterparts,
    [input, output]: [&'a [u8]; 2],
    mut files: Files<'a>,
) -> (Rows, Vec<Found>) {
    let (mut found, mut faults) = (Rows::default(), Vec::new());
    let callees = &Callees::read(counterparts, input, &mut files);
    let (mut at, mut other, mut pause) = (0, 0, BYTES_AT_ONCE);
    while at < input.len() {
        if at >= pause {
            (counterparts.check.forget)();
            pause = at + BYTES_AT_ONCE;
        }
        let (Some(size), Some(other_size)) = (size_at(input, at), size_at(output, other)) else {
            faults.push((None, Fault::new(format!("the line table at {at:#x} ends elsewhere"))));
            return (found, faults);
        };
        found.places.insert(at, other);
        let tables = [&input[at..at + size], &output[other..other + other_size]];
        let mut calls = Vec::new();
        let judged = judge_table(counterparts, tables, (at, callees, &mut files), &mut calls);
        found.calls.extend(calls.into_iter().map(|(call, rows)| ((at, call), rows)));
        if let Err(fault) = judged {
            let what = format!("the line table at {at:#x}: {}", fault.what);
            faults.push((Some(DebugUnit::Rows(at as u64)), Fault { what, ..fault }));
        }
        (at, other) = (at + size, other + other_size);
    }
    if other != output.len() {
        faults.push((None, Fault::new("there are more line tables")));
    }
    (found, faults)
}

fn judge_table<'a>(
    counterparts: &Counterparts,
    [input, output]: [&'a [u8]; 2],
    (at, callees, files): (usize, &Callees, &mut Files<'a>),
    calls: &mut Vec<(u64, CallRows)>,
) -> Result<(), Fault> {
    // A table that tells of where the code was is as good as none, but no wrong one: old code still stands there.
    if input == output {
        return Ok(());
    }
    let (old, new) = (program(input)?, program(output)?);
    let head = |table: &[u8], p: &IncompleteLineProgram<R>| {
        let (length, size) = if table.starts_with(&[0xff; 4]) { (12, 8) } else { (4, 4) };
        let version = 2 + if p.header().version() >= 5 { 2 } else { 0 };
        table[length..length + version + size + p.header().header_length()].to_vec()
    };
    let may_name_more = !counterparts.check.places.inlined.is_empty();
    let is_same = || head(input, &old) == head(output, &new);
    if !(is_same() || may_name_more && is_same_head(old.header(), new.header())) {
        return Err(Fault::new("its head changed"));
    }
    let new_head = new.header().clone();
    let old = rows(old)?;
    let (mut pieces, mut removed) = (Vec::new(), Vec::new());
    for sequence in old.split_inclusive(|row| row.said.is_none()) {
        match counterparts.is_code(sequence[0].address) {
            true => add_pieces(counterparts, sequence, &mut pieces),
            false => removed.extend_from_slice(sequence),
        }
    }
    drop(old);
    let new = rows(new)?;
    let is_removed = |sequence: &&[Row]| !counterparts.is_output_code(sequence[0].address);
    let (gone, mut kept): (Vec<&[Row]>, Vec<&[Row]>) =
        new.split_inclusive(|row| row.said.is_none()).partition(is_removed);
    if removed != gone.concat() {
        return Err(Fault::new("says something else of functions that the linker removed"));
    }
    kept.sort_by_key(|sequence| sequence[0].address);
    let kept = kept.concat();
    drop((new, removed));
    pieces.sort_by_key(|piece| piece.output);
    let file = |file| files.number(Side::Output, at, &new_head, file);
    judge_rows(counterparts, &pieces, &kept, (callees, file), calls)
}

/// Cuts a sequence into pieces.
fn add_pieces(counterparts: &Counterparts, sequence: &[Row], pieces: &mut Vec<Piece>) {
    let run = (sequence[0].address, sequence[sequence.len() - 1].address);
    let mut at = run.0;
    let stays = |from: u64, to: u64| {
        let parts = counterparts.unfolded((from, to)).into_iter();
        // Padding in front of it belongs to what was there before.
        let code = parts.filter_map(|(from, to)| Some((first_code(&counterparts.check.code, from, to)?, to)));
        code.map(|part| piece(sequence, part, part, |address| (address, true)))
    };
    for block in counterparts.blocks_in(run) {
        pieces.extend(stays(at, block.input));
        let part = (block.input.max(run.0), block.input_end().min(run.1));
        let output = counterparts.part(block, part);
        let place = |address: u64| {
            let place = counterparts.point(address);
            (place, place < output.1 && !counterparts.check.code.at(address).is_none_or(|i| i.is_padding()))
        };
        let mut own = piece(sequence, part, output, place);
        if part == (block.input, block.input_end()) {
            own.call = call(counterparts, block, sequence);
        }
        pieces.push(own);
        at = block.input_end();
    }
    pieces.extend(stays(at, run.1));
    for block in counterparts.duplicates_in(run) {
        let part = (block.input.max(run.0), block.input_end().min(run.1));
        let output = part_of_duplicate(block, part);
        let place = |address: u64| {
            let place = place_in_duplicate(block, address);
            (place, place < output.1 && !counterparts.check.code.at(address).is_none_or(|i| i.is_padding()))
        };
        pieces.push(piece(sequence, part, output, place));
    }
}

/// If a block stands in place of a call: the call, what its row says, and the callee.
fn call(counterparts: &Counterparts, block: &Block, sequence: &[Row]) -> Option<InlinedCall> {
    let Reason::Inlined(number) = block.reason else { return None };
    let callee = counterparts.check.places.inlined[number as usize];
    let next = sequence.partition_point(|row| row.address <= block.input);
    let said = next.checked_sub(1).and_then(|i| sequence[i].said)?;
    Some(InlinedCall { call: block.input, said, callee })
}

/// Whether code in place of a call has the rows of the callee behind those that begin at the call, which tell of no code any more and may be
/// left out, as where a sequence ends between the two; both name files by the same numbers.
fn is_callees(piece: &Piece, callee: &[Expected], own: &[Row], mut file: impl FnMut(u32) -> u32) -> bool {
    let start = piece.output.0;
    let mut named = |said: Said| said.of_file(&mut file);
    let begins = piece.rows.iter().filter(|row| row.0 == start);
    let mut rows: Vec<Expected> = begins.map(|&(place, said, _)| (place, named(said), false)).collect();
    rows.extend(callee.iter().map(|&(distance, said, needed)| (start + distance, said, needed)));
    let own: Vec<Row> = own.iter().map(|row| Row { said: row.said.map(&mut named), ..*row }).collect();
    judge_piece(&Piece { output: piece.output, before: None, rows, call: None }, &own, None).is_ok()
}

/// Holds the output's rows against the pieces, both by their places in the output.
fn judge_rows(
    counterparts: &Counterparts,
    pieces: &[Piece],
    rows: &[Row],
    (callees, mut file): (&Callees, impl FnMut(u32) -> u32),
    calls: &mut Vec<(u64, CallRows)>,
) -> Result<(), Fault> {
    let mut next = 0;
    for piece in pieces.iter().filter(|p| p.output.0 < p.output.1) {
        while let Some(row) = rows.get(next).filter(|row| row.address < piece.output.0) {
            let is_free = row.said.is_none() || counterparts.is_free(row.address);
            if !is_free {
                return Err(fault("has a row of code that it had none for", row));
            }
            next += 1;
        }
        let inside = rows[next..].partition_point(|row| row.address < piece.output.1);
        let own = &rows[next..next + inside];
        let in_front = next.checked_sub(1).and_then(|i| rows[i].said);
        let judged = judge_piece(piece, own, in_front);
        let Some(InlinedCall { call, said, callee }) = &piece.call else {
            judged?;
            next += inside;
            continue;
        };
        let callee = callees.rows(*callee);
        let is_callees = callee.is_some_and(|callee| is_callees(piece, callee, own, &mut file));
        calls.push((*call, CallRows { said: *said, is_callers: judged.is_ok(), is_callees }));
        if !is_callees {
            judged?;
        }
        next += inside;
    }
    for row in &rows[next..] {
        if row.said.is_some() && !counterparts.is_free(row.address) {
            return Err(fault("has a row of code that it had none for", row));
        }
    }
    Ok(())
}

fn fault(what: &str, row: &Row) -> Fault {
    Fault { what: what.to_owned(), input: None, output: Some(row.address) }
}

fn judge_piece(piece: &Piece, own: &[Row], in_front: Option<Said>) -> Result<(), Fault> {
    // A sequence that ends here is not one that covers the piece.
    let ended = own.iter().rposition(|row| row.said.is_none());
    let (in_front, own) = match ended {
        Some(last) if own[last].address == piece.output.0 => (None, &own[last + 1..]),
        Some(last) => return Err(fault("ends inside of code", &own[last])),
        None => (in_front, own),
    };
    let start = piece.output.0;
    let (mut running, mut expected) = (in_front, piece.rows.iter());
    let mut began = false;
    for row in own {
        let Some(said) = row.said else { continue };
        let is_it = |e: &&(u64, Said, bool)| (e.0, e.1) == (row.address, said);
        // Only if it is one of the next ones are those passed over that may be left out.
        let next = expected.clone().take_while(|e| !e.2).take_while(|e| !is_it(e)).count();
        if expected.clone().nth(next).filter(is_it).is_some() {
            expected.by_ref().take(next).for_each(drop);
            if !began && row.address != start {
                goes_on(piece, running)?;
            }
            (began, running) = (true, Some(said));
            expected.next();
        } else if !began && row.address == start && piece.before.is_some_and(|b| b.goes_on() == said) {
            running = Some(said);
        } else {
            return Err(fault("has a row that the corresponding code has not", row));
        }
    }
    if !began {
        goes_on(piece, running)?;
    }
    match expected.find(|e| e.2) {
        Some(lack) => {
            let what = "lacks a row that the corresponding code has".to_owned();
            Err(Fault { what, input: None, output: Some(lack.0) })
        }
        None => Ok(()),
    }
}

/// What is said in front of a piece's first row is what was.
fn goes_on(piece: &Piece, running: Option<Said>) -> Result<(), Fault> {
    // Of code at whose start rows begin that were needed, these are asked for.
    let begins = piece.rows.first().is_some_and(|r| r.0 == piece.output.0);
    if begins || piece.before.map(Said::goes_on) == running.map(Said::goes_on) {
        return Ok(());
    }
    let what = "says of a block's start what it did not say of it".to_owned();
    Err(Fault { what, input: None, output: Some(piece.output.0) })
}
