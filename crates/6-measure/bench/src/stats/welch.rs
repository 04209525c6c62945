//! The naive way: every run of one binary against every run of the other, Welch's t test. It is
//! printed beside the verdict to show what other tools would have said; nothing is decided by it.

use serde::{Deserialize, Serialize};

use super::estimate::{mean, variance};
use super::student::t_two_sided_p;

/// What a comparison of two piles of runs claims.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Welch {
    /// Mean of B over mean of A, minus one, in percent.
    pub percent: f64,
    /// Two-sided p value of "the means are equal".
    pub p: f64,
}

/// Welch's unequal-variance t test of two samples of times (not logs); nothing for fewer than two
/// runs on either side.
pub fn welch(a: &[f64], b: &[f64]) -> Option<Welch> {
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let percent = 100.0 * (mean(b) / mean(a) - 1.0);
    let (ea, eb) = (variance(a) / a.len() as f64, variance(b) / b.len() as f64);
    let gap = mean(b) - mean(a);
    if gap == 0.0 {
        return Some(Welch { percent, p: 1.0 });
    }
    let df = (ea + eb).powi(2) / (ea.powi(2) / (a.len() - 1) as f64 + eb.powi(2) / (b.len() - 1) as f64);
    let p = if ea + eb == 0.0 { 0.0 } else { t_two_sided_p(gap / (ea + eb).sqrt(), df) };
    Some(Welch { percent, p })
}

/// Student's test of pairs of times, on the logs; nothing for fewer than two pairs or unequal numbers.
pub fn paired_t(a: &[f64], b: &[f64]) -> Option<Welch> {
    if a.len() < 2 || a.len() != b.len() {
        return None;
    }
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| (b / a).ln()).collect();
    let (centre, n) = (mean(&differences), differences.len() as f64);
    let error = (variance(&differences) / n).sqrt();
    let p = match () {
        () if centre == 0.0 => 1.0,
        () if error == 0.0 => 0.0,
        () => t_two_sided_p(centre / error, n - 1.0),
    };
    Some(Welch { percent: 100.0 * centre.exp_m1(), p })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gosset's sleep data, paired: R's `t.test(extra ~ group, paired = TRUE)` gives p = 0.002833.
    #[test]
    fn the_paired_sleep_data_give_the_published_p() {
        let a = [0.7f64, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0].map(f64::exp);
        let b = [1.9f64, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4].map(f64::exp);
        let paired = paired_t(&a, &b).unwrap();
        assert!((paired.p - 0.002_833).abs() < 1e-6, "{paired:?}");
        assert!((paired.percent - 100.0 * 1.58f64.exp_m1()).abs() < 1e-9);
        assert_eq!(paired_t(&a, &b[1..]), None);
    }

    /// Gosset's sleep data, unpaired: R's `t.test(extra ~ group)` gives t = −1.8608, df = 17.776, p = 0.07939.
    #[test]
    fn the_sleep_data_give_the_published_p() {
        let a = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let b = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let w = welch(&a, &b).unwrap();
        assert!((w.p - 0.079_394).abs() < 1e-5, "{w:?}");
        assert!((w.percent - 100.0 * (2.33 / 0.75 - 1.0)).abs() < 1e-9);
    }

    #[test]
    fn unequal_counts_and_too_few_runs_never_claim_anything() {
        assert_eq!(welch(&[1.0], &[1.0, 2.0, 3.0]), None);
        let w = welch(&[1.0, 1.1, 0.9, 1.0, 1.05], &[1.0, 1.02]).unwrap();
        assert!(w.p > 0.5, "{w:?}");
        assert_eq!(welch(&[2.0, 2.0], &[2.0, 2.0, 2.0]).unwrap().p, 1.0);
    }
}
