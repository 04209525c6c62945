//! Follows what registers hold through a run of code, so that an address that `adrp` and a later instruction name together is
//! known, and so are the tables that indirect jumps go through: conditional constant propagation (Wegman and Zadeck, 1991)
//! without the conditions, over the blocks of one function, with upper bounds that comparisons tell.

use super::decode::{bits, decode};
use super::effects::CLOBBERED_BY_CALLS;
use super::values::{State, Value};
use crate::facts::{Facts, Run, Whole};
use crate::{Flow, Inst};
use std::collections::BTreeSet;

/// Changes of a block's state behind which bounds are given up.
const OFTEN: u32 = 8;
/// Blocks of a run that are followed: each has a state of one and a half kilobytes.
const MOST_BLOCKS: usize = 1 << 16;
/// Rounds in which tables may show that blocks start elsewhere. A table that is in the way of another takes one.
const ROUNDS: usize = 100;

/// What values in registers tell of `run`.
pub fn follow(run: &Run) -> Facts {
    let insts = decode_all(run);
    // Most functions have nothing to follow.
    let is_wanted = |inst: &Option<Inst>| {
        inst.is_some_and(|i| i.flow == Flow::IndirectJump || i.operand.is_some_and(|o| o.base.is_none()))
    };
    if !insts.iter().any(is_wanted) {
        return Facts::default();
    }
    let mut starts = block_starts(run, &insts);
    for _ in 0..ROUNDS {
        if starts.len() > MOST_BLOCKS {
            break;
        }
        let list: Vec<u32> = starts.iter().copied().collect();
        let states = vec![None; list.len()];
        let mut followed = Followed { run, insts: &insts, states, starts: &list, more: BTreeSet::new() };
        followed.settle();
        if followed.more.is_empty() {
            return followed.tell();
        }
        // Tables lead into the middle of what seemed to be blocks.
        starts.append(&mut followed.more);
    }
    // No compiler writes that: nothing is told, so that no jump is understood.
    let jumps = insts.iter().enumerate().filter(|(_, i)| i.is_some_and(|i| i.flow == Flow::IndirectJump));
    Facts { calculated_jumps: jumps.map(|(i, _)| 4 * i as u32).collect(), ..Facts::default() }
}

fn decode_all(run: &Run) -> Vec<Option<Inst>> {
    let is_data = |at: u32| {
        let next = run.data.partition_point(|range| range.0 <= at);
        next > 0 && at < run.data[next - 1].1
    };
    let words = run.bytes.chunks_exact(4).enumerate();
    words.map(|(i, word)| if is_data(4 * i as u32) { None } else { decode(word) }).collect()
}

/// The place that the direct jump at `at` leads to, if it lies in the run.
fn target(run: &Run, at: u32, inst: &Inst) -> Option<u32> {
    let displacement = inst.flow.displacement()?;
    let to = i64::from(at) + 4 + displacement;
    (to >= 0 && to < run.bytes.len() as i64).then_some(to as u32)
}

fn block_starts(run: &Run, insts: &[Option<Inst>]) -> BTreeSet<u32> {
    let mut starts = BTreeSet::from([0]);
    for (i, inst) in insts.iter().enumerate() {
        let at = 4 * i as u32;
        match inst {
            None => starts.extend([at, at + 4]),
            Some(inst) if inst.flow.ends_block() => {
                starts.insert(at + 4);
                starts.extend(target(run, at, inst));
            }
            Some(_) => {}
        }
    }
    let end = 4 * insts.len() as u32;
    starts.retain(|&start| start < end && start % 4 == 0);
    starts
}

struct Followed<'r> {
    run: &'r Run<'r>,
    insts: &'r [Option<Inst>],
    starts: &'r [u32],
    /// At the start of each block, with how often it changed; `None`: nothing is known to lead there.
    states: Vec<Option<(State, u32)>>,
    /// Where blocks should start besides.
    more: BTreeSet<u32>,
}

impl Followed<'_> {
    /// Runs all blocks until no state changes.
    fn settle(&mut self) {
        let mut work: BTreeSet<usize> = BTreeSet::new();
        self.enter_unknown(0, &mut work);
        loop {
            while let Some(block) = work.pop_first() {
                self.leave(block, &mut work);
            }
            if !self.more.is_empty() {
                break;
            }
            // What nothing known leads to is led to by something unknown.
            let Some(block) = self.states.iter().position(Option::is_none) else { break };
            self.enter_unknown(self.starts[block], &mut work);
            // But for padding in front of what is aligned.
            if self.is_padding(block) {
                work.clear();
            }
        }
    }

    fn is_padding(&self, block: usize) -> bool {
        let end = self.starts.get(block + 1).map_or(self.insts.len(), |&start| start as usize / 4);
        let insts = &self.insts[self.starts[block] as usize / 4..end];
        insts.iter().all(|inst| inst.is_none_or(|inst| inst.nop))
    }

    fn enter_unknown(&mut self, start: u32, work: &mut BTreeSet<usize>) {
        let state = State::unknown(self.run.address + u64::from(start));
        self.enter(start, &state, work);
    }

    fn enter(&mut self, start: u32, state: &State, work: &mut BTreeSet<usize>) {
        let Ok(block) = self.starts.binary_search(&start) else { return };
        let changed = match &mut self.states[block] {
            Some((own, times)) => {
                let changed = own.join(state, self.run.address + u64::from(start), *times >= OFTEN);
                *times += u32::from(changed);
                changed
            }
            none => {
                *none = Some((state.clone(), 0));
                true
            }
        };
        if changed {
            work.insert(block);
        }
    }

    /// Runs a block, and brings its state to those behind it.
    fn leave(&mut self, block: usize, work: &mut BTreeSet<usize>) {
        let Some((mut state, _)) = self.states[block].clone() else { return };
        let Some((at, inst)) = self.run_block(block, &mut state, |_, _, _, _| {}) else { return };
        let word = self.word(at);
        let is_on_flags = word >> 24 == 0x54;
        if let Some(target) = target(self.run, at, &inst).filter(|_| inst.flow.ends_block()) {
            let mut taken = state.clone();
            if is_on_flags {
                taken.refine(bits(word, 0, 4), true);
            }
            self.enter(target, &taken, work);
        }
        if inst.flow == Flow::IndirectJump
            && let Value::Target(jump) = state.get(bits(word, 5, 5))
        {
            for to in (self.run.targets)(&jump) {
                if self.starts.binary_search(&to).is_ok() {
                    self.enter(to, &state, work);
                } else if to % 4 == 0 && (to as usize) < self.run.bytes.len() {
                    self.more.insert(to);
                }
            }
        }
        if inst.flow.falls_through() {
            if is_on_flags {
                state.refine(bits(word, 0, 4), false);
            }
            self.enter(at + 4, &state, work);
        }
    }

    fn word(&self, at: u32) -> u32 {
        let bytes = &self.run.bytes[at as usize..];
        u32::from_le_bytes(*bytes.first_chunk().expect("an instruction"))
    }

    /// Runs the instructions of a block over `state`, showing each with the state behind it (which is that before a jump) and
    /// the whole address that it names; returns the last, if all are instructions.
    fn run_block(
        &self,
        block: usize,
        state: &mut State,
        mut show: impl FnMut(u32, &Inst, &State, Option<(Option<u64>, u64)>),
    ) -> Option<(u32, Inst)> {
        let end = self.starts.get(block + 1).map_or(self.insts.len() * 4, |&s| s as usize);
        let mut last = None;
        for at in (self.starts[block]..end as u32).step_by(4) {
            let inst = self.insts[at as usize / 4]?;
            let place = self.run.address + u64::from(at);
            let mut whole = None;
            match inst.flow {
                Flow::Next => whole = state.run(self.word(at), inst.operand, place).whole,
                Flow::Call(_) | Flow::IndirectCall | Flow::Fault => {
                    state.forget(CLOBBERED_BY_CALLS, place);
                    state.forget_flags();
                }
                _ => {}
            }
            show(at, &inst, state, whole);
            last = Some((at, inst));
        }
        last
    }

    fn tell(&self) -> Facts {
        let mut facts = Facts::default();
        for block in 0..self.starts.len() {
            let Some((mut state, _)) = self.states[block].clone() else { continue };
            self.run_block(block, &mut state, |at, inst, state, whole| {
                facts.wholes.extend(whole.map(|(page_at, address)| Whole {
                    at,
                    address,
                    page_at: page_at.map(|place| (place - self.run.address) as u32),
                }));
                if inst.flow != Flow::IndirectJump {
                    return;
                }
                match state.get(bits(self.word(at), 5, 5)) {
                    Value::Target(jump) => facts.table_jumps.push((at, jump)),
                    Value::Other { is_sum: false, .. } | Value::Address(_) => {}
                    _ => facts.calculated_jumps.push(at),
                }
            });
        }
        facts
    }
}
