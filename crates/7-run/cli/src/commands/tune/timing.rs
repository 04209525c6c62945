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
use afterlink_bench::record::LayoutMode;
use afterlink_bench::stats::estimate::median;
use afterlink_bench::stats::looks::Looks;
use afterlink_bench::stats::shape::median_interval;
use afterlink_core::Result;
use afterlink_pipeline::Progress;
use std::fmt;

/// What to do about a program that worked while it was counted and fails now.
const FIND_CULPRIT: &str =
    "if it does so again, find the function at fault with `afterlink bisect`; nothing was written";

/// Wall times of the workload, in seconds; the runs of one index followed each other.
#[derive(serde::Serialize)]
pub struct Timing {
    old: Vec<f64>,
    new: Vec<f64>,
    /// New against old: the median of the pairs' ratios.
    ratio: f64,
    /// The ends of its 95 % interval; none of fewer than six pairs.
    interval: Option<[f64; 2]>,
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
    Ok(Timing::of(&old, &new, &shipped))
}

impl Timing {
    fn of(old: &[Run], new: &[Run], shipped: &Run) -> Self {
        let pairs = old.iter().zip(new);
        let logs: Vec<f64> = pairs.map(|(old, new)| (new.seconds / old.seconds).ln()).collect();
        let printed = match &old[0].stdout {
            first if old.iter().any(|run| run.stdout != *first) => Printed::Varying,
            first if new.iter().chain([shipped]).any(|run| run.stdout != *first) => Printed::Different,
            _ => Printed::Same,
        };
        let pairs = logs.len() as u32;
        let interval = median_interval(&logs, Looks::new(&[pairs], 1).left_out(pairs).difference);
        let seconds = |runs: &[Run]| runs.iter().map(|run| run.seconds).collect();
        Self {
            old: seconds(old),
            new: seconds(new),
            ratio: median(&logs).exp(),
            interval: interval.high.is_finite().then(|| [interval.low.exp(), interval.high.exp()]),
            printed,
        }
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (old, new) = (median(&self.old), median(&self.new));
        let runs = self.old.len();
        writeln!(
            f,
            "timing       old {old:.3} s, new {new:.3} s (medians of {runs}, in turns, each with other gaps)"
        )?;
        let change = |ratio: f64| {
            let percent = 100.0 * (ratio - 1.0);
            format!("{:.1} % {}", percent.abs(), if percent <= 0.0 { "less" } else { "more" })
        };
        let label = match self.interval {
            Some([_, high]) if high < 1.0 => "GAIN",
            Some([low, _]) if low > 1.0 => "LOSS",
            _ => "undecided",
        };
        let range = match self.interval {
            Some([low, high]) => format!("95 % interval: {} to {}", change(high), change(low)),
            None => format!(
                "{runs} {} no interval; --pairs 6 and more give one",
                if runs == 1 { "pair gives" } else { "pairs give" }
            ),
        };
        writeln!(f, "{label:<12} {} time ({range})", change(self.ratio))?;
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
        seconds.iter().map(|&seconds| Run { seconds, stdout: b"x".to_vec() }).collect()
    }

    fn text(old: &[f64], new: &[f64]) -> String {
        Timing::of(&runs(old), &runs(new), &runs(&[1.0])[0]).to_string()
    }

    #[test]
    fn only_an_interval_on_one_side_of_nothing_is_a_gain_or_a_loss() {
        let (old, new) = ([1.00, 1.02, 0.99, 1.01, 1.00, 1.0], [0.80, 0.83, 0.79, 0.82, 0.80, 0.81]);
        assert!(text(&old, &new).contains("\nGAIN         19.5 % less time"), "{}", text(&old, &new));
        assert!(text(&new, &old).contains("\nLOSS         24.2 % more time"), "{}", text(&new, &old));
        let noisy = text(&[1.0, 1.2, 0.9, 1.0, 1.1, 1.0], &[0.95, 0.9, 1.1, 1.0, 1.2, 0.8]);
        assert!(noisy.contains("\nundecided ") && noisy.contains("more)"), "{noisy}");
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
        let shipped = Run { seconds: 1.0, stdout: b"y".to_vec() };
        assert!(Timing::of(&timed, &timed, &shipped).printed == Printed::Different);
        assert!(Timing::of(&timed, &timed, &timed[0]).printed == Printed::Same);
    }
}
