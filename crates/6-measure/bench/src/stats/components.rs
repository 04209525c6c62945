//! Where the variance comes from: layout, single runs, drift. Moments of the nested design
//! (analysis of variance); in a balanced design restricted maximum likelihood gives the same numbers.

use serde::{Deserialize, Serialize};

use super::estimate::{BlockLogs, mean, variance};
use super::student::chi_square_quantile;

/// The components of one side, as standard deviations on the log scale (0.01 is about 1 %).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SideComponents {
    /// Of one run about its layout's mean; nothing where no layout ran twice.
    pub run_sd: Option<f64>,
    /// Of the layouts' true means; with runs of noise taken off.
    pub layout_sd: f64,
    /// 95 % interval of `layout_sd`, from the chi-square distribution of the layout means.
    pub layout_sd_interval: (f64, f64),
}

/// The components of both sides and what they share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Components {
    pub a: SideComponents,
    pub b: SideComponents,
    /// What the machine did to both sides of a block alike, and slowly: drift, other jobs.
    pub drift_sd: f64,
    /// Correlation of the two sides' layout means (coupled layouts and drift make it positive).
    pub correlation: f64,
    /// Shares of the variance of a single run; they add up to 1 unless nothing varies at all.
    pub layout_share: f64,
    pub run_share: f64,
    pub drift_share: f64,
}

/// Splits the variance of valid blocks, given in the order in which they ran. `coupled` layouts have a
/// part in common; of independent ones, whatever both sides share is the machine's.
pub fn components(blocks: &[BlockLogs], coupled: bool) -> Components {
    let means =
        |side: fn(&BlockLogs) -> &Vec<f64>| -> Vec<f64> { blocks.iter().map(|b| mean(side(b))).collect() };
    let (means_a, means_b) = (means(|b| &b.a), means(|b| &b.b));
    let common: Vec<f64> = means_a.iter().zip(&means_b).map(|(a, b)| (a + b) / 2.0).collect();
    let shared = if coupled { 0.0 } else { significant_covariance(&means_a, &means_b) };
    let drift = drift_variance(&common).max(shared);
    let a = side_components(blocks.iter().map(|b| b.a.as_slice()), &means_a, drift);
    let b = side_components(blocks.iter().map(|b| b.b.as_slice()), &means_b, drift);
    let square = |x: f64| x * x;
    let run = (square(a.run_sd.unwrap_or(0.0)) + square(b.run_sd.unwrap_or(0.0))) / 2.0;
    let layout = (square(a.layout_sd) + square(b.layout_sd)) / 2.0;
    let total = run + layout + drift;
    let share = |part: f64| if total > 0.0 { part / total } else { 0.0 };
    Components {
        a,
        b,
        drift_sd: drift.sqrt(),
        correlation: correlation(&means_a, &means_b),
        layout_share: share(layout),
        run_share: share(run),
        drift_share: share(drift),
    }
}

fn side_components<'a>(
    runs: impl Iterator<Item = &'a [f64]> + Clone,
    means: &[f64],
    drift: f64,
) -> SideComponents {
    let degrees: usize = runs.clone().map(|r| r.len() - 1).sum();
    let within: f64 = runs.clone().map(|r| variance(r) * (r.len() - 1) as f64).sum();
    let run_variance = (degrees > 0).then(|| within / degrees as f64);
    let inverse_runs: f64 = runs.map(|r| 1.0 / r.len() as f64).sum::<f64>() / means.len().max(1) as f64;
    let noise = run_variance.unwrap_or(0.0) * inverse_runs + drift;
    let between = variance(means);
    let df = means.len() as f64 - 1.0;
    let bound = |p: f64| {
        if df < 1.0 { f64::NAN } else { (between * df / chi_square_quantile(p, df) - noise).max(0.0).sqrt() }
    };
    SideComponents {
        run_sd: run_variance.map(f64::sqrt),
        layout_sd: (between - noise).max(0.0).sqrt(),
        layout_sd_interval: (bound(0.975), bound(0.025)),
    }
}

/// Fresh random layouts are exchangeable in time, so whatever makes neighbouring blocks more alike
/// than distant ones is drift: the variance less half the mean squared successive difference, if
/// von Neumann's ratio (Annals of Mathematical Statistics 12, 1941) is significantly small.
fn drift_variance(common: &[f64]) -> f64 {
    let n = common.len() as f64;
    let total = variance(common);
    if n < 8.0 || total <= 0.0 {
        return 0.0;
    }
    let successive = common.windows(2).map(|w| (w[1] - w[0]).powi(2)).sum::<f64>() / (2.0 * (n - 1.0));
    let z = (1.0 - successive / total) / ((n - 2.0) / (n * n - 1.0)).sqrt();
    if z > 1.645 { (total - successive).max(0.0) } else { 0.0 }
}

fn covariance(x: &[f64], y: &[f64]) -> f64 {
    let (mx, my) = (mean(x), mean(y));
    x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum::<f64>() / (x.len() as f64 - 1.0)
}

fn correlation(x: &[f64], y: &[f64]) -> f64 {
    let scale = (variance(x) * variance(y)).sqrt();
    if scale > 0.0 { (covariance(x, y) / scale).clamp(-1.0, 1.0) } else { 0.0 }
}

/// The covariance if it is positive beyond chance (Fisher's transformation, 5 % one-sided), else 0.
fn significant_covariance(x: &[f64], y: &[f64]) -> f64 {
    let n = x.len() as f64;
    let r = correlation(x, y);
    if n >= 8.0 && r.min(0.999_999).atanh() * (n - 3.0).sqrt() > 1.645 { covariance(x, y) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::looks::standard_normal;
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    fn simulate(layout: f64, run: f64, drift: f64, blocks: usize) -> Vec<BlockLogs> {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut level = 0.0;
        (0..blocks)
            .map(|i| {
                level += drift * standard_normal(&mut rng);
                let mut side = || {
                    let own = layout * standard_normal(&mut rng);
                    (0..4).map(|_| level + own + run * standard_normal(&mut rng)).collect()
                };
                BlockLogs { seconds: i as f64, a: side(), b: side(), paired: false }
            })
            .collect()
    }

    #[test]
    fn known_components_are_found_again() {
        let c = components(&simulate(0.02, 0.01, 0.0, 2000), true);
        assert!((c.a.layout_sd - 0.02).abs() < 0.001, "{c:?}");
        assert!((c.b.run_sd.unwrap() - 0.01).abs() < 0.0005);
        assert!(c.correlation.abs() < 0.06 && c.drift_share < 0.05);
        assert!((c.layout_share - 0.8).abs() < 0.03 && (c.run_share - 0.2).abs() < 0.03);
        assert!(c.a.layout_sd_interval.0 < 0.02 && c.a.layout_sd_interval.1 > 0.02);
        let pure_noise = components(&simulate(0.0, 0.03, 0.0, 400), true);
        assert!(pure_noise.layout_share < 0.03, "{pure_noise:?}");
    }

    #[test]
    fn drift_is_told_from_layout() {
        let c = components(&simulate(0.005, 0.002, 0.004, 100), true);
        assert!(c.drift_share > 0.5, "{c:?}");
        assert!(c.a.layout_sd < 0.012, "layout keeps its size although the machine drifts: {c:?}");
        assert!(c.correlation > 0.7);
    }

    /// Another job disturbs whole blocks, each on its own: no wave in time, but the same for both sides.
    #[test]
    fn what_independent_layouts_share_is_the_machine() {
        let mut blocks = simulate(0.005, 0.002, 0.0, 200);
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        for block in &mut blocks {
            let disturbance = 0.02 * standard_normal(&mut rng);
            block.a.iter_mut().chain(&mut block.b).for_each(|y| *y += disturbance);
        }
        let c = components(&blocks, false);
        assert!((c.drift_sd - 0.02).abs() < 0.003, "{c:?}");
        assert!((c.a.layout_sd - 0.005).abs() < 0.002, "{c:?}");
        assert!(components(&blocks, true).layout_share > 0.8, "coupled layouts can't be told from it");
        assert_eq!(components(&simulate(0.005, 0.002, 0.0, 200), false).drift_share, 0.0);
    }

    #[test]
    fn single_runs_and_constants_have_no_components() {
        let blocks: Vec<BlockLogs> = (0..9)
            .map(|i| BlockLogs { seconds: f64::from(i), a: vec![1.0], b: vec![2.0], paired: false })
            .collect();
        let c = components(&blocks, true);
        assert_eq!((c.a.run_sd, c.a.layout_sd, c.layout_share), (None, 0.0, 0.0));
    }
}
