//! Planning: the smallest effect an experiment can see, how many layouts a verdict needs, and how
//! many runs each layout should get.

use super::components::components;
use super::estimate::{BlockLogs, Inner, variance};
use super::looks::{LeftOut, Looks};
use super::shape::at_most;
use super::student::normal_quantile;

/// The chance with which the smallest detectable effect is to be detected.
pub const POWER: f64 = 0.80;
/// Blocks of the pilot, and runs of each side in each of them.
pub const PILOT_BLOCKS: u32 = 5;
pub const PILOT_RUNS: u32 = 4;
/// Beyond this many layouts, "more time" is no advice any more.
pub const MOST_LAYOUTS: u32 = 2_000;

/// What the block differences of an experiment are like, by their quantiles on the log scale.
#[derive(Debug, Clone, PartialEq)]
pub enum Spread {
    /// Those seen so far, ascending.
    Seen(Vec<f64>),
    /// Normal about zero with this standard deviation: before anything was seen, or after a pilot's few blocks.
    Normal(f64),
}

impl Spread {
    /// What these differences say.
    pub fn seen(differences: &[f64]) -> Self {
        let mut sorted = differences.to_vec();
        sorted.sort_by(f64::total_cmp);
        Self::Seen(sorted)
    }

    /// The value below which this share of blocks lies; between two seen ones by their ranks.
    fn quantile(&self, share: f64) -> f64 {
        match self {
            Self::Normal(sd) => sd * normal_quantile(share),
            Self::Seen(sorted) if sorted.is_empty() => f64::NAN,
            Self::Seen(sorted) => {
                let rank = share.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
                let (below, above) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
                below + (above - below) * rank.fract()
            }
        }
    }

    /// Where the ends of an interval over `blocks` blocks are, or nearer to the middle, with a chance of 80 %.
    fn ends(&self, blocks: u32, left_out: Option<u32>) -> (f64, f64) {
        let Some(left_out) = left_out else { return (f64::NEG_INFINITY, f64::INFINITY) };
        let share = share_that_shows(blocks, left_out);
        (self.quantile(share), self.quantile(1.0 - share))
    }

    /// The smallest true difference (log scale) that `blocks` blocks of this spread show with a chance of 80 %.
    /// Infinite where there is no interval.
    pub fn smallest_detectable(&self, blocks: u32, left_out: LeftOut) -> f64 {
        let (low, high) = self.ends(blocks, left_out.difference);
        let middle = self.quantile(0.5);
        (middle - low).max(high - middle)
    }

    /// The fewest layouts of a plan that would settle the question with a chance of 80 % at its last look, if the blocks
    /// go on as here: either the interval excludes zero, or it lies inside the margin. Nothing when even
    /// [`MOST_LAYOUTS`] would not.
    pub fn layouts_to_settle(&self, margin: f64, family: u32) -> Option<u32> {
        fewest(|blocks| {
            let left_out = Looks::up_to(blocks, family).left_out(blocks);
            let (low, high) = self.ends(blocks, left_out.difference);
            let (near, far) = self.ends(blocks, left_out.equivalence);
            low > 0.0 || high < 0.0 || (near > (1.0 - margin).ln() && far < margin.ln_1p())
        })
    }

    /// The number of layouts at whose last look the smallest detectable effect falls below `wanted` (log scale).
    pub fn layouts_to_see(&self, wanted: f64) -> Option<u32> {
        fewest(|blocks| self.smallest_detectable(blocks, Looks::up_to(blocks, 1).left_out(blocks)) <= wanted)
    }
}

/// The smallest number of layouts that is `enough`, by halving.
fn fewest(enough: impl Fn(u32) -> bool) -> Option<u32> {
    if !enough(MOST_LAYOUTS) {
        return None;
    }
    let (mut low, mut high) = (2, MOST_LAYOUTS);
    while low < high {
        let middle = (low + high) / 2;
        if enough(middle) { high = middle } else { low = middle + 1 }
    }
    Some(high)
}

/// The share of blocks on the other side of a value with which an interval leaving out so many ends before that value
/// in 80 % of experiments.
fn share_that_shows(blocks: u32, left_out: u32) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if at_most(left_out, blocks, middle) >= POWER { low = middle } else { high = middle }
    }
    low
}

/// Runs of each side per layout that make the most of a fixed time (Kalibera & Jones 2013, eq. for
/// the optimal repetition count): sqrt(cost of a layout / cost of a pair of runs · variance of runs /
/// variance of layouts), rounded to an even number in 2..=12 so that the order can be balanced.
/// Both variances are those of the block difference.
pub fn best_runs_per_layout(
    layout_cost: f64,
    pair_cost: f64,
    run_variance: f64,
    layout_variance: f64,
) -> u32 {
    if run_variance <= 0.0 || pair_cost <= 0.0 || layout_cost <= 0.0 {
        return 2;
    }
    // A pilot that happens to see no layout effect must not send all the time into one layout.
    let floor = layout_variance.max(run_variance / 100.0);
    let best = (layout_cost / pair_cost * run_variance / floor).sqrt();
    ((best / 2.0).round() as u32 * 2).clamp(2, 12)
}

/// Even run counts from the blocks of a pilot and what they cost in seconds: `layout_cost` for
/// writing and warming up one pair of layouts, `pair_cost` for one run of each side.
pub fn runs_after_pilot(pilot: &[BlockLogs], inner: Inner, layout_cost: f64, pair_cost: f64) -> u32 {
    let differences: Vec<f64> = pilot.iter().map(|b| b.difference(inner)).collect();
    let parts = components(pilot, true);
    let square = |sd: Option<f64>| sd.unwrap_or(0.0).powi(2);
    let run_variance = if pilot.iter().all(|b| b.paired) {
        pair_variance(pilot)
    } else {
        square(parts.a.run_sd) + square(parts.b.run_sd)
    };
    let runs = pilot.iter().map(|b| b.a.len() as f64).sum::<f64>() / pilot.len().max(1) as f64;
    let layout_variance = (variance(&differences) - run_variance / runs).max(0.0);
    best_runs_per_layout(layout_cost, pair_cost, run_variance, layout_variance)
}

/// Of the difference of one pair of runs about its block's mean.
fn pair_variance(blocks: &[BlockLogs]) -> f64 {
    let differences: Vec<Vec<f64>> = blocks.iter().map(BlockLogs::pair_differences).collect();
    let degrees = |d: &Vec<f64>| d.len().saturating_sub(1) as f64;
    let squares: f64 = differences.iter().map(|d| variance(d) * degrees(d)).sum();
    squares / differences.iter().map(degrees).sum::<f64>().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noether, JASA 82 (1987): the sign test at the two-sided level alpha needs (z(alpha/2) + z(beta))² / 4(p − ½)² blocks,
    /// where p is the share of blocks above the null. The levels of the last look are those of about 3.4 %.
    #[test]
    fn the_smallest_detectable_effect_is_noethers() {
        let left_out = |difference| LeftOut { difference: Some(difference), equivalence: Some(difference) };
        for (blocks, out) in [(60, 21), (100, 39), (400, 178)] {
            let alpha = 2.0 * at_most(out, blocks, 0.5);
            let z = -normal_quantile(alpha / 2.0) + normal_quantile(POWER);
            let share = 0.5 + z / (2.0 * f64::from(blocks).sqrt());
            let got = Spread::Normal(1.0).smallest_detectable(blocks, left_out(out));
            assert!((got / normal_quantile(share) - 1.0).abs() < 0.06, "{blocks}: {got}");
        }
        assert_eq!(
            Spread::Normal(1.0).smallest_detectable(5, Looks::new(&[5], 1).left_out(5)),
            f64::INFINITY
        );
    }

    #[test]
    fn settling_agrees_with_its_definition() {
        let spread = Spread::Normal(0.02);
        let n = spread.layouts_to_settle(0.01, 1).unwrap();
        assert!((50..200).contains(&n), "{n}");
        let clear = Spread::seen(&(0..10).map(|i| f64::from(i) * 0.002 - 0.05).collect::<Vec<_>>());
        assert!(clear.layouts_to_settle(0.01, 1).unwrap() <= 8);
        let on_the_border = Spread::seen(&(0..11).map(|i| f64::from(i) * 0.2 - 1.0).collect::<Vec<_>>());
        assert_eq!(on_the_border.layouts_to_settle(0.01, 1), None);
        let n = spread.layouts_to_see(0.005).unwrap();
        let seen = |n| spread.smallest_detectable(n, Looks::up_to(n, 1).left_out(n));
        assert!(seen(n) <= 0.005 && seen(n - 20) > 0.0045);
    }

    /// From the design's simulations under a fixed budget: equal variances and cheap layouts want
    /// one or two runs, noisy runs or dear layouts want more.
    #[test]
    fn runs_per_layout_follow_costs_and_variances() {
        assert_eq!(best_runs_per_layout(2.0, 2.0, 1.0, 1.0), 2);
        assert_eq!(best_runs_per_layout(20.0, 2.0, 1.0, 1.0), 4);
        assert_eq!(best_runs_per_layout(10.0, 2.0, 9.0, 1.0), 6);
        assert_eq!(best_runs_per_layout(4.0, 2.0, 4.0, 0.09), 10);
        assert_eq!(best_runs_per_layout(4.0, 2.0, 4.0, 0.0), 12);
        assert_eq!(best_runs_per_layout(4.0, 2.0, 0.0, 1.0), 2);
    }
}
