//! BOLT's YAML profile (`perf2bolt --profile-format=yaml`, `llvm-bolt -w`): counts of blocks by number, to a [`Profile`] by offset.
//!
//! A block's number is one that BOLT gave it; where it stands is in the low 16 bits of its hash. So functions of more than 64 KiB cannot be read, and are
//! counted. Where a block ends is not told but by its number of instructions; with the program, that leads to its last one, from which
//! a branch is recorded, and shows whether it is this program's block at all.
//!
//! | there | here |
//! |---|---|
//! | a successor with a count | a branch from the block's last instruction to where the successor starts |
//! | a call, with its distance from the block's start | a branch from it to where the function starts |
//! | executions of a function that no such call explains | a branch from elsewhere to where it starts |
//! | thousandths of executions of a block, where there were no branch stacks | the samples that they were made of, shared out among its instructions |

mod text;

use crate::program::{Piece, Program};
use crate::reading::Reading;
use afterlink_core::{Error, InputAddr, Result, Viewed};
use afterlink_profile::{BranchRecord, Kind, Location, LocationKind, ProfileBuilder, SampleRecord};
use rustc_hash::FxHashMap;
use text::{Line, for_each_line};

/// What the low bits of a hash can tell.
const REACH: u64 = 1 << 16;
/// More instructions than this are in no block.
const MOST_INSTRUCTIONS: u32 = 1 << 14;

/// Reads a profile.
///
/// # Errors
/// The file is damaged, of a version without hashes, or of another build of the program.
pub fn read(file: Viewed, program: &Program) -> Result<Reading> {
    // Whatever LLVM writes ends so.
    if file.bytes().trim_ascii_end().ends_with(b"\n...") {
        return read_to_end(file, program);
    }
    let cut_off = |mut error: Error| {
        let next = error.next.take().unwrap_or_default();
        error.next(format!("{next}; the file may be cut off, as its last line is not \"...\": copy it again"))
    };
    let mut reading = read_to_end(file, program).map_err(cut_off)?;
    reading.notes.push(
        "the last line is not \"...\": the file may be cut off, and what is there of it is used".to_owned(),
    );
    Ok(reading)
}

fn read_to_end(file: Viewed, program: &Program) -> Result<Reading> {
    let bytes = file.bytes();
    let mut header = Header::default();
    let mut functions = Functions::default();
    let mut collected = Function::default();
    for_each_line(bytes, &mut |line| {
        header.add(&line)?;
        if collected.add(&line)? {
            functions.name(&std::mem::take(&mut collected))?;
            collected.add(&line)?;
        }
        Ok(())
    })?;
    functions.name(&collected)?;
    if !header.is_profile {
        return Err(Error::new("it is no profile of BOLT: it has no header with profile-flags")
            .next("make it with perf2bolt --profile-format=yaml"));
    }
    let kind = if header.has_branches { Kind::Branches } else { Kind::Samples };
    let mut reader = Reader::new(program, kind, functions);
    let mut collected = Function::default();
    for_each_line(bytes, &mut |line| {
        if collected.add(&line)? {
            reader.function(&std::mem::take(&mut collected))?;
            collected.add(&line)?;
        }
        Ok(())
    })?;
    reader.function(&collected)?;
    file.give_back();
    reader.finish(&header)
}

/// What is said of the whole.
#[derive(Default)]
struct Header {
    is_profile: bool,
    has_branches: bool,
    events: String,
}

impl Header {
    fn add(&mut self, line: &Line) -> Result<()> {
        match line.key {
            "profile-flags" if line.indent == 2 => {
                self.is_profile = true;
                self.has_branches = line.value.contains("lbr");
            }
            "profile-events" if line.indent == 2 => {
                self.events = String::from_utf8_lossy(&line.text()?).into_owned();
            }
            _ => {}
        }
        Ok(())
    }
}

/// A function as the file has it.
#[derive(Default)]
struct Function {
    name: Vec<u8>,
    id: u32,
    executions: u64,
    blocks: Vec<Block>,
    /// Where its keys stand, and which list they are in.
    indent: usize,
    is_in_blocks: bool,
}

#[derive(Default)]
struct Block {
    id: u32,
    instructions: u32,
    hash: Option<u64>,
    samples: u64,
    calls: Vec<Call>,
    successors: Vec<Successor>,
}

impl Block {
    fn start(&self, piece: &Piece) -> Option<InputAddr> {
        Some(piece.start + (self.hash? & (REACH - 1)))
    }
}

struct Call {
    offset: u32,
    callee: u32,
    /// Which of its entries, if not the first.
    entry: u32,
    count: u64,
    mispredicted: u64,
}

struct Successor {
    block: u32,
    count: u64,
    mispredicted: u64,
}

impl Function {
    /// Adds a line; if another function starts there, says so instead.
    fn add(&mut self, line: &Line) -> Result<bool> {
        let starts = line.starts_item && line.key == "name";
        if starts && self.indent > 0 && line.indent <= self.indent {
            return Ok(true);
        }
        if starts && self.indent == 0 {
            self.indent = line.indent;
            self.name = line.text()?;
        } else if self.indent == 0 {
            return Ok(false);
        } else if line.indent == self.indent {
            self.is_in_blocks = line.key == "blocks";
            match line.key {
                "fid" => self.id = line.number()?,
                "exec" => self.executions = line.number()?,
                _ => {}
            }
        } else if self.is_in_blocks {
            self.line_of_block(line)?;
        }
        Ok(false)
    }

    fn line_of_block(&mut self, line: &Line) -> Result<()> {
        if line.starts_item {
            self.blocks.push(Block::default());
        }
        let Some(block) = self.blocks.last_mut() else { return Ok(()) };
        match line.key {
            "bid" => block.id = line.number()?,
            "insns" => block.instructions = line.number()?,
            "hash" => block.hash = Some(line.number()?),
            "events" => block.samples = line.number()?,
            "calls" => {
                for item in line.items()? {
                    block.calls.push(Call {
                        offset: item.number("off")?,
                        callee: item.number("fid")?,
                        entry: item.number("disc")?,
                        count: item.number("cnt")?,
                        mispredicted: item.number("mis")?,
                    });
                }
            }
            "succ" => {
                for item in line.items()? {
                    block.successors.push(Successor {
                        block: item.number("bid")?,
                        count: item.number("cnt")?,
                        mispredicted: item.number("mis")?,
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// All that is counted in it.
    fn count(&self) -> u64 {
        let of_block = |block: &Block| {
            let sum = block.successors.iter().fold(block.samples, |sum, s| sum.saturating_add(s.count));
            block.calls.iter().fold(sum, |sum, c| sum.saturating_add(c.count))
        };
        self.blocks.iter().fold(self.executions, |sum, block| sum.saturating_add(of_block(block)))
    }
}

/// All functions by the numbers that the file gives them.
#[derive(Default)]
struct Functions {
    by_id: FxHashMap<u32, Named>,
}

#[derive(Default)]
struct Named {
    name: Vec<u8>,
    executions: u64,
    called: u64,
}

impl Functions {
    fn name(&mut self, function: &Function) -> Result<()> {
        if function.indent > 0 {
            let Function { name, executions, id, .. } = function;
            let named = Named { name: name.clone(), executions: *executions, called: 0 };
            if self.by_id.insert(*id, named).is_some() {
                return Err(Error::new(format!("two functions have the number {id}"))
                    .next("make it anew with perf2bolt or merge-fdata"));
            }
        }
        Ok(())
    }
}

/// A profile on its way.
struct Reader<'a, 'p> {
    program: &'a Program<'p>,
    pieces: FxHashMap<&'a [u8], &'a Piece>,
    builder: ProfileBuilder,
    functions: Functions,
    kind: Kind,
    used: Share,
    unknown: Share,
    large: Share,
    other: Share,
    /// Calls of other places of functions than their starts, and all calls.
    inside: u64,
    calls: u64,
    nameless: bool,
}

/// Functions, and what was counted in them.
#[derive(Clone, Copy, Default)]
struct Share {
    functions: u64,
    count: u64,
}

impl Share {
    fn add(&mut self, count: u64) {
        self.functions += 1;
        self.count = self.count.saturating_add(count);
    }
}

/// Where a block's instructions start.
type Places = Vec<InputAddr>;

impl<'a, 'p> Reader<'a, 'p> {
    fn new(program: &'a Program<'p>, kind: Kind, functions: Functions) -> Self {
        let pieces = program.pieces().iter().map(|piece| (piece.name.as_slice(), piece)).collect();
        let builder = ProfileBuilder::new(kind);
        let share = Share::default();
        Self {
            program,
            pieces,
            builder,
            functions,
            kind,
            used: share,
            unknown: share,
            large: share,
            other: share,
            inside: 0,
            calls: 0,
            nameless: false,
        }
    }

    fn piece(&self, name: &[u8]) -> Option<&'a Piece> {
        // A function with several names: `name(*2)`.
        let bare = || name.strip_suffix(b")").and_then(|n| n.windows(2).rposition(|w| w == b"(*"));
        let found = self.pieces.get(name).or_else(|| self.pieces.get(&name[..bare()?]));
        found.copied()
    }

    fn function(&mut self, function: &Function) -> Result<()> {
        let count = function.count();
        if function.indent == 0 || count == 0 {
            return Ok(());
        }
        self.nameless |= function.blocks.iter().any(|block| block.hash.is_none());
        let Some(piece) = self.piece(&function.name) else {
            self.unknown.add(count);
            return Ok(());
        };
        if piece.end.since(piece.start) > REACH {
            self.large.add(count);
            return Ok(());
        }
        let starts = self.starts(piece);
        let blocks = function.blocks.iter();
        let mut ends: Vec<InputAddr> = blocks.clone().filter_map(|block| block.start(piece)).collect();
        ends.sort_unstable();
        let place = |block: &Block| Some((block.id, self.places(piece, block, &starts, &ends)?));
        let places: Option<FxHashMap<u32, Places>> = blocks.map(place).collect();
        let Some(places) = places else {
            self.other.add(count);
            return Ok(());
        };
        self.used.add(count);
        for block in &function.blocks {
            self.block(piece, block, &places)?;
        }
        Ok(())
    }

    /// Where the instructions of a piece start, as long as it decodes.
    fn starts(&self, piece: &Piece) -> Places {
        let mut at = piece.start;
        std::iter::from_fn(|| {
            let start = at;
            at = at + u64::from(self.program.instruction_at(start).filter(|_| start < piece.end)?.len);
            Some(start)
        })
        .collect()
    }

    /// The instructions of a block, up to where it jumps or another starts; `None` if they are not this program's.
    fn places(
        &self,
        piece: &Piece,
        block: &Block,
        starts: &[InputAddr],
        ends: &[InputAddr],
    ) -> Option<Places> {
        let start = block.start(piece)?;
        let is_inside =
            starts.last().is_some_and(|last| start <= *last) && starts.binary_search(&start).is_err();
        if is_inside || block.instructions > MOST_INSTRUCTIONS {
            return None;
        }
        let end = ends.get(ends.partition_point(|end| *end <= start)).copied().unwrap_or(piece.end);
        let (mut at, mut places, mut last, mut working) = (start, Places::new(), 1, 0);
        // BOLT counts what does nothing, or has taken it out; and the block behind may not be told.
        while at < end && working < block.instructions {
            let inst = self.program.instruction_at(at)?;
            places.push(at);
            if !inst.nop {
                last = places.len();
                working += 1;
            }
            at = at + u64::from(inst.len);
            if inst.flow.ends_block() {
                break;
            }
        }
        // A branch may have a jump behind it that belongs to the block.
        if block.instructions as usize > places.len() + 1 {
            return None;
        }
        if places.len() > block.instructions as usize {
            places.truncate(last);
        }
        if places.is_empty() {
            places.push(start);
        }
        Some(places)
    }

    fn block(&mut self, piece: &Piece, block: &Block, places: &FxHashMap<u32, Places>) -> Result<()> {
        let own = &places[&block.id];
        if self.kind == Kind::Samples {
            return self.samples(piece, block, own);
        }
        for successor in block.successors.iter().filter(|s| s.count > 0) {
            let Some(to) = places.get(&successor.block) else { continue };
            let from = self.location(piece, *own.last().unwrap_or(&piece.start))?;
            let to = self.location(piece, to[0])?;
            let (count, mispredicts) = (successor.count, successor.mispredicted);
            self.builder.add_branch(BranchRecord { from, to, mispredicts, count });
        }
        for call in block.calls.iter().filter(|call| call.count > 0) {
            self.calls = self.calls.saturating_add(call.count);
            if call.entry > 0 {
                self.inside = self.inside.saturating_add(call.count);
                continue;
            }
            let Some(callee) = self.functions.by_id.get_mut(&call.callee) else { continue };
            callee.called = callee.called.saturating_add(call.count);
            let name = callee.name.clone();
            let Some(callee) = self.piece(&name) else { continue };
            let from = self.location(piece, own[0] + u64::from(call.offset))?;
            let to = self.location(callee, callee.start)?;
            let (count, mispredicts) = (call.count, call.mispredicted);
            self.builder.add_branch(BranchRecord { from, to, mispredicts, count });
        }
        Ok(())
    }

    /// BOLT has made thousandths of executions of the block's samples; they are made samples again, anywhere in it.
    fn samples(&mut self, piece: &Piece, block: &Block, places: &Places) -> Result<()> {
        let all = (u128::from(block.samples) * u128::from(block.instructions) + 500) / 1000;
        let all = u64::try_from(all).unwrap_or(u64::MAX);
        let (each, rest) = (all / places.len() as u64, all % places.len() as u64);
        for (i, &at) in (0..).zip(places) {
            let count = each + u64::from(i < rest);
            if count > 0 {
                let at = self.location(piece, at)?;
                self.builder.add_samples(SampleRecord { at, count });
            }
        }
        Ok(())
    }

    fn location(&mut self, piece: &Piece, at: InputAddr) -> Result<Location> {
        let name = self.builder.intern(&piece.name)?;
        Ok(Location::new(LocationKind::Symbol, name, at.since(piece.start) as u32))
    }

    fn finish(mut self, header: &Header) -> Result<Reading> {
        let Self { used, unknown, large, other, .. } = self;
        if self.nameless && used.functions == 0 {
            return Err(Error::new("its blocks have no hashes, which tell where they are")
                .next("make it by LLVM 17 or later, or with --profile-format=fdata"));
        }
        if other.count > used.count.saturating_add(large.count) {
            return Err(Error::new(format!(
                "of {} functions, {} are not as in this program: it is of another build",
                used.functions + other.functions + large.functions,
                other.functions
            ))
            .next("give the program that was profiled, or make the profile with --profile-format=fdata"));
        }
        if [used, unknown, large, other].iter().all(|share| share.functions == 0) {
            return Err(Error::new("it counts nothing").next(
                "make it with --profile-format=fdata (perf2bolt writes no samples of single addresses into YAML), or record for longer",
            ));
        }
        if unknown.count > 0 && used.functions + large.functions == 0 {
            return Err(Error::new("none of its functions is in this program")
                .next("give the program that was profiled"));
        }
        if self.kind == Kind::Branches {
            self.entries()?;
        }
        if self.kind == Kind::Samples && !header.events.is_empty() {
            self.builder.add_event(header.events.as_bytes());
        }
        let mut notes = notes(used, unknown, large, other);
        if self.inside > 0 {
            let percent = 100.0 * self.inside as f64 / self.calls as f64;
            notes.push(format!(
                "{} calls, {percent:.1} % of them, of other places than functions' starts (disc) are left out: where those are is not told",
                self.inside
            ));
        }
        Ok(Reading { profile: self.builder.finish(), notes })
    }

    /// What called functions from elsewhere.
    fn entries(&mut self) -> Result<()> {
        let mut functions: Vec<Named> = std::mem::take(&mut self.functions.by_id).into_values().collect();
        functions.retain(|function| function.executions > function.called);
        for function in functions {
            let Some(piece) = self.piece(&function.name) else { continue };
            let from = Location::new(LocationKind::Foreign, self.builder.intern(b"[unknown]")?, 0);
            let to = self.location(piece, piece.start)?;
            let count = function.executions - function.called;
            self.builder.add_branch(BranchRecord { from, to, mispredicts: 0, count });
        }
        Ok(())
    }
}

fn notes(used: Share, unknown: Share, large: Share, other: Share) -> Vec<String> {
    let left_out = [
        (large, "of more than 64 KiB are left out: where their blocks are is not told"),
        (other, "are not as in this program, and are left out"),
        (unknown, "are not in this program, and are left out"),
    ];
    let all = [used, unknown, large, other].iter().fold(0u64, |sum, share| sum.saturating_add(share.count));
    let left_out = left_out.iter().filter(|(share, _)| share.functions > 0);
    left_out
        .map(|(share, why)| {
            let percent = 100.0 * share.count as f64 / all.max(1) as f64;
            format!("{} functions, with {percent:.1} % of the counts, {why}", share.functions)
        })
        .collect()
}
