//! Unwinding gives the same caller and the same registers at corresponding instructions, in split functions
//! too, and the search table that unwinders use finds every entry.

use crate::check::Check;
use crate::places::{Block, MovedFunction, Shape};
use crate::unwind_rows::{self, UnwindRows};
use crate::verdict::{Finding, FindingKind};
use afterlink_image::{Image, elf};
use afterlink_isa::x86_64;
use gimli::{BaseAddresses, EhFrameHdr, LittleEndian};
use rayon::prelude::*;

/// Findings after which the rest is not looked at.
const ENOUGH: usize = 4096;

/// Where a file's unwind table starts: where its search table says, or its section.
pub(crate) fn table_address(image: &Image) -> Option<u64> {
    let named = image.section_named(".eh_frame").map(|id| image.sections[id].address.get());
    match search_table(image) {
        Some((bytes, bases)) => {
            let header = EhFrameHdr::new(bytes, LittleEndian).parse(&bases, 8).ok();
            header.and_then(|h| h.eh_frame_ptr().direct().ok()).or(named)
        }
        None => named,
    }
}

fn search_table<'a>(image: &Image<'a>) -> Option<(&'a [u8], BaseAddresses)> {
    let segment = image.segments.iter().find(|s| s.kind == elf::PT_GNU_EH_FRAME.0)?;
    let start = usize::try_from(segment.offset.get()).ok()?;
    let size = usize::try_from(segment.file_size).ok()?;
    let bytes = image.bytes.get(start..start.checked_add(size)?)?;
    Some((bytes, BaseAddresses::default().set_eh_frame_hdr(segment.address.get())))
}

/// The rows of both files.
pub(crate) struct Unwinding {
    pub input: UnwindRows,
    pub output: UnwindRows,
}

pub(crate) fn check(check: &Check, rows: &Unwinding) -> Vec<Finding> {
    let functions = &check.places.functions;
    let (moved, rest) = rayon::join(
        || {
            let moved = functions.par_iter().filter_map(|function| check_function(check, rows, function));
            moved.collect::<Vec<_>>()
        },
        || {
            let mut findings = check_kept(check, rows);
            findings.extend(check_new(check, rows));
            findings.extend(check_search_table(check.input, check.output, &rows.output));
            findings
        },
    );
    moved.into_iter().chain(rest).collect()
}

fn check_function(check: &Check, rows: &Unwinding, function: &MovedFunction) -> Option<Finding> {
    let mut compare = Compare { check, rows, hint_input: 0, hint_output: 0 };
    let blocks = &check.places.blocks[function.blocks.clone()];
    let fault =
        blocks.iter().find_map(|b| if b.added { compare.added(b).err() } else { compare.block(b).err() });
    fault.map(|fault| *fault)
}

/// Compares rows along moved blocks.
struct Compare<'x, 'c, 'a> {
    check: &'x Check<'c, 'a>,
    rows: &'x Unwinding,
    hint_input: usize,
    hint_output: usize,
}

fn finding(input: u64, output: u64) -> Box<Finding> {
    let what = "unwinding from here gives another caller or other registers";
    Box::new(Finding::new(FindingKind::Unwind, what).input(input).output(output))
}

impl Compare<'_, '_, '_> {
    fn block(&mut self, block: &Block) -> Result<(), Box<Finding>> {
        if let Some(what) = self.rows.input.immovable(block.input) {
            let finding = Finding::new(FindingKind::Unwind, what).input(block.input).output(block.output);
            return Err(Box::new(finding));
        }
        let code = &self.check.code;
        let insts = &code.insts[code.range(block.input, block.input_end())];
        let shape = Shape::of(insts);
        let (mut input, mut output) = (block.input, block.output);
        let body = &insts[..shape.body];
        if self.check.places.counters.is_some() {
            for inst in body {
                output = self.counters(input, output, block.output_end())?;
                self.range(input, output, u64::from(inst.len))?;
                input += u64::from(inst.len);
                output += u64::from(inst.len);
            }
            if !shape.ends && self.leaves_entry(block) {
                return Ok(());
            }
            output = self.counters(input, output, block.output_end())?;
        } else {
            let size: u64 = body.iter().map(|i| u64::from(i.len)).sum();
            self.range(input, output, size)?;
            (input, output) = (input + size, output + size);
        }
        self.tail(block, shape.ends, input, output)
    }

    /// Instruction bytes that stand in both files have the same rows all along.
    fn range(&mut self, mut input: u64, mut output: u64, mut len: u64) -> Result<(), Box<Finding>> {
        while len > 0 {
            let (old, old_end) = self.rows.input.at(&mut self.hint_input, input);
            let (new, new_end) = self.rows.output.at(&mut self.hint_output, output);
            if old != new {
                return Err(finding(input, output));
            }
            let step = len.min(old_end - input).min(new_end - output);
            (input, output, len) = (input + step, output + step, len - step);
        }
        Ok(())
    }

    /// Counter code has the rows of the instruction that it stands before. What begins at `end` is another block's. Returns
    /// where the counter code ends.
    fn counters(&mut self, input: u64, output: u64, end: u64) -> Result<u64, Box<Finding>> {
        let row = self.rows.input.at(&mut self.hint_input, input).0;
        self.counters_with(row, output, end).map_err(|at| finding(input, at))
    }

    /// Counter code has that row, from wherever in it a signal comes. Returns where it ends, or where it has another row.
    fn counters_with(&mut self, row: Option<&[u8]>, mut output: u64, end: u64) -> Result<u64, u64> {
        let places = &self.check.places;
        let Some(counters) = &places.counters else { return Ok(output) };
        while output < end
            && let Some(counter) = counters.parse(places.output_bytes(output), output)
        {
            let stop = output + counter.len;
            for (step, (at, lowered)) in counter.effect.stack_steps().iter().enumerate() {
                let until = counter.effect.stack_steps().get(step + 1).map_or(stop, |next| output + next.0);
                let expected = row.map(|row| unwind_rows::lowered(row, *lowered));
                let (found, found_end) = self.rows.output.at(&mut self.hint_output, output + at);
                if found != expected.as_deref() || found_end < until {
                    return Err(output + at);
                }
            }
            output = stop;
        }
        Ok(output)
    }

    /// Whether control that goes on behind the block leaves what its entry covers. The entry does not say how things
    /// stand behind its last instruction.
    fn leaves_entry(&self, block: &Block) -> bool {
        let rows = &self.rows.input;
        rows.entry_at(block.input_end().saturating_sub(1)) != rows.entry_at(block.input_end())
    }

    /// The branch of a block and what was added behind it have the row of the input's branch, or of what
    /// follows it. Padding may have any.
    fn tail(&mut self, block: &Block, ends: bool, branch: u64, mut output: u64) -> Result<(), Box<Finding>> {
        if !ends && self.leaves_entry(block) {
            return Ok(());
        }
        let own = self.rows.input.at(&mut self.hint_input, branch).0;
        let behind = self.rows.input.at(&mut self.hint_input, block.input_end()).0;
        // Without a branch the padding in front of what follows may have either row.
        let (mut allowed, end) = ([own, if ends { own } else { behind }], block.output_end());
        while output < end {
            let (row, row_end) = self.rows.output.at(&mut self.hint_output, output);
            let fits = allowed.contains(&row);
            if fits && row_end >= end {
                return Ok(());
            }
            let bytes = self.check.places.output_bytes(output);
            let inst = x86_64::decode(&bytes[..bytes.len().min((end - output) as usize)]);
            // `blocks` has a finding for what is no instruction.
            let Some(inst) = inst else { return Ok(()) };
            let next = output + u64::from(inst.len);
            let padding = inst.nop || bytes.first() == Some(&x86_64::TRAP);
            if !padding && (!fits || row_end < next) {
                return Err(finding(branch, output));
            }
            output = next;
            // Only what was added behind the branch may have the row of what follows.
            allowed[1] = behind.or(own);
        }
        Ok(())
    }

    /// Added code has the row of where it leads.
    fn added(&mut self, block: &Block) -> Result<(), Box<Finding>> {
        let added = block.output..block.output_end();
        let destination = crate::flow::behind_added(&self.check.places, added);
        let there = self.rows.output.at(&mut self.hint_output, destination).0;
        let rest = self.counters_with(there, block.output, block.output_end());
        if rest.is_ok_and(|rest| {
            let (here, end) = self.rows.output.at(&mut self.hint_output, rest);
            rest >= block.output_end() || here == there && end >= block.output_end()
        }) {
            return Ok(());
        }
        let what = "unwinding from added code gives another caller or other registers";
        Err(Box::new(Finding::new(FindingKind::Unwind, what).output(block.output)))
    }
}

/// Code that stays has the same rows; where moved code was, the output needs none.
fn check_kept(check: &Check, rows: &Unwinding) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (mut hint_input, mut hint_output, mut moved) = (0, 0, 0);
    let end = check.input.loaded_end().get();
    let mut at = 0;
    while at < end && findings.len() < ENOUGH {
        while check.places.moved.get(moved).is_some_and(|m| m.1 <= at) {
            moved += 1;
        }
        let (start, stop) = check.places.moved.get(moved).copied().unwrap_or((end, end));
        let (new, new_end) = rows.output.at(&mut hint_output, at);
        if start <= at {
            // The old bytes and the jump at their start are not the function any more.
            if new.is_some() {
                let what = "unwind rows stay where code moved away";
                findings.push(Finding::new(FindingKind::Unwind, what).input(at).output(at));
                at = stop;
            } else {
                at = stop.min(new_end);
            }
            continue;
        }
        let (old, old_end) = rows.input.at(&mut hint_input, at);
        if old != new {
            findings.push(*finding(at, at));
        }
        at = old_end.min(new_end).min(start).min(end);
    }
    findings
}

/// Rows in the new segment belong to fragments.
fn check_new(check: &Check, rows: &Unwinding) -> Vec<Finding> {
    let start = check.input.loaded_end().get();
    let new = rows.output.entries.iter().filter(|e| e.start >= start);
    let stray = new.filter(|e| check.places.fragment_at(e.start).is_none_or(|f| e.end > f.1));
    let what = "an unwind entry covers no moved code";
    stray.take(ENOUGH).map(|e| Finding::new(FindingKind::Unwind, what).output(e.start)).collect()
}

/// The table that unwinders search: ascending, and with each entry exactly once. Without it nobody finds the rows of
/// moved code: a static program that registers its entries by itself knows the old table only.
fn check_search_table(input: &Image, output: &Image, rows: &UnwindRows) -> Vec<Finding> {
    let fault = |what: String| vec![Finding::new(FindingKind::UnwindTable, what)];
    let Some((bytes, bases)) = search_table(output) else {
        if rows.entries.iter().any(|e| e.start >= input.loaded_end().get()) {
            return fault("no program header leads to the unwind entries of moved code".to_owned());
        }
        return Vec::new();
    };
    let header = match EhFrameHdr::new(bytes, LittleEndian).parse(&bases, 8) {
        Ok(header) => header,
        Err(error) => return fault(format!("the search table of unwind entries is damaged: {error}")),
    };
    let mut found = Vec::new();
    if let Some(table) = header.table() {
        let mut table_rows = table.iter(&bases);
        loop {
            match table_rows.next() {
                Ok(Some((start, entry))) => found.push((start.pointer(), entry.pointer())),
                Ok(None) => break,
                Err(error) => {
                    return fault(format!("the search table of unwind entries is cut short: {error}"));
                }
            }
        }
    }
    if !found.is_sorted() {
        return fault("the search table of unwind entries is not in order".to_owned());
    }
    let entries: Vec<(u64, u64)> = rows.entries.iter().map(|e| (e.start, e.address)).collect();
    if found == entries {
        // Nothing stands behind the last row: what was added has four bytes for each number.
        let own = bases.eh_frame_hdr.section.is_some_and(|at| at >= input.loaded_end().get());
        let (head, size) = (bytes.get(..4), 12 + 8 * found.len());
        if own && (head != Some(&[1, 0x1b, 0x03, 0x3b]) || bytes.len() != size) {
            return fault("the search table of unwind entries is of another kind or size".to_owned());
        }
        return Vec::new();
    }
    let wrong = found.iter().zip(&entries).find(|(a, b)| a != b).map_or(0, |(a, b)| a.0.min(b.0));
    let what = format!("the search table has {} entries, the unwind table {}", found.len(), entries.len());
    vec![Finding::new(FindingKind::UnwindTable, what).output(wrong)]
}
