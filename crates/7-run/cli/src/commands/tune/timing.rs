//! How long the workload takes with the old files and with the new ones.
//!
//! All are written anew for each pair of runs, with other gaps between their functions, so that what is timed is the
//! order of the code and not the addresses that it got. The ratio is the median of the pairs' ratios, with the interval between two
//! of them that `compare` uses; fewer than six pairs have none, as their smallest possible p is 6 %.

use super::{ORIGINAL_FIRST, Run, Scratch, run_workload};
use crate::layouts::{Relaid, Subject};
use crate::progress::Terminal;
use crate::workload::Workload;
use afterlink_bench::experiment::layouts::{LayoutSource, PairPaths, PairSeeds};
use afterlink_bench::metric::MetricSource;
use afterlink_bench::metric_choice::Situation;
use afterlink_bench::record::LayoutMode;
use afterlink_bench::stats::estimate::median;
use afterlink_bench::stats::pairs::pairs_interval;
use afterlink_core::Result;
use afterlink_pipeline::Progress;
use std::fmt;

/// What to do about a program that worked while it was counted and fails now.
const FIND_CULPRIT: &str =
    "if it does so again, find the function at fault with `afterlink bisect`; nothing was written";

/// What one metric says of the pairs.
#[derive(serde::Serialize)]
struct Judged {
    #[serde(rename = "judged_by")]
    metric: Metric,
    /// New against old: the median of the pairs' ratios.
    ratio: f64,
    /// The ends of its 95 % interval; none of fewer than six pairs.
    interval: Option<[f64; 2]>,
    #[serde(skip)]
    medians: [f64; 2],
}

/// What a run is judged by.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
enum Metric {
    Wall,
    Cpu,
    Cycles,
}

impl Metric {
    fn of(self, run: &Run) -> Option<f64> {
        match self {
            Self::Wall => Some(run.seconds),
            Self::Cpu => Some(run.cpu_seconds),
            Self::Cycles => run.cycles,
        }
    }

    /// What there is less or more of, and how one value is told.
    fn words(self) -> (&'static str, fn(f64) -> String) {
        match self {
            Self::Wall => ("time", |s| format!("{s:.3} s")),
            Self::Cpu => ("CPU time", |s| format!("{s:.3} s")),
            Self::Cycles => ("cycles in user mode", |c| format!("{:.1} million cycles", c / 1e6)),
        }
    }
}

/// Wall times of the workload, in seconds; the runs of one index followed each other.
#[derive(serde::Serialize)]
pub struct Timing {
    old: Vec<f64>,
    new: Vec<f64>,
    #[serde(flatten)]
    judged: Judged,
    /// Why that metric judges.
    why: String,
    verdict: &'static str,
    /// What the others say.
    others: Vec<Judged>,
    printed: Printed,
}

/// What the workload wrote to its standard output.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
enum Printed {
    Same,
    /// It differs already from run to run of the old program.
    Varying,
    Different,
}

/// One file, to be written anew for each pair.
pub struct Relayed<'a> {
    /// Which of the files it is.
    index: usize,
    source: Relaid<'a>,
}

impl<'a> Relayed<'a> {
    /// The file as it was linked, and as it is laid out now.
    pub fn new(index: usize, subjects: [Subject<'a>; 2]) -> Self {
        Self { index, source: Relaid::new(LayoutMode::Jitter, subjects) }
    }

    fn write_pair(&mut self, pair: u32, scratch: &Scratch) -> Result<()> {
        let (old, new) = (&scratch.old.files[self.index], &scratch.new.files[self.index]);
        for path in [old, new] {
            let _ = std::fs::remove_file(path);
        }
        let seeds = PairSeeds { a: 2 * u64::from(pair), b: 2 * u64::from(pair) + 1 };
        self.source.write_pair(pair, seeds, PairPaths { a: old, b: new })
    }
}

/// Runs the new files once as they are, then `pairs` pairs in turns.
///
/// # Errors
/// If a file can't be written, or the workload fails with it.
pub fn time(
    pairs: u32,
    workload: &Workload,
    mut files: Vec<Relayed>,
    scratch: &Scratch,
    progress: &Terminal,
) -> Result<Timing> {
    progress.step("running the workload with the new program");
    // What is handed over has to be seen at work, whatever is timed.
    let run_old = || run_workload(workload, &scratch.old).map_err(|e| e.next(ORIGINAL_FIRST));
    let run_new = || run_workload(workload, &scratch.new).map_err(|e| e.next(FIND_CULPRIT));
    let shipped = run_new()?;
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        progress.step(&format!("timing old and new in turns, pair {} of {pairs}", pair + 1));
        files.iter_mut().try_for_each(|file| file.write_pair(pair, scratch))?;
        // In turns, so that neither side always goes first.
        if pair % 2 == 0 {
            old.push(run_old()?);
            new.push(run_new()?);
        } else {
            new.push(run_new()?);
            old.push(run_old()?);
        }
    }
    Ok(Timing::of(&old, &new, &shipped, Situation::now(false, false)))
}

impl Judged {
    /// Nothing if a run has no value.
    fn of(metric: Metric, old: &[Run], new: &[Run]) -> Option<Self> {
        let values = |runs: &[Run]| {
            runs.iter().map(|run| metric.of(run).filter(|v| *v > 0.0)).collect::<Option<Vec<f64>>>()
        };
        let (old, new) = (values(old)?, values(new)?);
        let logs: Vec<f64> = old.iter().zip(&new).map(|(old, new)| (new / old).ln()).collect();
        let interval = pairs_interval(&logs);
        Some(Self {
            metric,
            ratio: median(&logs).exp(),
            interval: interval.high.is_finite().then(|| [interval.low.exp(), interval.high.exp()]),
            medians: [median(&old), median(&new)],
        })
    }

    fn verdict(&self) -> &'static str {
        match self.interval {
            Some([_, high]) if high < 1.0 => "GAIN",
            Some([low, _]) if low > 1.0 => "LOSS",
            _ => "undecided",
        }
    }

    fn text(&self, pairs: usize) -> String {
        let change = |ratio: f64| {
            let percent = 100.0 * (ratio - 1.0);
            format!("{:.1} % {}", percent.abs(), if percent <= 0.0 { "less" } else { "more" })
        };
        let range = match self.interval {
            Some([low, high]) => format!("95 % interval: {} to {}", change(high), change(low)),
            None if pairs == 1 => "1 pair gives no interval; --pairs 6 and more do".to_owned(),
            None => format!("{pairs} pairs give no interval; --pairs 6 and more do"),
        };
        format!("{} {} ({range})", change(self.ratio), self.metric.words().0)
    }
}

impl Timing {
    fn of(old: &[Run], new: &[Run], shipped: &Run, situation: Situation) -> Self {
        let printed = match &old[0].stdout {
            first if old.iter().any(|run| run.stdout != *first) => Printed::Varying,
            first if new.iter().chain([shipped]).any(|run| run.stdout != *first) => Printed::Different,
            _ => Printed::Same,
        };
        let choice = situation.choose();
        let metrics = choice.metrics.iter().map(|spec| match spec.source {
            MetricSource::Cpu => Metric::Cpu,
            MetricSource::Counter(_) => Metric::Cycles,
            _ => Metric::Wall,
        });
        // Wall time always has a value.
        let mut said: Vec<Judged> =
            metrics.chain([Metric::Wall]).filter_map(|metric| Judged::of(metric, old, new)).collect();
        said.dedup_by_key(|judged| judged.metric);
        let judged = said.remove(0);
        said.retain(|other| other.metric != judged.metric);
        let seconds = |runs: &[Run]| runs.iter().map(|run| run.seconds).collect();
        Self {
            old: seconds(old),
            new: seconds(new),
            verdict: judged.verdict(),
            judged,
            why: choice.why,
            others: said,
            printed,
        }
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.old.len();
        let [old, new] = self.judged.medians.map(self.judged.metric.words().1);
        writeln!(f, "timing       old {old}, new {new} (medians of {runs}, in turns, each with other gaps)")?;
        writeln!(f, "{:<12} {}", self.verdict, self.judged.text(runs))?;
        writeln!(f, "judged by    {}: {}", self.judged.metric.words().0, self.why)?;
        for other in &self.others {
            writeln!(f, "             {}", other.text(runs))?;
        }
        match self.printed {
            Printed::Same => writeln!(f, "output       the workload prints the same with both"),
            Printed::Varying => {
                writeln!(f, "output       the workload prints something else in each run; not compared")
            }
            Printed::Different => {
                writeln!(
                    f,
                    "WARNING      the workload prints something else with the new program: compare it by hand"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(seconds: &[f64]) -> Vec<Run> {
        let run = |&seconds| Run { seconds, cpu_seconds: 0.9 * seconds, cycles: None, stdout: b"x".to_vec() };
        seconds.iter().map(run).collect()
    }

    fn text(old: &[f64], new: &[f64]) -> String {
        Timing::of(&runs(old), &runs(new), &runs(&[1.0])[0], QUIET).to_string()
    }

    const QUIET: Situation = Situation { together: false, server: false, cycles: false, pressure: None };

    #[test]
    fn a_busy_machine_is_judged_by_cpu_time_and_all_is_shown() {
        let busy = Situation { pressure: Some(0.5), ..QUIET };
        let mut new = runs(&[2.0; 6]);
        new.iter_mut().for_each(|run| run.cpu_seconds = 0.8);
        let timing = Timing::of(&runs(&[1.0; 6]), &new, &runs(&[1.0])[0], busy);
        let text = timing.to_string();
        assert!(text.contains("\nGAIN         11.1 % less CPU time"), "{text}");
        assert!(
            text.contains("judged by    CPU time: some task waited") && text.contains("100.0 % more time")
        );
        let json = serde_json::to_value(&timing).unwrap();
        assert_eq!((&json["verdict"], &json["judged_by"]), (&"GAIN".into(), &"cpu".into()), "{json}");
    }

    #[test]
    fn only_an_interval_on_one_side_of_nothing_is_a_gain_or_a_loss() {
        let (old, new) = ([1.00, 1.02, 0.99, 1.01, 1.00, 1.0], [0.80, 0.83, 0.79, 0.82, 0.80, 0.81]);
        assert!(text(&old, &new).contains("\nGAIN         19.5 % less time"), "{}", text(&old, &new));
        assert!(text(&new, &old).contains("\nLOSS         24.2 % more time"), "{}", text(&new, &old));
        let noisy = text(&[1.0, 1.2, 0.9, 1.0, 1.1, 1.0], &[0.95, 0.9, 1.1, 1.0, 1.2, 0.8]);
        assert!(noisy.contains("\nundecided ") && noisy.contains("more to "), "{noisy}");
        assert!(text(&[1.0], &[0.5]).contains("undecided    50.0 % less time (1 pair gives no interval"));
    }

    /// All five pairs on one side happen by chance in 6 %.
    #[test]
    fn five_pairs_claim_nothing() {
        let five = text(&old_of(5), &[0.5; 5]);
        assert!(five.contains("\nundecided    50.0 % less time (5 pairs give no interval"), "{five}");
        assert!(text(&old_of(6), &[0.5; 6]).contains("\nGAIN "));
    }

    fn old_of(pairs: usize) -> Vec<f64> {
        vec![1.0; pairs]
    }

    #[test]
    fn the_program_that_is_handed_over_has_to_print_the_same_too() {
        let timed = runs(&[1.0, 1.0]);
        let shipped = Run { stdout: b"y".to_vec(), ..runs(&[1.0]).remove(0) };
        assert!(Timing::of(&timed, &timed, &shipped, QUIET).printed == Printed::Different);
        assert!(Timing::of(&timed, &timed, &timed[0], QUIET).printed == Printed::Same);
    }
}
