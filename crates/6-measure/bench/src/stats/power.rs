//! Planning: the smallest effect an experiment can see, how many layouts a verdict needs, and how
//! many runs each layout should get.

use super::components::components;
use super::estimate::{BlockLogs, Estimate, Inner, variance};
use super::student::t_quantile;

/// The chance with which the smallest detectable effect is to be detected.
pub const POWER: f64 = 0.80;
/// Blocks of the pilot, and runs of each side in each of them.
pub const PILOT_BLOCKS: u32 = 5;
pub const PILOT_RUNS: u32 = 4;
/// Beyond this many layouts, "more time" is no advice any more.
pub const MOST_LAYOUTS: u32 = 2_000;

/// The smallest true difference (log scale) that `blocks` block differences with standard deviation
/// `sd` show as significant at the two-sided level `alpha` with a chance of 80 %:
/// sd · (t(1 − alpha/2) + t(0.8)) / √blocks. Infinite for fewer than two blocks.
pub fn smallest_detectable(sd: f64, blocks: usize, alpha: f64) -> f64 {
    if blocks < 2 {
        return f64::INFINITY;
    }
    let df = blocks as f64 - 1.0;
    sd * (t_quantile(1.0 - alpha / 2.0, df) + t_quantile(POWER, df)) / (blocks as f64).sqrt()
}

/// The fewest layouts that would settle the question with a chance of 80 %, if the true difference
/// and the spread are what has been estimated so far: either the interval excludes zero, or it
/// lies inside the margin. Nothing when even [`MOST_LAYOUTS`] would not.
pub fn layouts_to_settle(estimate: &Estimate, margin: f64, difference: f64, equivalence: f64) -> Option<u32> {
    let room = (margin.ln_1p() - estimate.mean.abs()).max(0.0);
    let settles = |blocks: u32| {
        let n = blocks as usize;
        smallest_detectable(estimate.sd, n, difference) < estimate.mean.abs()
            || smallest_detectable(estimate.sd, n, equivalence) < room
    };
    if !settles(MOST_LAYOUTS) {
        return None;
    }
    let (mut low, mut high) = (2, MOST_LAYOUTS);
    while low < high {
        let middle = (low + high) / 2;
        if settles(middle) { high = middle } else { low = middle + 1 }
    }
    Some(high)
}

/// The number of layouts at which the smallest detectable effect falls below `wanted` (log scale).
pub fn layouts_to_see(sd: f64, wanted: f64, alpha: f64) -> Option<u32> {
    (2..=MOST_LAYOUTS).find(|&n| smallest_detectable(sd, n as usize, alpha) <= wanted)
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

    /// The table in the design (80 % power, two-sided 5 %), in percent; computed there from the same
    /// textbook formula by other software.
    #[test]
    fn the_smallest_detectable_effect_is_that_of_the_table() {
        for (sd, row) in
            [(0.5, [0.50, 0.33, 0.26, 0.23, 0.18, 0.14]), (3.0, [2.98, 1.98, 1.59, 1.36, 1.10, 0.85])]
        {
            for (blocks, want) in [10, 20, 30, 40, 60, 100].into_iter().zip(row) {
                let got = smallest_detectable(sd, blocks, 0.05);
                assert!((got - want).abs() < 0.0151, "sd {sd}, {blocks} blocks: {got}, table {want}");
            }
        }
        assert_eq!(smallest_detectable(1.0, 1, 0.05), f64::INFINITY);
    }

    #[test]
    fn settling_agrees_with_its_definition() {
        let e = Estimate { blocks: 10, mean: 0.001, sd: 0.02 };
        let n = layouts_to_settle(&e, 0.01, 0.05, 0.10).unwrap() as usize;
        let room = 0.01f64.ln_1p() - 0.001;
        assert!(smallest_detectable(0.02, n, 0.10) < room && smallest_detectable(0.02, n - 1, 0.10) >= room);
        let clear = Estimate { blocks: 10, mean: -0.05, sd: 0.02 };
        assert!(layouts_to_settle(&clear, 0.01, 0.05, 0.10).unwrap() <= 6);
        let on_the_border = Estimate { blocks: 10, mean: 0.00001, sd: 0.5 };
        assert_eq!(layouts_to_settle(&on_the_border, 0.01, 0.05, 0.10), None);
        let n = layouts_to_see(0.02, 0.005, 0.0138).unwrap() as usize;
        assert!(smallest_detectable(0.02, n, 0.0138) <= 0.005);
        assert!(smallest_detectable(0.02, n - 1, 0.0138) > 0.005);
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
