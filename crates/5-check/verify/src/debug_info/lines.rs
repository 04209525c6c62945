//! Line tables, walked in step. In each piece of code that stays together, a block or what lies between moved code, the output
//! has the rows of the input at the corresponding places. Where a piece begins in the middle of a row, that row begins
//! again, as no statement, unless it goes on from what stands in front of the piece now.

use super::callees::{Callees, Files, Side, is_same_head};
use super::counterparts::{Counterparts, Run};
use super::entries::Fault;
use super::inlined::Call;
use super::unit::R;
use super::{BYTES_AT_ONCE, Found};
use crate::address_map::places::{Block, Reason, first_code};
use afterlink_core::DebugUnit;
use gimli::{ColumnType, DebugLine, DebugLineOffset, IncompleteLineProgram, LineRow};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What a row says, but for its address: where in the source, and what it marks. Large units have a million of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub file: u32,
    pub line: u32,
    column: u32,
    discriminator: u32,
    isa: u16,
    op_index: u8,
    is_statement: bool,
    /// Basic block, prologue's end, epilogue's start.
    marks: [bool; 3],
}

impl Said {
    /// Nothing, if it names what no compiler has so many of.
    fn of(row: &LineRow) -> Option<Self> {
        let column = match row.column() {
            ColumnType::LeftEdge => 0,
            ColumnType::Column(n) => n.get(),
        };
        let number = |number: u64| u32::try_from(number).ok();
        Some(Self {
            file: number(row.file_index())?,
            line: number(row.line().map_or(0, |n| n.get()))?,
            column: number(column)?,
            discriminator: number(row.discriminator())?,
            isa: row.isa().try_into().ok()?,
            op_index: row.op_index().try_into().ok()?,
            is_statement: row.is_stmt(),
            marks: [row.basic_block(), row.prologue_end(), row.epilogue_begin()],
        })
    }

    /// The same under another number of its file.
    pub fn of_file(self, number: impl FnOnce(u32) -> u32) -> Self {
        Self { file: number(self.file), ..self }
    }

    /// What it says of the code that follows, and not only of its own place.
    pub fn goes_on(self) -> Self {
        Self { is_statement: false, ..self.unmarked() }
    }

    /// The same, but for what it says of where functions start and end.
    pub fn unmarked(self) -> Self {
        Self { marks: [false; 3], ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub address: u64,
    /// None at the end of a sequence.
    pub said: Option<Said>,
}

/// Code of the input that stays together, and its rows.
pub(crate) struct Piece {
    output: Run,
    /// The row that goes on at its start, if none begins there.
    pub before: Option<Said>,
    /// Rows at places of the output. One may be left out if nothing is left of its code.
    pub rows: Vec<Expected>,
    call: Option<InPlace>,
}

/// A row at a place, and whether it may not be left out.
pub(crate) type Expected = (u64, Said, bool);

/// Code that stands in place of a call.
struct InPlace {
    call: u64,
    /// What the call's row says.
    said: Said,
    /// The code of the callee: start and size.
    callee: (u64, u32),
}

/// Where tables are in the output, and what was found of calls in place of which code stands.
#[derive(Default)]
pub(crate) struct Rows {
    pub places: FxHashMap<usize, usize>,
    /// By table, and call.
    pub calls: BTreeMap<Call, CallRows>,
}

/// The rows of code that stands in place of a call. Caller and callee may have the same.
pub(crate) struct CallRows {
    /// The call's.
    pub said: Said,
    /// Whether they are the caller's, as those of any other code.
    pub is_callers: bool,
    /// Whether they are the callee's.
    pub is_callees: bool,
}

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

/// Bytes of the table at `at`.
pub(crate) fn size_at(section: &[u8], at: usize) -> Option<usize> {
    let word = u32::from_le_bytes(*section.get(at..)?.first_chunk()?);
    let size = match word {
        u32::MAX => 12 + usize::try_from(u64::from_le_bytes(*section.get(at + 4..)?.first_chunk()?)).ok()?,
        size => 4 + size as usize,
    };
    (at.checked_add(size)? <= section.len()).then_some(size)
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

pub(crate) fn program(table: &[u8]) -> Result<IncompleteLineProgram<R<'_>>, Fault> {
    Ok(DebugLine::new(table, gimli::LittleEndian).program(DebugLineOffset(0), 8, None, None)?)
}

pub(crate) fn rows(program: IncompleteLineProgram<R>) -> Result<Vec<Row>, Fault> {
    let (mut found, mut rows): (Vec<Row>, _) = (Vec::new(), program.rows());
    while let Some((_, row)) = rows.next_row()? {
        // Where a sequence ends it has no code.
        while row.end_sequence()
            && found.last().is_some_and(|last| last.said.is_some() && last.address == row.address())
        {
            found.pop();
        }
        let said = match row.end_sequence() {
            true => None,
            false => {
                Some(Said::of(row).ok_or_else(|| Fault::new("a row has a number of more than 32 bits"))?)
            }
        };
        found.push(Row { address: row.address(), said });
    }
    Ok(found)
}

/// Cuts a sequence into pieces.
fn add_pieces(counterparts: &Counterparts, sequence: &[Row], pieces: &mut Vec<Piece>) {
    let run = (sequence[0].address, sequence[sequence.len() - 1].address);
    let mut at = run.0;
    let stays = |from: u64, to: u64| {
        // Padding in front of it belongs to what was there before.
        let from = first_code(&counterparts.check.code, from, to)?;
        Some(piece(sequence, (from, to), (from, to), |address| (address, true)))
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
}

pub(crate) fn piece(sequence: &[Row], part: Run, output: Run, place: impl Fn(u64) -> (u64, bool)) -> Piece {
    let first = sequence.partition_point(|row| row.address < part.0);
    let count = sequence[first..].partition_point(|row| row.address < part.1);
    let own = &sequence[first..first + count];
    let begins = own.first().is_some_and(|row| row.address == part.0);
    let before = first.checked_sub(1).filter(|_| !begins).and_then(|i| sequence[i].said);
    let rows = own.iter().filter_map(|row| {
        let (place, is_needed) = place(row.address);
        row.said.map(|said| (place, said, is_needed))
    });
    Piece { output, before, rows: rows.collect(), call: None }
}

/// If a block stands in place of a call: the call, what its row says, and the callee.
fn call(counterparts: &Counterparts, block: &Block, sequence: &[Row]) -> Option<InPlace> {
    let Reason::Inlined(number) = block.reason else { return None };
    let callee = counterparts.check.places.inlined[number as usize];
    let next = sequence.partition_point(|row| row.address <= block.input);
    let said = next.checked_sub(1).and_then(|i| sequence[i].said)?;
    Some(InPlace { call: block.input, said, callee })
}

/// Whether code in place of a call has the rows of the callee behind those that begin at the call; both name files by the same numbers.
fn is_callees(piece: &Piece, callee: &[Expected], own: &[Row], mut file: impl FnMut(u32) -> u32) -> bool {
    let start = piece.output.0;
    let mut named = |said: Said| said.of_file(&mut file);
    let begins = piece.rows.iter().filter(|row| row.0 == start);
    let mut rows: Vec<Expected> = begins.map(|&(place, said, needed)| (place, named(said), needed)).collect();
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
        let Some(InPlace { call, said, callee }) = &piece.call else {
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
