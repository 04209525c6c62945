//! One block: two fresh files, a warm-up of each, and their runs in balanced order.

use std::path::PathBuf;
use std::time::Instant;

use afterlink_core::Result;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::cpus::HarnessPlace;
use super::layouts::{LayoutSource, PairPaths, PairSeeds, renew_program};
use super::visit::{Actor, Performance, Server, Stage, Trouble, Watched};
use crate::doctor::watch::Watch;
use crate::record::{BlockRecord, Exclusion, Failure, Plan, Side};
use crate::stats::order::pair_order;

/// The paths of the files under test, all of the same length.
#[derive(Debug, Clone)]
pub struct Files {
    pub a: PathBuf,
    pub b: PathBuf,
    pub shipped_a: PathBuf,
    pub shipped_b: PathBuf,
}

/// What the experiment decided for this block.
#[derive(Debug, Clone, Copy)]
pub struct BlockPlan<'a> {
    pub block: u32,
    pub runs: u32,
    /// Also run the shipped files once each.
    pub with_shipped: bool,
    /// Both files of a pair run at the same time.
    pub together: bool,
    pub cpu: Option<u32>,
    /// What every output must be, if that is checked.
    pub expected_output: Option<&'a str>,
}

/// All that is random in a block, from the experiment's seed and the block's number alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draws {
    pub seeds: PairSeeds,
    /// B moves first.
    pub coin: bool,
    /// B's shipped file moves first.
    pub shipped_coin: bool,
    /// Environment padding of each pair of runs, in bytes; one more for the shipped pair.
    pub paddings: Vec<u32>,
}

impl Draws {
    /// For `runs` pairs.
    pub fn of(plan: &Plan, block: u32, runs: u32) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(plan.seed);
        rng.set_stream(u64::from(block));
        let (first, second) = (rng.next_u64(), rng.next_u64());
        let coins = rng.next_u32();
        Self {
            seeds: PairSeeds { a: first, b: if plan.coupled { first } else { second } },
            coin: coins & 1 == 1,
            shipped_coin: coins & 2 == 2,
            paddings: (0..=runs).map(|_| rng.next_u32() % 4096).collect(),
        }
    }
}

/// Runs a block. A fault of the workload is no error: it is recorded and excludes the block.
///
/// # Errors
/// A layout cannot be written, or a command not be started.
pub fn run_block(
    stage: &Stage,
    plan: &Plan,
    this: BlockPlan,
    files: &Files,
    source: &mut dyn LayoutSource,
) -> Result<BlockRecord> {
    let draws = Draws::of(plan, this.block, this.runs);
    let started = stage.now();
    for path in [&files.a, &files.b] {
        // The file of the block before; a new inode gets its own pages.
        let _ = std::fs::remove_file(path);
    }
    let clock = Instant::now();
    source.write_pair(this.block, draws.seeds, PairPaths { a: &files.a, b: &files.b })?;
    let mut record = BlockRecord {
        block: this.block,
        seed_a: draws.seeds.a,
        seed_b: draws.seeds.b,
        cpu: this.cpu,
        started,
        layout_seconds: clock.elapsed().as_secs_f64(),
        preparation_seconds: 0.0,
        runs: Vec::new(),
        machine: Default::default(),
        excluded: None,
    };
    let place = HarnessPlace::new();
    if let Some(cpu) = this.cpu {
        place.keep_off(cpu);
    }
    let watch = Watch::start(this.cpu);
    let mut troupe = Troupe { stage, this, files, record: &mut record, up: None };
    let played = troupe.play(&draws);
    let closed = troupe.leave();
    record.machine = watch.finish();
    if let Err(stop) = played.and(closed) {
        match stop {
            Stop::Error(error) => return Err(error),
            Stop::Interrupted => record.excluded = Some(Exclusion::Interrupted),
            Stop::Invalid(failure) => {
                if !record.runs.iter().any(|r| r.failure.is_some()) && !failure.output.is_empty() {
                    record.excluded =
                        Some(Exclusion::Invalid(format!("{}: {}", failure.what, failure.output)));
                } else {
                    record.excluded = Some(Exclusion::Invalid(failure.what));
                }
            }
        }
    }
    Ok(record)
}

/// Why a block ends early.
enum Stop {
    Error(afterlink_core::Error),
    Invalid(Failure),
    Interrupted,
}

impl From<afterlink_core::Error> for Stop {
    fn from(error: afterlink_core::Error) -> Self {
        Self::Error(error)
    }
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Failed(failure) => Self::Invalid(failure),
            Trouble::Interrupted => Self::Interrupted,
        }
    }
}

/// The block in progress, and whose server is up.
struct Troupe<'a> {
    stage: &'a Stage<'a>,
    this: BlockPlan<'a>,
    files: &'a Files,
    record: &'a mut BlockRecord,
    up: Option<(Actor<'a>, Server)>,
}

impl<'a> Troupe<'a> {
    fn actor(&self, side: Side, shipped: bool) -> Actor<'a> {
        let path = match (side, shipped) {
            (Side::A, false) => &self.files.a,
            (Side::B, false) => &self.files.b,
            (Side::A, true) => &self.files.shipped_a,
            (Side::B, true) => &self.files.shipped_b,
        };
        Actor { side, shipped, path, cpu: self.this.cpu }
    }

    fn play(&mut self, draws: &Draws) -> std::result::Result<(), Stop> {
        if self.stage.workload.set_up.is_none() && self.stage.workload.warm_up.is_none() {
            self.warm_up(draws)?;
        }
        let order = pair_order(self.this.runs, draws.coin);
        // In the middle of the block, so that drift treats the shipped files like the layouts around them.
        let middle = self.this.runs as usize / 2;
        for (number, pair) in order.chunks(2).enumerate() {
            if number == middle && self.this.with_shipped {
                let sides = [draws.shipped_coin, !draws.shipped_coin];
                self.pair(sides, true, draws.paddings.last().copied().unwrap_or(0))?;
            }
            if number > 0 {
                self.renew()?;
            }
            self.pair([pair[0], pair[1]], false, draws.paddings[number])?;
        }
        Ok(())
    }

    /// Gives both files other pages for the next pair of runs; a server keeps the file that it was started from.
    fn renew(&mut self) -> std::result::Result<(), Stop> {
        if self.up.is_some() {
            return Ok(());
        }
        let clock = Instant::now();
        for path in [&self.files.a, &self.files.b] {
            renew_program(path)?;
        }
        self.record.preparation_seconds += clock.elapsed().as_secs_f64();
        Ok(())
    }

    /// One untimed run of each file, in the order of the coin: page cache and first touch.
    fn warm_up(&mut self, draws: &Draws) -> std::result::Result<(), Stop> {
        let clock = Instant::now();
        for b in [draws.coin, !draws.coin] {
            let done = {
                let actor = self.actor(Side::of(b), false);
                self.stage.perform(actor, None, draws.paddings[0], Watched::Nothing)?
            };
            if done.interrupted {
                return Err(Stop::Interrupted);
            }
            if let Some(failure) = done.record.failure {
                return Err(Stop::Invalid(failure));
            }
        }
        self.record.preparation_seconds += clock.elapsed().as_secs_f64();
        Ok(())
    }

    /// One run of each side, B first where `sides` begins with `true`.
    fn pair(&mut self, sides: [bool; 2], shipped: bool, padding: u32) -> std::result::Result<(), Stop> {
        let actors = sides.map(|b| self.actor(Side::of(b), shipped));
        if self.this.together {
            let [first, second] = self.stage.perform_both(actors, padding)?;
            let first = self.keep(first, actors[0]);
            return self.keep(second, actors[1]).and(first);
        }
        for actor in actors {
            self.bring_up(actor, padding)?;
            let server = self.up.as_ref().map(|(_, server)| server);
            let done = self.stage.perform(actor, server, padding, Watched::Metrics)?;
            self.keep(done, actor)?;
        }
        Ok(())
    }

    fn keep(&mut self, mut done: Performance, actor: Actor) -> std::result::Result<(), Stop> {
        if done.interrupted {
            return Err(Stop::Interrupted);
        }
        if let (None, Some(expected)) = (&done.record.failure, self.this.expected_output)
            && done.record.output != expected
        {
            done.record.failure = Some(Failure {
                what: format!("{} printed something else than before", actor.side.letter()),
                output: String::from_utf8_lossy(&done.stdout[..done.stdout.len().min(2_000)]).into_owned(),
            });
        }
        let failure = done.record.failure.clone();
        self.record.runs.push(done.record);
        failure.map_or(Ok(()), |failure| Err(Stop::Invalid(failure)))
    }

    /// Sees to it that this actor's server is the one that is up.
    fn bring_up(&mut self, actor: Actor<'a>, padding: u32) -> std::result::Result<(), Stop> {
        let workload = self.stage.workload;
        if workload.set_up.is_none() && workload.warm_up.is_none() && workload.tear_down.is_none() {
            return Ok(());
        }
        if self.up.as_ref().is_some_and(|(who, _)| who.path == actor.path) {
            return Ok(());
        }
        self.leave()?;
        let clock = Instant::now();
        let server = self.stage.set_up(actor, padding)??;
        self.record.preparation_seconds += clock.elapsed().as_secs_f64();
        self.up = Some((actor, server));
        Ok(())
    }

    fn leave(&mut self) -> std::result::Result<(), Stop> {
        let Some((actor, server)) = self.up.take() else { return Ok(()) };
        let clock = Instant::now();
        let trouble = self.stage.tear_down(server, actor)?;
        self.record.preparation_seconds += clock.elapsed().as_secs_f64();
        trouble.map_or(Ok(()), |trouble| Err(trouble.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_drawn_from_its_number_alone() {
        let plan = Plan { seed: 7, ..Plan::default() };
        assert_eq!(Draws::of(&plan, 3, 2), Draws::of(&plan, 3, 2));
        let draws: Vec<Draws> = (0..400).map(|b| Draws::of(&plan, b, 2)).collect();
        assert!(draws.iter().all(|d| d.seeds.are_coupled() && d.paddings.len() == 3));
        let heads = draws.iter().filter(|d| d.coin).count();
        assert!((150..250).contains(&heads), "{heads} heads of 400");
        let distinct: std::collections::BTreeSet<u64> = draws.iter().map(|d| d.seeds.a).collect();
        assert_eq!(distinct.len(), 400);
        let paddings: Vec<u32> = draws.iter().flat_map(|d| d.paddings.clone()).collect();
        assert!(paddings.iter().all(|p| *p < 4096) && paddings.iter().any(|p| *p > 4000));
    }

    /// Coupled layouts of a program against itself are equal, and every difference would be zero.
    #[test]
    fn independent_layouts_have_seeds_of_their_own() {
        let plan = Plan { coupled: false, ..Plan::default() };
        assert!((0..50).all(|b| !Draws::of(&plan, b, 2).seeds.are_coupled()));
    }

    /// A longer block draws the same layouts: the pilot's blocks could be repeated with more runs.
    #[test]
    fn the_number_of_runs_does_not_change_the_layouts() {
        let plan = Plan { seed: 1, ..Plan::default() };
        assert_eq!(Draws::of(&plan, 9, 2).seeds, Draws::of(&plan, 9, 12).seeds);
        assert_eq!(Draws::of(&plan, 9, 2).coin, Draws::of(&plan, 9, 12).coin);
    }
}
