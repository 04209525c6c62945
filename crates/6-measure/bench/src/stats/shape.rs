//! What the typical layout does, and what a few layouts do: two statements.
//!
//! The typical layout is the median: half of all pairs of layouts have a larger ratio of B to A, half a smaller one.
//! The interval about it runs between two order statistics (Thompson, Annals of Mathematical Statistics 7, 1936), so it holds
//! whatever the distribution is. Student's is about the mean; where a tenth of one side's layouts is 15 % slow, the mean of
//! ten blocks says whether such a layout happened to be among them. The tail is told by counting.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, DiscreteCDF};

use super::estimate::{Interval, median};

/// A block lies in the tail beyond this many robust standard deviations from the median.
const TAIL: f64 = 5.0;
/// The standard deviation of normal data over their median absolute deviation.
const MAD_TO_SD: f64 = 1.4826;
/// How often a tail as frequent as the named share may be missed.
const MISSED: f64 = 0.02;
/// A tail lies on one side if chance alone would put so many more of its blocks there more rarely than this.
const ONE_SIDED: f64 = 0.1;

/// The probability that at most `k` of `n` blocks fall where each falls with probability `share`.
pub fn at_most(k: u32, n: u32, share: f64) -> f64 {
    Binomial::new(share, u64::from(n)).map_or(1.0, |b| b.cdf(u64::from(k)))
}

/// From the smallest to the largest value without `left_out` on each side; infinite if not even these suffice.
pub fn median_interval(differences: &[f64], left_out: Option<u32>) -> Interval {
    let mut sorted = differences.to_vec();
    sorted.sort_by(f64::total_cmp);
    match left_out.map(|k| k as usize) {
        Some(k) if 2 * k < sorted.len() => Interval { low: sorted[k], high: sorted[sorted.len() - 1 - k] },
        _ => Interval { low: f64::NEG_INFINITY, high: f64::INFINITY },
    }
}

/// The values on the side of `null` where fewer are. Values at `null` are counted on both sides, against a difference.
pub fn fewer_side(differences: &[f64], null: f64) -> u32 {
    let below = differences.iter().filter(|d| **d <= null).count();
    let above = differences.iter().filter(|d| **d >= null).count();
    below.min(above) as u32
}

/// The sign test: two-sided p value of "the median is `null`".
pub fn sign_p(differences: &[f64], null: f64) -> f64 {
    (2.0 * at_most(fewer_side(differences, null), differences.len() as u32, 0.5)).min(1.0)
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
    /// Counts it, with differences up to `margin` counting as none. `ranges` are what each block's runs allow, if that is known: a
    /// layout is slow in all of its runs, a disturbance in some, so the nearer end has to lie half as far off.
    pub fn of(differences: &[f64], ranges: &[Interval], margin: f64) -> Self {
        let centre = median(differences);
        let far: Vec<f64> = differences.iter().map(|d| (d - centre).abs()).collect();
        let beyond = (TAIL * MAD_TO_SD * median(&far)).max(2.0 * margin);
        let is_far = |block: usize, side: f64| {
            let nearest =
                ranges.get(block).map_or(f64::INFINITY, |r| if side > 0.0 { r.low } else { -r.high });
            side * (differences[block] - centre) > beyond && nearest - side * centre > beyond / 2.0
        };
        let count = |side| (0..differences.len()).filter(|block| is_far(*block, side)).count();
        Self { beyond, above: count(1.0), below: count(-1.0) }
    }

    /// Whether the tail is on one side. A machine that disturbs runs disturbs both sides alike, a layout does not.
    pub fn is_one_sided(&self) -> bool {
        let (few, many) = (self.above.min(self.below), self.above.max(self.below));
        many > 0 && (few == 0 || self.is_surely_one_sided())
    }

    /// Whether so many lie on one side that they would hardly do so by chance.
    pub fn is_surely_one_sided(&self) -> bool {
        let (few, all) = (self.above.min(self.below) as u32, (self.above + self.below) as u32);
        all > 0 && 2.0 * at_most(few, all, 0.5) < ONE_SIDED
    }
}

/// The share of layouts that a tail could have and still be missed by all of `blocks` blocks in 2 % of experiments: between
/// 3 and 4 of n. (The "rule of three" has 5 %, which together with the interval's own 5 % would be too much.)
pub fn unseen_share(blocks: usize) -> f64 {
    1.0 - MISSED.powf(1.0 / blocks.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_leaves_out_as_many_on_each_side() {
        let d: Vec<f64> = [3, 1, 4, 10, 5, 9, 2, 6, 8, 7].map(f64::from).to_vec();
        assert_eq!(median_interval(&d, Some(1)), Interval { low: 2.0, high: 9.0 });
        assert_eq!(median_interval(&d, Some(0)), Interval { low: 1.0, high: 10.0 });
        assert_eq!(median_interval(&d, None).high, f64::INFINITY);
        assert_eq!(median_interval(&[], Some(0)).low, f64::NEG_INFINITY);
    }

    /// Fisher, "Design of Experiments": at most 1 of 10 on one side has 22/1024; hundreds of blocks are counted as exactly.
    #[test]
    fn the_sign_test_is_exact() {
        let d: Vec<f64> = (0..10).map(|i| f64::from(i) - 0.5).collect();
        assert!((sign_p(&d, 0.0) - 22.0 / 1024.0).abs() < 1e-12);
        assert_eq!(sign_p(&[0.0; 10], 0.0), 1.0, "no difference at all is none");
        let many: Vec<f64> = (0..2000).map(|i| f64::from(i) - 900.5).collect();
        let p = sign_p(&many, 0.0);
        assert!(
            (p - 1.06e-5).abs() < 0.03e-5,
            "901 below: z = 98.5 / 22.36 in the normal approximation: {p}"
        );
    }

    #[test]
    fn one_slow_layout_is_a_tail_and_not_the_typical_one() {
        let mut d: Vec<f64> = (0..15).map(|i| f64::from(i % 5) * 0.001 - 0.002).collect();
        assert!(!Tail::of(&d, &[], 0.01).is_one_sided());
        d[3] = 0.2;
        assert!(median_interval(&d, Some(2)).within_margin(0.01));
        let tail = Tail::of(&d, &[], 0.01);
        assert_eq!((tail.above, tail.below, tail.is_one_sided()), (1, 0, true));
        assert!(!tail.is_surely_one_sided(), "one can be chance");
        d[8] = -0.2;
        assert!(!Tail::of(&d, &[], 0.01).is_one_sided(), "noise goes both ways");
        d[8] = 0.001;
        let mut ranges: Vec<Interval> = d.iter().map(|d| Interval { low: *d, high: *d }).collect();
        assert!(Tail::of(&d, &ranges, 0.01).above == 1);
        ranges[3] = Interval { low: -0.01, high: 0.4 };
        assert!(Tail::of(&d, &ranges, 0.01).above == 0, "one of its runs was disturbed");
        let five = Tail { beyond: 0.02, above: 5, below: 0 };
        assert!(five.is_surely_one_sided() && !Tail { above: 4, ..five }.is_surely_one_sided());
    }
}
