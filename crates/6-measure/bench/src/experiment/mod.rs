//! Running an experiment: rehearsal, pilot, blocks of fresh layouts, and the moments to stop.
//!
//! ```text
//! rehearse ─► pilot of 5 blocks ─► choose runs per layout ─► blocks … ─► stop at a look, a limit or Ctrl-C
//! ```
//! The result is a record; nothing is judged here except by the stopping rule, which is the same
//! function of the block differences that the analysis uses.

pub mod block;
pub mod counters;
pub mod cpus;
pub mod layouts;
pub mod library;
pub mod process;
pub mod progress;
pub mod rehearsal;
pub mod resume;
pub mod server;
pub mod values;
pub mod visit;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use afterlink_core::{Error, Result};
use sha1::{Digest, Sha1};

use self::block::{BlockPlan, Files, run_block};
use self::layouts::{LayoutSource, copy_program};
use self::library::Library;
use self::progress::{Event, Progress};
use self::rehearsal::{Rehearsed, rehearse};
use self::visit::Stage;
use crate::analyse::{metric_logs, procedure_of};
use crate::doctor;
use crate::metric::{MetricSource, MetricSpec};
use crate::metric_choice;
use crate::record::{
    BlockRecord, CpuPolicy, Exclusion, ExperimentRecord, FORMAT, LayoutMode, MachineRecord, Plan, Program,
    Runs, StopReason, Then, VERSION, Workload,
};
use crate::stats::estimate::{BlockLogs, Estimate, Interval};
use crate::stats::power::{PILOT_BLOCKS, PILOT_RUNS, Spread, runs_after_pilot};
use crate::stats::stopping::{Procedure, StopRule};

/// Fewer layouts than this should not be the price of more runs in each.
const LAYOUTS_WORTH_HAVING: f64 = 10.0;

/// What to compare and how.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Name of the benchmark.
    pub name: String,
    pub label_a: String,
    pub label_b: String,
    pub plan: Plan,
    pub workload: Workload,
    /// An empty directory of ours for the files under test.
    pub work_dir: PathBuf,
    pub machine: MachineRecord,
    /// Set if shared objects are compared and not programs.
    pub library: Option<Library>,
    /// The command that repeats the experiment.
    pub command: Vec<String>,
    /// The experiment that goes on, if it is none of its own: [`resume::goes_on`] made the set-up.
    pub earlier: Option<ExperimentRecord>,
    /// What was known of A, if it was kept from an earlier comparison.
    pub then: Option<Then>,
}

/// Runs the experiment to its end. `stop` may be set at any time, e.g. by a signal handler; the
/// record then holds the finished blocks.
///
/// # Errors
/// Nonsense in the plan, a workload that does not work on the shipped programs, a layout that cannot
/// be written, an interrupt before the first block.
pub fn run_experiment(
    setup: &Setup,
    source: &mut dyn LayoutSource,
    progress: &mut dyn Progress,
    stop: &AtomicBool,
) -> Result<ExperimentRecord> {
    check(setup, source)?;
    let files = place_shipped(setup, source)?;
    let (a, b) =
        (describe(&setup.label_a, source.shipped().a)?, describe(&setup.label_b, source.shipped().b)?);
    if let Some(earlier) = &setup.earlier {
        resume::check(earlier, [&a, &b], &setup.machine)?;
    }
    let origin = origin_of(setup);
    let Some(rehearsed) = rehearse(&stage_of(setup, origin, stop), &setup.plan, &files)? else {
        return Err(Error::new("interrupted before the first measurement; nothing was learned"));
    };
    let setup = &settled(setup, &rehearsed);
    let stage = stage_of(setup, origin, stop);
    let summary = rehearsed.summary;
    if setup.plan.together && !summary.pinned {
        return Err(Error::new(format!(
            "both programs cannot share one CPU: the workload uses {:.1} of them",
            summary.cpus_used
        ))
        .next("leave --together out, or pass --cpus with one CPU"));
    }
    progress.event(&Event::Rehearsed {
        seconds_per_run: summary.seconds,
        pinned: summary.pinned,
        output_checked: summary.output_checked,
    });
    let settings = doctor::inspect(Path::new("/"));
    if let Some(earlier) = &setup.earlier {
        resume::check_output(earlier, &rehearsed)?;
    }
    let mut course = Course::new(setup, &stage, &rehearsed);
    let reason = course.run(source, &files, progress)?;
    let mut machine = setup.machine.clone();
    machine.hard_failures.extend(doctor::changed_settings(&settings, &doctor::inspect(Path::new("/"))));
    Ok(ExperimentRecord {
        format: FORMAT.into(),
        version: VERSION,
        name: setup.name.clone(),
        command: setup.command.clone(),
        a,
        b,
        plan: setup.plan.clone(),
        workload: setup.workload.clone(),
        machine,
        rehearsal: summary,
        runs_per_layout: course.runs,
        blocks: course.blocks,
        stop: reason,
        seconds: stage.now(),
        then: setup.then.clone(),
    })
}

/// When it began; for one that goes on, time goes on from where it ended.
fn origin_of(setup: &Setup) -> Instant {
    let now = Instant::now();
    let before = setup.earlier.as_ref().map_or(0.0, |earlier| earlier.seconds);
    now.checked_sub(Duration::from_secs_f64(before)).unwrap_or(now)
}

fn stage_of<'a>(setup: &'a Setup, origin: Instant, stop: &'a AtomicBool) -> Stage<'a> {
    Stage {
        workload: &setup.workload,
        library: setup.library.as_ref(),
        metrics: &setup.plan.metrics,
        run_folder: setup.work_dir.join("runs"),
        stop,
        origin,
    }
}

/// With the metric that suits the server that was seen, if the user named none.
fn settled(setup: &Setup, rehearsed: &Rehearsed) -> Setup {
    let mut setup = setup.clone();
    let plan = &mut setup.plan;
    if setup.workload.has_server()
        && !plan.metric_choice.is_empty()
        && setup.earlier.is_none()
        && let Some(choice) = metric_choice::of_server(rehearsed.server)
    {
        (plan.metrics, plan.metric_choice) = (choice.metrics, choice.why);
    }
    setup
}

fn check(setup: &Setup, source: &dyn LayoutSource) -> Result<()> {
    let plan = &setup.plan;
    let fault = |what: &str, next: &str| Err(Error::new(what.to_string()).next(next.to_string()));
    if plan.layout != source.mode() {
        return fault(
            "the plan and the layout source disagree about the layout mode",
            "give both the same mode",
        );
    }
    if !(plan.margin > 0.0 && plan.margin < 1.0) {
        return fault("the margin must lie between 0 and 100 %", "pass e.g. --margin 1%");
    }
    if plan.max_layouts < 2 || plan.runs == Runs::Fixed(0) {
        return fault(
            "an experiment needs at least two layouts and one run of each",
            "raise --blocks or --runs",
        );
    }
    if plan.calibration && plan.coupled && plan.layout != LayoutMode::AsIs {
        return fault(
            "a program against itself needs independent layouts: coupled ones are equal",
            "set coupled to false for a calibration",
        );
    }
    if let CpuPolicy::Pin(wanted) = &plan.cpus
        && let allowed = cpus::allowed()
        && let Some(cpu) = wanted.iter().find(|cpu| !allowed.contains(cpu))
    {
        let allowed: Vec<String> = allowed.iter().map(u32::to_string).collect();
        return fault(
            &format!("CPU {cpu} is not among those that may be used here"),
            &format!("choose from {} with --cpus", allowed.join(",")),
        );
    }
    if plan.metrics.is_empty() {
        return fault("no metric to judge by", "name one, e.g. wall time");
    }
    if let StopRule::Precision(wanted) = plan.stop
        && (wanted.is_nan() || wanted <= 0.0)
    {
        return fault("the wanted precision must be positive", "pass e.g. --precision 0.5%");
    }
    plan.metrics.iter().try_for_each(|m| m.check())?;
    if plan.together {
        check_together(setup)?;
    }
    check_judge(setup)
}

/// Whether the metric that judges can be had here.
fn check_judge(setup: &Setup) -> Result<()> {
    let first = &setup.plan.metrics[0];
    if first.sources().any(MetricSource::is_of_server) && !setup.workload.has_server() {
        return Err(Error::new(format!("there is no server whose `{}` could be judged", first.name))
            .next("start it with --set-up, or name the one that runs with --server-pid"));
    }
    let counter = first.sources().find_map(|source| match source {
        MetricSource::Counter(name) | MetricSource::ServerCounter(name) => Some(name),
        _ => None,
    });
    match counter {
        Some(name) if !counters::available(&[name])[0] => {
            Err(Error::new(format!("this machine does not count `{name}`"))
                .next("judge by another metric, or measure where the CPU's counters are open to you"))
        }
        _ => Ok(()),
    }
}

/// Of two programs that share a CPU only what each one used of it can be told apart.
fn check_together(setup: &Setup) -> Result<()> {
    let metrics = &setup.plan.metrics;
    let shared = |m: &&MetricSpec| {
        m.sources().any(|s| {
            matches!(s, MetricSource::Wall | MetricSource::Counter(_) | MetricSource::Latency { .. })
        })
    };
    if let Some(metric) = metrics.iter().find(shared) {
        return Err(Error::new(format!(
            "`{}` of two programs that run at once cannot be told apart",
            metric.name
        ))
        .next("judge by CPU time: --metric cpu"));
    }
    let workload = &setup.workload;
    if workload.has_server() || workload.warm_up.is_some() || workload.tear_down.is_some() {
        return Err(Error::new("a workload with a server cannot run for both programs at once")
            .next("leave --together out"));
    }
    Ok(())
}

/// Paths of one length for all four files, and the shipped ones copied to theirs.
fn place_shipped(setup: &Setup, source: &dyn LayoutSource) -> Result<Files> {
    let shipped = source.shipped();
    let name = shipped.a.file_name().unwrap_or("program".as_ref());
    let path = |dir: &str| -> Result<PathBuf> {
        let dir = setup.work_dir.join(dir);
        std::fs::create_dir_all(&dir)
            .map_err(|e| Error::new(format!("cannot be made: {e}")).in_file(dir.display()))?;
        Ok(dir.join(name))
    };
    let files = Files { a: path("a")?, b: path("b")?, shipped_a: path("x")?, shipped_b: path("y")? };
    copy_program(shipped.a, &files.shipped_a)?;
    copy_program(shipped.b, &files.shipped_b)?;
    if let Some(library) = &setup.library {
        let all = [&files.a, &files.b, &files.shipped_a, &files.shipped_b];
        all.into_iter().try_for_each(|file| library.link_names(file))?;
    }
    Ok(files)
}

/// A program as it was handed over.
///
/// # Errors
/// It cannot be read.
pub fn describe(label: &str, path: &Path) -> Result<Program> {
    let bytes = std::fs::read(path)
        .map_err(|e| Error::new(format!("cannot be read: {e}")).in_file(path.display()))?;
    let sha1 = Sha1::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    Ok(Program { label: label.into(), path: path.into(), bytes: bytes.len() as u64, sha1 })
}

/// The blocks so far, and what was decided on the way.
struct Course<'a> {
    setup: &'a Setup,
    stage: &'a Stage<'a>,
    rehearsed: &'a Rehearsed,
    procedure: Procedure,
    cpus: Vec<u32>,
    runs: u32,
    blocks: Vec<BlockRecord>,
    /// When it went on, in seconds since the experiment's start.
    began: f64,
}

impl<'a> Course<'a> {
    fn new(setup: &'a Setup, stage: &'a Stage<'a>, rehearsed: &'a Rehearsed) -> Self {
        let cpus = match &setup.plan.cpus {
            _ if !rehearsed.summary.pinned => Vec::new(),
            CpuPolicy::Pin(list) if !list.is_empty() => list.clone(),
            _ => cpus::allowed(),
        };
        let runs = match setup.plan.runs {
            Runs::Auto => PILOT_RUNS,
            Runs::Fixed(runs) => runs,
        };
        let earlier = setup.earlier.as_ref();
        Self {
            setup,
            stage,
            rehearsed,
            procedure: procedure_of(&setup.plan),
            cpus,
            runs: earlier.map_or(runs, |earlier| earlier.runs_per_layout),
            blocks: earlier.map_or(Vec::new(), |earlier| earlier.blocks.clone()),
            began: earlier.map_or(0.0, |earlier| earlier.seconds),
        }
    }

    fn run(
        &mut self,
        source: &mut dyn LayoutSource,
        files: &Files,
        progress: &mut dyn Progress,
    ) -> Result<StopReason> {
        let mut pilot_pending =
            self.setup.plan.runs == Runs::Auto && !resume::is_past_pilot(&self.setup.plan);
        loop {
            if let Some(reason) = self.limit_reached() {
                return Ok(reason);
            }
            let number = self.blocks.len() as u32;
            let valid = self.logs().len() as u32;
            let at_most = self.setup.plan.most_layouts();
            progress.event(&Event::BlockStarted {
                block: number,
                valid,
                at_most,
                elapsed_seconds: self.stage.now(),
            });
            let block = run_block(self.stage, &self.setup.plan, self.block_plan(number), files, source)?;
            self.blocks.push(block);
            self.tell(progress);
            let differences = self.differences();
            if pilot_pending && differences.len() as u32 == PILOT_BLOCKS {
                pilot_pending = false;
                self.end_pilot(progress);
            } else if !pilot_pending
                && self.procedure.is_settled(&differences, &self.ranges())
                && self.last_counts()
            {
                return Ok(match self.procedure.stop {
                    StopRule::Precision(_) => StopReason::Precision,
                    _ => StopReason::Verdict,
                });
            }
        }
    }

    fn block_plan(&self, number: u32) -> BlockPlan<'a> {
        let cpu = (!self.cpus.is_empty()).then(|| self.cpus[number as usize % self.cpus.len()]);
        let shipped_so_far = self.blocks.iter().filter(|b| b.runs.iter().any(|r| r.shipped)).count() as u32;
        let layouts_vary = self.setup.plan.layout != LayoutMode::AsIs;
        BlockPlan {
            block: number,
            runs: self.runs,
            together: self.setup.plan.together,
            with_shipped: layouts_vary && shipped_so_far < self.setup.plan.shipped_runs,
            cpu,
            expected_output: self.rehearsed.expected_output.as_deref(),
        }
    }

    fn logs(&self) -> Vec<BlockLogs> {
        metric_logs(&self.blocks, &self.setup.plan, 0)
    }

    fn ranges(&self) -> Vec<Interval> {
        self.logs().iter().map(BlockLogs::range).collect()
    }

    fn differences(&self) -> Vec<f64> {
        self.logs().iter().map(|b| b.difference(self.setup.plan.inner)).collect()
    }

    fn last_counts(&self) -> bool {
        self.blocks.last().is_some_and(|b| b.excluded.is_none())
    }

    fn limit_reached(&self) -> Option<StopReason> {
        let plan = &self.setup.plan;
        if self.stage.stop.load(Ordering::Relaxed) {
            return Some(StopReason::Interrupted);
        }
        let invalid =
            self.blocks.iter().filter(|b| matches!(b.excluded, Some(Exclusion::Invalid(_)))).count();
        if invalid >= 3 && invalid * 4 > self.blocks.len() {
            return Some(StopReason::TooManyInvalid);
        }
        if self.logs().len() as u32 >= plan.most_layouts() {
            return Some(StopReason::MaxLayouts);
        }
        let elapsed = self.stage.now();
        let per_block = self.blocks.last().map_or(0.0, |b| elapsed - b.started);
        match plan.max_seconds {
            Some(limit) if !self.blocks.is_empty() && elapsed - self.began + per_block > limit => {
                Some(StopReason::MaxTime)
            }
            _ => None,
        }
    }

    /// Chooses the runs per layout. A pilot with fewer runs than chosen is dropped: its noisier blocks
    /// would widen every later interval. The choice knows spreads and costs, never the difference.
    fn end_pilot(&mut self, progress: &mut dyn Progress) {
        let (layout_cost, pair_cost) = self.costs();
        let pilot = self.logs();
        let mut runs = runs_after_pilot(&pilot, self.setup.plan.inner, layout_cost, pair_cost);
        if let Some(limit) = self.setup.plan.max_seconds {
            let per_layout = (limit - (self.stage.now() - self.began)) / LAYOUTS_WORTH_HAVING;
            while runs > 2 && layout_cost + pair_cost * f64::from(runs) > per_layout {
                runs -= 2;
            }
        }
        if runs > self.runs {
            let valid = self.blocks.iter_mut().filter(|b| b.excluded.is_none());
            valid.for_each(|b| b.excluded = Some(Exclusion::Pilot));
        }
        self.runs = runs;
        let spread =
            Estimate::of(&pilot.iter().map(|b| b.difference(self.setup.plan.inner)).collect::<Vec<_>>());
        let plan = &self.setup.plan;
        let layouts = Spread::Normal(spread.sd).layouts_to_settle(plan.margin, plan.family);
        let seconds = layouts.map(|n| f64::from(n) * (layout_cost + pair_cost * f64::from(runs)));
        progress.event(&Event::Planned { runs_per_layout: runs, layouts, seconds });
    }

    /// Mean seconds for writing and warming up a pair of layouts, and for one run of each side.
    fn costs(&self) -> (f64, f64) {
        let valid: Vec<&BlockRecord> = self.blocks.iter().filter(|b| b.excluded.is_none()).collect();
        let n = valid.len().max(1) as f64;
        let layout = valid.iter().map(|b| b.layout_seconds + b.preparation_seconds).sum::<f64>() / n;
        let runs = valid.iter().flat_map(|b| &b.runs).filter(|r| !r.shipped);
        let (count, wall) = runs.fold((0u32, 0.0), |(c, w), r| (c + 1, w + r.cost.wall_seconds));
        let at_once = if self.setup.plan.together { 1.0 } else { 2.0 };
        (layout, at_once * wall / f64::from(count.max(1)))
    }

    fn tell(&self, progress: &mut dyn Progress) {
        let Some(last) = self.blocks.last() else { return };
        let differences = self.differences();
        match &last.excluded {
            Some(Exclusion::Invalid(what)) => {
                let output = last.runs.iter().find_map(|r| r.failure.as_ref()).map(|f| f.output.clone());
                progress.event(&Event::Invalid {
                    block: last.block,
                    what: what.clone(),
                    output: output.unwrap_or_default(),
                });
            }
            Some(Exclusion::Interrupted | Exclusion::Pilot) => {}
            None => progress.event(&Event::BlockFinished {
                block: last.block,
                valid: differences.len() as u32,
                at_most: self.setup.plan.most_layouts(),
                elapsed_seconds: self.stage.now(),
                spread: (differences.len() > 1).then(|| Estimate::of(&differences).sd),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
