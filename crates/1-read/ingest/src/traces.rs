//! Branches, runs of code and samples by address, summed, and then turned into a [`Profile`] with the program. If that is an output of
//! afterlink, they are judged by its own code, and led back to the input afterwards.
//!
//! A branch stack says which branches were taken, and so which code ran between two of them: all of it, in order. A profile has
//! records of branches only, so each such run is walked, and each instruction in it behind which a block ends becomes a record from it to
//! the next one: conditional branches that were not taken, and what stands in front of a target of a direct jump. Other block starts
//! are not known here; whoever reads the profile knows that what enters a block leaves it. Returns get no record, as nobody can change
//! where they lead; BOLT leaves them out, too.

use crate::program::{Piece, Program};
use afterlink_core::{InputAddr, Result};
use afterlink_isa::Flow;
use afterlink_profile::{BranchRecord, Kind, Location, LocationKind, Profile, ProfileBuilder, SampleRecord};
use rustc_hash::FxHashMap;

/// An address of the program, or `None` for what lies outside of it.
pub type Spot = Option<InputAddr>;

/// Runs that are longer are none: no branch stack belongs to such code.
const LONGEST_RUN: u64 = 1 << 16;

/// What was seen, by address.
#[derive(Default)]
pub struct Traces {
    branches: FxHashMap<(Spot, Spot), Taken>,
    /// From the first instruction of a run to the branch that ended it, both included.
    runs: FxHashMap<(InputAddr, InputAddr), u64>,
    samples: FxHashMap<InputAddr, u64>,
}

#[derive(Clone, Copy, Default)]
struct Taken {
    count: u64,
    mispredicted: u64,
}

/// How well what was seen agrees with the program's code; counts are of what was seen, not of distinct places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Branches from or to the program, and how many of them its code cannot have taken.
    pub branches: u64,
    pub impossible_branches: u64,
    /// Runs of code, and how many of them are none.
    pub runs: u64,
    pub impossible_runs: u64,
    /// Samples in the program, and how many of them in no function.
    pub samples: u64,
    pub nameless_samples: u64,
}

impl Agreement {
    /// Says so if the program's code looks like another's.
    pub fn doubt(&self) -> Option<String> {
        let parts = [
            (self.impossible_branches, self.branches, "branches"),
            (self.impossible_runs, self.runs, "runs of code between them"),
        ];
        let wrong = parts.iter().find(|(wrong, all, _)| *wrong > all / 10)?;
        let share = 100 * u128::from(wrong.0) / u128::from(wrong.1.max(1));
        Some(format!(
            "{share} % of the {} cannot be this program's: was it this very file that ran?",
            wrong.2
        ))
    }
}

impl Traces {
    /// Counts a branch that was taken.
    pub fn add_branch(&mut self, from: Spot, to: Spot, mispredicted: u64, count: u64) {
        if from.is_some() || to.is_some() {
            let taken = self.branches.entry((from, to)).or_default();
            taken.count = taken.count.saturating_add(count);
            taken.mispredicted = taken.mispredicted.saturating_add(mispredicted);
        }
    }

    /// Counts a run from `start` to the instruction at `end`.
    pub fn add_run(&mut self, start: InputAddr, end: InputAddr, count: u64) {
        let sum = self.runs.entry((start, end)).or_default();
        *sum = sum.saturating_add(count);
    }

    /// Counts a sample.
    pub fn add_sample(&mut self, at: InputAddr, count: u64) {
        let sum = self.samples.entry(at).or_default();
        *sum = sum.saturating_add(count);
    }

    /// Whether there is anything of branch stacks.
    pub fn has_branches(&self) -> bool {
        !self.branches.is_empty() || !self.runs.is_empty()
    }

    /// The profile of branches.
    ///
    /// # Errors
    /// As of [`ProfileBuilder::intern`].
    pub fn into_branches(self, program: &Program) -> Result<(Profile, Agreement)> {
        let mut names = Names::new(program, Kind::Branches);
        let mut agreement = Agreement::default();
        for (&(from, to), taken) in &self.branches {
            agreement.branches = agreement.branches.saturating_add(taken.count);
            match from.map(|from| judge(program, from, to)) {
                Some(Judgement::Impossible) => {
                    agreement.impossible_branches = agreement.impossible_branches.saturating_add(taken.count);
                }
                Some(Judgement::Return) => {}
                Some(Judgement::Branch) | None => {
                    if let Some((from, to)) = program.led_back(from, to) {
                        names.add_branch(from, to, *taken)?;
                    }
                }
            }
        }
        let mut targets = Targets { program, of_run: FxHashMap::default() };
        for (&(start, end), &count) in &self.runs {
            agreement.runs = agreement.runs.saturating_add(count);
            match targets.passed(start, end) {
                Some(branches) => {
                    for (from, to) in branches {
                        names.add_branch(Some(from), Some(to), Taken { count, mispredicted: 0 })?;
                    }
                }
                None => agreement.impossible_runs = agreement.impossible_runs.saturating_add(count),
            }
        }
        Ok((names.builder.finish(), agreement))
    }

    /// The profile of samples of these `events`.
    ///
    /// # Errors
    /// As of [`ProfileBuilder::intern`].
    pub fn into_samples(self, program: &Program, events: &[String]) -> Result<(Profile, Agreement)> {
        let mut names = Names::new(program, Kind::Samples);
        let mut agreement = Agreement::default();
        for (&at, &count) in &self.samples {
            agreement.samples = agreement.samples.saturating_add(count);
            match names.locate(program.sampled(at))? {
                Some(at) => names.builder.add_samples(SampleRecord { at, count }),
                None => agreement.nameless_samples = agreement.nameless_samples.saturating_add(count),
            }
        }
        for event in events {
            names.builder.add_event(event.as_bytes());
        }
        Ok((names.builder.finish(), agreement))
    }
}

/// What the program's code says of a branch out of it.
enum Judgement {
    Branch,
    Return,
    Impossible,
}

fn judge(program: &Program, from: InputAddr, to: Spot) -> Judgement {
    let Some(inst) = program.instruction_at(from) else { return Judgement::Impossible };
    let behind = from + u64::from(inst.len);
    match inst.flow {
        Flow::Return => Judgement::Return,
        Flow::IndirectJump | Flow::IndirectCall | Flow::Transaction(_) => Judgement::Branch,
        Flow::Next | Flow::Breakpoint | Flow::Fault => Judgement::Impossible,
        flow => {
            let target = flow.displacement().map(|d| InputAddr(behind.get().wrapping_add_signed(d)));
            // A call of the linker's stub may lead out at once where the processor records no jump of the stub.
            if to.is_none() || to == target { Judgement::Branch } else { Judgement::Impossible }
        }
    }
}

/// Where direct jumps of each function lead inside of it, found when they are first asked for.
struct Targets<'a, 'p> {
    program: &'a Program<'p>,
    of_run: FxHashMap<InputAddr, Vec<InputAddr>>,
}

impl Targets<'_, '_> {
    /// The instructions between `start` and `end` behind which a block ends, each with the next one, as places of the input; `None` if
    /// control can't have gone from one to the other without a jump.
    fn passed(&mut self, start: InputAddr, end: InputAddr) -> Option<Vec<(InputAddr, InputAddr)>> {
        if end < start || end.since(start) > LONGEST_RUN {
            return None;
        }
        let program = self.program;
        let (mut passed, mut before) = (Vec::new(), None);
        let mut at = start;
        let mut run = program.run_around(start)?;
        let mut targets = self.of_run(run);
        loop {
            // From one run of code control may go on into the one behind it, where afterlink wrote both.
            if at >= run.1 {
                run = program.run_from(at)?;
                targets = self.of_run(run);
            }
            if at >= end {
                break;
            }
            passed.extend(program.inlined_at(before, at));
            let inst = program.instruction_at(at)?;
            let next = at + u64::from(inst.len);
            let ends_block = match inst.flow {
                Flow::Branch(..) | Flow::ShortBranch(_) => true,
                flow if !flow.falls_through() => return None,
                _ => targets.binary_search(&next).is_ok(),
            };
            if program.is_written_anew(at) {
                passed.extend(program.crossed(at, next));
            } else if ends_block {
                passed.push((at, next));
            }
            before = Some(at);
            at = next;
        }
        passed.extend(program.inlined_at(before, end));
        (at == end).then_some(passed)
    }

    /// Where the direct jumps of a run of code lead.
    fn of_run(&mut self, (start, end): (InputAddr, InputAddr)) -> &[InputAddr] {
        self.of_run.entry(start).or_insert_with(|| jump_targets(self.program, start, end))
    }
}

/// Where the direct jumps between two addresses lead, as long as that decodes.
fn jump_targets(program: &Program, start: InputAddr, end: InputAddr) -> Vec<InputAddr> {
    let mut targets = Vec::new();
    let mut at = start;
    while at < end {
        let Some(inst) = program.instruction_at(at) else { break };
        at = at + u64::from(inst.len);
        if let Flow::Jump(distance) | Flow::Branch(_, distance) | Flow::ShortBranch(distance) = inst.flow {
            targets.push(InputAddr(at.get().wrapping_add_signed(distance)));
        }
    }
    targets.sort_unstable();
    targets.dedup();
    targets
}

/// A profile on its way, and the names of its program.
struct Names<'a, 'p> {
    program: &'a Program<'p>,
    builder: ProfileBuilder,
}

impl<'a, 'p> Names<'a, 'p> {
    fn new(program: &'a Program<'p>, kind: Kind) -> Self {
        Self { program, builder: ProfileBuilder::new(kind) }
    }

    fn add_branch(&mut self, from: Spot, to: Spot, taken: Taken) -> Result<()> {
        let (from, to) = (self.locate(from)?, self.locate(to)?);
        if from.is_some() || to.is_some() {
            let (from, to) = (self.or_unknown(from)?, self.or_unknown(to)?);
            let Taken { count, mispredicted: mispredicts } = taken;
            self.builder.add_branch(BranchRecord { from, to, mispredicts, count });
        }
        Ok(())
    }

    /// The name and offset of a place in a function.
    fn locate(&mut self, spot: Spot) -> Result<Option<Location>> {
        let piece = spot.and_then(|at| Some((at, self.program.piece_at(at)?)));
        let Some((at, Piece { start, name, .. })) = piece else { return Ok(None) };
        // A piece of 4 GiB and more has no location behind them.
        let Ok(offset) = u32::try_from(at.since(*start)) else { return Ok(None) };
        Ok(Some(Location::new(LocationKind::Symbol, self.builder.intern(name)?, offset)))
    }

    fn or_unknown(&mut self, location: Option<Location>) -> Result<Location> {
        match location {
            Some(location) => Ok(location),
            None => Ok(Location::new(LocationKind::Foreign, self.builder.intern(b"[unknown]")?, 0)),
        }
    }
}
