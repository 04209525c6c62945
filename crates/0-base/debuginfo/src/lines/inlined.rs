//! Rows of code that stands in place of a call: the callee's, whichever table has them. Files of another table are added to the caller's.

use super::files::{Added, File, Names, Texts, rename};
use super::{Header, Placed, Row, ascend, sequence};
use crate::bytes::{Damaged, Reader, Result};
use crate::moves::Moves;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Calls that code stands in place of, by the table that tells of them, and where they come back.
#[derive(Default)]
pub struct Calls {
    calls: BTreeMap<(u64, u64), WithRows>,
    /// Heads of tables that name more files now.
    heads: FxHashMap<u64, Vec<u8>>,
}

/// A call, and what stands for it.
#[derive(Clone, Copy)]
pub struct Call {
    /// Where it is in the source.
    pub file: u64,
    pub line: u64,
    /// Where its code is in the output.
    pub start: u64,
    pub end: u64,
}

/// What is told of it.
struct WithRows {
    call: Call,
    /// The callee's rows, by their distance from the start; the first has none.
    rows: Vec<(u64, Row)>,
    /// The files of another table that these name.
    files: Vec<(u64, File)>,
}

/// A section of tables, and what units and other sections say of them.
pub struct Told<'a> {
    pub section: &'a [u8],
    pub texts: Texts<'a>,
    /// The folders that units were compiled in, by their tables.
    pub compiled_in: FxHashMap<u64, &'a [u8]>,
}

/// Code of the input: start and size.
type Code = (u64, u64);

/// What a table tells of calls and of callees.
#[derive(Default)]
struct Found {
    table: u64,
    /// By the number of the call: its file and line.
    calls: Vec<(usize, u64, u64)>,
    callees: Vec<(Code, Callee)>,
}

/// A callee's rows, and the files that these name. If a head cannot be read, or a file not be named elsewhere, they are of use in the same table.
#[derive(Clone)]
struct Callee {
    table: u64,
    rows: Vec<(u64, Row)>,
    files: Option<Vec<(u64, File)>>,
}

impl<'a> Told<'a> {
    fn names<'t>(&'t self, (start, end): (usize, usize), header: &'t Header) -> Result<Names<'t>> {
        let compiled_in = self.compiled_in.get(&(start as u64)).copied().unwrap_or_default();
        Names::read(&self.section[start..end], header, compiled_in, self.texts)
    }

    /// Finds those calls of which tables have the callees' rows, too.
    pub fn calls(&self, moves: &Moves) -> Calls {
        let (tables, _) = crate::starts(self.section);
        let found = tables.par_iter().filter_map(|&table| self.in_table(table, moves).ok());
        let found: Vec<Found> = found.collect();
        let mut callees: FxHashMap<Code, Option<&Callee>> = FxHashMap::default();
        for (code, callee) in found.iter().flat_map(|found| &found.callees) {
            // Of code that is told of twice nobody knows which rows are meant.
            callees.entry(*code).and_modify(|known| *known = None).or_insert(Some(callee));
        }
        let mut calls = Calls::default();
        for found in &found {
            for &(number, file, line) in &found.calls {
                let inlined = &moves.inlined()[number];
                let Some(Some(callee)) = callees.get(&inlined.callee_code()) else { continue };
                let files = if callee.table == found.table { Some(Vec::new()) } else { callee.files.clone() };
                let Some(files) = files else { continue };
                let (start, end) = (inlined.output, inlined.output + inlined.output_size);
                let call = Call { file, line, start, end };
                let with_rows = WithRows { call, rows: callee.rows.clone(), files };
                calls.calls.insert((found.table, inlined.call_end), with_rows);
            }
        }
        self.name_files(&mut calls);
        calls
    }

    /// Leaves those calls whose callees' files their tables name, or can name.
    fn name_files(&self, calls: &mut Calls) {
        let tables: BTreeSet<u64> =
            calls.calls.iter().filter(|(_, call)| !call.files.is_empty()).map(|(at, _)| at.0).collect();
        for table in tables {
            let head = self.name_files_in(table, calls);
            if let Ok(head) = head {
                calls.heads.insert(table, head);
            } else {
                calls.calls.retain(|at, call| at.0 != table || call.files.is_empty());
            }
        }
    }

    fn name_files_in(&self, table: u64, calls: &mut Calls) -> Result<Vec<u8>> {
        let start = table as usize;
        let end = Reader::new(self.section, start).unit_end()?.0;
        let header = Header::read(&self.section[start..end])?;
        let names = self.names((start, end), &header)?;
        let (mut added, mut unnamed) = (Added::default(), Vec::new());
        for (at, call) in calls.calls.range_mut((table, 0)..=(table, u64::MAX)) {
            let number = |(old, file): &(u64, File)| Some((*old, names.number(file, &mut added)?));
            match call.files.iter().map(number).collect::<Option<Vec<_>>>() {
                Some(numbers) => rename(&mut call.rows, &numbers),
                None => unnamed.push(*at),
            }
        }
        unnamed.iter().for_each(|at| drop(calls.calls.remove(at)));
        names.with(&added)
    }

    fn in_table(&self, (start, end): (usize, usize), moves: &Moves) -> Result<Found> {
        let bytes = &self.section[start..end];
        let header = Header::read(bytes)?;
        let mut found = Found { table: start as u64, ..Found::default() };
        let sequences = sequences(bytes, &header, moves)?;
        let names = self.names((start, end), &header);
        for (i, (rows, end)) in sequences.iter().enumerate() {
            if sequences.get(i + 1).is_some_and(|next| next.0[0].address < *end) {
                continue;
            }
            for (number, inlined) in moves.inlined_in(rows[0].address, *end) {
                let Some(row) = last_at(rows, inlined.call) else { continue };
                found.calls.push((number, rows[row].file, rows[row].line));
            }
        }
        for code in moves.callees() {
            let Some(rows) = callee_rows(&sequences, code) else { continue };
            let used: BTreeSet<u64> = rows.iter().map(|(_, row)| row.file).collect();
            let file = |number| Ok((number, names.as_ref().map_err(|_| Damaged)?.file(number)?));
            let files = used.into_iter().map(file).collect::<Result<_>>().ok();
            found.callees.push((code, Callee { table: found.table, rows, files }));
        }
        Ok(found)
    }
}

impl Calls {
    pub fn get(&self, table: u64, back: u64) -> Option<Call> {
        self.calls.get(&(table, back)).map(|told| told.call)
    }

    /// The head of a table that names more files now.
    pub(super) fn head(&self, table: u64) -> Option<&[u8]> {
        self.heads.get(&table).map(Vec::as_slice)
    }

    /// Leaves those alone that entries tell of.
    pub fn retain(&mut self, is_told: impl Fn(u64, u64) -> bool) {
        self.calls.retain(|&(table, back), _| is_told(table, back));
        let tables: BTreeSet<u64> = self.calls.keys().map(|at| at.0).collect();
        self.heads.retain(|table, _| tables.contains(table));
    }

    /// Adds a row's run, without the code that stands in place of calls there, whose rows are added.
    /// `input` is where the row's run started.
    pub(super) fn place(
        &self,
        (table, moves): (u64, &Moves),
        input: (u64, u64),
        Placed { mut start, end, mut row }: Placed,
        placed: &mut Vec<Placed>,
    ) {
        for (_, inlined) in moves.inlined_in(input.0, input.1) {
            let Some(WithRows { call, rows, .. }) = self.calls.get(&(table, inlined.call_end)) else {
                continue;
            };
            if call.start < start || call.end > end {
                continue;
            }
            // A row of the call itself tells of no code any more, but debuggers find its line there.
            let begins = row.address == inlined.call && start == call.start;
            if start < call.start || begins {
                placed.push(Placed { start, end: call.start, row });
            }
            for (i, &(distance, row)) in rows.iter().enumerate() {
                let next = rows.get(i + 1).map_or(call.end - call.start, |next| next.0);
                placed.push(Placed { start: call.start + distance, end: call.start + next, row });
            }
            (start, row) = (call.end, row.goes_on());
        }
        if start < end {
            placed.push(Placed { start, end, row });
        }
    }
}

/// The sequences of a table that tell of code, ascending.
fn sequences(bytes: &[u8], header: &Header, moves: &Moves) -> Result<Vec<(Vec<Row>, u64)>> {
    let mut r = Reader::new(bytes, header.program);
    let (mut rows, mut sequences) = (Vec::new(), Vec::new());
    while r.at < bytes.len() {
        let Some(end) = sequence(&mut r, header, &mut rows)? else { break };
        let rows: Vec<Row> = std::mem::take(&mut rows);
        if !ascend(&rows, end) {
            return Err(Damaged);
        }
        if rows.first().is_some_and(|row| moves.is_code(row.address) && row.address < end) {
            sequences.push((rows, end));
        }
    }
    sequences.sort_by_key(|(rows, _)| rows[0].address);
    Ok(sequences)
}

/// The last row at an address or before it.
fn last_at(rows: &[Row], address: u64) -> Option<usize> {
    rows.partition_point(|row| row.address <= address).checked_sub(1)
}

/// Rows of a callee's code, by their distance from its start.
fn callee_rows(sequences: &[(Vec<Row>, u64)], (start, size): Code) -> Option<Vec<(u64, Row)>> {
    let stop = start + size;
    let next = sequences.partition_point(|(rows, _)| rows[0].address <= start);
    let (rows, end) = sequences[..next].last()?;
    let is_other = |next: &(Vec<Row>, u64)| next.0[0].address >= *end;
    if stop > *end || !sequences.get(next).is_none_or(is_other) {
        return None;
    }
    let own = rows.partition_point(|row| row.address < start)..rows.partition_point(|row| row.address < stop);
    let mut found: Vec<(u64, Row)> = Vec::new();
    if rows.get(own.start).is_none_or(|row| row.address != start) {
        found.push((0, rows[own.start.checked_sub(1)?].goes_on()));
    }
    // It is no function's start or end there.
    found.extend(rows[own].iter().map(|row| (row.address - start, row.unmarked())));
    Some(found)
}
