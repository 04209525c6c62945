//! Unwinding gives the same caller and the same registers at corresponding instructions, in split functions
//! too.

use crate::address_map::places::{Block, MovedFunction, Reason, Shape};
use crate::check::Check;
use crate::file::sections::LANGUAGE_DATA;
use crate::unwind::routine_rows;
use crate::unwind::rows::{self, FrameEntry, Unwinding};
use crate::unwind::search_table;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_isa::Flow;
use afterlink_isa::judgement::Counter;
use rayon::prelude::*;

/// Findings after which the rest is not looked at.
const ENOUGH: usize = 4096;

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
            findings.extend(search_table::check(check, rows));
            findings
        },
    );
    moved.into_iter().chain(rest).collect()
}

fn check_function(check: &Check, rows: &Unwinding, function: &MovedFunction) -> Option<Finding> {
    let mut compare = Compare { check, rows, hint_input: 0, hint_output: 0 };
    let blocks = &check.places.blocks[function.blocks.clone()];
    let fault = blocks.iter().find_map(|block| {
        let compared = match block.reason {
            Reason::Inserted => compare.added(block),
            Reason::Copied | Reason::Duplicated => compare.block(block),
            Reason::Replaced => match check.places.contexts.of_call(block.input) {
                Some(_) => compare.leads_in(block),
                None => compare.in_place_of(block),
            },
            Reason::Inlined(_) => compare.in_place_of(block),
            Reason::InPlace(context) => compare.in_place(block, context),
        };
        compared.err()
    });
    fault.map(|fault| *fault)
}

/// Compares rows along moved blocks.
pub(super) struct Compare<'x, 'c, 'a> {
    pub check: &'x Check<'c, 'a>,
    pub rows: &'x Unwinding,
    pub hint_input: usize,
    pub hint_output: usize,
}

pub(super) fn finding(input: u64, output: u64) -> Box<Finding> {
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
        if self.check.places.have_added() {
            for inst in body {
                output = self.added_before(input, output, block.output_end())?;
                self.range(input, output, u64::from(inst.len))?;
                input += u64::from(inst.len);
                output += u64::from(inst.len);
            }
            let end = block.output_end();
            let added = self.added_before(input, output, end);
            // Behind the last instruction of an entry its row may also go on.
            let leaves = !shape.ends && self.leaves_entry(block);
            output = match added {
                Err(_) if leaves => self.added_before(block.input_end() - 1, output, end)?,
                added => added?,
            };
        } else {
            let size: u64 = body.iter().map(|i| u64::from(i.len)).sum();
            self.range(input, output, size)?;
            (input, output) = (input + size, output + size);
        }
        self.tail(block, shape.ends, input, output)
    }

    /// What stands in place of an instruction has its row all along; jumps behind it may have that of what follows.
    fn in_place_of(&mut self, block: &Block) -> Result<(), Box<Finding>> {
        let row = self.rows.input.of_moved(&mut self.hint_input, block.input).0;
        let behind = self.rows.input.of_moved(&mut self.hint_input, block.input_end()).0;
        let leaves = self.leaves_entry(block);
        let code = match block.reason {
            Reason::Inlined(row) => u64::from(self.check.places.inlined[row as usize].1),
            _ => {
                let bytes = self.check.places.output_bytes(block.output);
                self.check.code.judgement.decode(bytes).map_or(0, |inst| u64::from(inst.len))
            }
        };
        let (mut output, mut is_behind) = (block.output, false);
        while output < block.output_end() {
            let (found, end) = self.rows.output.of_moved(&mut self.hint_output, output);
            // A jump out of the function, see `tail`. Rows change where instructions start.
            let goes_behind = found == behind || leaves && rows::have_same_frame(behind, found);
            is_behind = goes_behind && (is_behind || output == block.output + code);
            if found != row && !is_behind {
                return Err(finding(block.input, output));
            }
            output = end;
        }
        Ok(())
    }

    /// Instruction bytes that stand in both files have the same rows all along.
    fn range(&mut self, mut input: u64, mut output: u64, mut len: u64) -> Result<(), Box<Finding>> {
        while len > 0 {
            let (old, old_end) = self.rows.input.of_moved(&mut self.hint_input, input);
            let (new, new_end) = self.rows.output.of_moved(&mut self.hint_output, output);
            if old != new {
                return Err(finding(input, output));
            }
            let step = len.min(old_end - input).min(new_end - output);
            (input, output, len) = (input + step, output + step, len - step);
        }
        Ok(())
    }

    /// Added code has the rows of the instruction that it stands before. What begins at `end` is another block's. Returns
    /// where the added code ends.
    fn added_before(&mut self, input: u64, output: u64, end: u64) -> Result<u64, Box<Finding>> {
        let check = self.check;
        let row = self.rows.input.of_moved(&mut self.hint_input, input).0;
        let added = |output| check.places.added_before(&check.code, input, output);
        self.added_with(row, added, output, end).map_err(|at| finding(input, at))
    }

    /// Added code has that row, from wherever in it a signal comes. Returns where it ends, or where it has another row.
    fn added_with(
        &mut self,
        row: Option<&[u8]>,
        added: impl Fn(u64) -> Option<Counter>,
        mut output: u64,
        end: u64,
    ) -> Result<u64, u64> {
        while output < end
            && let Some(piece) = added(output)
        {
            let stop = output + piece.len;
            let steps = self.check.code.judgement.stack_steps(piece.effect);
            for (step, (at, lowered)) in steps.iter().enumerate() {
                let until = steps.get(step + 1).map_or(stop, |next| output + next.0);
                let expected = row.map(|row| rows::lowered(row, *lowered));
                let (found, found_end) = self.rows.output.of_moved(&mut self.hint_output, output + at);
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
        let own = self.rows.input.of_moved(&mut self.hint_input, branch).0;
        let behind = self.rows.input.of_moved(&mut self.hint_input, block.input_end()).0;
        // Without a branch the padding in front of what follows may have either row, and behind an entry's end also its last.
        let leaves = !ends && self.leaves_entry(block);
        let last = if leaves {
            self.rows.input.of_moved(&mut self.hint_input, block.input_end() - 1).0
        } else {
            own
        };
        let mut allowed = [own, if ends { own } else { behind }, last];
        let end = block.output_end();
        while output < end {
            let (row, row_end) = self.rows.output.of_moved(&mut self.hint_output, output);
            let fits = allowed.contains(&row);
            if fits && row_end >= end {
                return Ok(());
            }
            let bytes = self.check.places.output_bytes(output);
            let judgement = self.check.code.judgement;
            let inst = judgement.decode(&bytes[..bytes.len().min((end - output) as usize)]);
            // `blocks` has a finding for what is no instruction.
            let Some(inst) = inst else { return Ok(()) };
            let next = output + u64::from(inst.len);
            let padding = inst.nop || judgement.starts_with_trap(bytes);
            // Out of a jump to where control left the function for comes no exception; that place's landing pads are not for it.
            let leads_out = leaves && matches!(inst.flow, Flow::Jump(_));
            let fits = fits || leads_out && allowed.iter().any(|own| rows::have_same_frame(*own, row));
            if !padding && (!fits || row_end < next) {
                return Err(finding(branch, output));
            }
            output = next;
            // Only what was added behind the branch may have the row of what follows, or, as that, none.
            allowed[1] = behind;
        }
        Ok(())
    }

    /// Added code has the row of where it leads.
    fn added(&mut self, block: &Block) -> Result<(), Box<Finding>> {
        let added = block.output..block.output_end();
        let destination = crate::address_map::flow::behind_added(&self.check.places, added);
        let there = self.rows.output.of_moved(&mut self.hint_output, destination).0;
        let check = self.check;
        let rest = self.added_with(there, |at| check.places.added_at(at), block.output, block.output_end());
        if rest.is_ok_and(|rest| {
            let (here, end) = self.rows.output.of_moved(&mut self.hint_output, rest);
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
    let routine = routine_rows::routine(check);
    let is_routine = |e: &FrameEntry| routine.is_some_and(|r| (r.start, r.end) == (e.start, e.end));
    let is_code = |e: &FrameEntry| check.places.fragment_at(e.start).is_some_and(|f| e.end <= f.1);
    let stray = new.filter(|e| !is_code(e) && !is_routine(e));
    let what = "an unwind entry covers no moved code";
    let stray = stray.take(ENOUGH).map(|e| Finding::new(FindingKind::Unwind, what).output(e.start));
    stray.chain(check_language_data(check, rows)).chain(routine_rows::check(check, rows)).collect()
}

/// The new section of language data holds those of moved code, one behind the other, and nothing else.
fn check_language_data(check: &Check, rows: &Unwinding) -> Option<Finding> {
    let start = check.input.loaded_end().get();
    let mut areas: Vec<(u64, u64)> = Vec::new();
    for entry in rows.output.entries.iter().filter(|e| e.start >= start) {
        let Some((area, is_dense)) = entry.area else { continue };
        if !is_dense {
            let what = "among language-specific data stand bytes that mean nothing";
            return Some(Finding::new(FindingKind::Unwind, what).output(area.0));
        }
        areas.push(area);
    }
    areas.sort_unstable();
    let section = check.output.section_named(LANGUAGE_DATA).map(|id| &check.output.sections[id]);
    let (mut reached, end) = section.map_or((0, 0), |s| (s.address.get(), s.end().get()));
    for (start, end) in areas {
        if start != reached {
            let what =
                "language-specific data of moved code do not stand one behind the other in their section";
            return Some(Finding::new(FindingKind::Unwind, what).output(start));
        }
        reached = end;
    }
    let what = "behind the language-specific data of moved code stands something else";
    (reached != end).then(|| Finding::new(FindingKind::Unwind, what).output(reached))
}
