//! May the numbers be trusted? What the machine did during the blocks, and what was wrong with the runs.

use serde::Serialize;

use super::Analysis;
use crate::metric::MetricSource;
use crate::record::{BlockRecord, Exclusion, ExperimentRecord, LayoutMode, MachineDelta, Side, StopReason};
use crate::stats::estimate::{Inner, mean, median};

/// Share of blocks that may swap, be throttled or get hot before nothing is claimed any more.
const BAD_BLOCKS: f64 = 0.20;
/// Seconds of a run below which starting the program is much of it.
const SHORT: f64 = 0.01;
/// The kernel's share of the CPU time from which on it is told where only the program's own part is counted.
const KERNEL: f64 = 0.10;
/// Runs that differ by less than this share of a whole number of seconds are taken to last as long as they were told to.
const WHOLE: f64 = 0.02;
/// How busy the other thread of a core may be before it is told.
const SIBLING: f64 = 0.1;
/// CPU pressure from which on other jobs disturb the runs.
const PRESSURE: f64 = 0.05;

/// The machine over the whole experiment; nothing where it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct MachineSummary {
    /// Mean share of time in which some task waited for a CPU.
    pub cpu_pressure: Option<f64>,
    /// Mean share of CPU time that the hypervisor gave to others.
    pub steal: Option<f64>,
    /// Blocks with swap traffic, with quota throttling, with heat throttling.
    pub swapping_blocks: usize,
    pub throttled_blocks: usize,
    pub hot_blocks: usize,
    /// Mean number of times per second that the kernel took the CPU away from a run.
    pub involuntary_switches_per_second: f64,
}

fn timed(record: &ExperimentRecord) -> impl Iterator<Item = &BlockRecord> {
    record.blocks.iter().filter(|b| b.excluded.is_none())
}

/// The machine during the blocks that count.
pub fn summarise(record: &ExperimentRecord) -> MachineSummary {
    let average = |pick: fn(&MachineDelta) -> Option<f64>| {
        let known: Vec<f64> = timed(record).filter_map(|b| pick(&b.machine)).collect();
        (!known.is_empty()).then(|| mean(&known))
    };
    let blocks_with = |bad: fn(&MachineDelta) -> bool| timed(record).filter(|b| bad(&b.machine)).count();
    let runs = timed(record).flat_map(|b| &b.runs);
    let (switches, seconds) =
        runs.fold((0, 0.0), |(n, s), r| (n + r.cost.involuntary_switches, s + r.cost.wall_seconds));
    MachineSummary {
        cpu_pressure: average(|m| m.cpu_pressure),
        steal: average(|m| m.steal),
        swapping_blocks: blocks_with(|m| m.swapped_pages.is_some_and(|n| n > 0)),
        throttled_blocks: blocks_with(|m| m.throttled_seconds.is_some_and(|s| s > 0.0)),
        hot_blocks: blocks_with(|m| m.thermal_events.is_some_and(|n| n > 0)),
        involuntary_switches_per_second: if seconds > 0.0 { switches as f64 / seconds } else { 0.0 },
    }
}

/// Reasons for claiming nothing at all.
pub fn reasons_for_distrust(record: &ExperimentRecord) -> Vec<String> {
    let mut reasons: Vec<String> = record.machine.hard_failures.clone();
    let machine = summarise(record);
    let blocks = timed(record).count();
    let many = |n: usize| n as f64 > BAD_BLOCKS * blocks as f64;
    let mut add = |bad: usize, what: &str| {
        if many(bad) {
            reasons.push(format!("the machine {what} in {bad} of {blocks} blocks"));
        }
    };
    add(machine.swapping_blocks, "swapped");
    add(machine.throttled_blocks, "was held back by a CPU quota");
    add(machine.hot_blocks, "slowed down because of heat");
    reasons.extend(fixed_time(record));
    if record.stop == StopReason::TooManyInvalid {
        reasons.push(format!("too many blocks failed: {}", first_fault(record).unwrap_or_default()));
    }
    reasons
}

fn first_fault(record: &ExperimentRecord) -> Option<String> {
    record.blocks.iter().find_map(|b| match &b.excluded {
        Some(Exclusion::Invalid(what)) => Some(what.clone()),
        _ => None,
    })
}

/// What a reader must know although it does not forbid a verdict.
pub fn warnings(record: &ExperimentRecord) -> Vec<String> {
    let mut lines = record.machine.warnings.clone();
    let machine = summarise(record);
    if let Some(share) = machine.cpu_pressure.filter(|s| *s > PRESSURE) {
        let could_share =
            record.rehearsal.pinned && record.workload.set_up.is_none() && !record.plan.together;
        let advice = if could_share { "; with --together both programs meet them alike" } else { "" };
        lines.push(format!("other jobs wanted the CPUs for {:.0} % of the time{advice}", 100.0 * share));
    }
    lines.extend(kernel_line(record));
    lines.extend(sibling_line(record));
    lines.extend(multiplexed_line(record));
    lines.extend(short_line(record));
    lines.extend(fault_line(record));
    let major: u64 = timed(record).flat_map(|b| &b.runs).map(|r| r.cost.major_faults).sum();
    if major > 0 {
        lines.push(format!("{major} page faults of timed runs had to wait for a disk"));
    }
    if record.plan.inner == Inner::Min {
        lines.push(
            "each layout is judged by its fastest run: rare slowness of the program itself is not seen"
                .into(),
        );
    }
    if record.plan.layout == LayoutMode::AsIs {
        lines.push(
            "one layout of each program: in simulation, such a comparison of two equal builds finds a \
             \"significant\" difference in 27 to 85 % of cases"
                .into(),
        );
    } else if !record.rehearsal.output_checked {
        lines.push("the programs' output was not compared".into());
    }
    lines
}

/// Other metrics that say something else than the one that judges.
pub fn disagreements(analysis: &Analysis) -> Vec<String> {
    let (judge, own) = (&analysis.metric, &analysis.change);
    let costs = analysis.secondary.iter().filter(|s| !s.metric.higher_is_better() && s.metric.is_time());
    let apart = costs.filter_map(|other| {
        let change = other.change?;
        let disjoint = change.low > own.high || change.high < own.low;
        disjoint.then(|| format!("{} says otherwise: {}", other.metric.name, change.text()))
    });
    if judge.higher_is_better() { Vec::new() } else { apart.collect() }
}

/// A load generator that runs for so many seconds does so whatever the server is like.
fn fixed_time(record: &ExperimentRecord) -> Option<String> {
    let judge = record.plan.metrics.first()?;
    if !record.workload.has_server() || judge.source != MetricSource::Wall || judge.per.is_some() {
        return None;
    }
    let runs: Vec<f64> = timed(record).flat_map(|b| &b.runs).map(|r| r.cost.wall_seconds).collect();
    let (least, most) =
        runs.iter().fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), s| (low.min(*s), high.max(*s)));
    let middle = median(&runs);
    let is_whole = middle >= 1.0 && middle - middle.floor() < WHOLE * middle;
    (runs.len() >= 20 && most - least < WHOLE * middle && is_whole).then(|| {
        format!(
            "every run took {:.0} s: a workload that runs for a fixed time says nothing by its wall time; judge it by --metric \
             'server-cpu per pattern:REGEX' or by what it prints",
            middle.floor()
        )
    })
}

/// The kernel's share of the CPU time of the runs, where what judges does not see it.
fn kernel_line(record: &ExperimentRecord) -> Option<String> {
    matches!(record.plan.metrics.first()?.source, MetricSource::Counter(_)).then_some(())?;
    let runs = timed(record).flat_map(|b| &b.runs);
    let (user, system) =
        runs.fold((0.0, 0.0), |(u, s), r| (u + r.cost.user_seconds, s + r.cost.system_seconds));
    let share = system / (user + system);
    (share > KERNEL)
        .then(|| format!("{:.0} % of the CPU time is the kernel's, which is not counted", 100.0 * share))
}

/// Two threads of one core slow each other down, by more or less as they happen to meet.
fn sibling_line(record: &ExperimentRecord) -> Option<String> {
    let busy: Vec<f64> = timed(record).filter_map(|b| b.machine.sibling_busy).collect();
    let share = if busy.is_empty() { 0.0 } else { mean(&busy) };
    (share > SIBLING).then(|| {
        format!(
            "the other thread of the runs' core was busy for {:.0} % of the time and slowed them down: measure on a core of its own \
             (--cpus), or with the other thread offline",
            100.0 * share
        )
    })
}

/// What was not counted all the time is extrapolated.
fn multiplexed_line(record: &ExperimentRecord) -> Option<String> {
    let least = timed(record).flat_map(|b| &b.runs).filter_map(|r| r.counted_share).reduce(f64::min)?;
    Some(format!(
        "a counter counted for {:.0} % of a run only, the rest is extrapolated: ask for fewer of them with --metric",
        100.0 * least
    ))
}

/// Of a run that is over at once, starting the program is the greater part.
fn short_line(record: &ExperimentRecord) -> Option<String> {
    let runs: Vec<f64> =
        timed(record).flat_map(|b| &b.runs).filter(|r| !r.shipped).map(|r| r.cost.wall_seconds).collect();
    let middle = median(&runs);
    (record.workload.set_up.is_none() && middle < SHORT).then(|| {
        format!(
            "a run takes {:.1} ms, much of it for starting the program: a workload of 0.1 s and more says more",
            1000.0 * middle
        )
    })
}

fn fault_line(record: &ExperimentRecord) -> Option<String> {
    let invalid: Vec<&BlockRecord> =
        record.blocks.iter().filter(|b| matches!(b.excluded, Some(Exclusion::Invalid(_)))).collect();
    let first = first_fault(record)?;
    let failed_on = |side| {
        let has = |b: &&&BlockRecord| b.runs.iter().any(|r| r.side == side && r.failure.is_some());
        invalid.iter().filter(has).count()
    };
    let only = match (failed_on(Side::A), failed_on(Side::B)) {
        (n, 0) if n > 1 => ", all of them on A",
        (0, n) if n > 1 => ", all of them on B",
        _ => "",
    };
    let blocks =
        if invalid.len() == 1 { "1 block was".to_string() } else { format!("{} blocks were", invalid.len()) };
    Some(format!("{blocks} dropped{only}; the first because {first}"))
}
