//! What the input's line tables say of code that stands in place of calls, and what files they mean, whichever table names them.

use super::counterparts::Counterparts;
use super::rows::{Expected, Row, piece, program, rows, size_at};
use super::unit::{R, text};
use gimli::{Dwarf, LineProgramHeader};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

type Head<'a> = LineProgramHeader<R<'a>>;

/// Files by their paths, which have numbers of their own here.
pub(crate) struct Files<'a> {
    dwarf: [&'a Dwarf<R<'a>>; 2],
    /// The folders that units were compiled in, by the input's tables: before DWARF 5 no table says it.
    compiled_in: FxHashMap<usize, R<'a>>,
    numbers: FxHashMap<Vec<u8>, u32>,
}

/// Which of the two files is read.
#[derive(Clone, Copy)]
pub(crate) enum Side {
    Input,
    Output,
}

impl<'a> Files<'a> {
    pub fn new(dwarf: [&'a Dwarf<R<'a>>; 2], counterparts: &Counterparts) -> Self {
        let mut files = Self { dwarf, compiled_in: FxHashMap::default(), numbers: FxHashMap::default() };
        let mut units = dwarf[0].units();
        while let (false, Ok(Some(header))) = (counterparts.check.places.inlined.is_empty(), units.next()) {
            let Ok(unit) = dwarf[0].unit(header) else { continue };
            if let (Some(program), Some(folder)) = (&unit.line_program, unit.comp_dir) {
                files.compiled_in.insert(program.header().offset().0, folder);
            }
        }
        files
    }

    /// The number of the file that a head has under `file`; `table` is where the input has the head's table.
    pub fn number(&mut self, side: Side, table: usize, head: &Head<'a>, file: u32) -> u32 {
        let path = self.path(self.dwarf[side as usize], table, head, file.into());
        // Of what nobody can name the number is the same in the same table.
        let path = path.unwrap_or_else(|| format!("\0{table} {file}").into_bytes());
        let next = self.numbers.len() as u32;
        *self.numbers.entry(path).or_insert(next)
    }

    fn path(&self, dwarf: &Dwarf<R<'a>>, table: usize, head: &Head<'a>, file: u64) -> Option<Vec<u8>> {
        let file = head.file(file)?;
        let mut path = text(dwarf, file.path_name())?.to_vec();
        let mut folders = vec![file.directory_index()];
        if head.version() >= 5 {
            folders.push(0);
        }
        for folder in folders.into_iter().filter(|&folder| folder > 0 || head.version() >= 5) {
            path = joined(text(dwarf, head.directory(folder)?)?, path);
        }
        let folder = self.compiled_in.get(&table).map_or(&[][..], R::slice);
        Some(if head.version() < 5 { joined(folder, path) } else { path })
    }
}

/// A path that may count from a folder.
fn joined(folder: &[u8], path: Vec<u8>) -> Vec<u8> {
    if path.starts_with(b"/") { path } else { [folder, b"/", &path].concat() }
}

/// Whether a head says what another one does, and may name more files behind its own.
pub(crate) fn is_same_head(was: &Head, is: &Head) -> bool {
    let rest = |head: &Head| {
        let numbers = (head.encoding(), head.line_encoding(), head.opcode_base());
        let format =
            |formats: &[gimli::FileEntryFormat]| formats.iter().map(|f| (f.content_type, f.form)).collect();
        let formats: [Vec<_>; 2] = [head.directory_entry_format(), head.file_name_entry_format()].map(format);
        (numbers, head.standard_opcode_lengths().slice().to_vec(), formats)
    };
    rest(was) == rest(is)
        && is.include_directories().starts_with(was.include_directories())
        && is.file_names().starts_with(was.file_names())
}

/// Rows of code that stands in place of calls, by its start and size in the input.
#[derive(Default)]
pub(crate) struct Callees(FxHashMap<(u64, u32), Option<Vec<Expected>>>);

impl Callees {
    /// Reads the input's tables. What they do not say, or say twice, nobody may say in the output.
    pub fn read<'a>(counterparts: &Counterparts, section: &'a [u8], files: &mut Files<'a>) -> Self {
        let wanted: BTreeSet<(u64, u32)> = counterparts.check.places.inlined.iter().copied().collect();
        let (mut callees, mut at) = (Self::default(), 0);
        while let (false, Some(size)) = (wanted.is_empty(), size_at(section, at)) {
            if let Ok(program) = program(&section[at..at + size]) {
                let head = program.header().clone();
                let file = |number| files.number(Side::Input, at, &head, number);
                callees.add(counterparts, &wanted, &rows(program).unwrap_or_default(), file);
            }
            at += size;
        }
        callees
    }

    /// Adds what the rows of a table say.
    fn add(
        &mut self,
        counterparts: &Counterparts,
        wanted: &BTreeSet<(u64, u32)>,
        rows: &[Row],
        mut file: impl FnMut(u32) -> u32,
    ) {
        for sequence in rows.split_inclusive(|row| row.said.is_none()) {
            let run = (sequence[0].address, sequence[sequence.len() - 1].address);
            let within =
                wanted.range((run.0, 0)..(run.1.max(run.0), 0)).filter(|_| counterparts.is_code(run.0));
            for &(start, size) in within.filter(|(start, size)| start + u64::from(*size) <= run.1) {
                let code = (start, start + u64::from(size));
                let own = piece(sequence, code, code, |address| (address - start, true));
                let goes_on = own.before.map(|said| (0, said.goes_on(), true));
                // None of it is a function's start or end where it stands for a call.
                let inside =
                    own.rows.into_iter().map(|(place, said, needed)| (place, said.unmarked(), needed));
                let named = |(place, said, needed): Expected| (place, said.of_file(&mut file), needed);
                let rows: Vec<Expected> = goes_on.into_iter().chain(inside).map(named).collect();
                self.0.entry((start, size)).and_modify(|known| *known = None).or_insert(Some(rows));
            }
        }
    }

    /// The rows of a callee, by their distances from its start, with files by their numbers in [`Files`].
    pub fn rows(&self, callee: (u64, u32)) -> Option<&[Expected]> {
        self.0.get(&callee)?.as_deref()
    }
}
