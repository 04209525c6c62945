//! LLVM's map of basic blocks (`.llvm_bb_addr_map`), by which profilers and disassemblers name the blocks of a function: written anew, with the
//! blocks in the output's order and a range for each fragment.
//!
//! A block is where its first instruction is, and as long as what stands for it, with a jump that was added behind it. A part of it that
//! stands apart and is nothing but a jump is no block's any more; where any other part stands apart, the function is left out, and so
//! is one with code in place of calls, or a block that stands twice.

mod format;

use crate::addresses::Addresses;
use crate::debug_info::{moves, padding_size};
use crate::shape::{Ending, Shape};
use afterlink_core::InputAddr;
use afterlink_debuginfo::Moves;
use afterlink_image::{Image, Section};
use afterlink_program::{Chunk, Placement, Program, Terminator};
use format::{Block, Entry, FALLS_THROUGH, Range};
use std::collections::{BTreeMap, HashSet};

/// The type of such sections.
const KIND: u32 = 0x6fff_4c0a;

pub(crate) fn is_map(section: &Section) -> bool {
    section.kind == KIND
}

/// What the map does not tell any more, by functions.
#[derive(Default)]
pub(crate) struct Lost {
    /// Of which it told.
    all: usize,
    folded: usize,
    apart: usize,
    without_blocks: usize,
    in_place: usize,
    duplicated: usize,
}

enum Why {
    Folded,
    Apart,
    WithoutBlocks,
    InPlace,
    Duplicated,
}

impl Lost {
    fn add(&mut self, why: &Why) {
        match why {
            Why::Folded => self.folded += 1,
            Why::Apart => self.apart += 1,
            Why::WithoutBlocks => self.without_blocks += 1,
            Why::InPlace => self.in_place += 1,
            Why::Duplicated => self.duplicated += 1,
        }
    }

    /// A reason, if there is any.
    pub fn reason(&self) -> Option<String> {
        let Self { all, folded, apart, without_blocks, in_place, duplicated } = *self;
        let parts = [
            (folded, "became one with another"),
            (apart, "with a block whose parts stand apart"),
            (without_blocks, "without blocks"),
            (in_place, "with code in place of calls"),
            (duplicated, "with a block that stands twice"),
        ];
        let lost: usize = parts.iter().map(|part| part.0).sum();
        let parts = parts.iter().filter(|part| part.0 > 0).map(|(count, what)| format!("{count} {what}"));
        let parts = parts.collect::<Vec<_>>().join(", ");
        (lost > 0).then(|| format!("but for {lost} of its {all} functions: {parts}"))
    }
}

/// The new bytes of a map, and what they do not tell. `None` if it is not understood.
pub(crate) fn lead(old: &[u8], places: &Places) -> Option<(Vec<u8>, Lost)> {
    let (mut bytes, mut lost) = (Vec::with_capacity(old.len()), Lost::default());
    for entry in format::read(old)? {
        lost.all += 1;
        match places.function(&entry) {
            Ok(Some(led)) => led.write(&mut bytes),
            Ok(None) => bytes.extend_from_slice(entry.bytes),
            Err(why) => lost.add(&why),
        }
    }
    Some((bytes, lost))
}

/// A moved block of the input.
struct Row {
    input: u64,
    input_end: u64,
    output: u64,
    output_end: u64,
    /// Index of its fragment.
    fragment: usize,
    /// Where what stands in front of its own jumps ends in the input; if that is nothing, it is bare.
    body_end: u64,
    /// Where its first jump ends.
    jumped: u64,
    falls: Falls,
}

/// Whether control runs out of a block's end into what stands behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Falls {
    /// As in the input: its last instruction decides.
    Same,
    Through,
    Nowhere,
}

/// Where everything stands, as this map asks.
pub(crate) struct Places<'e, 'i> {
    image: &'e Image<'i>,
    program: &'e Program<'i>,
    moves: Moves,
    /// Ascending in the input.
    rows: Vec<Row>,
    /// Where calls ended that are none any more.
    inlined: HashSet<u64>,
}

/// Where a block stands: a fragment, or what did not move.
type Group = (bool, usize);

/// What stands for a block.
struct Led {
    group: Group,
    start: u64,
    end: u64,
    falls: Falls,
}

impl<'e, 'i> Places<'e, 'i> {
    pub fn new(
        image: &'e Image<'i>,
        program: &'e Program<'i>,
        placement: &Placement,
        addresses: &Addresses,
        shapes: &[Shape],
    ) -> Self {
        let (mut rows, mut inlined) = (Vec::new(), HashSet::new());
        for (fragment, own) in placement.fragments.iter().enumerate() {
            let function = &program.functions[own.function];
            let place = |offset: u32| (addresses.fragments[fragment] + u64::from(offset)).get();
            let endings = shapes[fragment].endings(function, own);
            let offsets = shapes[fragment].offsets.windows(2);
            for ((&id, offsets), ending) in own.blocks.iter().zip(offsets).zip(&endings) {
                let block = &function.blocks[id];
                for chunk in function.chunks_of(block) {
                    if let Chunk::Inlined(row) = chunk {
                        let code = &function.inlined[row as usize];
                        inlined.insert((code.call + u64::from(code.call_size)).get());
                    }
                }
                if id.0 < function.input_blocks && block.size > 0 {
                    let last = ending.jump.filter(|_| ending.branch.is_some());
                    let last = last.map_or(0, |jump| jump.size(program.arch));
                    rows.push(Row {
                        input: block.input.get(),
                        input_end: block.input_end().get(),
                        output: place(offsets[0]),
                        output_end: place(offsets[1]),
                        fragment,
                        body_end: (block.input + u64::from(block.body)).get(),
                        jumped: place(offsets[1]) - last,
                        falls: falls(block, ending),
                    });
                }
            }
        }
        rows.sort_unstable_by_key(|row| row.input);
        let moves = moves(image, program, placement, addresses, shapes);
        Self { image, program, moves, rows, inlined }
    }

    /// The moved block that holds an address.
    fn row_at(&self, address: u64) -> Option<&Row> {
        let after = self.rows.partition_point(|row| row.input <= address);
        self.rows[..after].last().filter(|row| address < row.input_end)
    }

    fn has_moved(&self, start: u64, end: u64) -> bool {
        let next = self.rows.partition_point(|row| row.input_end <= start);
        self.rows.get(next).is_some_and(|row| row.input < end)
    }

    fn is_padding(&self, start: u64, end: u64) -> bool {
        padding_size(self.image, InputAddr(start), end - start) == end - start
    }

    /// The entry of a function as it is now; `None` if it is where it was.
    fn function<'a>(&self, entry: &Entry<'a>) -> Result<Option<Entry<'a>>, Why> {
        let bases = || entry.ranges.iter().map(|range| range.base);
        let functions = || {
            let found = bases().filter_map(|base| self.program.function_at(InputAddr(base)));
            found.map(|id| &self.program.functions[id])
        };
        if functions().any(|f| f.folded_into.is_some()) {
            return Err(Why::Folded);
        }
        let mut blocks = entry.ranges.iter().flat_map(|range| &range.blocks);
        if !bases().any(|base| self.row_at(base).is_some()) && !blocks.any(|b| self.has_moved(b.start, b.end))
        {
            return Ok(None);
        }
        if entry.is_without_blocks() {
            return Err(Why::WithoutBlocks);
        }
        if functions().any(|f| !f.in_place.is_empty()) {
            return Err(Why::InPlace);
        }
        if functions().any(|f| f.blocks.ids().any(|block| f.duplicate_of(block).is_some())) {
            return Err(Why::Duplicated);
        }
        let ranges = self.ranges(entry).ok_or(Why::Apart)?;
        let mut entry = entry.clone();
        entry.ranges = ranges;
        Ok(Some(entry))
    }

    /// The blocks in their new ranges: the one with the function's entry first, the others by address.
    fn ranges<'a>(&self, entry: &Entry<'a>) -> Option<Vec<Range<'a>>> {
        let mut groups: BTreeMap<Group, Vec<Block<'a>>> = BTreeMap::new();
        let mut first = None;
        for (number, range) in entry.ranges.iter().enumerate() {
            for (block, led) in range.blocks.iter().zip(self.range(range, number)?) {
                first = first.or(Some((led.group, led.start)));
                groups.entry(led.group).or_default().push(self.block(block, &led)?);
            }
        }
        let (entered, start) = first?;
        let mut ranges = Vec::new();
        for (group, mut blocks) in groups {
            // Blocks without code come before what stands where they are.
            blocks.sort_by_key(|block| (block.start, block.end));
            let base = blocks.first()?.start;
            let overlap = blocks.windows(2).any(|pair| pair[0].end > pair[1].start);
            if overlap || group == entered && base != start {
                return None;
            }
            ranges.push((group != entered, Range { base, blocks }));
        }
        ranges.sort_by_key(|(is_further, range)| (*is_further, range.base));
        Some(ranges.into_iter().map(|(_, range)| range).collect())
    }

    /// What stands for each block of a range.
    fn range(&self, range: &Range, number: usize) -> Option<Vec<Led>> {
        let mut led: Vec<Option<Led>> = Vec::new();
        for block in &range.blocks {
            let is_empty = block.start == block.end;
            led.push(if is_empty { None } else { Some(self.run(block.start, block.end, number)?) });
        }
        // A block without code is where control goes on that runs out of it, or else behind the one in front of it.
        for at in (0..led.len()).rev().filter(|&at| range.blocks[at].start == range.blocks[at].end) {
            let here = range.blocks[at].start;
            let next = range.blocks.get(at + 1).zip(led.get(at + 1));
            let next = next.filter(|(block, _)| self.is_padding(here, block.start));
            led[at] = next.and_then(|(_, led)| led.as_ref()).map(|led| Led {
                end: led.start,
                falls: Falls::Same,
                ..*led
            });
        }
        for at in 1..led.len() {
            if let (None, Some(before)) = (&led[at], &led[at - 1]) {
                led[at] = Some(Led { start: before.end, falls: Falls::Same, ..*before });
            }
        }
        led.into_iter().collect()
    }

    /// What stands for a run of code.
    fn run(&self, start: u64, end: u64, number: usize) -> Option<Led> {
        if !self.has_moved(start, end) {
            return Some(Led { group: (false, number), start, end, falls: Falls::Same });
        }
        let mut led: Option<Led> = None;
        let mut at = start;
        while at < end {
            let row = self.row_at(at)?;
            let ends_here = end >= row.input_end || self.is_padding(end, row.input_end);
            let from = if at == row.input { row.output } else { self.moves.point(at) };
            let to = if ends_here { row.output_end } else { self.moves.point(end) };
            let falls = if ends_here { row.falls } else { Falls::Same };
            match &mut led {
                None => led = Some(Led { group: (true, row.fragment), start: from, end: to, falls }),
                Some(led) if led.end == from && led.group == (true, row.fragment) => {
                    // What stands behind a jump is not run into.
                    if from < to || led.falls != Falls::Nowhere {
                        led.falls = falls;
                    }
                    led.end = to;
                }
                Some(_) if from == to || row.body_end == row.input => {}
                Some(_) => return None,
            }
            at = row.input_end;
        }
        led
    }

    /// Where the call ends that ended at an address. Of a jump to another function an own one may have been written.
    fn behind(&self, address: u64) -> u64 {
        let row = address.checked_sub(1).and_then(|last| self.row_at(last));
        let jump = row.filter(|row| address > row.body_end);
        jump.map_or_else(|| self.moves.behind(address), |row| row.jumped)
    }

    fn block<'a>(&self, block: &Block<'a>, led: &Led) -> Option<Block<'a>> {
        let mut new = block.clone();
        (new.start, new.end) = (led.start, led.end);
        new.calls.retain(|call| !self.inlined.contains(call));
        for call in &mut new.calls {
            *call = self.behind(*call);
        }
        match led.falls {
            Falls::Same => {}
            Falls::Through => new.flags |= FALLS_THROUGH,
            Falls::Nowhere => new.flags &= !FALLS_THROUGH,
        }
        let ascending =
            new.calls.is_sorted() && new.calls.iter().all(|call| (led.start..=led.end).contains(call));
        (ascending && led.start <= led.end).then_some(new)
    }
}

fn falls(block: &afterlink_program::Block, ending: &Ending) -> Falls {
    match block.terminator {
        _ if ending.jump.is_some() => Falls::Nowhere,
        // It only went on, to what is led around now: a call may be in front that does not come back, for all that the compiler said.
        Terminator::Jump(_) if block.body == block.size => Falls::Same,
        Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::ShortBranch { .. } => Falls::Through,
        Terminator::FallThrough(_)
        | Terminator::LastCall(_)
        | Terminator::Indirect { .. }
        | Terminator::Stop(_) => Falls::Same,
    }
}
