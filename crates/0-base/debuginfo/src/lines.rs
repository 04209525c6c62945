//! `.debug_line`: the rows of moved code, at its new places.
//!
//! Sequences without moved code are copied. The rows of all others of a unit are cut where their code was, sorted by
//! where it is, and written as sequences that end where the unit's code does. Where a row goes on in a block that stands
//! apart, the block starts with the row again, as no statement of its own: no debugger should stop there twice.

mod files;
mod inlined;

pub use files::Texts;
pub use inlined::{Call, Calls, Told};

use crate::bytes::{Damaged, Reader, Result, put, write_sleb, write_uleb};
use crate::moves::Moves;
use crate::tally::{Left, Removed, Tally};
use afterlink_core::DebugUnit;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// The new section, and where each unit's part went.
#[derive(Default)]
pub struct Lines {
    pub bytes: Vec<u8>,
    offsets: FxHashMap<u64, u64>,
    /// What could not be told apart, from its old place on, and its new place.
    rest: Option<(u64, u64)>,
}

impl Lines {
    /// Where the part is that stood at `offset`.
    pub fn place(&self, offset: u64) -> Result<u64> {
        let rest = self.rest.filter(|(old, _)| offset >= *old);
        let rest = rest.map(|(old, new)| offset - old + new);
        self.offsets.get(&offset).copied().or(rest).ok_or(Damaged)
    }
}

/// Leads a whole section. Parts that are damaged or unknown stay as they were, and so do those that could not be proven.
/// Of `calls` the callees' rows are told.
pub fn update(
    section: &[u8],
    unproven: &[DebugUnit],
    (moves, calls): (&Moves, &Calls),
    tally: &mut Tally,
) -> Lines {
    let (units, rest) = crate::starts(section);
    let is_unproven = |start: usize| unproven.contains(&DebugUnit::Rows(start as u64));
    let lead = |&(start, end): &(usize, usize)| match is_unproven(start) {
        false => unit(&section[start..end], moves, (start as u64, calls)).ok(),
        true => None,
    };
    let parts: Vec<Option<(Vec<u8>, Tally)>> = units.par_iter().map(lead).collect();
    let mut lines = Lines { bytes: Vec::with_capacity(section.len()), ..Lines::default() };
    for (&(start, end), part) in units.iter().zip(parts) {
        lines.offsets.insert(start as u64, lines.bytes.len() as u64);
        match part {
            Some((bytes, counted)) => {
                lines.bytes.extend_from_slice(&bytes);
                tally.add(&counted);
            }
            None => {
                lines.bytes.extend_from_slice(&section[start..end]);
                tally.leave(if is_unproven(start) { Left::UnprovenRows } else { Left::Rows });
            }
        }
    }
    if rest < section.len() {
        lines.rest = Some((rest as u64, lines.bytes.len() as u64));
        lines.bytes.extend_from_slice(&section[rest..]);
        tally.leave(Left::Rows);
    }
    lines
}

struct Header {
    version: u16,
    offset_size: usize,
    /// Where the size of what follows stands.
    size_at: usize,
    /// Where folders and files are named.
    names: usize,
    least: u64,
    default_is_stmt: bool,
    line_base: i64,
    line_range: u64,
    opcode_base: u8,
    lengths: Vec<u8>,
    /// Where the program starts.
    program: usize,
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes, 0);
        let (_, offset_size) = r.unit_end()?;
        let version = r.u16()?;
        if !(2..=5).contains(&version) {
            return Err(Damaged);
        }
        if version >= 5 && (r.u8()?, r.u8()?) != (8, 0) {
            return Err(Damaged);
        }
        let size_at = r.at;
        let length = r.number(offset_size)? as usize;
        let program = r.at.checked_add(length).filter(|p| *p <= bytes.len()).ok_or(Damaged)?;
        let least = u64::from(r.u8()?);
        if version >= 4 && r.u8()? != 1 {
            return Err(Damaged);
        }
        let default_is_stmt = r.u8()? != 0;
        let line_base = i64::from(r.u8()? as i8);
        let line_range = u64::from(r.u8()?);
        let opcode_base = r.u8()?;
        // The writer needs the opcodes of version 2; those of version 3 only for what they alone say.
        if line_range == 0 || opcode_base < 10 || least != 1 {
            return Err(Damaged);
        }
        let lengths = r.take(usize::from(opcode_base) - 1)?.to_vec();
        Ok(Self {
            version,
            offset_size,
            size_at,
            names: r.at,
            least,
            default_is_stmt,
            line_base,
            line_range,
            opcode_base,
            lengths,
            program,
        })
    }

    fn start(&self) -> Row {
        Row { file: 1, line: 1, is_stmt: self.default_is_stmt, ..Row::default() }
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Row {
    address: u64,
    file: u64,
    /// Whether an instruction named the file. Where none does, readers disagree in version 5 about which one it is.
    says_file: bool,
    line: u64,
    column: u64,
    discriminator: u64,
    isa: u64,
    is_stmt: bool,
    basic_block: bool,
    prologue_end: bool,
    epilogue_begin: bool,
}

impl Row {
    /// The row as it begins again where its code goes on.
    fn goes_on(self) -> Self {
        Self { is_stmt: false, ..self.unmarked() }
    }

    /// The row without what it says of where functions start and end.
    fn unmarked(self) -> Self {
        Self { basic_block: false, prologue_end: false, epilogue_begin: false, ..self }
    }
}

/// A row and the run of the output that it tells of.
struct Placed {
    start: u64,
    end: u64,
    row: Row,
}

fn unit(bytes: &[u8], moves: &Moves, calls: (u64, &Calls)) -> Result<(Vec<u8>, Tally)> {
    let header = Header::read(bytes)?;
    let mut tally = Tally::default();
    let mut out = calls.1.head(calls.0).unwrap_or(&bytes[..header.program]).to_vec();
    let mut r = Reader::new(bytes, header.program);
    let (mut placed, mut rows, mut start) = (Vec::new(), Vec::new(), r.at);
    while r.at < bytes.len() {
        let Some(end) = sequence(&mut r, &header, &mut rows)? else { break };
        let low = rows.first().map_or(end, |row: &Row| row.address);
        if !ascend(&rows, end) {
            return Err(Damaged);
        }
        tally.rows += rows.len() as u64;
        if moves.is_code(low) && moves.touches(low, end) {
            tally.folded += place(&rows, end, moves, calls, &mut placed);
        } else {
            out.extend_from_slice(&bytes[start..r.at]);
        }
        rows.clear();
        start = r.at;
    }
    write(&header, placed, &mut out, &mut tally);
    let head = if header.offset_size == 8 { 12 } else { 4 };
    let length = (out.len() - head) as u64;
    put(&mut out, head - header.offset_size, header.offset_size, length);
    Ok((out, tally))
}

/// Whether the rows of a sequence stand in the order of their code. A table in which they do not stays as it was.
fn ascend(rows: &[Row], end: u64) -> bool {
    rows.is_sorted_by_key(|row| row.address) && rows.last().is_none_or(|last| last.address <= end)
}

/// Reads the rows up to the end of a sequence, and gives its address; `None` at the end of the program.
fn sequence(r: &mut Reader, header: &Header, rows: &mut Vec<Row>) -> Result<Option<u64>> {
    let mut row = header.start();
    let push = |row: &mut Row, rows: &mut Vec<Row>| {
        rows.push(*row);
        (row.basic_block, row.prologue_end, row.epilogue_begin, row.discriminator) = (false, false, false, 0);
    };
    while r.at < r.bytes.len() {
        let opcode = r.u8()?;
        if opcode >= header.opcode_base {
            let special = u64::from(opcode - header.opcode_base);
            row.address = row.address.wrapping_add(special / header.line_range * header.least);
            row.line = row.line.wrapping_add_signed(header.line_base + (special % header.line_range) as i64);
            push(&mut row, rows);
            continue;
        }
        match opcode {
            0 => {
                let size = r.uleb()? as usize;
                let mut inside = Reader::new(r.take(size)?, 0);
                match inside.u8()? {
                    1 => return Ok(Some(row.address)),
                    2 => {
                        row.address = inside
                            .number(size - 1)
                            .and_then(|a| if size == 9 { Ok(a) } else { Err(Damaged) })?
                    }
                    4 => row.discriminator = inside.uleb()?,
                    // Other extensions, as a file in the middle, cannot be led through a new order.
                    _ => return Err(Damaged),
                }
            }
            1 => push(&mut row, rows),
            2 => row.address = row.address.wrapping_add(r.uleb()?.wrapping_mul(header.least)),
            3 => row.line = row.line.wrapping_add_signed(r.sleb()?),
            4 => (row.file, row.says_file) = (r.uleb()?, true),
            5 => row.column = r.uleb()?,
            6 => row.is_stmt = !row.is_stmt,
            7 => row.basic_block = true,
            8 => {
                row.address = row
                    .address
                    .wrapping_add(u64::from(255 - header.opcode_base) / header.line_range * header.least)
            }
            9 => row.address = row.address.wrapping_add(u64::from(r.u16()?)),
            10 => row.prologue_end = true,
            11 => row.epilogue_begin = true,
            12 => row.isa = r.uleb()?,
            _ => {
                for _ in 0..header.lengths[usize::from(opcode) - 1] {
                    r.uleb()?;
                }
            }
        }
    }
    if rows.is_empty() { Ok(None) } else { Err(Damaged) }
}

/// Gives how many rows are of functions that others stand for.
fn place(
    rows: &[Row],
    end: u64,
    moves: &Moves,
    (table, calls): (u64, &Calls),
    placed: &mut Vec<Placed>,
) -> u64 {
    let mut folded = 0;
    // Rows at one address stand and fall with the code there, of which a sequence's end has none.
    for group in rows.chunk_by(|a, b| a.address == b.address).filter(|group| group[0].address < end) {
        let address = group[0].address;
        let next = rows.partition_point(|row| row.address <= address);
        let next = rows.get(next).map_or(end, |row| row.address);
        let parts = moves.parts(address, next);
        if parts.is_empty() && moves.is_folded(address, next) {
            folded += group.len() as u64;
        }
        let (last, empty) = group.split_last().unwrap_or((&group[0], &[]));
        for part in parts.into_iter().chain(moves.duplicate_parts(address, next)) {
            let mut row = *last;
            if part.input == address {
                placed.extend(empty.iter().map(|&row| Placed { start: part.start, end: part.start, row }));
            } else {
                row = row.goes_on();
            }
            let run = Placed { start: part.start, end: part.end, row };
            calls.place((table, moves), (address, next), run, placed);
        }
        let beside = moves.beside_in(address, next);
        placed.extend(beside.map(|(start, end)| Placed { start, end, row: last.goes_on() }));
    }
    folded
}

fn write(header: &Header, mut placed: Vec<Placed>, out: &mut Vec<u8>, tally: &mut Tally) {
    // Rows of no code come in front of the one that tells of the code there.
    placed.sort_by_key(|p| (p.start, p.end > p.start));
    let mut last: Option<(Row, u64)> = None;
    let mut left = placed.into_iter().peekable();
    while let Some(Placed { start, end, row }) = left.next() {
        let row = Row { address: start, ..row };
        let before = match last {
            Some((before, reached)) if reached == start && before.says_file <= row.says_file => before,
            other => {
                // What has no code, and does not come before code, tells of nothing.
                if start == end && left.peek().is_none_or(|next| next.start != start) {
                    tally.remove(Removed::Row);
                    continue;
                }
                if let Some((before, reached)) = other {
                    end_sequence(out, &before, reached);
                }
                out.extend_from_slice(&[0, 9, 2]);
                out.extend_from_slice(&start.to_le_bytes());
                Row { address: start, ..header.start() }
            }
        };
        write_row(header, &before, &row, out);
        last = Some((row, end));
    }
    if let Some((before, reached)) = last {
        end_sequence(out, &before, reached);
    }
}

fn end_sequence(out: &mut Vec<u8>, before: &Row, end: u64) {
    out.push(2);
    write_uleb(out, end - before.address);
    out.extend_from_slice(&[0, 1, 1]);
}

fn write_row(header: &Header, before: &Row, row: &Row, out: &mut Vec<u8>) {
    if before.file != row.file || before.says_file != row.says_file {
        out.push(4);
        write_uleb(out, row.file);
    }
    for (opcode, was, is) in [(5, before.column, row.column), (12, before.isa, row.isa)] {
        if was != is {
            out.push(opcode);
            write_uleb(out, is);
        }
    }
    if row.discriminator != 0 {
        let mut number = Vec::new();
        write_uleb(&mut number, row.discriminator);
        out.extend_from_slice(&[0, number.len() as u8 + 1, 4]);
        out.append(&mut number);
    }
    let flags = [
        (6, before.is_stmt != row.is_stmt),
        (7, row.basic_block),
        (10, row.prologue_end),
        (11, row.epilogue_begin),
    ];
    out.extend(flags.iter().filter(|f| f.1).map(|f| f.0));
    let mut line = (row.line as i64).wrapping_sub(before.line as i64);
    let advance = row.address - before.address;
    if line < header.line_base || line >= header.line_base + header.line_range as i64 {
        out.push(3);
        write_sleb(out, line);
        line = 0;
    }
    // Invariant: lines may advance by 0 in a special opcode, or the plain opcode is taken.
    let special = |advance: u64| {
        let step = u64::try_from(line - header.line_base).ok()?;
        let opcode = advance
            .checked_mul(header.line_range)?
            .checked_add(step)?
            .checked_add(header.opcode_base.into())?;
        (step < header.line_range).then_some(opcode).and_then(|o| u8::try_from(o).ok())
    };
    match special(advance) {
        Some(opcode) => out.push(opcode),
        None => {
            out.push(2);
            write_uleb(out, advance);
            match special(0) {
                Some(opcode) => out.push(opcode),
                None => out.push(1),
            }
        }
    }
}

#[cfg(test)]
mod tests;
