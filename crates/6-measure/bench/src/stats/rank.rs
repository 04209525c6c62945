//! The cross-check that trusts only order: the Hodges–Lehmann estimate and Wilcoxon's signed-rank
//! test, exact by counting. Where t and ranks disagree on skewed data, nothing is claimed.

/// Median of all pairwise means (Walsh averages, each value with itself included); NaN for nothing.
pub fn hodges_lehmann(values: &[f64]) -> f64 {
    let mut walsh = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (i, x) in values.iter().enumerate() {
        walsh.extend(values[i..].iter().map(|y| (x + y) / 2.0));
    }
    super::estimate::median(&walsh)
}

/// Exact two-sided p value of Wilcoxon's signed-rank test of "symmetric about zero". Zeros are
/// dropped, ties share the mean rank; the distribution is that of all sign flips of the ranks at hand.
pub fn wilcoxon_p(values: &[f64]) -> f64 {
    let mut nonzero: Vec<f64> = values.iter().copied().filter(|v| *v != 0.0).collect();
    if nonzero.is_empty() {
        return 1.0;
    }
    nonzero.sort_by(|x, y| x.abs().total_cmp(&y.abs()));
    let doubled = doubled_midranks(&nonzero);
    let positive: usize = nonzero.iter().zip(&doubled).filter(|(v, _)| **v > 0.0).map(|(_, r)| *r).sum();
    let total: usize = doubled.iter().sum();
    let tail = positive.min(total - positive);
    // chance[s] = probability that the ranks given a plus sign sum to s.
    let mut chance = vec![0.0f64; total + 1];
    chance[0] = 1.0;
    let mut reach = 0;
    for rank in doubled {
        reach += rank;
        for sum in (0..=reach).rev() {
            let with = if sum >= rank { chance[sum - rank] } else { 0.0 };
            chance[sum] = (chance[sum] + with) / 2.0;
        }
    }
    (2.0 * chance[..=tail].iter().sum::<f64>()).min(1.0)
}

/// Twice the mid-rank of each absolute value, so that halves stay whole numbers.
fn doubled_midranks(sorted_by_abs: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(sorted_by_abs.len());
    let mut start = 0;
    while start < sorted_by_abs.len() {
        let size = sorted_by_abs[start].abs();
        let end = start + sorted_by_abs[start..].iter().take_while(|v| v.abs() == size).count();
        ranks.extend(std::iter::repeat_n(start + 1 + end, end - start));
        start = end;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Brute force over all sign patterns, straight from the definition.
    fn brute(values: &[f64]) -> f64 {
        let abs: Vec<f64> = values.iter().map(|v| v.abs()).collect();
        let rank = |x: f64| {
            let below = abs.iter().filter(|a| **a < x).count() as f64;
            let equal = abs.iter().filter(|a| **a == x).count() as f64;
            below + (equal + 1.0) / 2.0
        };
        let ranks: Vec<f64> = abs.iter().map(|a| rank(*a)).collect();
        let observed: f64 = values.iter().zip(&ranks).filter(|(v, _)| **v > 0.0).map(|(_, r)| r).sum();
        let total: f64 = ranks.iter().sum();
        let tail = observed.min(total - observed);
        let n = values.len();
        let hits = (0..1u32 << n)
            .filter(|mask| {
                let sum: f64 = (0..n).filter(|i| mask >> i & 1 == 1).map(|i| ranks[i]).sum();
                sum <= tail + 1e-9
            })
            .count();
        (2.0 * hits as f64 / f64::from(1u32 << n)).min(1.0)
    }

    #[test]
    fn exact_p_equals_the_count_of_all_sign_flips() {
        for values in [
            vec![1.0, 2.0, 3.0, 4.0, 5.0, -6.0],
            vec![0.3, 0.3, -0.3, 1.0, 2.0, -0.1, 0.7],
            vec![-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0],
            vec![5.0],
        ] {
            assert!((wilcoxon_p(&values) - brute(&values)).abs() < 1e-12, "{values:?}");
        }
        assert_eq!(wilcoxon_p(&[0.0, 0.0]), 1.0);
        assert!((wilcoxon_p(&[0.02; 10]) - 2.0 / 1024.0).abs() < 1e-12);
    }

    /// Hollander & Wolfe's depression data (x − y): V = 40 of 45, two-sided p = 0.0390625.
    #[test]
    #[allow(clippy::approx_constant)]
    fn agrees_with_hollander_and_wolfe() {
        let x = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
        let y = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
        let d: Vec<f64> = x.iter().zip(y).map(|(x, y)| x - y).collect();
        assert!((wilcoxon_p(&d) - 0.039_062_5).abs() < 1e-12);
        assert!((hodges_lehmann(&d) - 0.46).abs() < 1e-9, "{}", hodges_lehmann(&d));
    }
}
