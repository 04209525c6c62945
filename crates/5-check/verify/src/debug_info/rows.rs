//! What line tables say, row by row, and what is found of it.

use super::counterparts::Run;
use super::fault::Fault;
use super::unit::R;
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

/// A row at a place, and whether it may not be left out.
pub(crate) type Expected = (u64, Said, bool);

/// Code of the input that stays together, and its rows.
pub(crate) struct Piece {
    pub output: Run,
    /// The row that goes on at its start, if none begins there.
    pub before: Option<Said>,
    /// Rows at places of the output. One may be left out if nothing is left of its code.
    pub rows: Vec<Expected>,
    /// The call that it stands in place of.
    pub call: Option<InlinedCall>,
}

/// Code that stands in place of a call.
pub(crate) struct InlinedCall {
    pub call: u64,
    /// What the call's row says.
    pub said: Said,
    /// The code of the callee: start and size.
    pub callee: (u64, u32),
}

/// A line table of the input, and a call.
pub(crate) type Call = (usize, u64);

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

/// Bytes of the table at `at`.
pub(crate) fn size_at(section: &[u8], at: usize) -> Option<usize> {
    let word = u32::from_le_bytes(*section.get(at..)?.first_chunk()?);
    let size = match word {
        u32::MAX => 12 + usize::try_from(u64::from_le_bytes(*section.get(at + 4..)?.first_chunk()?)).ok()?,
        size => 4 + size as usize,
    };
    (at.checked_add(size)? <= section.len()).then_some(size)
}

/// A table by itself.
pub(crate) fn program(table: &[u8]) -> Result<IncompleteLineProgram<R<'_>>, Fault> {
    Ok(DebugLine::new(table, gimli::LittleEndian).program(DebugLineOffset(0), 8, None, None)?)
}

/// All rows of a table, sequence by sequence.
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

/// The part of a sequence that tells of a part of the input's code, by places of the output.
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
