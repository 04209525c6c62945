//! Flows to the records that BOLT's instrumentation writes.
//!
//! | what ran | from | to |
//! |---|---|---|
//! | a jump or branch | the instruction | the target |
//! | a fall-through | the block's last instruction | the next block |
//! | a direct call or tail call | the instruction | the callee's start |
//! | an indirect one | the instruction | the start of each target; `[unknown]` for those that are not counted apart |
//! | a function, called from elsewhere | `[unknown]` | its start |
//!
//! Where several indirect jumps share their targets, each gets its share
//! of a target's executions by how often it ran itself.

use super::calls::{Bounds, Calls};
use super::targets::Counted;
use afterlink_core::counter_description::{Block, Description, EdgeKind, Function};
use afterlink_core::{Error, Result};
use afterlink_profile::{BranchRecord, Location, LocationKind, NameId, ProfileBuilder};

/// Adds the records of all functions.
pub(super) fn add(
    description: &Description,
    flows: &[Vec<u64>],
    counted: &[Counted],
    builder: &mut ProfileBuilder,
) -> Result<()> {
    let names: Vec<NameId> = description.names.iter().map(|n| builder.intern(n)).collect::<Result<_>>()?;
    let unknown = Location::new(LocationKind::Foreign, builder.intern(b"[unknown]")?, 0);
    let blocks: usize = description.functions.iter().map(|f| f.blocks.len()).sum();
    let pairs = FREE_PAIRS + PAIRS_PER_BLOCK * blocks;
    let functions = &description.functions;
    // What was called through pointers was not called directly.
    let mut called = vec![0u64; names.len()];
    for &(name, count) in counted.iter().flat_map(|site| &site.functions) {
        called[name as usize] = called[name as usize].saturating_add(count);
    }
    let (calls, entries) = calls(functions, flows, &called);
    let counted = counted.iter();
    let mut records = Records { names: &names, builder, calls, called, counted, unknown, pairs_left: pairs };
    for (function, flows) in functions.iter().zip(flows) {
        records.function(function, &Counts::new(function, flows))?;
    }
    let called = std::mem::take(&mut records.called);
    for (function, entries) in functions.iter().zip(entries) {
        if let Some(&name) = function.fragments.first() {
            let count = entries.saturating_sub(called[name as usize]);
            records.add(unknown, records.start_of(name), count);
        }
    }
    Ok(())
}

/// All direct calls, held against how often their callees were entered otherwise than by `indirect` ones; and how often each function was.
fn calls(functions: &[Function], flows: &[Vec<u64>], indirect: &[u64]) -> (Calls, Vec<u64>) {
    let mut calls = Calls::new(indirect.len());
    let mut by_name: Vec<Option<u64>> = vec![None; indirect.len()];
    let mut entries = Vec::with_capacity(functions.len());
    for (function, flows) in functions.iter().zip(flows) {
        // Made anew when the records are written: those of all functions at once take much memory.
        let counts = Counts::new(function, flows);
        let entered = counts.entered.first().copied().unwrap_or(0);
        entries.push(entered);
        if let Some(&name) = function.fragments.first() {
            let all = by_name[name as usize].get_or_insert(0);
            *all = all.saturating_add(entered);
        }
        for (i, block) in function.blocks.iter().enumerate() {
            for (nth, call) in block.calls.iter().enumerate() {
                calls.note(call.callee, counts.of_call(i, block, nth));
            }
            if let Some(callee) = block.exit {
                calls.note(callee, counts.of_exit(i, block));
            }
        }
    }
    let direct = by_name.iter().zip(indirect).map(|(all, of)| all.map(|all| all.saturating_sub(*of)));
    calls.settle(&direct.collect::<Vec<_>>());
    (calls, entries)
}

/// The flows of a function by what they are.
struct Counts {
    /// By block.
    entered: Vec<u64>,
    executed: Vec<u64>,
    /// What surely went on behind the block's last call.
    tail: Vec<u64>,
    /// What left the function at the block's end.
    left: Vec<u64>,
    /// By block and successor.
    flows: Vec<Vec<u64>>,
}

impl Counts {
    fn new(function: &Function, flows: &[u64]) -> Self {
        let zeroes = || vec![0; function.blocks.len()];
        let (mut entered, mut executed) = (zeroes(), zeroes());
        let (mut tail, mut left) = (zeroes(), zeroes());
        let mut onward: Vec<Vec<u64>> = function.blocks.iter().map(|b| vec![0; b.successors.len()]).collect();
        for (edge, &flow) in function.edges().iter().zip(flows) {
            match edge.kind {
                EdgeKind::Entered(block) => entered[block as usize] = flow,
                EdgeKind::Executed(block) => executed[block as usize] = flow,
                EdgeKind::Tail(block) => tail[block as usize] = flow,
                EdgeKind::Leaves(block) => left[block as usize] = flow,
                EdgeKind::Flow(block, i) => onward[block as usize][i as usize] = flow,
            }
        }
        for (i, block) in function.blocks.iter().enumerate().filter(|(_, b)| b.may_stop && b.leaves) {
            debug_assert_eq!(block.successors.len(), onward[i].len());
            left[i] = onward[i].iter().fold(executed[i], |rest, &flow| rest.saturating_sub(flow));
        }
        Self { entered, executed, tail, left, flows: onward }
    }

    /// What is known of the `nth` call of the block with the index `i`.
    fn of_call(&self, i: usize, block: &Block, nth: usize) -> Bounds {
        let high = self.executed[i];
        let low = if block.may_stop { self.tail[i].min(high) } else { high };
        Bounds { low, high, is_first: nth == 0 }
    }

    /// What is known of the block's jump to another function. Where control may stop before, no more jumped than did not go on.
    fn of_exit(&self, i: usize, block: &Block) -> Bounds {
        let high = self.left[i];
        Bounds { low: if block.may_stop { 0 } else { high }, high, is_first: false }
    }
}

struct Records<'a> {
    names: &'a [NameId],
    builder: &'a mut ProfileBuilder,
    calls: Calls,
    /// Calls of each name.
    called: Vec<u64>,
    /// What the sites of blocks that have not come yet counted.
    counted: std::slice::Iter<'a, Counted>,
    unknown: Location,
    /// How many more pairs of an indirect jump and a target there may be.
    pairs_left: usize,
}

/// Pairs of an indirect jump and one of its targets grow with the square of the file, if it was made to do harm. An
/// interpreter with a thousand instructions has no more than a million.
const FREE_PAIRS: usize = 1 << 20;
const PAIRS_PER_BLOCK: usize = 16;

impl Records<'_> {
    fn add(&mut self, from: Location, to: Location, count: u64) {
        if count > 0 {
            self.builder.add_branch(BranchRecord { from, to, mispredicts: 0, count });
        }
    }

    fn start_of(&self, name: u32) -> Location {
        Location::new(LocationKind::Symbol, self.names[name as usize], 0)
    }

    fn place(&self, function: &Function, block: &Block, offset: u32) -> Location {
        let name = function.fragments[block.fragment as usize];
        Location::new(LocationKind::Symbol, self.names[name as usize], block.offset.saturating_add(offset))
    }

    fn function(&mut self, function: &Function, counts: &Counts) -> Result<()> {
        for (i, block) in function.blocks.iter().enumerate() {
            let last = self.place(function, block, block.last);
            for (successor, &flow) in block.successors.iter().zip(&counts.flows[i]) {
                let to = self.place(function, &function.blocks[successor.block as usize], 0);
                self.add(last, to, flow);
            }
            for (nth, call) in block.calls.iter().enumerate() {
                let from = self.place(function, block, call.offset);
                self.call(from, call.callee, counts.of_call(i, block, nth));
            }
            if let Some(callee) = block.exit {
                self.call(last, callee, counts.of_exit(i, block));
            }
            for &site in &block.sites {
                self.targets(self.place(function, block, site));
            }
        }
        self.indirect_jumps(function, counts)
    }

    /// Where the next site, an indirect call or jump at `from`, led.
    fn targets(&mut self, from: Location) {
        let Some(counted) = self.counted.next() else { return };
        for &(name, count) in &counted.functions {
            self.add(from, self.start_of(name), count);
        }
        self.add(from, self.unknown, counted.others);
    }

    fn call(&mut self, from: Location, callee: u32, bounds: Bounds) {
        let count = self.calls.take(callee, bounds);
        let called = &mut self.called[callee as usize];
        *called = called.saturating_add(count);
        self.add(from, self.start_of(callee), count);
    }

    /// Shares out what arrived at each target among the jumps that may lead there.
    fn indirect_jumps(&mut self, function: &Function, counts: &Counts) -> Result<()> {
        let mut jumps: Vec<Vec<(&Block, u128)>> = vec![Vec::new(); function.target_sets.len()];
        for (block, &left) in function.blocks.iter().zip(&counts.left) {
            if let Some(set) = block.targets
                && left > 0
            {
                jumps[set as usize].push((block, u128::from(left)));
            }
        }
        // By target, all that left through a set that holds it.
        let mut totals = vec![0u128; function.blocks.len()];
        for (targets, jumps) in function.target_sets.iter().zip(&jumps) {
            let total: u128 = jumps.iter().map(|(_, left)| left).sum();
            targets.iter().for_each(|&target| totals[target as usize] += total);
        }
        for (targets, jumps) in function.target_sets.iter().zip(&jumps) {
            for &target in targets.iter().filter(|&&target| counts.entered[target as usize] > 0) {
                self.pairs_left = self.pairs_left.checked_sub(jumps.len()).ok_or_else(|| {
                    Error::new("the description of the counters lets too many jumps lead to too many places")
                        .next("instrument and run the program again")
                })?;
                let arrived = counts.entered[target as usize];
                let to = self.place(function, &function.blocks[target as usize], 0);
                for (block, left) in jumps {
                    let share = share(arrived, *left, totals[target as usize]);
                    self.add(self.place(function, block, block.last), to, share);
                }
            }
        }
        Ok(())
    }
}

/// `arrived × left / total`, rounded; no more than `arrived`, as `left` is a part of the total.
fn share(arrived: u64, left: u128, total: u128) -> u64 {
    // Counts that no run reaches lose low digits, so that the product fits.
    let extra = (u128::BITS - total.leading_zeros()).saturating_sub(62);
    let (left, total) = (left >> extra, total >> extra);
    ((u128::from(arrived) * left * 2 + total) / (total * 2)) as u64
}
