//! The new `.eh_frame` and its search table: all functions, moved or not.

use crate::addresses::Addresses;
use crate::counters::{counter_size, lowered_stack};
use crate::encode::counters_of_function;
use crate::shape::{Shape, counters_of};
use afterlink_core::{IdVec, InputAddr, OutputAddr, Result};
use afterlink_frames::{
    CfaRule, CieId, FdeBody, FdeId, OutputCie, OutputFde, Row, RowId, eh_frame_hdr_size, write_eh_frame,
    write_eh_frame_hdr,
};
use afterlink_program::{Block, Counter, Fragment, Function, Placement, Program, Target, Terminator};
use rayon::prelude::*;
use std::borrow::Cow;

/// The number that DWARF gives the stack pointer of x86-64.
const STACK_POINTER: u16 = 7;

/// The two sections.
pub(crate) struct Frames {
    pub header_at: OutputAddr,
    pub header: Vec<u8>,
    pub frames_at: OutputAddr,
    pub frames: Vec<u8>,
}

/// A run of output code under one input entry.
struct Run {
    fde: FdeId,
    start: OutputAddr,
    size: u64,
    /// `(bytes from start, row)`.
    rows: Vec<(u32, Lowered)>,
}

/// A row while counter code has lowered the stack pointer by so many bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Lowered {
    row: RowId,
    by: u32,
}

/// Writes both sections from `start` on. `input_end` is where the input ends in memory.
pub(crate) fn write(
    program: &Program,
    placement: &Placement,
    shapes: &[Shape],
    addresses: &Addresses,
    input_end: InputAddr,
    start: OutputAddr,
) -> Result<Frames> {
    let frames = &program.frames;
    let cies: IdVec<CieId, OutputCie> = frames
        .cies
        .iter()
        .map(|(_, cie)| OutputCie::new(cie, |personality| personality_target(&personality, addresses)))
        .collect();
    let runs = all_runs(program, placement, shapes, addresses);
    let rows: Vec<Vec<(u32, Cow<Row>)>> = runs
        .iter()
        .map(|r| r.rows.iter().map(|&(at, row)| (at, lowered(&program.rows[row.row], row.by))).collect())
        .collect();
    let rows: Vec<Vec<(u32, &Row)>> =
        rows.iter().map(|rows| rows.iter().map(|(at, row)| (*at, row.as_ref())).collect()).collect();
    let moved = runs.iter().zip(&rows).map(|(run, rows)| OutputFde {
        cie: frames.fdes[run.fde].cie,
        start: run.start,
        size: run.size,
        lsda: None,
        body: FdeBody::Rows(rows),
    });
    let copied = stayed(program, addresses, input_end)?;
    let copied_rows: Vec<Vec<(u32, &Row)>> =
        copied.iter().map(|(_, rows)| rows.iter().map(|(at, row)| (*at, row)).collect()).collect();
    let stayed = copied.iter().zip(&copied_rows).map(|((id, _), rows)| {
        let fde = &frames.fdes[*id];
        OutputFde {
            cie: fde.cie,
            start: OutputAddr(fde.start.get()),
            size: fde.size,
            lsda: fde.lsda.map(|l| OutputAddr(l.get())),
            body: frames.copyable_instructions(fde).map_or(FdeBody::Rows(rows), FdeBody::Copy),
        }
    });
    let mut fdes: Vec<OutputFde> = stayed.chain(moved).collect();
    fdes.sort_by_key(|f| f.start);
    let header_at = start.align_up(4);
    let frames_at = (header_at + eh_frame_hdr_size(fdes.len())).align_up(8);
    let written = write_eh_frame(&cies, &fdes, frames_at)?;
    let table: Vec<_> = fdes.iter().map(|f| f.start).zip(written.fdes).collect();
    let header = write_eh_frame_hdr(header_at, frames_at, &table)?;
    Ok(Frames { header_at, header, frames_at, frames: written.bytes })
}

/// The row for a stack pointer that is lower than the input's.
fn lowered(row: &Row, by: u32) -> Cow<'_, Row> {
    match row.cfa {
        CfaRule::Offset(STACK_POINTER, offset) if by > 0 => {
            let mut row = row.clone();
            row.cfa = CfaRule::Offset(STACK_POINTER, offset + i64::from(by));
            Cow::Owned(row)
        }
        _ => Cow::Borrowed(row),
    }
}

/// The code that moved, by fragment.
fn all_runs(program: &Program, placement: &Placement, shapes: &[Shape], addresses: &Addresses) -> Vec<Run> {
    (0..placement.fragments.len())
        .into_par_iter()
        .flat_map_iter(|i| {
            let fragment = &placement.fragments[i];
            let counters = counters_of_function(&placement.counters, fragment.function);
            runs(program, fragment, &shapes[i], addresses.fragments[i], counters)
        })
        .collect()
}

/// An entry of code that stays, and its rows if its instructions cannot be copied.
type Stayed = (FdeId, Vec<(u32, Row)>);

/// All of them. Entries for no code, and those that linkers leave of dropped functions, would hide another function's.
///
/// # Errors
/// When an entry can be neither copied nor followed.
fn stayed(program: &Program, addresses: &Addresses, input_end: InputAddr) -> Result<Vec<Stayed>> {
    let frames = &program.frames;
    let stays = |id: &FdeId| {
        let fde = &frames.fdes[*id];
        let covers = fde.size > 0 && fde.start > InputAddr(0) && fde.start < input_end;
        covers && program.function_at(fde.start).is_none_or(|function| !addresses.is_moved(function))
    };
    let rows = |id: FdeId| {
        let fde = &frames.fdes[id];
        let copy = frames.copyable_instructions(fde).is_some();
        if copy {
            return Ok((id, Vec::new()));
        }
        Ok((id, frames.rows(fde).map_err(|e| e.next("link the program again"))?))
    };
    frames.fdes.ids().filter(stays).map(rows).collect()
}

/// The routine's new place; of an indirect one, the word that holds it, which is data and stays.
fn personality_target(personality: &afterlink_frames::Personality, addresses: &Addresses) -> OutputAddr {
    let address = personality.address;
    if personality.encoding.is_indirect() {
        return OutputAddr(address.get());
    }
    addresses.translate(address).unwrap_or(OutputAddr(address.get()))
}

/// The runs of a fragment: consecutive code under entries of the same kind becomes one.
fn runs(
    program: &Program,
    fragment: &Fragment,
    shape: &Shape,
    address: OutputAddr,
    counters: &[Counter],
) -> Vec<Run> {
    let function = &program.functions[fragment.function];
    let mut runs = Runs { program, address, runs: Vec::new(), open: None };
    for (i, &id) in fragment.blocks.iter().enumerate() {
        let block = &function.blocks[id];
        let (start, end) = (shape.offsets[i], shape.offsets[i + 1]);
        if start == end {
            continue;
        }
        let here = counters_of(counters, id);
        let size_of = |counters: &[Counter]| counters.iter().map(|c| counter_size(c.form)).sum::<u32>();
        let (inner, last) = here.split_at(here.partition_point(|c| c.offset < block.body));
        let mut counted = 0;
        for (at, found) in rows_of_body(function, block) {
            let before = inner.partition_point(|c| c.offset < at);
            runs.count(start + size_of(&inner[..counted]), &inner[counted..before]);
            counted = before;
            runs.change(start + at + size_of(&inner[..before]), found);
        }
        runs.count(start + size_of(&inner[..counted]), &inner[counted..]);
        // Counters behind the body have the row of what followed it, the jumps behind them that of where they lead.
        let behind_body = start + block.body + size_of(inner);
        let jumps = behind_body + size_of(last);
        if !last.is_empty()
            && let Some(row) = row_at(program, function, block, u64::from(block.body))
        {
            runs.change(behind_body, row);
        }
        runs.count(behind_body - block.body, last);
        if end > jumps
            && let Some(row) = row_of_ending(program, function, block)
        {
            runs.change(jumps, row);
        }
        runs.extend_to(end);
    }
    runs.runs
}

/// The rows of a block's body by bytes from its start. `None`: no entry covers the code, as the assembler's author
/// wanted (where a child process runs on another stack).
fn rows_of_body(function: &Function, block: &Block) -> Vec<(u32, Option<(FdeId, RowId)>)> {
    let limit = block.body;
    let mut rows = Vec::new();
    let mut at = 0;
    while at < limit {
        let here = block.input + u64::from(at);
        let rest = limit - at;
        let Some((span, first)) = function.unwind_row_at(here) else {
            rows.push((at, None));
            let next = function.unwind.iter().map(|s| s.range.start).filter(|&s| s > here).min();
            at += next.map_or(rest, |next| next.since(here).min(u64::from(rest)) as u32);
            continue;
        };
        rows.push((at, Some((span.fde, first))));
        let from = here.since(span.range.start) as u32;
        let end = (span.range.size as u32).min(from + rest);
        let later = span.rows.iter().filter(|(offset, _)| *offset > from && *offset < end);
        rows.extend(later.map(|&(offset, row)| (at + (offset - from), Some((span.fde, row)))));
        at += end - from;
    }
    rows
}

/// Whether control simply goes on behind the block in the input, without a jump: one may also lead to what follows it.
fn goes_on(block: &Block) -> bool {
    match block.terminator {
        Terminator::FallThrough(_) | Terminator::LastCall(_) => true,
        Terminator::Jump(Target::Code(to)) => {
            block.body == block.size && to == block.input + u64::from(block.size)
        }
        _ => false,
    }
}

/// A branch has its own row; a jump that is added to where code simply went on has the row of what follows.
fn row_of_ending(program: &Program, function: &Function, block: &Block) -> Option<Option<(FdeId, RowId)>> {
    let ending = if goes_on(block) { block.size } else { block.body };
    row_at(program, function, block, u64::from(ending))
}

/// The row `offset` bytes behind the start of `block`, at its end or in front of its terminator. Behind a
/// function's last byte, where nothing follows, the last row goes on: `None`.
fn row_at(
    program: &Program,
    function: &Function,
    block: &Block,
    offset: u64,
) -> Option<Option<(FdeId, RowId)>> {
    let address = block.input + offset;
    let row = |f: &Function| f.unwind_row_at(address).map(|(span, row)| (span.fde, row));
    if function.ranges.iter().any(|r| r.contains(address)) {
        return Some(row(function));
    }
    let next = program.function_at(address).filter(|_| goes_on(block))?;
    row(&program.functions[next]).map(Some)
}

/// Runs as they grow. Offsets count from the fragment's start.
struct Runs<'p, 'a> {
    program: &'p Program<'a>,
    address: OutputAddr,
    runs: Vec<Run>,
    /// Entry and row that hold at the last run's end, if it may still grow.
    open: Option<(FdeId, Lowered)>,
}

impl Runs<'_, '_> {
    /// From `at` on, another row holds.
    fn change(&mut self, at: u32, found: Option<(FdeId, RowId)>) {
        self.set(at, found.map(|(fde, row)| (fde, Lowered { row, by: 0 })));
    }

    /// Counters of a block that starts at `at`, or would if nothing but these had been added to it.
    fn count(&mut self, mut at: u32, counters: &[Counter]) {
        let mut behind = 0;
        for counter in counters {
            at += counter.offset - behind;
            behind = counter.offset;
            for &(offset, by) in lowered_stack(counter.form) {
                self.set(at + offset, self.open.map(|(fde, open)| (fde, Lowered { by, ..open })));
            }
            at += counter_size(counter.form);
        }
    }

    fn set(&mut self, at: u32, found: Option<(FdeId, Lowered)>) {
        self.extend_to(at);
        if let Some((fde, row)) = found {
            let cie = |id: FdeId| self.program.frames.fdes[id].cie;
            if self.open.is_none_or(|(open, _)| cie(open) != cie(fde)) {
                let start = self.address + u64::from(at);
                self.runs.push(Run { fde, start, size: 0, rows: vec![(0, row)] });
            } else if self.open.is_none_or(|(_, open)| open != row) {
                let run = self.runs.last_mut().expect("one is open");
                let offset = at - run.start.since(self.address) as u32;
                run.rows.pop_if(|last| last.0 == offset);
                run.rows.push((offset, row));
            }
        }
        self.open = found;
    }

    fn extend_to(&mut self, end: u32) {
        if self.open.is_some() {
            let run = self.runs.last_mut().expect("one is open");
            run.size = u64::from(end) - run.start.since(self.address);
        }
    }
}
