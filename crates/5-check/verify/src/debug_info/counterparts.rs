//! What corresponds to places and runs of code, as debug information names them.
//!
//! A run of the input stands for instructions. The output's runs must hold each instruction's counterpart, and no counterpart
//! of another instruction. Jumps that were added, padding, and the places that moved code left are neither's: nobody
//! asks what debug information says of them.

use crate::address_map::places::{Block, Place, Reason, Shape, first_code};
use crate::check::Check;
use crate::input::code::Kind;
use smallvec::SmallVec;

/// Moved code by its places in both files.
pub(crate) struct Counterparts<'c, 'a> {
    pub check: &'c Check<'c, 'a>,
    /// Blocks that stand for code, ascending in the input, without jumps that were added behind them.
    blocks: Vec<Block>,
    /// Those that stand for code that another one stands for as well, likewise.
    duplicates: Vec<Block>,
    /// Output ranges of the same, ascending.
    outputs: Vec<(u64, u64)>,
    /// The same of folded functions: their places are those of the functions that stand for them, whose code it is.
    folded: Vec<Block>,
    /// Input ranges of folded functions, ascending, neighbours joined.
    folded_code: Runs,
    /// Sections of code.
    code: Vec<(u64, u64)>,
    /// Whether everything is taken to be where it was.
    is_unmoved: bool,
}

pub(crate) type Run = (u64, u64);

/// Runs, mostly few.
pub(crate) type Runs = SmallVec<[Run; 4]>;

impl<'c, 'a> Counterparts<'c, 'a> {
    pub fn of(check: &'c Check<'c, 'a>) -> Self {
        let places = &check.places;
        let (mut blocks, mut folded) = (Vec::with_capacity(places.blocks.len()), Vec::new());
        let mut duplicates = Vec::new();
        for function in &places.functions {
            let own = &places.blocks[function.blocks.clone()];
            let stands_twice = |b: &&Block| match b.reason {
                Reason::Duplicated => true,
                Reason::InPlace(_) => b.input_size > 0,
                _ => false,
            };
            let twice = own.iter().filter(stands_twice);
            duplicates.extend(twice.map(|block| without_jump(check, *block)));
            let own = own.iter().filter(|b| !b.is_added() && b.input_size > 0);
            let all = if function.folded_into.is_none() { &mut blocks } else { &mut folded };
            all.extend(own.map(|block| without_jump(check, *block)));
        }
        blocks.sort_unstable_by_key(|b| b.input);
        folded.sort_unstable_by_key(|b| b.input);
        duplicates.sort_unstable_by_key(|b| (b.input, b.output));
        let folded_code = joined(folded.iter().map(|b| (b.input, b.input_end())).collect());
        let with_code = blocks.iter().chain(&duplicates).filter(|b| b.output_size > 0);
        let mut outputs: Vec<Run> = with_code.map(|b| (b.output, b.output_end())).collect();
        outputs.sort_unstable();
        let code = check.input.sections.iter().filter(|(_, s)| s.is_code());
        let code = code.map(|(_, s)| (s.address.get(), s.end().get())).collect();
        Self { check, blocks, duplicates, outputs, folded, folded_code, code, is_unmoved: false }
    }

    /// As if nothing had moved: for what was left as it was.
    pub fn unmoved(&self) -> Self {
        Self {
            check: self.check,
            blocks: Vec::new(),
            duplicates: Vec::new(),
            outputs: Vec::new(),
            folded: Vec::new(),
            folded_code: Runs::new(),
            code: self.code.clone(),
            is_unmoved: true,
        }
    }

    /// Whether an address lies in a section of code, or at its end. Linkers mark what they removed by addresses that do not.
    pub fn is_code(&self, address: u64) -> bool {
        self.code.iter().any(|code| (code.0..=code.1).contains(&address))
    }

    /// The same of the output.
    pub fn is_output_code(&self, address: u64) -> bool {
        self.is_code(address) || self.check.places.fragment_at(address).is_some()
    }

    /// Whether an address lies in the output's code, or where a part of it ends: there a call comes back, by its place, that never does.
    pub fn is_output_code_or_end(&self, address: u64) -> bool {
        let is_end = |last| self.check.places.fragment_at(last).is_some();
        self.is_output_code(address) || address.checked_sub(1).is_some_and(is_end)
    }

    /// The block that stands for an address, if the code there is not another function's.
    pub fn block_at(&self, address: u64) -> Option<&Block> {
        in_block(&self.blocks, address)
    }

    /// The same with blocks of folded functions.
    fn any_block_at(&self, address: u64) -> Option<&Block> {
        self.block_at(address).or_else(|| in_block(&self.folded, address))
    }

    /// What of a run is no folded function's.
    pub fn unfolded(&self, (start, end): Run) -> Runs {
        if start < end { without(&[(start, end)], &self.folded_code) } else { Runs::new() }
    }

    /// Moved blocks that have a part in a run, ascending.
    pub fn blocks_in(&self, (start, end): Run) -> &[Block] {
        let first = self.blocks.partition_point(|b| b.input_end() <= start);
        let count = self.blocks[first..].partition_point(|b| b.input < end);
        &self.blocks[first..first + count]
    }

    /// Duplicates of blocks that have a part in a run, ascending. Those of one block follow each other, and no others overlap.
    pub fn duplicates_in(&self, (start, end): Run) -> &[Block] {
        let first = self.duplicates.partition_point(|b| b.input_end() <= start);
        let count = self.duplicates[first..].partition_point(|b| b.input < end);
        &self.duplicates[first..first + count]
    }

    /// Where the instruction at an address is.
    pub fn point(&self, address: u64) -> u64 {
        if self.is_unmoved {
            return address;
        }
        match self.check.place(address) {
            Place::Same => address,
            Place::Moved(place) => place,
            Place::Nowhere => self.any_block_at(address).map_or(address, |b| self.inside(b, address)),
        }
    }

    /// Where an instruction itself stands whose place is known: behind code that was added in front of it.
    fn behind_added(&self, input: u64, place: u64) -> u64 {
        let added = self.check.places.added_before(&self.check.code, input, place);
        place + added.map_or(0, |added| added.len)
    }

    /// Where the call would come back that a block leads in for.
    fn back_of(&self, block: &Block) -> Option<u64> {
        let contexts = &self.check.places.contexts;
        let context = contexts.of_call(block.input).filter(|_| block.reason == Reason::Replaced)?;
        self.check.comes_back(context)
    }

    /// Whether a place of the output stands for the one behind a call which ends at an address. There is one for calls that come back; a jump to
    /// another function comes back nowhere, and may have become none, or longer.
    pub fn is_behind(&self, address: u64, found: u64) -> bool {
        let call = address.checked_sub(1).and_then(|last| self.check.code.around(last));
        let Some((start, inst)) = call.filter(|(s, i)| s + u64::from(i.len) == address) else {
            return found == self.point(address);
        };
        let (place, size) = (self.behind_added(start, self.point(start)), u64::from(inst.len));
        let block = self.any_block_at(start);
        if let Some(back) = block.and_then(|block| self.back_of(block)) {
            return found == back;
        }
        match block {
            Some(block) if inst.ends_block() => [place, place + size, block.output_end()].contains(&found),
            Some(block) if block.reason != Reason::Copied => found == block.output_end(),
            Some(_) => found == place + size,
            None => found == address,
        }
    }

    /// Whether an address of the output stands for one of the input, in any of the ways in which addresses are named: as an instruction's, as that
    /// behind a call, as a place inside of an instruction, where gcc lets locations start and end, or as one in the padding behind code.
    pub fn is_place(&self, input: u64, output: u64) -> bool {
        let is_cut = || self.is_in_branch(input, output);
        let is_one = self.point(input) == output || self.is_behind(input, output);
        let is_other =
            || is_cut() || self.is_in_padding_behind(input, output) || self.is_inlined(input, output);
        self.is_code(input) && (is_one || is_other())
    }

    /// Whether an address is that behind a call, and one of the output where the code starts that stands in place of the call: its entry may
    /// have become that of an inlined call.
    fn is_inlined(&self, input: u64, output: u64) -> bool {
        let block = input.checked_sub(1).and_then(|last| self.block_at(last));
        block.is_some_and(|block| {
            matches!(block.reason, Reason::Inlined(_)) && block.input_end() == input && block.output == output
        })
    }

    /// Whether an address is one of padding, and one of the output stands where the padding would, behind the code in front of it. So compilers place a
    /// label at a function's end that nothing leads to.
    pub fn is_padding_behind(&self, input: u64, output: u64) -> bool {
        let is_code = self.check.code.at(input).is_none_or(|inst| !inst.is_padding());
        !is_code && self.is_in_padding_behind(input, output)
    }

    /// Whether padding of the input corresponds to what was added behind the code in front of it.
    fn is_in_padding_behind(&self, input: u64, output: u64) -> bool {
        let before = self.blocks.partition_point(|block| block.input_end() <= input).checked_sub(1);
        let Some(block) = before.map(|before| self.blocks[before]) else { return false };
        let next = self.outputs.partition_point(|other| other.0 < block.output_end());
        let end = match self.outputs.get(next) {
            Some(other) => other.0,
            None => {
                self.check.places.fragment_at(block.output).map_or(block.output_end(), |fragment| fragment.1)
            }
        };
        let is_padding = first_code(&self.check.code, block.input_end(), input).is_none();
        is_padding && (block.output_end()..=end).contains(&output)
    }

    /// Where a place inside of a block is, its padding and places inside of instructions, too.
    fn inside(&self, block: &Block, address: u64) -> u64 {
        if block.reason != Reason::Copied && address > block.input {
            // A byte before the end of a call is that before the end of what stands for it.
            return block.output_end().saturating_sub(block.input_end() - address).max(block.output);
        }
        if let Place::Moved(place) = self.check.place(address) {
            return place.clamp(block.output, block.output_end());
        }
        match self.check.code.around(address).filter(|(start, _)| *start < address) {
            Some((start, _)) => match self.check.place(start) {
                Place::Moved(place) => {
                    let place = self.behind_added(start, place);
                    (place + (address - start)).clamp(block.output, block.output_end())
                }
                _ => block.output_end(),
            },
            None => block.output_end(),
        }
    }

    /// The part of a block that stands for a run's part of it. Of a branch that the run cuts nothing is asked: another one stands
    /// there now, and no place inside of it is ever looked up.
    pub fn part(&self, block: &Block, (start, end): Run) -> Run {
        let cut = |at, of: fn(Run) -> u64| self.cut_branch(at).map_or_else(|| self.inside(block, at), of);
        let from = if start <= block.input { block.output } else { cut(start, |branch| branch.1) };
        let to = if end >= block.input_end() { block.output_end() } else { cut(end, |branch| branch.0) };
        (from, to)
    }

    /// Whether an address of the input lies inside of a branch, as entries of dropped copies of functions have it, and one of the output inside of
    /// what stands for that, or at its ends.
    pub fn is_in_branch(&self, input: u64, output: u64) -> bool {
        self.cut_branch(input).is_some_and(|branch| (branch.0..=branch.1).contains(&output))
    }

    /// Where the branch is that an address lies inside of, if it moved.
    fn cut_branch(&self, address: u64) -> Option<Run> {
        let (start, inst) = self.check.code.around(address).filter(|(_, inst)| inst.ends_block())?;
        let block = self.any_block_at(start)?;
        (start < address && address < start + u64::from(inst.len))
            .then(|| (self.point(start), block.output_end()))
    }

    /// Whether nothing of a run moved, so that it stands for itself.
    pub fn stays(&self, run: Run) -> bool {
        self.blocks_in(run).is_empty() && self.unfolded(run)[..] == [run]
    }

    /// Where the output's runs must be, and may be, that stand for runs of the input.
    pub fn image(&self, runs: &[Run]) -> Image {
        let (mut must, mut may) = (Runs::new(), Runs::new());
        for &(start, end) in runs.iter().filter(|r| r.0 < r.1) {
            if !self.is_code(start) {
                must.push((start, end));
                continue;
            }
            let mut at = start;
            let mut stays = |from: u64, to: u64| {
                for (from, to) in self.unfolded((from, to)) {
                    may.push((from, to));
                    // Padding between functions, and behind them, is nobody's.
                    let code = first_code(&self.check.code, from, to);
                    must.extend(code.map(|from| (from, to)));
                }
            };
            let blocks = self.blocks_in((start, end));
            for block in blocks {
                stays(at, block.input);
                at = block.input_end();
            }
            stays(at, end);
            // Where it was nothing is said of it any more, or nothing that matters.
            may.extend(blocks.iter().map(|b| (b.input.max(start), b.input_end().min(end))));
            must.extend(blocks.iter().map(|b| self.part(b, (start, end))).filter(|r| r.0 < r.1));
            let twice = self.duplicates_in((start, end)).iter();
            must.extend(twice.map(|b| part_of_duplicate(b, (start, end))).filter(|r| r.0 < r.1));
            may.extend([start, end].into_iter().filter_map(|at| self.cut_branch(at)));
        }
        Image { must: joined(must), may: joined(may) }
    }

    /// Whether what stands for runs is a single run that starts at a place, as two ends can tell it.
    pub fn is_one_run(&self, runs: &[Run], place: u64) -> bool {
        matches!(self.image(runs).must[..], [run] if run.0 == place)
    }

    /// Where the first code of a run is of which anything is left. What leads into code in place of a call may be nothing: it counts if `is_held` says that
    /// the run has what stands at its place, which is a way out then, and not the callee's code.
    pub fn first_place(&self, run: Run, is_held: impl Fn(u64) -> bool) -> Option<u64> {
        if !self.is_code(run.0) {
            return Some(run.0);
        }
        let blocks = self.blocks_in(run);
        let code = &self.check.code;
        let stays = self.unfolded((run.0, blocks.first().map_or(run.1, |b| b.input.min(run.1))));
        let stays = stays.iter().find_map(|part| first_code(code, part.0, part.1));
        let leads_in =
            |b: &Block| b.reason == Reason::Replaced && self.check.places.contexts.of_call(b.input).is_some();
        let counts = |b: &Block, part: &Run| part.0 < part.1 || leads_in(b) && is_held(part.0);
        let part = |b: &Block| Some(self.part(b, run)).filter(|part| counts(b, part));
        let moved = || blocks.iter().find_map(part).map(|part| part.0);
        // Padding that did not move may still be where it was.
        stays.or_else(moved).or((blocks.is_empty() && self.stays(run)).then_some(run.0))
    }

    /// Whether a run starts with code, and not with padding.
    pub fn has_code_at(&self, run: Run) -> bool {
        first_code(&self.check.code, run.0, run.1) == Some(run.0)
    }

    /// Holds the output's runs against those of the input.
    ///
    /// # Errors
    /// What is wrong, and an address of the output.
    pub fn judge_runs(&self, input: &[Run], output: &[Run]) -> Result<(), (String, u64)> {
        if input == output && input.iter().all(|&run| self.stays(run)) {
            return Ok(());
        }
        // Of what the linker removed, which has no code, nothing need be said.
        if output.is_empty() && input.iter().all(|&(start, end)| start >= end || !self.is_code(start)) {
            return Ok(());
        }
        let image = self.image(input);
        if let Some(at) = image.lack(output) {
            return Err(("leaves out code that corresponds".to_owned(), at));
        }
        match output.iter().find_map(|&run| self.extra(&image, run)) {
            Some(at) => Err(("holds code that does not correspond".to_owned(), at)),
            None => Ok(()),
        }
    }

    /// An address of a run of the output that holds code which does not correspond.
    pub fn extra(&self, image: &Image, run: Run) -> Option<u64> {
        let run = if run.0 < run.1 { &[run][..] } else { &[] };
        without(&without(run, &image.must), &image.may).into_iter().find_map(|extra| self.held(extra))
    }

    /// An address of a run of the output that belongs to some instruction of the input, or to nothing known.
    fn held(&self, (start, end): Run) -> Option<u64> {
        let next = self.outputs.partition_point(|o| o.1 <= start);
        if let Some(block) = self.outputs.get(next).filter(|o| o.0 < end) {
            return Some(block.0.max(start));
        }
        // Nobody's code may go on in the next fragment.
        let mut at = start;
        while at < end {
            match self.check.places.fragment_at(at) {
                Some(fragment) => at = fragment.1,
                None => return Some(at),
            }
        }
        None
    }

    /// Whether an address of the output belongs to no instruction of the input.
    pub fn is_free(&self, output: u64) -> bool {
        let after = self.outputs.partition_point(|o| o.0 <= output);
        let is_held = after > 0 && output < self.outputs[after - 1].1;
        let stays = || {
            self.check.places.is_moved(output) || self.check.code.at(output).is_none_or(|i| i.is_padding())
        };
        // Nothing is said any more of where a folded function was.
        !is_held && !self.unfolded((output, output + 1)).is_empty() && stays()
    }
}

/// Where a duplicate has an address of its block: all its bytes are the input's, up to where it jumps on.
pub(crate) fn place_in_duplicate(block: &Block, address: u64) -> u64 {
    block.output + address.saturating_sub(block.input).min(u64::from(block.output_size))
}

/// The part of a duplicate that stands for a run's part of its block.
pub(crate) fn part_of_duplicate(block: &Block, (start, end): Run) -> Run {
    (place_in_duplicate(block, start), place_in_duplicate(block, end))
}

fn in_block(blocks: &[Block], address: u64) -> Option<&Block> {
    let after = blocks.partition_point(|b| b.input <= address);
    after.checked_sub(1).map(|i| &blocks[i]).filter(|b| address < b.input_end())
}

/// Where runs of the output must be, and may be, that stand for some of the input.
pub(crate) struct Image {
    must: Runs,
    may: Runs,
}

impl Image {
    /// An address that runs of the output leave out.
    pub fn lack(&self, runs: &[Run]) -> Option<u64> {
        let found = joined(runs.iter().copied().filter(|r| r.0 < r.1).collect());
        without(&self.must, &found).first().map(|lack| lack.0)
    }
}

/// The block without a jump that was added behind its last instruction, or behind what stands for a call.
fn without_jump(check: &Check, block: Block) -> Block {
    let own_end = match block.reason {
        Reason::Copied => last_end(check, &block),
        Reason::Duplicated | Reason::InPlace(_) => Some(end_of_duplicate(check, &block)),
        Reason::Replaced => {
            let call =
                check.code.judgement.slot_of_call(check.places.output_bytes(block.output), block.output);
            call.map(|(_, size)| block.output + size as u64)
        }
        // Code that only computes has the same size anywhere.
        Reason::Inlined(row) => Some(block.output + u64::from(check.places.inlined[row as usize].1)),
        Reason::Inserted => None,
    };
    let end = own_end.unwrap_or(block.output_end()).min(block.output_end());
    Block { output_size: end.saturating_sub(block.output) as u32, ..block }
}

/// Where a duplicate's own code ends. Padding that control only runs through has no place in it, so where a block ends with that, or is nothing
/// else, a jump that was added stands there.
fn end_of_duplicate(check: &Check, block: &Block) -> u64 {
    let insts = &check.code.insts[check.code.range(block.input, block.input_end())];
    let shape = Shape::of(insts);
    let end = block.output + insts[..shape.body].iter().map(|inst| u64::from(inst.len)).sum::<u64>();
    let ending = insts.get(shape.body).filter(|inst| match inst.kind {
        // A jump at the end is another one.
        Kind::Jump => false,
        Kind::Return => block.reason == Reason::Duplicated,
        _ => shape.ends,
    });
    end + ending.map_or(0, |inst| u64::from(inst.len))
}

/// Where the last instruction of a copied block ends, if it goes on behind it.
fn last_end(check: &Check, block: &Block) -> Option<u64> {
    let range = check.code.range(block.input, block.input_end());
    let shape = Shape::of(&check.code.insts[range.clone()]);
    let last = (range.start + shape.body).checked_sub(1).filter(|_| shape.body > 0 && !shape.ends)?;
    match check.places.of_inst(last) {
        Place::Moved(place) => Some(place + u64::from(check.code.insts[last].len)),
        _ => None,
    }
}

/// Sorted, neighbours joined.
fn joined(mut runs: Runs) -> Runs {
    runs.sort_unstable();
    runs.dedup_by(|next, last| {
        let meets = next.0 <= last.1;
        if meets {
            last.1 = last.1.max(next.1);
        }
        meets
    });
    runs
}

/// What of the one set of runs is not in the other; both are [`joined`].
fn without(runs: &[Run], others: &[Run]) -> Runs {
    let mut left = Runs::new();
    for &(start, end) in runs {
        let mut at = start;
        let mut other = others.partition_point(|other| other.1 <= at);
        while at < end {
            match others.get(other).filter(|o| o.0 < end) {
                Some(o) => {
                    if at < o.0 {
                        left.push((at, o.0));
                    }
                    at = at.max(o.1);
                    other += 1;
                }
                None => {
                    left.push((at, end));
                    at = end;
                }
            }
        }
    }
    left
}
