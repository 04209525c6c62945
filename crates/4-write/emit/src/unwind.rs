//! The new `.eh_frame` and its search table: all functions, moved or not.

use crate::addresses::Addresses;
use crate::encode::counters_of_function;
use crate::shape::{Ending, Shape, counters_of};
use crate::counters::counter_size;
use afterlink_core::{IdVec, InputAddr, OutputAddr, Result};
use afterlink_frames::{CieId, FdeBody, FdeId, OutputCie, OutputFde, Row, RowId, eh_frame_hdr_size, write_eh_frame, write_eh_frame_hdr};
use afterlink_program::{Block, Counter, Fragment, Function, Placement, Program, Target, Terminator};
use rayon::prelude::*;

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
    rows: Vec<(u32, RowId)>,
}

/// Writes both sections from `start` on.
pub(crate) fn write(
    program: &Program,
    placement: &Placement,
    shapes: &[Shape],
    addresses: &Addresses,
    start: OutputAddr,
) -> Result<Frames> {
    let frames = &program.frames;
    let cies: IdVec<CieId, OutputCie> = frames
        .cies
        .iter()
        .map(|(_, cie)| OutputCie::new(cie, |personality| personality_target(&personality, addresses)))
        .collect();
    let runs: Vec<Run> = (0..placement.fragments.len())
        .into_par_iter()
        .flat_map_iter(|i| {
            let fragment = &placement.fragments[i];
            let counters = counters_of_function(&placement.counters, fragment.function);
            runs(program, fragment, &shapes[i], addresses.fragments[i], counters)
        })
        .collect();
    let rows: Vec<Vec<(u32, &Row)>> =
        runs.iter().map(|r| r.rows.iter().map(|&(at, row)| (at, &program.rows[row])).collect()).collect();
    let moved = runs.iter().zip(&rows).map(|(run, rows)| OutputFde {
        cie: frames.fdes[run.fde].cie,
        start: run.start,
        size: run.size,
        lsda: None,
        body: FdeBody::Rows(rows),
    });
    let stays = |id: &FdeId| {
        program.function_at(frames.fdes[*id].start).is_none_or(|function| !addresses.is_moved(function))
    };
    let copied: Vec<(FdeId, Vec<(u32, Row)>)> = frames
        .fdes
        .ids()
        .filter(stays)
        .map(|id| {
            let fde = &frames.fdes[id];
            let copy = frames.copyable_instructions(fde).is_some();
            (id, if copy { Vec::new() } else { frames.rows(fde).unwrap_or_default() })
        })
        .collect();
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

/// The routine's new place; of an indirect one, the word that holds it, which is data and stays.
fn personality_target(personality: &afterlink_frames::Personality, addresses: &Addresses) -> OutputAddr {
    let address = personality.address;
    if personality.encoding.is_indirect() {
        return OutputAddr(address.get());
    }
    addresses.translate(address).unwrap_or(OutputAddr(address.get()))
}

/// The runs of a fragment: consecutive blocks under the same entry become one.
fn runs(program: &Program, fragment: &Fragment, shape: &Shape, address: OutputAddr, counters: &[Counter]) -> Vec<Run> {
    let function = &program.functions[fragment.function];
    let mut runs: Vec<Run> = Vec::new();
    let mut open: Option<(FdeId, RowId)> = None;
    for (i, &id) in fragment.blocks.iter().enumerate() {
        let block = &function.blocks[id];
        let (start, end) = (shape.offsets[i], shape.offsets[i + 1]);
        if start == end {
            continue;
        }
        let Some((span, first)) = function.unwind_row_at(block.input) else {
            open = None;
            continue;
        };
        let cie = program.frames.fdes[span.fde].cie;
        if open.is_none_or(|(fde, _)| program.frames.fdes[fde].cie != cie) {
            runs.push(Run { fde: span.fde, start: address + u64::from(start), size: 0, rows: Vec::new() });
            open = None;
        }
        let run = runs.last_mut().expect("one was just opened");
        let base = run.start.since(address) as u32;
        let mut last = open.map(|(_, row)| row);
        let mut change = |at: u32, row: RowId| {
            if last != Some(row) {
                run.rows.push((at - base, row));
                last = Some(row);
            }
        };
        change(start, first);
        let here = counters_of(counters, id);
        let from = block.input.since(span.range.start) as u32;
        let changes = span.rows.partition_point(|(at, _)| *at <= from);
        // A change at the end of the body holds for the jumps behind it, if there are any.
        let written: u32 = here.iter().map(|c| counter_size(c.form)).sum();
        let has_ending = end - start > block.body + written;
        let last_change = from + block.body + u32::from(has_ending);
        for &(at, row) in span.rows[changes..].iter().take_while(|(at, _)| *at < last_change) {
            let inserted: u32 =
                here.iter().filter(|c| c.offset < at - from).map(|c| counter_size(c.form)).sum();
            change(start + (at - from) + inserted, row);
        }
        // An added jump is under the row of what it leads to, as if control had run on into it. The two differ
        // behind a call that does not come back, and where code runs off the end of its function.
        if let Some((at, leads_to)) = added_jump(function, block, &shape.endings[i], end)
            && let Some(next) = program.function_at(leads_to)
            && let Some((other, row)) = program.functions[next].unwind_row_at(leads_to)
            && program.frames.fdes[other.fde].cie == cie
        {
            change(at, row);
        }
        run.size = u64::from(end - base);
        open = last.map(|row| (span.fde, row));
    }
    runs
}

/// Where in the fragment the jump stands that was added to the end of `block`, and the input address that it
/// leads to. `end` is the end of the block in the fragment.
fn added_jump(function: &Function, block: &Block, ending: &Ending, end: u32) -> Option<(u32, InputAddr)> {
    let jump = ending.jump?;
    let leads_to = match block.terminator {
        Terminator::FallThrough(next) | Terminator::Branch { next, .. } | Terminator::ShortBranch { next, .. } => {
            function.blocks[next].input
        }
        // Without an instruction of its own in the input, it stands for running on.
        Terminator::Jump(Target::Code(to)) if to == block.input + u64::from(block.body) => to,
        _ => return None,
    };
    Some((end - jump.size() as u32, leads_to))
}
