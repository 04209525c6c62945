//! When an experiment may stop by itself. Three rules: at planned looks with a verdict; when the
//! interval is narrow enough; or after a fixed number of blocks. The same rule runs while measuring
//! and while replaying a record, so both end at the same place.

use serde::{Deserialize, Serialize};

use super::estimate::Interval;
use super::looks::Looks;
use super::shape::median_interval;
use super::verdict::{Decision, Rule, claims, decide};

/// What ends the experiment, besides its limits of blocks and time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopRule {
    /// A verdict at one of the planned looks.
    #[default]
    Verdict,
    /// The 95 % interval's half-width has reached this ratio (0.005 is 0.5 %), at one of the looks planned for it.
    Precision(f64),
    /// Only the limits: every planned block is run.
    Never,
}

impl StopRule {
    /// Numbers of blocks to look at.
    fn schedule(self, max_blocks: u32) -> Vec<u32> {
        match self {
            Self::Verdict => Looks::for_verdict(max_blocks),
            Self::Precision(_) => Looks::when_narrow(max_blocks),
            Self::Never => vec![max_blocks.max(2)],
        }
    }
}

/// The complete decision procedure of one benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct Procedure {
    pub stop: StopRule,
    pub looks: Looks,
    pub rule: Rule,
}

impl Procedure {
    /// For at most `max_blocks` blocks, with differences below `margin` counting as none, as one of
    /// `family` benchmarks that share the promise of 5 %.
    pub fn new(stop: StopRule, max_blocks: u32, margin: f64, family: u32, higher_is_better: bool) -> Self {
        let looks = Looks::new(&stop.schedule(max_blocks), family);
        Self { stop, looks, rule: Rule { margin, higher_is_better } }
    }

    /// The same for an experiment that ended after `blocks` blocks and goes on to at most `max_blocks`.
    pub fn go_on(self, blocks: u32, max_blocks: u32) -> Self {
        let looks = self.looks.go_on(blocks, &self.stop.schedule(max_blocks));
        Self { looks, ..self }
    }

    /// The decision on all differences so far. Valid at planned looks, and wherever something that
    /// does not know the differences (a limit, an interrupt) ends the experiment.
    /// `ranges` are what the runs of each block allow, or empty.
    pub fn decide(&self, differences: &[f64], ranges: &[Interval]) -> Decision {
        decide(differences, ranges, &self.rule, self.looks.left_out(differences.len() as u32))
    }

    /// Whether the rule ends the experiment after these blocks.
    pub fn is_settled(&self, differences: &[f64], ranges: &[Interval]) -> bool {
        let blocks = differences.len() as u32;
        if !self.looks.is_planned(blocks) {
            return false;
        }
        let left_out = self.looks.left_out(blocks);
        match self.stop {
            StopRule::Never => false,
            StopRule::Verdict => claims(differences, ranges, &self.rule, left_out),
            StopRule::Precision(wanted) => {
                median_interval(differences, left_out.difference).half_width() <= wanted.ln_1p()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::Outcome;
    use super::*;

    fn noisy(blocks: usize, centre: f64) -> Vec<f64> {
        (0..blocks).map(|i| centre + if i % 2 == 0 { 0.002 } else { -0.002 }).collect()
    }

    #[test]
    fn verdicts_come_only_at_planned_looks() {
        let p = Procedure::new(StopRule::Verdict, 60, 0.01, 1, false);
        let settled: Vec<usize> = (2..=20).filter(|&n| p.is_settled(&noisy(n, 0.05), &[])).collect();
        assert_eq!(settled, [10, 15, 20]);
        assert_eq!(p.decide(&noisy(10, 0.05), &[]).outcome, Outcome::Slower);
    }

    #[test]
    fn precision_stops_once_the_interval_is_narrow() {
        let p = Procedure::new(StopRule::Precision(0.005), 60, 0.01, 1, false);
        assert!(!p.is_settled(&noisy(9, 0.0), &[]) && p.is_settled(&noisy(10, 0.0), &[]));
        let fine = Procedure::new(StopRule::Precision(0.0005), 60, 0.01, 1, false);
        assert!(!fine.is_settled(&noisy(40, 0.0), &[]));
        assert!(!Procedure::new(StopRule::Never, 20, 0.01, 1, false).is_settled(&noisy(20, 0.5), &[]));
    }
}
