//! The new `.eh_frame` and its search table: all functions, moved or not.

mod in_place;

use crate::addresses::Addresses;
use crate::encode::displacement;
use crate::shape::Shape;
use crate::targets;
use afterlink_core::{Error, IdVec, InputAddr, OutputAddr, Result};
use afterlink_program::{
    Block, Chunk, Fragment, FuncId, Function, Landing, Placement, Program, Target, Terminator,
};
use afterlink_unwind::{
    CfaRule, CieId, Expression, FdeBody, FdeId, Foreign, OutputCallSite, OutputCie, OutputFde, RegisterRule,
    Row, RowId, eh_frame_hdr_size, write_eh_frame, write_eh_frame_hdr, write_lsda,
};
use in_place::InPlace;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// The number that DWARF gives the stack pointer of x86-64.
const STACK_POINTER: u16 = 7;

/// Bytes of the room for a return address.
const WORD: u32 = 8;

/// The two sections, and in front of them the language-specific data areas of moved code.
pub(crate) struct Frames {
    pub areas_at: OutputAddr,
    pub areas: Vec<u8>,
    pub header_at: OutputAddr,
    pub header: Vec<u8>,
    pub frames_at: OutputAddr,
    pub frames: Vec<u8>,
}

/// Code that the input lacks and that has an entry of its own.
pub(crate) struct Routine {
    pub start: OutputAddr,
    pub size: u64,
    /// `(bytes from start, row)`.
    pub rows: Vec<(u32, Row)>,
}

impl Routine {
    fn rows(&self) -> Vec<(u32, &Row)> {
        self.rows.iter().map(|(at, row)| (*at, row)).collect()
    }

    fn entry<'r>(&self, cie: CieId, rows: &'r [(u32, &'r Row)]) -> OutputFde<'r> {
        OutputFde { cie, start: self.start, size: self.size, lsda: None, body: FdeBody::Rows(rows) }
    }
}

/// A run of output code under one input entry.
struct Run {
    function: FuncId,
    fde: FdeId,
    start: OutputAddr,
    size: u64,
    /// `(bytes from start, row)`.
    rows: Vec<(u32, State)>,
}

/// A row while counter code, or room for a return address, has lowered the stack pointer by so many bytes, and what becomes of exceptions.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    row: RowId,
    by: u32,
    landing: Landing,
    /// How far from the instruction the call would have come back that the code stands in place of.
    back: Option<i32>,
}

/// A row that differs from the input's: by how much the stack pointer is lower, whether there is a landing pad, and how far it is
/// to the return address.
type Changed = (RowId, u32, bool, Option<i32>);

impl State {
    fn of(row: RowId, landing: Landing) -> Self {
        Self { row, by: 0, landing, back: None }
    }

    /// By what its row differs from the input's: a landing pad expects the stack pointer as it is around counter code.
    fn changed(&self) -> Changed {
        (self.row, self.by, self.landing.pad().is_some(), self.back)
    }
}

/// Writes both sections, and the areas in front of them, from `areas_at` on. `input_end` is where the input ends in memory. Entries in front of `first_found`
/// (bytes from the input's section) are no unwinder's: they stay out of the search table.
pub(crate) fn write(
    program: &Program,
    placement: &Placement,
    shapes: &[Shape],
    addresses: &Addresses,
    input_end: InputAddr,
    first_found: u64,
    routine: Option<&Routine>,
    areas_at: OutputAddr,
) -> Result<Frames> {
    let frames = &program.eh_frame;
    let is_found = |id: FdeId| u64::from(frames.fdes[id].offset) >= first_found;
    let led = |personality| personality_target(&personality, addresses);
    let mut cies: IdVec<_, _> = frames.cies.iter().map(|(_, cie)| OutputCie::new(cie, led)).collect();
    let runs = all_runs(program, placement, shapes, addresses);
    let changed = changed_rows(program, &runs);
    let row = |of: &State| changed.get(&of.changed()).unwrap_or(&program.rows[of.row]);
    let rows: Vec<Vec<(u32, &Row)>> =
        runs.iter().map(|run| run.rows.iter().map(|(at, of)| (*at, row(of))).collect()).collect();
    let (areas, places) = language_data(program, addresses, &runs, areas_at)?;
    let moved = runs.iter().zip(&rows).zip(places).map(|((run, rows), lsda)| {
        let fde = OutputFde {
            cie: frames.fdes[run.fde].cie,
            start: run.start,
            size: run.size,
            lsda,
            body: FdeBody::Rows(rows),
        };
        (is_found(run.fde), fde)
    });
    let copied = stayed(program, addresses, input_end)?;
    let copied_rows: Vec<Vec<(u32, &Row)>> =
        copied.iter().map(|(_, rows)| rows.iter().map(|(at, row)| (*at, row)).collect()).collect();
    let stayed = copied.iter().zip(&copied_rows).map(|((id, _), rows)| {
        let fde = &frames.fdes[*id];
        let copy = OutputFde {
            cie: fde.cie,
            start: OutputAddr(fde.start.get()),
            size: fde.size,
            lsda: fde.lsda.map(|l| OutputAddr(l.get())),
            body: frames.copyable_instructions(fde).map_or(FdeBody::Rows(rows), FdeBody::Copy),
        };
        (is_found(*id), copy)
    });
    let common = cies.push(targets::common_entry());
    let added_rows: Vec<(u32, &Row)> = routine.map(Routine::rows).unwrap_or_default();
    let added = routine.map(|routine| (true, routine.entry(common, &added_rows)));
    let mut fdes: Vec<_> = stayed.chain(moved).chain(added).collect();
    fdes.sort_by_key(|(_, fde)| fde.start);
    let (found, fdes): (Vec<bool>, Vec<OutputFde>) = fdes.into_iter().unzip();
    let header_at = (areas_at + areas.len() as u64).align_up(4);
    let foreign = foreign(program, first_found);
    let in_table = found.iter().filter(|&&found| found).count() + foreign.len();
    let frames_at = (header_at + eh_frame_hdr_size(in_table)).align_up(8);
    let written = write_eh_frame(&cies, &fdes, frames_at)?;
    let rows = fdes.iter().map(|f| f.start).zip(written.fdes).zip(found);
    let table: Vec<_> = rows.filter(|(_, found)| *found).map(|(row, _)| row).chain(foreign).collect();
    let header = write_eh_frame_hdr(header_at, frames_at, &table)?;
    Ok(Frames { areas_at, areas, header_at, header, frames_at, frames: written.bytes })
}

/// The search table's rows for entries of which nobody knows what they say. They stay where they are, byte for byte: nobody could tell which
/// of their fields count from their place.
fn foreign(program: &Program, first_found: u64) -> Vec<(OutputAddr, OutputAddr)> {
    let frames = &program.eh_frame;
    let found = frames.foreign.iter().filter(|entry| u64::from(entry.offset) >= first_found);
    let row = |entry: &Foreign| {
        let (start, _) = entry.extent?;
        Some((OutputAddr(start.get()), OutputAddr(frames.address_of_foreign(entry).get())))
    };
    found.filter_map(row).collect()
}

/// The language-specific data areas of all runs one behind the other, and where that of each run stands.
///
/// # Errors
/// If something lies further away than an area can say.
fn language_data(
    program: &Program,
    addresses: &Addresses,
    runs: &[Run],
    start: OutputAddr,
) -> Result<(Vec<u8>, Vec<Option<OutputAddr>>)> {
    let (mut out, mut places) = (Vec::new(), Vec::with_capacity(runs.len()));
    for run in runs {
        // Without an area exceptions go on to the caller.
        if run.rows.iter().all(|(_, state)| state.landing == Landing::Caller) {
            places.push(None);
            continue;
        }
        let place = start + out.len() as u64;
        let table = &program.functions[run.function].exceptions;
        let area = write_lsda(&call_sites(run, addresses), table, run.start, place);
        out.extend_from_slice(&area.ok_or_else(|| {
            Error::new("a landing pad or a type is out of reach of its function")
                .at(program.functions[run.function].name)
                .next("leave the function out with --skip-functions")
        })?);
        places.push(Some(place));
    }
    Ok((out, places))
}

/// What becomes of exceptions along a run.
fn call_sites(run: &Run, addresses: &Addresses) -> Vec<OutputCallSite> {
    let ends = run.rows.iter().skip(1).map(|(at, _)| *at).chain([run.size as u32]);
    let mut sites: Vec<(Landing, OutputCallSite)> = Vec::new();
    for ((start, state), end) in run.rows.iter().zip(ends) {
        let (landing_pad, action) = match state.landing {
            Landing::Nowhere => continue,
            Landing::Caller => (None, None),
            Landing::Pad { block, action } => (Some(addresses.block(run.function, block)), action),
        };
        match sites.last_mut() {
            Some((landing, last)) if *landing == state.landing && last.start + last.size == *start => {
                last.size = end - last.start;
            }
            _ => {
                let site = OutputCallSite { start: *start, size: end - start, landing_pad, action };
                sites.push((state.landing, site));
            }
        }
    }
    sites.into_iter().map(|(_, site)| site).collect()
}

/// The rows for a stack pointer that is lower than the input's. Where exceptions lead to a landing pad, they say so as for pushed
/// arguments, which unwinders take off the stack: a handler of a signal may throw, and a thread be cancelled, anywhere.
///
/// In code that stands in place of a call, the return address is as far from the instruction as it is, which is no rule of the input's.
fn changed_rows(program: &Program, runs: &[Run]) -> FxHashMap<Changed, Row> {
    let column = program.arch.unwind_numbers().instruction_pointer;
    let mut rows = FxHashMap::default();
    let all = runs.iter().flat_map(|run| &run.rows).map(|(_, row)| *row);
    for state in all.filter(|row| row.by > 0 || row.back.is_some()) {
        rows.entry(state.changed()).or_insert_with(|| {
            let mut row = program.rows[state.row].clone();
            if let CfaRule::Offset(STACK_POINTER, offset) = &mut row.cfa {
                *offset += i64::from(state.by);
            }
            if state.landing.pad().is_some() {
                row.args_size += u64::from(state.by);
            }
            if let Some(back) = state.back {
                let place = Expression::of_register(column, back.into());
                row.set_rule(column, Some(RegisterRule::ValExpression(place)));
            }
            row
        });
    }
    rows
}

/// The code that moved, by fragment.
fn all_runs(program: &Program, placement: &Placement, shapes: &[Shape], addresses: &Addresses) -> Vec<Run> {
    (0..placement.fragments.len())
        .into_par_iter()
        .flat_map_iter(|i| {
            let fragment = &placement.fragments[i];
            let runs = runs(program, fragment, &shapes[i], addresses, addresses.fragments[i]);
            runs.into_iter().flat_map(|run| cut_behind_pad(run, addresses))
        })
        .collect()
}

/// Cuts a run that starts with a landing pad of its own in front of the first code that has it: the pad's offset would be 0,
/// which means none. An area could have a base elsewhere, but not every routine heeds it.
fn cut_behind_pad(run: Run, addresses: &Addresses) -> impl Iterator<Item = Run> {
    let lands_at = |start: OutputAddr, state: &State| {
        state.landing.pad().is_some_and(|pad| addresses.block(run.function, pad) == start)
    };
    let mut cuts = vec![0];
    for (at, state) in &run.rows {
        let start = *cuts.last().expect("there is one");
        if *at > start && lands_at(run.start + u64::from(start), state) {
            cuts.push(*at);
        }
    }
    let ends = cuts.iter().skip(1).copied().chain([run.size as u32]).collect::<Vec<_>>();
    cuts.into_iter().zip(ends).map(move |(start, end)| {
        let first = run.rows.partition_point(|(at, _)| *at <= start).saturating_sub(1);
        let rows = run.rows[first..].iter().take_while(|(at, _)| *at < end);
        let rows = rows.map(|(at, state)| (at.max(&start) - start, *state)).collect();
        let size = u64::from(end - start);
        Run { function: run.function, fde: run.fde, start: run.start + u64::from(start), size, rows }
    })
}

/// An entry of code that stays, and its rows if its instructions cannot be copied.
type Stayed = (FdeId, Vec<(u32, Row)>);

/// All of them. Entries for no code, and those that linkers leave of dropped functions, would hide another function's.
///
/// # Errors
/// When an entry can be neither copied nor followed.
fn stayed(program: &Program, addresses: &Addresses, input_end: InputAddr) -> Result<Vec<Stayed>> {
    let frames = &program.eh_frame;
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
fn personality_target(personality: &afterlink_unwind::Personality, addresses: &Addresses) -> OutputAddr {
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
    addresses: &Addresses,
    address: OutputAddr,
) -> Vec<Run> {
    let function = &program.functions[fragment.function];
    let of = fragment.function;
    let mut runs = Runs { program, addresses, function: of, address, runs: Vec::new(), open: None };
    let endings = if function.in_place.is_empty() { Vec::new() } else { shape.endings(function, fragment) };
    for (i, &id) in fragment.blocks.iter().enumerate() {
        let block = &function.blocks[id];
        let (start, end) = (shape.offsets[i], shape.offsets[i + 1]);
        if start == end {
            continue;
        }
        if let Some(code) = function.in_place_of(block) {
            let place = InPlace { function, code, start, branch: endings[i].branch };
            runs.in_place(&place, end);
        } else {
            runs.block(function, block, start);
            let body_end = start + function.code_size(block);
            if let Some(row) = row_of_ending(program, function, block).filter(|_| end > body_end) {
                runs.set(body_end, row);
            }
        }
        runs.extend_to(end);
    }
    runs.runs
}

/// What an entry says of a place; `None`: no entry covers it, as the assembler's author wanted (where a child process runs on
/// another stack).
type Found = Option<(FdeId, State)>;

/// What entries say of input code by bytes from `start`.
fn rows_of(function: &Function, start: InputAddr, size: u32) -> Vec<(u32, Found)> {
    let mut rows = Vec::new();
    let mut at = 0;
    while at < size {
        let here = start + u64::from(at);
        let rest = size - at;
        let Some((span, first)) = function.unwind_row_at(here) else {
            rows.push((at, None));
            let next = function.unwind.iter().map(|s| s.range.start).filter(|&s| s > here).min();
            at += next.map_or(rest, |next| next.since(here).min(u64::from(rest)) as u32);
            continue;
        };
        let from = here.since(span.range.start) as u32;
        let end = (span.range.size as u32).min(from + rest);
        let landing = |offset: u32| span.landings.at(offset).unwrap_or(Landing::Caller);
        rows.push((at, Some((span.fde, State::of(first, landing(from))))));
        let mut changes: Vec<u32> = span.rows.between(from, end).iter().map(|change| change.0).collect();
        changes.extend(span.landings.between(from, end).iter().map(|change| change.0));
        changes.sort_unstable();
        changes.dedup();
        for offset in changes {
            let row = span.rows.at(offset).unwrap_or(first);
            rows.push((at + (offset - from), Some((span.fde, State::of(row, landing(offset))))));
        }
        at += end - from;
    }
    rows
}

/// Whether control simply goes on behind the block in the input, without a jump: one may also lead to what follows it.
fn goes_on(program: &Program, block: &Block) -> bool {
    match block.terminator {
        Terminator::FallThrough(_) | Terminator::LastCall(_) => true,
        Terminator::Jump(to @ (Target::Code(..) | Target::Input(_))) => {
            // Such a target is not the function's own.
            let to = program.input_of(to, FuncId(0));
            block.body == block.size && to == Some(block.input_end())
        }
        _ => false,
    }
}

/// A branch has its own row; a jump that is added to where code simply went on has the row of what follows.
fn row_of_ending(program: &Program, function: &Function, block: &Block) -> Option<Found> {
    let ending = if goes_on(program, block) { block.size } else { block.body };
    row_at(program, function, block, u64::from(ending))
}

/// The row `offset` bytes behind the start of `block`, at its end or in front of its terminator. Behind a
/// function's last byte, where nothing follows, the last row goes on: `None`.
fn row_at(program: &Program, function: &Function, block: &Block, offset: u64) -> Option<Found> {
    let address = block.input + offset;
    let row = |f: &Function| {
        f.unwind_row_at(address).map(|(span, row)| (span.fde, State::of(row, f.landing_at(address))))
    };
    if function.ranges.iter().any(|r| r.contains(address)) {
        return Some(row(function));
    }
    let next = program.function_at(address).filter(|_| goes_on(program, block))?;
    // Another function's landing pads are none of this one's; the jump that is added raises nothing.
    let landing = |(fde, state): (FdeId, State)| match state.landing {
        Landing::Pad { .. } => (fde, State { landing: Landing::Caller, ..state }),
        _ => (fde, state),
    };
    row(&program.functions[next]).map(landing).map(Some)
}

/// Runs as they grow. Offsets count from the fragment's start.
struct Runs<'p, 'a> {
    program: &'p Program<'a>,
    addresses: &'p Addresses<'p, 'a>,
    function: FuncId,
    address: OutputAddr,
    runs: Vec<Run>,
    /// What holds at the last run's end, if it may still grow.
    open: Found,
}

impl Runs<'_, '_> {
    /// The code of a block that starts at `start`, without what ends it.
    fn block(&mut self, function: &Function, block: &Block, start: u32) {
        let mut at = start;
        // Where the input would be, from the block's start: what is added has the row that holds there.
        let mut reached = 0;
        for chunk in function.chunks_of(block) {
            if let Chunk::Input(own) = chunk {
                for (offset, found) in rows_of(function, block.input + u64::from(own.from), own.size) {
                    self.set(at + offset, found);
                }
                reached = own.end();
            } else if let Some(row) = row_at(self.program, function, block, u64::from(reached))
                && !matches!(chunk, Chunk::Back(_))
            {
                self.set(at, row);
            }
            match chunk {
                Chunk::Counter { form, .. } => {
                    for &(offset, by) in form.lowered_stack() {
                        self.set(at + offset, self.open.map(|(fde, open)| (fde, State { by, ..open })));
                    }
                }
                Chunk::Targets { code, .. } => {
                    for (offset, by) in code.lowered_stack() {
                        self.set(at + offset, self.open.map(|(fde, open)| (fde, State { by, ..open })));
                    }
                }
                Chunk::Inlined(row) => reached += function.inlined[row as usize].call_size,
                Chunk::New(row) => reached += function.new_code[row as usize].replaced_size,
                Chunk::Back(row) => {
                    self.back(function, function.new_code[row as usize].replaces, at, chunk);
                }
                Chunk::Input(_) | Chunk::Prefetch(_) | Chunk::InPlace(_) => {}
            }
            at += function.chunk_size(chunk);
        }
    }

    /// What gives back the room of a return address has the row of the call, with the stack's top lower up to its last byte: there unwinders look
    /// that come from where the call would have come back.
    fn back(&mut self, function: &Function, call: InputAddr, at: u32, chunk: Chunk) {
        let Some((span, row)) = function.unwind_row_at(call) else { return self.set(at, None) };
        let state = State::of(row, function.landing_at(call));
        let last = function.chunk_size(chunk) - 1;
        if last > 0 {
            self.set(at, Some((span.fde, State { by: WORD, ..state })));
        }
        self.set(at + last, Some((span.fde, state)));
    }

    /// A block that runs in place of a call, under what the call is under, with the jumps behind it.
    fn in_place(&mut self, place: &InPlace, end: u32) {
        let InPlace { function, code, start, .. } = *place;
        let Some((span, _)) = function.unwind_row_at(code.call) else { return self.set(start, None) };
        let landing = function.landing_at(code.call);
        let back = self.addresses.behind(self.function, code.back);
        let column = self.program.arch.unwind_numbers().instruction_pointer;
        for step in place.steps(self.program, end - start) {
            let Some(row) = place.row(step.at) else { continue };
            let mut state = State::of(row, landing);
            if self.program.rows[row].rule(column).is_none() {
                let here = self.address + u64::from(start + step.means);
                // Invariant: `emit` has checked that the program spans less than 2 GiB.
                state.back = Some(displacement(back, here));
            }
            self.set(start + step.at, Some((span.fde, state)));
        }
    }

    /// From `at` on, something else holds.
    fn set(&mut self, at: u32, found: Found) {
        self.extend_to(at);
        if let Some((fde, row)) = found {
            let cie = |id: FdeId| self.program.eh_frame.fdes[id].cie;
            if self.open.is_none_or(|(open, _)| cie(open) != cie(fde)) {
                let start = self.address + u64::from(at);
                self.runs.push(Run { function: self.function, fde, start, size: 0, rows: vec![(0, row)] });
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
