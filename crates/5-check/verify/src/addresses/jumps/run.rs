//! Runs a function on what is known of its values instead of the values themselves (Cousot and Cousot, "Abstract
//! interpretation", 1977), and so finds where control comes to, which tables it goes through, and what is computed with.

use super::body::{Body, NearJump};
use super::frame::Frame;
use super::hub::{Hub, Targets};
use super::several_tables::Read;
use super::steps::{From, Step};
use super::values::{ENTRY, GIVEN, LABEL, STORED, SUM, TARGET, Value};
use crate::check::Check;
use crate::input::code::Kind;
use afterlink_isa::judgement::{Convention, GENERAL, Memory, REGISTERS, Reader};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// How often each cut may be run, on average, before the function is given up.
const MOST_ROUNDS: usize = 64;
/// Cuts in front of an indirect jump that are looked at before the function is run as a whole.
const NEAR: usize = 8;
/// Frames of which nothing is known but that they are no others lie this far apart.
const APART: i64 = 1 << 40;

pub(super) type Fault = (u64, &'static str);

const COMPUTED: &str = "the function computes with the address of one of its labels";
const BETWEEN: &str = "a jump leads between two instructions";
const UNKNOWN: &str = "nothing shows that the indirect jump leads to the new place of what it led to";

type State = [Value; REGISTERS];

/// The tables that a function names, each with where it leads to, in the order of its words.
pub(super) type Tables = FxHashMap<u64, Vec<u64>>;

pub(super) struct Run<'r, 'c, 'a> {
    check: &'r Check<'c, 'a>,
    body: &'r Body,
    tables: &'r Tables,
    /// Places of the function whose address something stores or names, ascending.
    labels: &'r [u64],
    /// Those that the function's own instructions name.
    made: &'r [u64],
    /// Registers that are followed.
    followed: usize,
    reader: Reader,
    convention: &'static Convention,
    /// Of each cut that was run.
    steps: Vec<Option<Vec<Option<Step>>>>,
    states: Vec<Option<Box<[Value]>>>,
    /// Cuts that load from the frame.
    loads: Vec<bool>,
    waiting: BTreeSet<usize>,
    frame: Frame<'r>,
    hubs: FxHashMap<Targets, Hub>,
    /// Tables that jumps go through.
    pub bases: BTreeSet<u64>,
    /// Cuts whose indirect jumps may lead to a place inside the function even if nobody has the address of any: not to what was loaded or given.
    inside: BTreeSet<usize>,
    /// The first thing that is wrong in each cut as it was run last, or, of no cut, with a place that control was let come to from
    /// outside. What a register holds may become clear when control comes there from elsewhere too, so only what is wrong at the end
    /// counts.
    pub faults: BTreeMap<Option<usize>, Fault>,
    /// How often control was let come to a cut.
    #[cfg(test)]
    pub arrivals: usize,
    /// The cut that is being run, if one is.
    running: Option<usize>,
    /// An entry of one of several tables that the cut has read, while its place in that table can still be told.
    read: Option<Read>,
}

impl<'r, 'c, 'a> Run<'r, 'c, 'a> {
    pub fn new(
        check: &'r Check<'c, 'a>,
        body: &'r Body,
        tables: &'r Tables,
        (labels, made): (&'r [u64], &'r [u64]),
        followed_words: BTreeSet<i64>,
    ) -> Self {
        Self {
            check,
            body,
            tables,
            labels,
            made,
            // Vectors matter only as places where labels are kept.
            followed: if labels.is_empty() { GENERAL } else { REGISTERS },
            reader: Reader::new(check.code.judgement),
            convention: check.code.judgement.convention(),
            steps: vec![None; body.cuts.len()],
            states: vec![None; body.cuts.len()],
            loads: vec![false; body.cuts.len()],
            waiting: BTreeSet::new(),
            frame: Frame::new(&body.own, body.cuts.len(), followed_words),
            hubs: FxHashMap::default(),
            bases: BTreeSet::new(),
            inside: BTreeSet::new(),
            faults: BTreeMap::new(),
            #[cfg(test)]
            arrivals: 0,
            running: None,
            read: None,
        }
    }

    /// Where the indirect jumps lead, by cut, if the code right in front of each tells: then nothing else needs to be looked
    /// at in a function that has no labels.
    pub fn near_jumps(&mut self) -> Option<Vec<NearJump>> {
        let before = self.body.only_ways();
        self.body.indirect_jumps().map(|cut| Some((cut, self.near_jump(&before, cut)?))).collect()
    }

    fn near_jump(&mut self, before: &[Option<usize>], cut: usize) -> Option<Option<u64>> {
        let mut way = vec![cut];
        for _ in 0..NEAR {
            let mut state = [Value::Unset; REGISTERS];
            let mut jump = None;
            self.read = None;
            for &cut in way.iter().rev() {
                for i in 0..self.steps_of(cut) {
                    let step = self.steps[cut].as_ref()?[i];
                    self.apply(&mut state, step, &mut jump);
                }
            }
            match jump? {
                Value::Unset => way.push(before[*way.last()?]?),
                Value::Target(base) => return self.tables.contains_key(&base).then_some(Some(base)),
                value if value.is_from_others() => return Some(None),
                _ => return None,
            }
        }
        None
    }

    /// The number of steps of a cut, which are there afterwards.
    fn steps_of(&mut self, cut: usize) -> usize {
        let (check, body, reader) = (self.check, self.body, &mut self.reader);
        self.steps[cut].get_or_insert_with(|| body.steps(check, &body.cuts[cut], reader)).len()
    }

    /// Lets control come to the function's entry, and gives the first fault.
    pub fn enter(&mut self) -> Option<Fault> {
        let mut state = [Value::Other(GIVEN); REGISTERS];
        state[GENERAL..].fill(STORED);
        state[self.stack()] = Value::Frame(0);
        self.frame.enter();
        self.come_to(self.body.own.entry, &state);
        self.settle()
    }

    /// Lets control come to a place from somewhere else.
    pub fn enter_at(&mut self, address: u64) -> Option<Fault> {
        let mut state = [STORED; REGISTERS];
        state[self.stack()] = Value::Frame(APART);
        self.frame.enter();
        self.come_to(address, &state);
        self.settle()
    }

    /// Words of the frame to follow in another run, if there is a fault and any may explain it.
    pub fn mixed_words(&self) -> BTreeSet<i64> {
        self.frame.mixed()
    }

    pub fn is_reached(&self, cut: usize) -> bool {
        self.states[cut].is_some()
    }

    /// Cuts whose indirect jumps lead to no place of a function, if nobody has the address of any.
    pub fn leaving(&self) -> Vec<usize> {
        let leaves = |cut: &usize| self.is_reached(*cut) && !self.inside.contains(cut);
        self.body.indirect_jumps().filter(leaves).collect()
    }

    fn settle(&mut self) -> Option<Fault> {
        let mut left = self.body.cuts.len() * MOST_ROUNDS;
        loop {
            while let Some(cut) = self.waiting.pop_first() {
                self.run(cut);
                left -= 1;
                if left == 0 {
                    return Some((self.body.own.entry, UNKNOWN));
                }
            }
            if !self.frame.settle() {
                return self.faults.values().next().copied();
            }
            self.waiting.extend((0..self.loads.len()).filter(|&cut| self.loads[cut]));
        }
    }

    fn run(&mut self, index: usize) {
        self.running = Some(index);
        self.faults.remove(&self.running);
        self.run_cut(index);
        self.running = None;
    }

    fn blame(&mut self, address: u64, what: &'static str) {
        self.faults.entry(self.running).or_insert((address, what));
    }

    fn run_cut(&mut self, index: usize) {
        let Some(known) = &self.states[index] else { return };
        let mut state = [STORED; REGISTERS];
        state[..known.len()].copy_from_slice(known);
        let cut = &self.body.cuts[index];
        let is_entry = cut.start == self.body.own.entry && state[self.stack()] == Value::Frame(0);
        self.frame.begin(index);
        self.read = None;
        let mut jump = None;
        let mut address = cut.start;
        for i in 0..self.steps_of(index) {
            let Some(step) = self.steps[index].as_ref().map(|steps| steps[i]) else { break };
            self.loads[index] |= step.is_some_and(|step| step.loads());
            // What an instruction that raises an exception by itself would have changed, it has not.
            let is_call = matches!(step, Some(Step::Call { .. }));
            if !is_call {
                self.land(index, address, &state);
            }
            if self.apply(&mut state, step, &mut jump) {
                self.blame(address, COMPUTED);
            }
            if is_call {
                self.land(index, address, &state);
            }
            address += u64::from(self.check.code.insts[cut.insts.start + i].len);
        }
        // Nothing else leads to the entry with the stack pointer as it is there.
        if is_entry {
            self.frame.publish_first(index)
        } else {
            self.frame.publish(index)
        }
        match cut.kind {
            Kind::Jump => self.come_to(cut.target, &state),
            Kind::Branch | Kind::ShortBranch | Kind::Transaction => {
                self.come_to(cut.target, &state);
                self.come_to(cut.end, &state);
            }
            Kind::IndirectJump => {
                let last = self.check.code.insts[cut.insts.end - 1].len;
                self.jump(cut.end - u64::from(last), jump.unwrap_or(Value::Other(SUM)), &state);
            }
            Kind::Return => {}
            Kind::Call if self.check.slots.never_returns(&self.check.code, cut.target) => {}
            // The last call of a fragment that stands in front of the function does not return either.
            Kind::Call if cut.end == self.body.own.entry => {}
            // Who handles a trap may go on behind it.
            Kind::Next | Kind::Call | Kind::IndirectCall | Kind::Breakpoint | Kind::Fault => {
                self.come_to(cut.end, &state)
            }
        }
    }

    /// An exception may come out of the instruction at `address`, which has left `state`: the landing pad has what calls keep.
    fn land(&mut self, cut: usize, address: u64, state: &State) {
        let Some(site) = self.check.pads.of_inst(address) else { return };
        self.frame.publish(cut);
        let mut landed = *state;
        for (register, value) in landed.iter_mut().enumerate() {
            if register >= GENERAL || self.convention.kept >> register & 1 == 0 {
                *value = Value::Other(GIVEN);
            }
        }
        let stack = self.stack();
        if let Value::Frame(at) = landed[stack] {
            landed[stack] = Value::Frame(at.wrapping_add(site.pushed as i64));
        }
        self.come_to(site.pad, &landed);
    }

    fn jump(&mut self, address: u64, value: Value, state: &State) {
        let own = &self.body.own;
        if value != Value::Unset && !value.is_from_others() {
            self.inside.extend(self.running);
        }
        let is_known = match value {
            Value::Unset => return,
            Value::Target(base) => return self.come_to_any(Targets::Table(base), state),
            Value::TargetAmong(tables) => {
                return own.tables(tables).for_each(|base| self.come_to_any(Targets::Table(base), state));
            }
            Value::Address(place) if own.is_code(place) => return self.come_to(place, state),
            Value::Word(_) => !self.check.input.link_kind.is_position_independent(),
            // Whoever got hold of a label may have computed with it.
            value => {
                let traits = own.traits(value);
                traits & SUM == 0 && (traits & GIVEN == 0 || self.labels.is_empty())
            }
        };
        if !is_known {
            self.blame(address, UNKNOWN);
        }
        if own.traits(value) & TARGET != 0 {
            // Where several ways meet, nobody remembers whose table it was.
            let tables = self.tables;
            tables.keys().for_each(|&base| self.come_to_any(Targets::Table(base), state));
        }
        let targets = if own.is_made(value) { Targets::Made } else { Targets::Labels };
        self.come_to_any(targets, state);
    }

    /// Lets control come to all places that a jump may lead to.
    fn come_to_any(&mut self, targets: Targets, state: &State) {
        let places = match targets {
            Targets::Labels => self.labels,
            Targets::Made => self.made,
            Targets::Table(base) => self.tables.get(&base).map_or(&[][..], |places| places),
        };
        let body = self.body;
        let mut hub = self.hubs.remove(&targets).unwrap_or_else(|| Hub::new(body, places));
        if hub.adds(&body.own, &state[..self.followed], self.frame.here()) {
            hub.cuts.iter().for_each(|&cut| self.come_to_cut(cut, state));
        }
        // It is wrong of each jump, whoever came first.
        if let Some(place) = hub.between {
            self.blame(place, BETWEEN);
        }
        self.hubs.insert(targets, hub);
    }

    fn come_to(&mut self, address: u64, state: &State) {
        if !self.body.own.holds(address) {
            return;
        }
        match self.body.at(address) {
            Some(cut) => self.come_to_cut(cut, state),
            None => self.blame(address, BETWEEN),
        }
    }

    fn come_to_cut(&mut self, cut: usize, state: &State) {
        #[cfg(test)]
        {
            self.arrivals += 1;
        }
        let keeps_more = self.frame.come_to(cut);
        if self.body.own.join_states(&mut self.states[cut], &state[..self.followed]) || keeps_more {
            self.waiting.insert(cut);
        }
    }

    /// The stack pointer's place in a state.
    fn stack(&self) -> usize {
        usize::from(self.convention.stack_pointer)
    }

    /// Whether computing with a value is computing with a label.
    fn is_label(&self, value: Value) -> bool {
        let forbidden = if self.body.has_jumps { LABEL | ENTRY } else { LABEL };
        self.body.own.traits(value) & forbidden != 0
    }

    /// Does to `state` what the step does to the registers; true if it computes with a label.
    fn apply(&mut self, state: &mut State, step: Option<Step>, jump: &mut Option<Value>) -> bool {
        let Some(step) = step else {
            self.read = None;
            return true;
        };
        let named = self.names_by_label(state, step);
        if let Some(read) = self.read.take() {
            if let Some(to) = read.sum(step) {
                self.bases.extend(self.body.own.tables(read.tables));
                state[usize::from(to)] = Value::TargetAmong(read.tables);
                return named;
            }
            self.read = Some(read).filter(|read| read.outlives(step));
        }
        self.read = Read::of(state, step).or(self.read);
        let wrong = match self.apply_arithmetic(state, step) {
            Some(wrong) => wrong,
            None => self.apply_transfer(state, step, jump),
        };
        named || wrong
    }

    /// Steps that work out a value; `None` for others.
    fn apply_arithmetic(&mut self, state: &mut State, step: Step) -> Option<bool> {
        let (to, (value, wrong)) = match step {
            Step::Narrow { to, from, signed } => (to, self.narrow(state, from, signed)),
            Step::Address { to, memory } => (to, self.address(state, memory)),
            Step::Add { to, from } => {
                let added = self.value(state, from);
                (to, self.sum(state[usize::from(to)], added))
            }
            Step::Offset { to, by } => (to, self.offset(state[usize::from(to)], by)),
            _ => return None,
        };
        state[usize::from(to)] = value;
        Some(wrong)
    }

    /// Steps that bring values from one place to another, and those that mix them.
    fn apply_transfer(&mut self, state: &mut State, step: Step, jump: &mut Option<Value>) -> bool {
        match step {
            Step::Nothing | Step::Jump(None) => {}
            Step::Jump(Some(from)) => *jump = Some(self.value(state, from)),
            Step::Copy { to, from } => state[usize::from(to)] = self.value(state, from),
            Step::Align => {
                state[self.stack()] = match state[self.stack()] {
                    Value::Frame(at) if at > -APART / 2 => Value::Frame(at - APART),
                    value => value,
                };
            }
            Step::Select { to, from } => {
                let (one, other) = (state[usize::from(to)], self.value(state, from));
                let is_known = one != Value::Unset && other != Value::Unset;
                state[usize::from(to)] = if is_known { self.body.own.join(one, other) } else { Value::Unset };
            }
            Step::Exchange(a, b) => state.swap(usize::from(a), usize::from(b)),
            Step::Store { memory, from } => {
                let value = self.value(state, from);
                self.store(state, memory, 0, value);
            }
            Step::Push(from) => {
                let value = self.value(state, from);
                if let Value::Frame(at) = state[self.stack()] {
                    state[self.stack()] = Value::Frame(at - 8);
                    self.frame.store(at - 8, value);
                }
            }
            Step::Pop(to) => {
                let value = self.pop(state);
                state[usize::from(to)] = value;
            }
            Step::Leave => {
                state[self.stack()] = state[usize::from(self.convention.frame_pointer)];
                state[usize::from(self.convention.frame_pointer)] = self.pop(state);
            }
            Step::Gather { read, to, size } => self.gather(state, read, to, size),
            Step::Compare { read } => return self.traits_of(state, read) & LABEL != 0,
            Step::Call { through } => return self.call(state, through),
            Step::Mix { read, written, memory } => {
                let traits = self.traits_of(state, read);
                let faulty = traits & LABEL != 0 || self.body.has_jumps && traits & ENTRY != 0;
                members(written).for_each(|register| state[register] = Value::Other(SUM));
                if let Some(memory) = memory {
                    self.store(state, memory, 0, Value::Other(SUM));
                }
                return faulty;
            }
            // Worked out already.
            Step::Narrow { .. } | Step::Address { .. } | Step::Add { .. } | Step::Offset { .. } => {}
        }
        false
    }

    fn traits_of(&self, state: &State, registers: u64) -> u8 {
        members(registers).fold(0, |traits, register| traits | self.body.own.traits(state[register]))
    }

    /// Whether the step's memory operand has a label in one of its registers.
    fn names_by_label(&self, state: &State, step: Step) -> bool {
        let memory = match step {
            Step::Copy { from: From::Memory(memory), .. }
            | Step::Narrow { from: From::Memory(memory), .. }
            | Step::Add { from: From::Memory(memory), .. }
            | Step::Select { from: From::Memory(memory), .. }
            | Step::Push(From::Memory(memory))
            | Step::Jump(Some(From::Memory(memory)))
            | Step::Store { memory, .. }
            | Step::Gather { to: Err(memory), .. } => memory,
            _ => return false,
        };
        [memory.base, memory.index].into_iter().flatten().any(|r| self.is_label(state[usize::from(r)]))
    }

    fn call(&mut self, state: &mut State, through: Option<u8>) -> bool {
        let read = self.convention.arguments | through.map_or(0, |register| 1 << register);
        let handed_on = self.traits_of(state, read) & LABEL != 0;
        for (register, value) in state.iter_mut().enumerate() {
            let forgotten = self.convention.kept >> register & 1 == 0
                && self.body.own.traits(*value) & (LABEL | ENTRY) != 0;
            // The others hold what they held, or are not read before they are set.
            if forgotten || register >= GENERAL {
                *value = STORED;
            }
        }
        for result in self.convention.results {
            state[usize::from(result)] = Value::Other(GIVEN);
        }
        handed_on
    }

    fn value(&mut self, state: &State, from: From) -> Value {
        let stack = self.convention.stack_pointer;
        match from {
            From::Register(register) => state[usize::from(register)],
            From::Number(value) => value,
            From::Memory(memory) => match self.slot(state, memory, 0) {
                Some(slot) => self.frame.load(slot),
                None => match (memory.base, memory.base.map(|base| state[usize::from(base)])) {
                    (_, Some(Value::Unset)) => Value::Unset,
                    (Some(base), Some(Value::Frame(_))) if base == stack => STORED,
                    (Some(base), _) if base == stack => Value::Other(SUM),
                    _ => STORED,
                },
            },
        }
    }

    /// The word of the frame that an operand names, or one `further` on.
    fn slot(&self, state: &State, memory: Memory, further: i64) -> Option<i64> {
        match (memory.base.map(|base| state[usize::from(base)]), memory.index) {
            (Some(Value::Frame(at)), None) => Some(at.wrapping_add(memory.address).wrapping_add(further)),
            _ => None,
        }
    }

    fn store(&mut self, state: &State, memory: Memory, further: i64, value: Value) {
        if let Some(slot) = self.slot(state, memory, further) {
            self.frame.store(slot, value);
        }
    }

    fn pop(&mut self, state: &mut State) -> Value {
        let at = match state[self.stack()] {
            Value::Frame(at) => at,
            Value::Unset => return Value::Unset,
            _ => return STORED,
        };
        state[self.stack()] = Value::Frame(at + 8);
        self.frame.load(at)
    }

    fn gather(&mut self, state: &mut State, read: u64, to: Result<u8, Memory>, size: u8) {
        let address = match to {
            Ok(_) => 0,
            Err(memory) => {
                [memory.base, memory.index].into_iter().flatten().fold(0, |set, r| set | 1u64 << r)
            }
        };
        let value = Value::Other(self.traits_of(state, read & !address) & !SUM);
        match to {
            Ok(register) => state[usize::from(register)] = value,
            Err(memory) => {
                (0..i64::from(size)).step_by(8).for_each(|at| self.store(state, memory, at, value));
            }
        }
    }

    fn narrow(&mut self, state: &State, from: From, signed: bool) -> (Value, bool) {
        let value = match from {
            From::Memory(memory) => match self.named(state, memory) {
                Value::Address(table) if signed => return (Value::Entry(table), false),
                Value::Address(table) => return (Value::Word(table), false),
                Value::Unset => Value::Unset,
                _ => Value::Other(SUM),
            },
            From::Register(register) => state[usize::from(register)],
            From::Number(value) => value,
        };
        match value {
            Value::Unset => (value, false),
            Value::Word(table) if signed => (Value::Entry(table), false),
            Value::Word(_) if !signed => (value, false),
            Value::Address(place) if !signed && place >> 32 == 0 => (value, false),
            _ => (Value::Other(SUM), self.is_label(value)),
        }
    }

    /// The address that an operand starts from, if one of its registers holds a known one.
    fn named(&self, state: &State, memory: Memory) -> Value {
        let plain = memory.index.filter(|_| memory.plain);
        let mut known = Value::Other(SUM);
        if memory.base.is_none() && memory.index.is_none() {
            known = Value::Address(0);
        }
        for register in [plain, memory.base].into_iter().flatten() {
            match state[usize::from(register)] {
                Value::Unset => return Value::Unset,
                Value::Address(place) | Value::Base(place) => known = Value::Address(place),
                _ => {}
            }
        }
        match known {
            Value::Address(place) => Value::Address(place.wrapping_add(memory.address as u64)),
            value => value,
        }
    }

    fn address(&mut self, state: &State, memory: Memory) -> (Value, bool) {
        let value = |register: Option<u8>| register.map(|r| state[usize::from(r)]);
        match (value(memory.base), value(memory.index)) {
            (None, None) => (Value::Address(memory.address as u64), false),
            (Some(base), None) => self.offset(base, memory.address),
            (Some(base), Some(index)) if memory.plain && memory.address == 0 => self.sum(base, index),
            (base, index) => {
                let labels = [base, index].into_iter().flatten().any(|value| self.is_label(value));
                (Value::Other(SUM), labels)
            }
        }
    }

    fn offset(&self, value: Value, by: i64) -> (Value, bool) {
        match value {
            _ if by == 0 => (value, false),
            Value::Unset => (value, false),
            Value::Frame(at) => (Value::Frame(at.wrapping_add(by)), false),
            Value::Address(place) if !self.is_label(value) => {
                (Value::Address(place.wrapping_add(by as u64)), false)
            }
            _ => (Value::Other(SUM), self.is_label(value)),
        }
    }

    fn sum(&mut self, a: Value, b: Value) -> (Value, bool) {
        match (a, b) {
            (Value::Unset, _) | (_, Value::Unset) => (Value::Unset, false),
            (Value::Entry(table), Value::Address(base) | Value::Base(base))
            | (Value::Address(base) | Value::Base(base), Value::Entry(table))
                if table == base && self.tables.contains_key(&base) =>
            {
                self.bases.insert(base);
                (Value::Target(base), false)
            }
            _ => (Value::Other(SUM), self.is_label(a) || self.is_label(b)),
        }
    }
}

fn members(set: u64) -> impl Iterator<Item = usize> {
    (0..REGISTERS).filter(move |register| set >> register & 1 == 1)
}
