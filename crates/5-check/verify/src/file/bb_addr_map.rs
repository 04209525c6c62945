//! Rule for LLVM's map of basic blocks (`.llvm_bb_addr_map`): an output may do without it. Otherwise each function that it tells of is told
//! of there, in the same order: as it was if it did not move; or else each block, by its id, is where its first instruction is,
//! with all that stands for it there and nothing else, and the rest is as it was but for whether control runs out of its end.
//!
//! Only these functions may be missing, and must be: those that became one with another; those that moved and of which no blocks are told;
//! those with a callee's blocks in place of a call; and those with a block of which a part stands apart that is more than a jump.

mod entries;

use crate::address_map::places::{self, Place, Reason, first_code};
use crate::check::Check;
use crate::input::code::Kind;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::SectionId;
use afterlink_isa::Flow;
use entries::{Block, Entry, Range};

pub(crate) use entries::is_map;

/// Of a block's flags: control may run out of its end.
const FALLS_THROUGH: u64 = 8;

/// Checks the map of the input, `old`, that became `new` in the output.
pub(crate) fn check(check: &Check, old: SectionId, new: SectionId) -> Vec<Finding> {
    let name = check.input.sections[old].name;
    let finding = |what: &str| Finding::new(FindingKind::Section, format!("section {name} {what}"));
    let (old, new) = (check.input.section_bytes(old), check.output.section_bytes(new));
    if check.places.blocks.is_empty() && old == new {
        return Vec::new();
    }
    let (Some(old), Some(new)) = (entries::read(old), entries::read(new)) else {
        return vec![finding("cannot be read, and tells of code that moved")];
    };
    let moved = Moved::of(check);
    let mut findings = Vec::new();
    let mut rest = new.as_slice();
    for entry in &old {
        let Some(expected) = moved.expected(entry) else { continue };
        let base = entry.ranges[0].base;
        match rest.split_first() {
            Some((found, behind)) if *found == expected => rest = behind,
            Some((found, behind)) if found.ranges[0].base == expected.ranges[0].base => {
                rest = behind;
                findings.push(
                    finding(&format!("tells otherwise of {}", difference(&expected, found))).input(base),
                );
            }
            _ => findings.push(finding("does not tell of the function").input(base)),
        }
    }
    if !rest.is_empty() {
        findings.push(finding("tells of a function that the input's does not tell of, or twice"));
    }
    findings
}

/// The first thing that is not as expected.
fn difference(expected: &Entry, found: &Entry) -> String {
    let ranges = expected.ranges.iter().zip(&found.ranges);
    let blocks = ranges.flat_map(|(expected, found)| expected.blocks.iter().zip(&found.blocks));
    blocks
        .filter(|(expected, found)| expected != found)
        .map(|(block, _)| format!("block {}", block.id))
        .next()
        .unwrap_or_else(|| "the function".to_owned())
}

/// Moved code, block by block.
struct Moved<'c, 'a> {
    check: &'c Check<'c, 'a>,
    /// Ascending in the input.
    blocks: Vec<places::Block>,
    /// Of functions that became one with another, or have others' blocks in place of calls, or a block twice.
    untold: Vec<(u64, u64)>,
}

/// Where a block stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    /// In the fragment that starts there.
    Fragment(u64),
    /// In a range of that number, which did not move.
    Kept(usize),
}

/// What stands for a block.
#[derive(Clone, Copy)]
struct Run {
    room: Room,
    start: u64,
    end: u64,
    /// Whether control runs out of its end; `None`: as it did.
    falls: Option<bool>,
}

impl<'c, 'a> Moved<'c, 'a> {
    fn of(check: &'c Check<'c, 'a>) -> Self {
        let (mut blocks, mut untold) = (Vec::new(), Vec::new());
        for function in &check.places.functions {
            let all = &check.places.blocks[function.blocks.clone()];
            let has_in_place =
                all.iter().any(|block| matches!(block.reason, Reason::InPlace(_) | Reason::Duplicated));
            let own = all.iter().filter(|block| !block.is_added());
            if function.folded_into.is_some() || has_in_place {
                untold.extend(own.clone().map(|block| (block.input, block.input_end())));
            }
            if function.folded_into.is_none() {
                blocks.extend(own.copied());
            }
        }
        blocks.sort_unstable_by_key(|block| block.input);
        Self { check, blocks, untold }
    }

    fn in_run(&self, start: u64, end: u64) -> &[places::Block] {
        let first = self.blocks.partition_point(|block| block.input_end() <= start);
        let count = self.blocks[first..].partition_point(|block| block.input < end);
        &self.blocks[first..first + count]
    }

    /// What must be told; `None`: nothing.
    fn expected(&self, entry: &Entry) -> Option<Entry> {
        let is_untold = |base: u64| self.untold.iter().any(|&(start, end)| start <= base && base < end);
        if entry.ranges.iter().any(|range| is_untold(range.base)) {
            return None;
        }
        let has_moved = |start, end| !self.in_run(start, end).is_empty();
        let range_moved = |range: &Range| {
            has_moved(range.base, range.base + 1) || range.blocks.iter().any(|b| has_moved(b.start, b.end))
        };
        if !entry.ranges.iter().any(range_moved) {
            return Some(entry.clone());
        }
        if entry.omits_blocks() {
            return None;
        }
        let mut rooms: Vec<(Room, Vec<Block>)> = Vec::new();
        for (number, range) in entry.ranges.iter().enumerate() {
            for (block, run) in range.blocks.iter().zip(self.runs(range, number)?) {
                let block = self.expected_block(block, run)?;
                match rooms.iter_mut().find(|(room, _)| *room == run.room) {
                    Some((_, blocks)) => blocks.push(block),
                    None => rooms.push((run.room, vec![block])),
                }
            }
        }
        // The first block of all is where the function starts.
        let entered = rooms.first()?.1.first()?.start;
        let mut ranges: Vec<Range> = rooms.into_iter().map(|(_, blocks)| in_order(blocks)).collect();
        let apart = ranges.iter().flat_map(|r| r.blocks.windows(2)).any(|pair| pair[0].end > pair[1].start);
        if apart || ranges[0].base != entered {
            return None;
        }
        ranges[1..].sort_by_key(|range| range.base);
        Some(Entry { ranges, ..entry.clone() })
    }

    /// What stands for each block of a range.
    fn runs(&self, range: &Range, number: usize) -> Option<Vec<Run>> {
        let mut runs: Vec<Run> = Vec::new();
        for (at, block) in range.blocks.iter().enumerate() {
            if block.start < block.end {
                runs.push(self.run(block.start, block.end, number)?);
                continue;
            }
            // Without code: where the next one with code is, if only padding is between; else behind what is in front.
            let next = range.blocks[at..].iter().find(|next| next.start < next.end);
            let next = next.filter(|next| first_code(&self.check.code, block.start, next.start).is_none());
            let place = match next {
                Some(next) => self.run(next.start, next.end, number).map(|run| (run.room, run.start)),
                None => runs.last().map(|before| (before.room, before.end)),
            };
            let (room, start) = place?;
            runs.push(Run { room, start, end: start, falls: None });
        }
        Some(runs)
    }

    /// What stands for code. `None` if a part that is more than a jump stands apart.
    fn run(&self, start: u64, end: u64, number: usize) -> Option<Run> {
        let blocks = self.in_run(start, end);
        if blocks.is_empty() {
            return Some(Run { room: Room::Kept(number), start, end, falls: None });
        }
        let mut parts: Vec<(u64, u64)> = Vec::new();
        let mut at = start;
        for block in blocks {
            let (first, last) = (block.input.max(start), block.input_end().min(end));
            if at != first {
                return None;
            }
            at = last;
            let from = if first == block.input { block.output } else { self.place(first)? };
            let is_rest = first_code(&self.check.code, last, block.input_end()).is_none();
            let to = if is_rest { block.output_end() } else { self.place(last)? };
            match parts.last_mut() {
                None => parts.push((from, to)),
                Some(part) if part.1 == from && self.fragment(part.0) == self.fragment(from) => part.1 = to,
                Some(_) if from == to || self.is_jump(first, last) => {}
                Some(_) => return None,
            }
        }
        let &(from, to) = parts.first().filter(|_| at == end)?;
        let to = blocks.last().map_or(to, |last| self.behind_padding(last, (end, to)));
        let falls = self.falls(from, to, (start, end));
        Some(Run { room: Room::Fragment(self.fragment(from)?), start: from, end: to, falls })
    }

    /// Where a run ends of which `last` is the last piece: what was replaced at its end stands apart from the padding that belongs to it, in place of
    /// which there may be a jump.
    fn behind_padding(&self, last: &places::Block, (end, to): (u64, u64)) -> u64 {
        let is_apart = last.reason == Reason::Replaced && last.input_end() == end;
        let rest = self.in_run(end, end + 1).first().filter(|rest| is_apart && rest.input == end);
        let is_its = |rest: &&places::Block| {
            rest.output == to && first_code(&self.check.code, end, rest.input_end()).is_none()
        };
        rest.filter(is_its).map_or(to, |rest| rest.output_end())
    }

    fn place(&self, address: u64) -> Option<u64> {
        match self.check.place(address) {
            Place::Moved(place) => Some(place),
            _ => None,
        }
    }

    fn fragment(&self, output: u64) -> Option<u64> {
        self.check.places.fragment_at(output).map(|fragment| fragment.0)
    }

    /// Whether there is nothing but direct jumps.
    fn is_jump(&self, start: u64, end: u64) -> bool {
        let insts = &self.check.code.insts[self.check.code.range(start, end)];
        insts.iter().all(|inst| {
            inst.is_padding() || matches!(inst.kind, Kind::Jump | Kind::Branch | Kind::ShortBranch)
        })
    }

    /// Whether control runs out of the end of the output's run, if that shows.
    fn falls(&self, start: u64, end: u64, input: (u64, u64)) -> Option<bool> {
        let (mut at, mut last) = (start, None);
        while at < end {
            let inst = self.check.code.judgement.decode(self.check.places.output_bytes(at))?;
            at += u64::from(inst.len);
            last = Some(inst.flow);
        }
        match last {
            Some(Flow::Jump(_)) => Some(false),
            Some(Flow::Branch(..) | Flow::ShortBranch(_)) => Some(true),
            _ => {
                // A jump that is gone led to what stands behind.
                let insts = &self.check.code.insts[self.check.code.range(input.0, input.1)];
                let last = insts.iter().rfind(|inst| !inst.is_padding())?;
                matches!(last.kind, Kind::Jump | Kind::Branch | Kind::ShortBranch).then_some(true)
            }
        }
    }

    fn expected_block(&self, block: &Block, run: Run) -> Option<Block> {
        let calls = block.calls.iter().filter_map(|&call| self.behind(call)).collect::<Vec<_>>();
        let flags = match run.falls {
            Some(true) => block.flags | FALLS_THROUGH,
            Some(false) => block.flags & !FALLS_THROUGH,
            None => block.flags,
        };
        let inside = calls.iter().all(|call| (run.start..=run.end).contains(call));
        let new = Block { start: run.start, calls, end: run.end, flags, ..block.clone() };
        (inside && new.calls.is_sorted()).then_some(new)
    }

    /// Where the call ends that ended at `address`; `None` if there is none any more.
    fn behind(&self, address: u64) -> Option<u64> {
        let Some((start, inst)) = self.check.code.around(address.wrapping_sub(1)) else {
            return Some(address);
        };
        let Some(block) = self.in_run(start, start + 1).first() else { return Some(address) };
        match block.reason {
            Reason::Inlined(_) | Reason::InPlace(_) | Reason::Duplicated => None,
            Reason::Replaced => {
                let bytes = self.check.places.output_bytes(block.output);
                let call = self.check.code.judgement.slot_of_call(bytes, block.output);
                call.map(|(_, size)| block.output + size as u64)
            }
            Reason::Copied | Reason::Inserted => {
                let place = self.place(start)?;
                // A jump to another function may be longer now.
                let len = if inst.ends_block() {
                    let bytes = self.check.places.output_bytes(place);
                    let jump = self.check.code.judgement.decode(bytes)?;
                    jump.flow.ends_block().then_some(jump.len)?
                } else {
                    inst.len
                };
                Some(place + u64::from(len))
            }
        }
    }
}

/// Blocks of one room, those without code in front of what stands where they are.
fn in_order(mut blocks: Vec<Block>) -> Range {
    blocks.sort_by_key(|block| (block.start, block.end));
    Range { base: blocks[0].start, count: blocks.len() as u64, blocks }
}
