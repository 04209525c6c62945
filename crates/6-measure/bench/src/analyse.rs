//! From a record to an answer: a pure function, so that a replayed record says what the experiment said.

mod suite;
mod trust;
mod wording;

use serde::Serialize;

use crate::metric::MetricSpec;
use crate::numbers::signed_percent;
use crate::record::{
    BlockRecord, Exclusion, ExperimentRecord, LayoutMode, Plan, RunRecord, Side, StopReason,
};
use crate::stats::components::{Components, components};
use crate::stats::estimate::{BlockLogs, Estimate, Interval, mean, median, reduce};
use crate::stats::power::Spread;
use crate::stats::stopping::Procedure;
use crate::stats::verdict::{Decision, Outcome};
use crate::stats::welch::{Welch, paired_t, welch};

pub use suite::{SuiteAnalysis, analyse_suite};
pub use trust::MachineSummary;

/// The answer and everything that a report shows. Changes are in percent of A, in the metric's own
/// direction: +2 means that B's value is 2 % larger.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    pub name: String,
    pub metric: MetricSpec,
    /// Differences below this ratio count as none.
    pub margin: f64,
    pub layout: LayoutMode,
    /// What exactly has been estimated.
    pub estimand: String,
    pub counts: Counts,
    pub a: SideSummary,
    pub b: SideSummary,
    pub change: Change,
    pub decision: Decision,
    pub components: Components,
    /// What a comparison of the two shipped files by Welch's test would have said; by Student's test of the
    /// pairs where both ran at once.
    pub naive: Option<Naive>,
    /// The smallest true difference that this experiment could see with a chance of 80 %, in percent.
    pub detectable_percent: f64,
    /// What would settle an undecided question.
    pub more: Option<More>,
    pub verdict: Verdict,
    pub warnings: Vec<String>,
    /// The other metrics, without verdicts.
    pub secondary: Vec<Secondary>,
    pub machine: MachineSummary,
    pub stop: StopReason,
    pub seconds: f64,
    /// The differences, one a block, in percent; beside each its block number.
    pub blocks: Vec<BlockPoint>,
}

impl Analysis {
    /// What a command that asks for a verdict ends with. A regression is one only if the whole interval lies beyond the margin; one
    /// that surely is smaller is none, and of others it is not decided whether they matter.
    pub fn exit_code(&self) -> u8 {
        let outcome = self.verdict.outcome;
        if outcome != Outcome::Slower {
            return outcome.exit_code();
        }
        let interval = self.decision.difference_interval;
        let is_beyond = interval.low > self.margin.ln_1p() || interval.high < (-self.margin).ln_1p();
        match self.decision.equivalence_interval.within_margin(self.margin) {
            _ if is_beyond => outcome.exit_code(),
            true => Outcome::NoDifference.exit_code(),
            false => Outcome::Undecided.exit_code(),
        }
    }
}

/// How much was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Blocks that count.
    pub layouts: usize,
    /// Blocks of a dropped pilot.
    pub pilot: usize,
    /// Blocks dropped because a run failed or printed something else.
    pub invalid: usize,
    pub runs_per_layout: u32,
    /// All timed runs, of every block.
    pub runs: usize,
}

/// One program over its layouts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SideSummary {
    pub label: String,
    /// Median over the layouts, in the metric's unit.
    pub typical: f64,
    /// Standard deviation of one run about its layout's mean, in percent.
    pub run_sd_percent: Option<f64>,
    /// Standard deviation of the layouts themselves, in percent.
    pub layout_sd_percent: f64,
    /// Slowest layout over fastest, in percent.
    pub range_percent: f64,
    /// One value a layout, in the metric's unit.
    pub layouts: Vec<f64>,
    pub shipped: Option<Shipped>,
}

/// Where the file as handed over lies among its own layouts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Shipped {
    pub runs: usize,
    /// In the metric's unit, corrected for drift where there was any.
    pub value: f64,
    /// Against the mean layout, in percent.
    pub deviation_percent: f64,
    /// Half-width of its 95 % interval, in percent.
    pub error_percent: f64,
    /// Share of layouts with a smaller value, in percent.
    pub percentile: f64,
    pub luck: Luck,
}

/// Whether the shipped layout is one of the best or worst tenth, and surely so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Luck {
    Lucky,
    Unlucky,
    Ordinary,
}

/// The change from A to B with its interval, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Change {
    pub percent: f64,
    /// 95 %, valid whatever stopped the experiment; infinite where the blocks are too few for an interval.
    pub low: f64,
    pub high: f64,
    /// Its companion for "inside the margin", 90 %.
    pub margin_low: f64,
    pub margin_high: f64,
}

impl Change {
    /// `+0.2 %  [−0.2 %, +0.6 %]`
    pub fn text(&self) -> String {
        format!("{}  {}", signed_percent(self.percent), self.interval())
    }

    /// `[−0.2 %, +0.6 %]`, or that there is none.
    pub fn interval(&self) -> String {
        if !self.high.is_finite() {
            return "[too few layouts for an interval]".into();
        }
        format!("[{}, {}]", signed_percent(self.low), signed_percent(self.high))
    }
}

/// The naive comparison.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Naive {
    #[serde(flatten)]
    pub welch: Welch,
    /// The test's name.
    pub test: &'static str,
    pub runs_a: usize,
    pub runs_b: usize,
}

/// What would settle the question.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct More {
    pub layouts: u32,
    pub seconds: f64,
}

/// The answer in words.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    pub outcome: Outcome,
    /// Without its details, e.g. `no difference larger than 1 %`.
    pub headline: String,
    /// What has to be said with it.
    pub details: Vec<String>,
}

/// Another metric of the same runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Secondary {
    pub metric: MetricSpec,
    /// Medians over the layouts; nothing if the metric was absent.
    pub a: Option<f64>,
    pub b: Option<f64>,
    pub change: Option<Change>,
}

/// One block's difference, for plots.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BlockPoint {
    pub block: u32,
    pub percent: f64,
}

/// The decision procedure that a plan asks for.
pub fn procedure_of(plan: &Plan) -> Procedure {
    let higher = plan.metrics.first().is_some_and(MetricSpec::higher_is_better);
    let first = Procedure::new(plan.stop, plan.max_layouts, plan.margin, plan.family, higher);
    plan.resumed.iter().fold(first, |procedure, go| procedure.go_on(go.after, go.max_layouts))
}

/// The logs of one metric over the blocks that count, in order.
pub fn metric_logs(blocks: &[BlockRecord], plan: &Plan, metric: usize) -> Vec<BlockLogs> {
    let logs = |block| Some(BlockLogs { paired: plan.together, ..block_logs(block, metric)? });
    counting(blocks).filter_map(logs).collect()
}

fn counting(blocks: &[BlockRecord]) -> impl Iterator<Item = &BlockRecord> {
    blocks.iter().filter(|b| b.excluded.is_none())
}

/// Nothing unless every run of both sides has a value.
fn block_logs(block: &BlockRecord, metric: usize) -> Option<BlockLogs> {
    let side = |side| {
        layout_runs(block, side).map(|run| value(run, metric).map(f64::ln)).collect::<Option<Vec<_>>>()
    };
    let (a, b) = (side(Side::A)?, side(Side::B)?);
    let last = block.runs.last()?;
    let middle = (block.runs.first()?.started + last.started + last.cost.wall_seconds) / 2.0;
    (!a.is_empty() && !b.is_empty()).then_some(BlockLogs { seconds: middle, a, b, paired: false })
}

fn layout_runs(block: &BlockRecord, side: Side) -> impl Iterator<Item = &RunRecord> {
    block.runs.iter().filter(move |r| r.side == side && !r.shipped)
}

fn value(run: &RunRecord, metric: usize) -> Option<f64> {
    run.values.get(metric).copied().flatten().filter(|v| v.is_finite() && *v > 0.0)
}

fn ranges(logs: &[BlockLogs]) -> Vec<Interval> {
    logs.iter().map(BlockLogs::range).collect()
}

/// A log ratio as a change in percent; an end that is not known stays one.
pub fn to_percent(log: f64) -> f64 {
    if log.is_infinite() { log } else { 100.0 * log.exp_m1() }
}

/// Judges the first metric of the record's plan.
pub fn analyse(record: &ExperimentRecord) -> Analysis {
    let logs = metric_logs(&record.blocks, &record.plan, 0);
    let procedure = procedure_of(&record.plan);
    let differences: Vec<f64> = logs.iter().map(|b| b.difference(record.plan.inner)).collect();
    let decision = procedure.decide(&differences, &ranges(&logs));
    let parts = components(&logs, record.plan.coupled && record.plan.layout != LayoutMode::AsIs);
    let metric = record.plan.metrics.first().cloned().unwrap_or_else(MetricSpec::wall);
    let naive = naive_comparison(record);
    let spread = Spread::seen(&differences);
    let blocks = differences.len() as u32;
    let mut analysis = Analysis {
        name: record.name.clone(),
        margin: record.plan.margin,
        layout: record.plan.layout,
        estimand: wording::estimand(&record.plan),
        counts: counts(record, logs.len()),
        a: side_summary(record, &logs, Side::A, &parts, &metric),
        b: side_summary(record, &logs, Side::B, &parts, &metric),
        change: change(&decision),
        components: parts,
        naive,
        detectable_percent: to_percent(spread.smallest_detectable(blocks, procedure.looks.left_out(blocks))),
        more: more(record, &decision, &spread),
        verdict: Verdict { outcome: decision.outcome, headline: String::new(), details: Vec::new() },
        warnings: trust::warnings(record),
        secondary: secondary(record, &procedure),
        machine: trust::summarise(record),
        stop: record.stop,
        seconds: record.seconds,
        blocks: counting(&record.blocks)
            .zip(&differences)
            .map(|(b, d)| BlockPoint { block: b.block, percent: to_percent(*d) })
            .collect(),
        decision,
        metric,
    };
    analysis.warnings.extend(trust::disagreements(&analysis));
    analysis.verdict = wording::verdict(record, &analysis);
    analysis
}

fn counts(record: &ExperimentRecord, layouts: usize) -> Counts {
    let excluded = |wanted: fn(&Exclusion) -> bool| {
        record.blocks.iter().filter(|b| b.excluded.as_ref().is_some_and(wanted)).count()
    };
    Counts {
        layouts,
        pilot: excluded(|e| matches!(e, Exclusion::Pilot)),
        invalid: excluded(|e| matches!(e, Exclusion::Invalid(_))),
        runs_per_layout: record.runs_per_layout,
        runs: record.blocks.iter().map(|b| b.runs.len()).sum(),
    }
}

fn change(decision: &Decision) -> Change {
    let (wide, narrow) = (decision.difference_interval, decision.equivalence_interval);
    Change {
        percent: to_percent(decision.centre),
        low: to_percent(wide.low),
        high: to_percent(wide.high),
        margin_low: to_percent(narrow.low),
        margin_high: to_percent(narrow.high),
    }
}

fn side_summary(
    record: &ExperimentRecord,
    logs: &[BlockLogs],
    side: Side,
    components: &Components,
    metric: &MetricSpec,
) -> SideSummary {
    let parts = if side == Side::A { &components.a } else { &components.b };
    let runs = |b: &BlockLogs| if side == Side::A { b.a.clone() } else { b.b.clone() };
    let levels: Vec<f64> = logs.iter().map(|b| reduce(&runs(b), record.plan.inner)).collect();
    let spread = |pick: fn(f64, f64) -> f64, start: f64| levels.iter().copied().fold(start, pick);
    let range = spread(f64::max, f64::NEG_INFINITY) - spread(f64::min, f64::INFINITY);
    let program = if side == Side::A { &record.a } else { &record.b };
    SideSummary {
        label: program.label.clone(),
        typical: median(&levels).exp(),
        run_sd_percent: parts.run_sd.map(to_percent),
        layout_sd_percent: to_percent(parts.layout_sd),
        range_percent: if levels.is_empty() { 0.0 } else { to_percent(range) },
        layouts: levels.iter().map(|l| l.exp()).collect(),
        shipped: shipped_place(record, side, &levels, components, metric),
    }
}

/// Where the shipped file's runs lie among the layouts.
fn shipped_place(
    record: &ExperimentRecord,
    side: Side,
    levels: &[f64],
    parts: &Components,
    metric: &MetricSpec,
) -> Option<Shipped> {
    let mut own = Vec::new();
    let mut gaps = Vec::new();
    for block in record.blocks.iter().filter(|b| matches!(b.excluded, None | Some(Exclusion::Pilot))) {
        let here = block.runs.iter().filter(|r| r.shipped && r.side == side).filter_map(|r| value(r, 0));
        let here: Vec<f64> = here.map(f64::ln).collect();
        let around: Vec<f64> = layout_runs(block, side).filter_map(|r| value(r, 0)).map(f64::ln).collect();
        if !here.is_empty() && !around.is_empty() {
            gaps.push(mean(&here) - reduce(&around, record.plan.inner));
            own.extend(here);
        }
    }
    if gaps.is_empty() || levels.is_empty() {
        return None;
    }
    let centre = mean(levels);
    let layout_sd = if side == Side::A { parts.a.layout_sd } else { parts.b.layout_sd };
    // Against the layouts of the same blocks drift cancels, but those are few; against all layouts it
    // does not. The smaller error wins.
    let by_neighbours = parts.drift_sd.powi(2) > layout_sd.powi(2) / gaps.len() as f64;
    let (estimate, deviation) = if by_neighbours {
        (Estimate::of(&gaps), mean(&gaps))
    } else {
        (Estimate::of(&own), mean(&own) - centre)
    };
    let error = estimate.interval(0.05).half_width();
    let below = levels.iter().filter(|l| **l - centre < deviation).count() as f64;
    let percentile = 100.0 * below / levels.len() as f64;
    let sure = deviation.abs() > error;
    let luck = match () {
        () if !sure => Luck::Ordinary,
        () if percentile <= 10.0 && deviation < 0.0 => good_if(!metric.higher_is_better()),
        () if percentile >= 90.0 && deviation > 0.0 => good_if(metric.higher_is_better()),
        () => Luck::Ordinary,
    };
    Some(Shipped {
        runs: own.len(),
        value: (centre + deviation).exp(),
        deviation_percent: to_percent(deviation),
        error_percent: to_percent(error),
        percentile,
        luck,
    })
}

fn good_if(good: bool) -> Luck {
    if good { Luck::Lucky } else { Luck::Unlucky }
}

/// Welch's test on the shipped files' runs; in as-is mode every run is one of those.
fn naive_comparison(record: &ExperimentRecord) -> Option<Naive> {
    let as_is = record.plan.layout == LayoutMode::AsIs;
    let usable = record.blocks.iter().filter(|b| matches!(b.excluded, None | Some(Exclusion::Pilot)));
    let runs: Vec<&RunRecord> = usable.flat_map(|b| &b.runs).filter(|r| r.shipped != as_is).collect();
    let side =
        |side| runs.iter().filter(|r| r.side == side).filter_map(|r| value(r, 0)).collect::<Vec<f64>>();
    let (a, b) = (side(Side::A), side(Side::B));
    let (test, claim) =
        if record.plan.together { ("paired t", paired_t(&a, &b)) } else { ("Welch", welch(&a, &b)) };
    Some(Naive { welch: claim?, test, runs_a: a.len(), runs_b: b.len() })
}

fn more(record: &ExperimentRecord, decision: &Decision, spread: &Spread) -> Option<More> {
    let blocks = decision.estimate.blocks;
    if decision.outcome != Outcome::Undecided || blocks < 2 {
        return None;
    }
    let total = spread.layouts_to_settle(record.plan.margin, record.plan.family)?;
    // The numbers at hand would nearly do: one more look's worth.
    let layouts = total.saturating_sub(blocks as u32).max(5);
    let per_block = counting(&record.blocks)
        .map(|b| {
            let runs: f64 = b.runs.iter().filter(|r| !r.shipped).map(|r| r.cost.wall_seconds).sum();
            b.layout_seconds + b.preparation_seconds + runs / if record.plan.together { 2.0 } else { 1.0 }
        })
        .sum::<f64>()
        / blocks as f64;
    Some(More { layouts, seconds: per_block * f64::from(layouts) })
}

fn secondary(record: &ExperimentRecord, procedure: &Procedure) -> Vec<Secondary> {
    let others = record.plan.metrics.iter().enumerate().skip(1);
    others
        .map(|(index, metric)| {
            let logs = metric_logs(&record.blocks, &record.plan, index);
            let differences: Vec<f64> = logs.iter().map(|b| b.difference(record.plan.inner)).collect();
            let typical = |pick: fn(&BlockLogs) -> &Vec<f64>| {
                let levels: Vec<f64> = logs.iter().map(|b| reduce(pick(b), record.plan.inner)).collect();
                (!levels.is_empty()).then(|| median(&levels).exp())
            };
            Secondary {
                metric: metric.clone(),
                a: typical(|b| &b.a),
                b: typical(|b| &b.b),
                change: (differences.len() >= 2).then(|| change(&procedure.decide(&differences, &[]))),
            }
        })
        .collect()
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
