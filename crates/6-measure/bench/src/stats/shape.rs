//! What a typical layout does, and what a few layouts do: two statements where the sides differ in shape.
//!
//! Student's interval is about the mean. Where one side has a tail (a tenth of its layouts is 15 % slow), the mean of
//! ten blocks says whether a tail layout happened to be among them. There the typical layout is the median
//! of the block differences; its interval runs between two order statistics (Thompson, Annals of Mathematical
//! Statistics 7, 1936) and holds whatever the distribution is. The tail is told by counting.

use serde::{Deserialize, Serialize};

use super::estimate::{Estimate, Interval, median, skewness};

/// Skewness in standard errors from which on the mean is not taken for the typical layout.
const LOPSIDED: f64 = 1.0;
/// Standard errors between mean and median from which on the same holds: two-valued layouts need not look skewed.
const APART: f64 = 0.4;
/// Kurtosis below which the blocks fall into two groups (two equal ones: 1; uniform data: 1.8; normal data: 3). Their mean
/// is then a place where no layout is, although nothing looks skewed if ten blocks happen to be five and five.
const TWO_GROUPS: f64 = 1.6;
/// A block lies in the tail beyond this many robust standard deviations from the median.
const TAIL: f64 = 5.0;
/// The standard deviation of normal data over their median absolute deviation.
const MAD_TO_SD: f64 = 1.4826;

/// What the typical layout is taken to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Typical {
    /// The mean of the blocks, with Student's interval.
    Mean,
    /// The median of the blocks, with the interval between order statistics.
    Median,
}

impl Typical {
    /// What suits these differences: the median where they lean to one side more than chance makes symmetric ones do.
    pub fn of(differences: &[f64]) -> Self {
        let error = (6.0 / differences.len().max(1) as f64).sqrt();
        let estimate = Estimate::of(differences);
        let apart = (estimate.mean - median(differences)).abs() > APART * estimate.standard_error();
        let lopsided = skewness(differences).abs() > LOPSIDED * error;
        if apart || lopsided || kurtosis(differences) < TWO_GROUPS { Self::Median } else { Self::Mean }
    }

    /// The estimate.
    pub fn centre(self, differences: &[f64]) -> f64 {
        match self {
            Self::Mean => super::estimate::mean(differences),
            Self::Median => median(differences),
        }
    }

    /// Its interval that errs with probability `alpha`, both sides together.
    pub fn interval(self, differences: &[f64], alpha: f64) -> Interval {
        match self {
            Self::Mean => Estimate::of(differences).interval(alpha),
            Self::Median => median_interval(differences, alpha),
        }
    }

    /// Two-sided p value of "the typical layout is at `null`".
    pub fn p_value(self, differences: &[f64], null: f64) -> f64 {
        match self {
            Self::Mean => Estimate::of(differences).p_value(null),
            Self::Median => sign_p(differences, null),
        }
    }
}

/// The fourth moment over the square of the second; that of normal data where it is not defined.
fn kurtosis(values: &[f64]) -> f64 {
    let centre = super::estimate::mean(values);
    let moment = |power| values.iter().map(|v| (v - centre).powi(power)).sum::<f64>() / values.len() as f64;
    let spread = moment(2);
    if spread > 0.0 { moment(4) / spread.powi(2) } else { 3.0 }
}

/// The probability that at most `k` of `n` tosses of a coin show heads.
fn at_most(k: usize, n: usize) -> f64 {
    let mut term = 0.5f64.powi(n as i32);
    let mut sum = term;
    for i in 0..k.min(n) {
        term *= (n - i) as f64 / (i + 1) as f64;
        sum += term;
    }
    sum.min(1.0)
}

/// The narrowest symmetric pair of order statistics that misses the median with a probability of at most `alpha`;
/// infinite if even the smallest and the largest value do not suffice.
pub fn median_interval(differences: &[f64], alpha: f64) -> Interval {
    let mut sorted = differences.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    // With k values dropped on each side, the median is missed if at most k of n lie below or above it.
    let dropped = (0..n.div_ceil(2)).take_while(|&k| 2.0 * at_most(k, n) <= alpha).last();
    match dropped {
        Some(k) => Interval { low: sorted[k], high: sorted[n - 1 - k] },
        None => Interval { low: f64::NEG_INFINITY, high: f64::INFINITY },
    }
}

/// The sign test: two-sided p value of "the median is `null`". Values at `null` count against a difference.
pub fn sign_p(differences: &[f64], null: f64) -> f64 {
    let below = differences.iter().filter(|d| **d <= null).count();
    let above = differences.iter().filter(|d| **d >= null).count();
    (2.0 * at_most(below.min(above), differences.len())).min(1.0)
}

/// The blocks that lie far from all others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// How far from the median, log scale, the tail begins: outside the margin and outside the blocks' usual spread.
    pub beyond: f64,
    /// Blocks in which B lies higher by more than that.
    pub above: usize,
    /// Blocks in which B lies lower by more than that.
    pub below: usize,
}

impl Tail {
    /// Counts it, with differences up to `margin` counting as none.
    pub fn of(differences: &[f64], margin: f64) -> Self {
        let centre = median(differences);
        let far: Vec<f64> = differences.iter().map(|d| (d - centre).abs()).collect();
        let beyond = (TAIL * MAD_TO_SD * median(&far)).max(2.0 * margin);
        let count = |side: f64| differences.iter().filter(|d| side * (**d - centre) > beyond).count();
        Self { beyond, above: count(1.0), below: count(-1.0) }
    }

    /// Whether the tail is on one side. A machine that disturbs runs disturbs both sides alike, a layout does not.
    pub fn is_one_sided(&self) -> bool {
        let (few, many) = (self.above.min(self.below), self.above.max(self.below));
        many > 0 && (few == 0 || 2.0 * at_most(few, few + many) < 0.1)
    }
}

/// The share of layouts that a tail could have without a good chance of being seen in `blocks` blocks: with
/// three of n expected, none is seen in 5 % ("rule of three").
pub fn unseen_share(blocks: usize) -> f64 {
    (3.0 / blocks.max(1) as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Conover, "Practical Nonparametric Statistics", table: for n = 10, X(2) to X(9) has 97.85 %; for n = 15,
    /// X(4) to X(12) has 96.48 %.
    #[test]
    fn order_statistics_are_the_tabled_ones() {
        let d: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(median_interval(&d, 0.0215), Interval { low: 2.0, high: 9.0 });
        assert_eq!(median_interval(&d, 0.0214), Interval { low: 1.0, high: 10.0 });
        let d: Vec<f64> = (1..=15).map(f64::from).collect();
        assert_eq!(median_interval(&d, 0.0353), Interval { low: 4.0, high: 12.0 });
        assert_eq!(median_interval(&d[..5], 0.05).high, f64::INFINITY, "five values have 6.25 %");
    }

    #[test]
    fn the_sign_test_and_the_interval_agree() {
        let d: Vec<f64> = (0..15).map(|i| f64::from(i * i) / 100.0 - 0.3).collect();
        for null in [-0.31, -0.2905, -0.2, 0.0, 0.2, 0.9, 1.3, 1.7] {
            for alpha in [0.01, 0.05, 0.2] {
                let ci = median_interval(&d, alpha);
                assert_eq!(sign_p(&d, null) > alpha, ci.low <= null && null <= ci.high, "{null} {alpha}");
            }
        }
    }

    #[test]
    fn two_equal_groups_have_no_typical_mean() {
        let d: Vec<f64> = (0..10).map(|i| f64::from(i % 2) * 0.03 + f64::from(i) * 1e-5).collect();
        assert!(skewness(&d).abs() < 0.1 && kurtosis(&d) < 1.1);
        assert_eq!(Typical::of(&d), Typical::Median);
        assert_eq!(Typical::of(&[0.0; 10]), Typical::Mean);
    }

    #[test]
    fn one_slow_layout_is_a_tail_and_not_the_typical_one() {
        let mut d: Vec<f64> = (0..15).map(|i| f64::from(i % 5) * 0.001 - 0.002).collect();
        assert_eq!(Typical::of(&d), Typical::Mean);
        assert!(!Tail::of(&d, 0.01).is_one_sided());
        d[3] = 0.2;
        assert_eq!(Typical::of(&d), Typical::Median);
        assert!(Typical::Median.interval(&d, 0.0102).within_margin(0.01));
        let tail = Tail::of(&d, 0.01);
        assert_eq!((tail.above, tail.below, tail.is_one_sided()), (1, 0, true));
        d[8] = -0.2;
        assert!(!Tail::of(&d, 0.01).is_one_sided(), "noise goes both ways");
    }
}
