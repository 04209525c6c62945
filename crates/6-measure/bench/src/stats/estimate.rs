//! From the runs of blocks to one log ratio a block, and from these to an estimate with its interval.

use serde::{Deserialize, Serialize};

use super::student::{t_quantile, t_two_sided_p};

/// How the runs of one side in one block become one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inner {
    /// The mean of one or two runs, the median of three or more.
    #[default]
    Middle,
    /// The fastest run: for machines where other jobs can only slow a run down.
    Min,
}

/// One block's runs of both sides as natural logarithms. `seconds` is the time since the
/// experiment's start at which the block stood half-way; it serves to tell drift from layout.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BlockLogs {
    pub seconds: f64,
    pub a: Vec<f64>,
    pub b: Vec<f64>,
    /// Whether the runs of equal index ran at the same time, so that what disturbed one disturbed both.
    pub paired: bool,
}

impl BlockLogs {
    /// log(B) − log(A) of this block.
    pub fn difference(&self, inner: Inner) -> f64 {
        if self.paired {
            return reduce(&self.pair_differences(), Inner::Middle);
        }
        reduce(&self.b, inner) - reduce(&self.a, inner)
    }

    /// The least and the greatest log(B) − log(A) that the runs of this block allow.
    pub fn range(&self) -> Interval {
        let ends = |values: &[f64]| {
            let fold = |pick: fn(f64, f64) -> f64, start| values.iter().copied().fold(start, pick);
            Interval { low: fold(f64::min, f64::INFINITY), high: fold(f64::max, f64::NEG_INFINITY) }
        };
        if self.paired {
            return ends(&self.pair_differences());
        }
        let (a, b) = (ends(&self.a), ends(&self.b));
        Interval { low: b.low - a.high, high: b.high - a.low }
    }

    /// log(B) − log(A) of each pair of runs.
    pub fn pair_differences(&self) -> Vec<f64> {
        self.a.iter().zip(&self.b).map(|(a, b)| b - a).collect()
    }
}

/// One side's runs of one block as one number.
///
/// # Panics
/// On no runs at all: a block without runs is never recorded as valid.
pub fn reduce(runs: &[f64], inner: Inner) -> f64 {
    assert!(!runs.is_empty(), "a valid block has runs of both sides");
    match inner {
        Inner::Min => runs.iter().copied().fold(f64::INFINITY, f64::min),
        Inner::Middle if runs.len() < 3 => mean(runs),
        Inner::Middle => median(runs),
    }
}

/// The arithmetic mean; NaN for nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The middle value, or the mean of the two middle ones; NaN for nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    match n {
        0 => f64::NAN,
        _ if n % 2 == 1 => sorted[n / 2],
        _ => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// The unbiased variance (n − 1 below); 0 for fewer than two values.
pub fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let centre = mean(values);
    values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

/// Adjusted Fisher–Pearson skewness; 0 where it is not defined.
pub fn skewness(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let centre = mean(values);
    let m2 = values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / n;
    let m3 = values.iter().map(|v| (v - centre).powi(3)).sum::<f64>() / n;
    if n < 3.0 || m2 <= 0.0 { 0.0 } else { m3 / m2.powf(1.5) * (n * (n - 1.0)).sqrt() / (n - 2.0) }
}

/// A closed interval on the log scale.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Whether all of it lies strictly between −`margin` and +`margin` as ratios, e.g. 0.01 for 1 %:
    /// between log(1 − margin) and log(1 + margin).
    pub fn within_margin(&self, margin: f64) -> bool {
        self.low > (1.0 - margin).ln() && self.high < (1.0 + margin).ln()
    }

    /// Half its width.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// Mean and standard deviation of the block differences.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Number of blocks.
    pub blocks: usize,
    /// Mean of the block differences, log scale.
    pub mean: f64,
    /// Standard deviation of one block difference, log scale.
    pub sd: f64,
}

impl Estimate {
    /// From one difference per block.
    pub fn of(differences: &[f64]) -> Self {
        Self { blocks: differences.len(), mean: mean(differences), sd: variance(differences).sqrt() }
    }

    fn df(&self) -> f64 {
        self.blocks as f64 - 1.0
    }

    /// The standard error of the mean.
    pub fn standard_error(&self) -> f64 {
        self.sd / (self.blocks as f64).sqrt()
    }

    /// Student's interval that errs with probability `alpha`, both sides together.
    /// Infinite for fewer than two blocks.
    pub fn interval(&self, alpha: f64) -> Interval {
        if self.blocks < 2 {
            return Interval { low: f64::NEG_INFINITY, high: f64::INFINITY };
        }
        let half = t_quantile(1.0 - alpha / 2.0, self.df()) * self.standard_error();
        Interval { low: self.mean - half, high: self.mean + half }
    }

    /// Two-sided p value of "the mean is `null`".
    pub fn p_value(&self, null: f64) -> f64 {
        if self.blocks < 2 {
            return 1.0;
        }
        let distance = self.mean - null;
        if distance == 0.0 { 1.0 } else { t_two_sided_p(distance / self.standard_error(), self.df()) }
    }

    /// The p value of the two one-sided tests (TOST) of "the true ratio is outside the margin":
    /// the larger of the two.
    pub fn equivalence_p(&self, margin: f64) -> f64 {
        let (low, high) = ((1.0 - margin).ln(), (1.0 + margin).ln());
        if self.mean <= low || self.mean >= high {
            return 1.0;
        }
        self.p_value(low).max(self.p_value(high)) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_uses_the_mean_of_two_and_the_median_of_three() {
        assert_eq!(reduce(&[1.0, 2.0], Inner::Middle), 1.5);
        assert_eq!(reduce(&[1.0, 9.0, 2.0], Inner::Middle), 2.0);
        assert_eq!(reduce(&[1.0, 9.0, 2.0, 3.0], Inner::Middle), 2.5);
        assert_eq!(reduce(&[4.0, 9.0, 2.0], Inner::Min), 2.0);
        let block = BlockLogs { seconds: 0.0, a: vec![1.0, 1.0], b: vec![1.5, 2.5], paired: false };
        assert_eq!(block.difference(Inner::Middle), 1.0);
        assert_eq!(block.range(), Interval { low: 0.5, high: 1.5 });
    }

    /// Gosset's sleep data (Biometrika 1908), paired: mean 1.58, sd 1.2300, 95 % interval [0.700, 2.460], p = 0.00283.
    #[test]
    fn the_sleep_data_give_the_published_interval() {
        let extra = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let e = Estimate::of(&extra);
        assert!((e.mean - 1.58).abs() < 1e-12 && (e.sd - 1.229_995).abs() < 1e-5);
        let ci = e.interval(0.05);
        assert!((ci.low - 0.700_114).abs() < 1e-4 && (ci.high - 2.459_886).abs() < 1e-4, "{ci:?}");
        assert!((e.p_value(0.0) - 0.002_833).abs() < 1e-5);
    }

    /// Scipy's and R's example values for the adjusted skewness: {2,8,0,4,1,9,9,0} has 0.3305821.
    #[test]
    fn skewness_agrees_with_the_published_example() {
        assert!((skewness(&[2.0, 8.0, 0.0, 4.0, 1.0, 9.0, 9.0, 0.0]) - 0.330_582).abs() < 1e-5);
        assert_eq!(skewness(&[1.0, 1.0, 1.0]), 0.0);
    }

    #[test]
    fn equivalence_p_and_the_interval_of_twice_the_level_agree() {
        for shift in [0.0, 0.003, 0.006, 0.008, 0.02] {
            let d: Vec<f64> =
                (0..12).map(|i| shift + 0.004 * f64::from(i % 4) - 0.006).map(|x| x * 0.8).collect();
            let e = Estimate::of(&d);
            let inside = e.interval(0.10).within_margin(0.01);
            assert_eq!(inside, e.equivalence_p(0.01) < 0.05, "shift {shift}");
        }
    }

    #[test]
    fn identical_differences_are_certain_and_one_block_is_nothing() {
        let e = Estimate::of(&[0.02; 10]);
        assert!(e.p_value(0.0) < 1e-30);
        assert!(e.interval(0.05).low > 0.019);
        assert_eq!(Estimate::of(&[0.0; 10]).p_value(0.0), 1.0);
        assert_eq!(Estimate::of(&[0.5]).interval(0.05).high, f64::INFINITY);
        assert_eq!(Estimate::of(&[0.5]).p_value(0.0), 1.0);
    }

    /// The second pair ran while the machine was half as fast: each side's median would differ by chance, the pairs' does not.
    #[test]
    fn what_disturbs_both_runs_of_a_pair_cancels() {
        let (a, b) = (vec![0.00, 0.69, 0.05], vec![0.02, 0.70, 0.08]);
        let block = |paired| BlockLogs { seconds: 0.0, a: a.clone(), b: b.clone(), paired };
        assert!((block(true).difference(Inner::Middle) - 0.02).abs() < 1e-12);
        assert!((block(false).difference(Inner::Middle) - 0.03).abs() < 1e-12);
        assert_eq!(block(true).difference(Inner::Min), block(true).difference(Inner::Middle));
    }
}
