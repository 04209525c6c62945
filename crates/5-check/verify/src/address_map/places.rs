//! The address map of the output, checked as far as it can be without looking at instructions, and spread to
//! one output place for each moved instruction of the input. Everything else asks here where code went.
//!
//! The map is a hint: a wrong one leads to findings in `blocks`, which compares what stands at both places.

use crate::address_map::contexts::Contexts;
pub(crate) use crate::address_map::pieces::{Block, Reason, Shape};
use crate::input::code::Code;
use crate::input::functions::Functions;
use crate::input::ranges::{holding, holds, merged};
use crate::moved_code::counters;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_core::address_map::MapReader;
use afterlink_core::{BlockMap, InputAddr, address_map};
use afterlink_image::{Image, Segment, elf};
use afterlink_isa::judgement::{Counters, Judgement};
use rayon::prelude::*;
use rustc_hash::FxHashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// A function of the map.
pub(crate) struct MovedFunction {
    pub entry: u64,
    /// Its blocks in [`Places::blocks`].
    pub blocks: Range<usize>,
    /// Output start and end of each fragment; none if the function was folded.
    pub fragments: Vec<(u64, u64)>,
    /// Entry of the function that stands for this one, too.
    pub folded_into: Option<u64>,
}

/// A section of data that had to give way to the longer program header table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Displaced {
    pub start: u64,
    pub end: u64,
    /// Its start in the output.
    pub place: u64,
}

/// What became of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is not in moved code and means what it meant.
    Same,
    /// The corresponding instruction stands here.
    Moved(u64),
    /// It lies in moved code where no instruction starts that has a counterpart.
    Nowhere,
}

/// Where all moved code is.
pub(crate) struct Places<'a> {
    pub judgement: Judgement,
    pub functions: Vec<MovedFunction>,
    pub blocks: Vec<Block>,
    /// Start and bytes of each callee's code that stands in place of a call.
    pub inlined: Vec<(u64, u32)>,
    /// Calls in place of which several pieces stand.
    pub contexts: Contexts,
    /// Input ranges that moved, ascending, merged.
    pub moved: Vec<(u64, u64)>,
    /// Where functions start, and where a stub there would end, if the bytes are not what they were: none reaches from one to the next. Ascending.
    stubs: Vec<(u64, u64)>,
    /// Output ranges of all fragments, ascending.
    pub fragments: Vec<(u64, u64)>,
    /// Address and bytes of the output's segment with moved code.
    pub new_start: u64,
    pub new_bytes: &'a [u8],
    /// Sections that moved without being code.
    pub displaced: Vec<Displaced>,
    /// Set for an instrumented output.
    pub counters: Option<Counters>,
    /// Set where code was found that prefetches some.
    pub(super) prefetches: AtomicBool,
    /// Where moved instructions stand at which a tracer may stop the program, ascending.
    pub observed: Vec<u64>,
    /// For each instruction of the input its place, from `new_start`, or a mark.
    places: Vec<AtomicU32>,
}

/// Where the stub at `entry` ends: a jump, behind the mark for indirect branches if one stood there.
pub(crate) fn stub_end(code: &Code, entry: u64) -> u64 {
    let section = code.section_at(entry);
    let bytes = section.map_or(&[][..], |s| &s.bytes[(entry - s.start) as usize..]);
    entry + code.judgement.stub_size(bytes)
}

/// Whether the files have other bytes at these addresses.
fn differ(input: &Image, output: &Image, start: u64, end: u64) -> bool {
    let (start, len) = (InputAddr(start), (end - start) as usize);
    input.bytes_at(start, len) != output.bytes_at(start, len)
}

const UNMOVED: u32 = u32::MAX;
const NOWHERE: u32 = u32::MAX - 1;

impl<'a> Places<'a> {
    pub fn read(
        input: &Image,
        output: &Image<'a>,
        code: &Code,
        functions: &Functions,
        displaced: Vec<Displaced>,
        findings: &mut Vec<Finding>,
    ) -> Self {
        let (map, blocks) = check_map(output, findings);
        let segment = new_segment(input, output);
        let (new_start, new_bytes) = segment.map_or((0, &[][..]), |s| {
            let start = s.offset.get() as usize;
            (s.address.get(), output.bytes.get(start..start + s.file_size as usize).unwrap_or(&[]))
        });
        let mut places = Self {
            judgement: code.judgement,
            functions: Vec::new(),
            blocks: Vec::with_capacity(blocks),
            inlined: Vec::new(),
            contexts: Contexts::default(),
            moved: Vec::new(),
            stubs: Vec::new(),
            fragments: Vec::new(),
            new_start,
            new_bytes,
            displaced,
            counters: counters::find(output),
            prefetches: AtomicBool::new(false),
            observed: Vec::new(),
            places: Vec::new(),
        };
        let folded = places.take_map(code, map, findings);
        places.contexts.sort(&places.blocks);
        places.take_folded(folded, findings);
        places.check_overlaps(code, findings);
        places.check_duplicates(findings);
        places.places = code.insts.par_iter().map(|_| AtomicU32::new(UNMOVED)).collect();
        places.blocks.par_iter().filter(|b| !b.is_added()).for_each(|block| places.align(code, block));
        let observed = code.observed.iter().filter_map(|&probe| match places.of(code, probe) {
            Place::Moved(place) => Some(place),
            _ => None,
        });
        places.observed = observed.collect();
        places.observed.sort_unstable();
        places.check_coverage(code, functions, findings);
        let stub = |start| {
            let end = stub_end(code, start);
            (start, if differ(input, output, start, end) { end } else { start })
        };
        places.stubs = functions.rows.iter().map(|f| stub(f.start)).collect();
        places
    }

    /// Flattens the map; functions that do not fit the file are left out with a finding. Gives those that were folded: entry,
    /// and that of the function which stands for it.
    fn take_map(
        &mut self,
        code: &Code,
        map: Option<ReadMap>,
        findings: &mut Vec<Finding>,
    ) -> Vec<(u64, u64)> {
        let mut folded = Vec::new();
        let Some((mut map, chains)) = map else { return folded };
        let end = self.new_start + self.new_bytes.len() as u64;
        // Invariant: `check_map` has read the whole map.
        while let Some(function) = map.next().expect("the map can be read again") {
            let entry = function.entry.get();
            let first = self.blocks.len();
            let mut fragments = Vec::new();
            self.contexts.expect(&function);
            if let Some(into) = function.folded_into {
                folded.push((entry, into.get()));
                continue;
            }
            let fits = function.fragments.iter().all(|fragment| {
                let start = fragment.output.get();
                let stop = start.checked_add(fragment.size);
                let Some(stop) = stop.filter(|&stop| start >= self.new_start && stop <= end) else {
                    return false;
                };
                fragments.push((start, stop));
                let rows = &fragment.blocks;
                rows.first().is_none_or(|b| b.output_offset == 0)
                    && rows.iter().enumerate().all(|(i, block)| {
                        let offset = u64::from(block.output_offset);
                        let next = rows.get(i + 1).map_or(fragment.size, |b| u64::from(b.output_offset));
                        let size = next.checked_sub(offset).and_then(|s| u32::try_from(s).ok());
                        let taken = self.take_block(code, &chains, block, start.wrapping_add(offset), size);
                        taken && size.is_some()
                    })
            });
            if fits {
                let blocks = first..self.blocks.len();
                self.functions.push(MovedFunction { entry, blocks, fragments, folded_into: None });
            } else {
                self.blocks.truncate(first);
                findings.push(
                    Finding::new(
                        FindingKind::Map,
                        "the map puts the function outside the segment of moved code",
                    )
                    .input(entry),
                );
            }
        }
        folded
    }

    /// Takes one block of the map; false if it cannot be.
    fn take_block(
        &mut self,
        code: &Code,
        chains: &[Vec<InputAddr>],
        block: &BlockMap,
        output: u64,
        output_size: Option<u32>,
    ) -> bool {
        let (input, input_size) = (block.input.map_or(0, |a| a.get()), block.input_size);
        let (input, input_size, reason) = match block.reason {
            address_map::Reason::Inserted => (0, 0, Reason::Inserted),
            address_map::Reason::Copied => (input, input_size, Reason::Copied),
            address_map::Reason::Replaced => (input, input_size, Reason::Replaced),
            address_map::Reason::Inlined(chain) => {
                // Only code that calls nothing is inlined, so no chain has more than one call.
                let Some(&[call]) = chains.get(chain.0 as usize).map(Vec::as_slice) else { return false };
                let Some(inst) = code.at(call.get()) else { return false };
                self.inlined.push((input, input_size));
                if let Some(context) = self.contexts.of_piece(call.get(), call.get() + u64::from(inst.len)) {
                    let output_size = output_size.unwrap_or(0);
                    let reason = Reason::InPlace(context);
                    let piece = Block { input, input_size, output_size, output, reason };
                    self.contexts.add(context, piece);
                    self.blocks.push(piece);
                    return true;
                }
                (call.get(), u32::from(inst.len), Reason::Inlined(self.inlined.len() as u32 - 1))
            }
            address_map::Reason::Duplicated => (input, input_size, Reason::Duplicated),
        };
        let output_size = output_size.unwrap_or(0);
        self.blocks.push(Block { input, input_size, output_size, output, reason });
        true
    }

    /// A folded function has the blocks of the one that stands for it, at the same distances from its entry: so everything
    /// that is asked of a moved function is asked of it, at those places.
    fn take_folded(&mut self, folded: Vec<(u64, u64)>, findings: &mut Vec<Finding>) {
        for (entry, into) in folded {
            let found = self.functions.iter().position(|f| f.entry == into && f.folded_into.is_none());
            let Some(of) = found.filter(|_| entry != into) else {
                let what = "the map folds the function into one that did not move";
                findings.push(Finding::new(FindingKind::Map, what).input(entry));
                continue;
            };
            let first = self.blocks.len();
            for block in self.functions[of].blocks.clone() {
                let mut block = self.blocks[block];
                // What stands in place of a call stands for one of the other function's, and so does what stands twice.
                if matches!(block.reason, Reason::InPlace(_) | Reason::Duplicated) {
                    continue;
                }
                block.input = block.input.wrapping_sub(into).wrapping_add(entry);
                self.blocks.push(block);
            }
            let blocks = first..self.blocks.len();
            let folded_into = Some(into);
            self.functions.push(MovedFunction { entry, blocks, fragments: Vec::new(), folded_into });
        }
        self.functions.sort_by_key(|f| f.entry);
    }

    /// No input byte may be moved twice, and no output byte may belong to two blocks.
    fn check_overlaps(&mut self, code: &Code, findings: &mut Vec<Finding>) {
        let mut inputs: Vec<(u64, u64)> = Vec::with_capacity(self.blocks.len());
        for block in self.blocks.iter_mut().filter(|b| !b.is_added()) {
            let section = code.section_at(block.input);
            if block.input_size == 0 || section.is_none_or(|s| block.input_end() > s.end) {
                findings.push(
                    Finding::new(FindingKind::Map, "the map names a block that is no code of the input")
                        .input(block.input)
                        .output(block.output),
                );
                block.reason = Reason::Inserted;
            } else {
                inputs.push((block.input, block.input_end()));
            }
        }
        inputs.par_sort_unstable();
        if let Some(pair) = inputs.windows(2).find(|p| p[0].1 > p[1].0) {
            findings.push(Finding::new(FindingKind::Map, "the map moves this code twice").input(pair[1].0));
            // No instruction would have one place; without the map everything else is compared unmoved.
            self.functions.clear();
            self.blocks.clear();
            return;
        }
        self.moved = merged(inputs);
        self.fragments = self.functions.iter().flat_map(|f| f.fragments.iter().copied()).collect();
        self.fragments.sort_unstable();
        for pair in self.fragments.windows(2).filter(|p| p[0].1 > p[1].0) {
            findings.push(Finding::new(FindingKind::Map, "two moved fragments overlap").output(pair[1].0));
        }
    }

    /// A duplicate is one of a whole block that was copied, of the same function: of that one all is asked that is asked of moved code.
    fn check_duplicates(&mut self, findings: &mut Vec<Finding>) {
        for function in &self.functions {
            let own = &mut self.blocks[function.blocks.clone()];
            if !own.iter().any(|block| block.reason == Reason::Duplicated) {
                continue;
            }
            let copied = own.iter().filter(|block| block.reason == Reason::Copied);
            let copied: FxHashSet<(u64, u32)> = copied.map(|block| (block.input, block.input_size)).collect();
            for block in own.iter_mut().filter(|block| block.reason == Reason::Duplicated) {
                if !copied.contains(&(block.input, block.input_size)) {
                    let what = "the map has a duplicate of what is no block of the function that was copied";
                    let finding = Finding::new(FindingKind::Map, what).output(block.output);
                    findings.push(finding.input(function.entry));
                    block.reason = Reason::Inserted;
                }
            }
        }
    }

    /// A function moves whole: what the map leaves out of it must be padding.
    fn check_coverage(&self, code: &Code, functions: &Functions, findings: &mut Vec<Finding>) {
        for function in functions.rows.iter().filter(|f| f.has_symbol) {
            let (mut at, end) = (function.start, function.end);
            let mut left_out = None;
            let mut moved = 0;
            let first = self.moved.partition_point(|m| m.1 <= at);
            for &(start, stop) in self.moved[first..].iter().take_while(|m| m.0 < end) {
                moved += stop.min(end) - start.max(at);
                left_out = left_out.or_else(|| first_code(code, at, start));
                at = stop;
            }
            left_out = left_out.or_else(|| first_code(code, at, end));
            if let (Some(address), true) = (left_out, moved > 0) {
                let what = "the map leaves out a part of the function";
                let moved = self.moved[first..].first().map_or(address, |m| m.0.max(function.start));
                findings.push(Finding::new(FindingKind::Map, what).input(address).names(moved));
            }
        }
        for function in &self.functions {
            if functions.rows.binary_search_by_key(&function.entry, |f| f.start).is_err() {
                findings.push(
                    Finding::new(
                        FindingKind::Map,
                        "the map names a function that neither symbols nor unwind entries know",
                    )
                    .input(function.entry),
                );
            }
        }
    }

    /// Gives each instruction of a block its place.
    fn align(&self, code: &Code, block: &Block) {
        let range = code.range(block.input, block.input_end());
        let insts = &code.insts[range.clone()];
        let shape = Shape::of(insts);
        let mut at = block.output - self.new_start;
        let mut input = block.input;
        for (i, index) in range.enumerate() {
            // Padding behind a branch is never reached; padding that control runs through means what follows.
            let unreached = shape.ends && i > shape.body || at >= u64::from(NOWHERE);
            self.places[index].store(if unreached { NOWHERE } else { at as u32 }, Relaxed);
            if i < shape.body {
                let behind_prefix = i > 0 && insts[i - 1].is_prefix();
                while !behind_prefix && let Some(added) = self.added_before(code, input, self.new_start + at)
                {
                    at += added.len;
                }
                at += u64::from(insts[i].len);
                input += u64::from(insts[i].len);
            }
        }
    }

    /// Where the instruction with that index went, if it moved.
    pub fn of_inst(&self, index: usize) -> Place {
        match self.places[index].load(Relaxed) {
            UNMOVED => Place::Same,
            NOWHERE => Place::Nowhere,
            at => Place::Moved(self.new_start + u64::from(at)),
        }
    }

    /// What became of an address of the input.
    pub fn of(&self, code: &Code, address: u64) -> Place {
        if !code.holds(address) {
            let section = self.displaced.iter().find(|d| address >= d.start && address < d.end);
            return section.map_or(Place::Same, |d| Place::Moved(d.place + (address - d.start)));
        }
        match code.index_at(address) {
            Some(index) => self.of_inst(index),
            None if self.is_moved(address) => Place::Nowhere,
            None => Place::Same,
        }
    }

    /// Moved instructions with a counterpart.
    pub fn instructions_moved(&self) -> usize {
        self.places.par_iter().filter(|place| place.load(Relaxed) < NOWHERE).count()
    }

    /// Whether the stub of a short function that moved may stand at `address`, in the padding behind it.
    pub fn may_be_stub(&self, address: u64) -> bool {
        let after = self.stubs.partition_point(|stub| stub.0 <= address);
        let before = after.checked_sub(1).map(|i| self.stubs[i]);
        before.is_some_and(|(entry, end)| entry < address && address < end && self.is_moved(entry))
    }

    /// Whether the byte at `address` of the input belongs to moved code.
    pub fn is_moved(&self, address: u64) -> bool {
        holds(&self.moved, address)
    }

    /// The fragment that holds an output address.
    pub fn fragment_at(&self, output: u64) -> Option<(u64, u64)> {
        holding(&self.fragments, output)
    }

    /// Bytes of the new segment from an output address on.
    pub fn output_bytes(&self, address: u64) -> &'a [u8] {
        let at = address.checked_sub(self.new_start).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.new_bytes.get(at..)).unwrap_or(&[])
    }
}

/// The first instruction, or undecoded byte, in a range that is no padding.
pub(crate) fn first_code(code: &Code, start: u64, end: u64) -> Option<u64> {
    if start >= end {
        return None;
    }
    let range = code.range(start, end);
    let mut at = start;
    for inst in &code.insts[range] {
        if !inst.is_padding() {
            return Some(at);
        }
        at += u64::from(inst.len);
    }
    (at < end).then_some(at)
}

/// A map, and its chains.
type ReadMap<'s> = (MapReader<'s>, Vec<Vec<InputAddr>>);

/// The output's map, if it can be read to its end, and the number of its pieces.
fn check_map<'s>(output: &'s Image, findings: &mut Vec<Finding>) -> (Option<ReadMap<'s>>, usize) {
    let Some(section) = output.section_named(address_map::SECTION) else { return (None, 0) };
    let bytes = output.section_bytes(section);
    let (mut pieces, mut last, mut ascends) = (0, None, true);
    let plain = address_map::is_plain(bytes, |function| {
        pieces += function.fragments.iter().map(|fragment| fragment.blocks.len()).sum::<usize>();
        ascends &= last < Some(function.entry);
        last = Some(function.entry);
    });
    match plain {
        Err(error) => {
            findings.push(Finding::new(FindingKind::Map, error.what));
            return (None, 0);
        }
        // A number can be written in several ways; only the shortest one leaves no room for anything else.
        Ok(plain) if findings.is_empty() && !(plain && ascends) => {
            let what = "the map is not written in the shortest way, or its functions are not in order";
            findings.push(Finding::new(FindingKind::Map, what));
        }
        Ok(_) => {}
    }
    (MapReader::new(bytes).ok(), pieces)
}

/// The output's segment of code that the input does not have.
fn new_segment<'s>(input: &Image, output: &'s Image) -> Option<&'s Segment> {
    let end = input.loaded_end();
    let is_new = |s: &&Segment| s.kind == elf::PT_LOAD.0 && s.flags & elf::PF_X.0 != 0 && s.address >= end;
    output.segments.iter().find(is_new)
}
