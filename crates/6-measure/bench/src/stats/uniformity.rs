//! Is a shuffle uniform? Pearson's chi-square test on how often each outcome came.

use super::student::chi_square_upper_p;

/// The chi-square statistic and its p value against "all outcomes are equally likely".
/// A small p (below 0.001 in a test with a fixed seed) says that they are not.
pub fn chi_square_uniform(counts: &[u64]) -> (f64, f64) {
    let total: u64 = counts.iter().sum();
    if counts.len() < 2 || total == 0 {
        return (0.0, 1.0);
    }
    let expected = total as f64 / counts.len() as f64;
    let statistic = counts.iter().map(|&c| (c as f64 - expected).powi(2) / expected).sum();
    (statistic, chi_square_upper_p(statistic, counts.len() as f64 - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts of a die from Knuth's and many other text books' example: {5,8,9,8,10,20} has 13.4, p = 0.0199.
    #[test]
    fn the_loaded_die_is_found() {
        let (statistic, p) = chi_square_uniform(&[5, 8, 9, 8, 10, 20]);
        assert!((statistic - 13.4).abs() < 1e-12);
        assert!((p - 0.019_905).abs() < 1e-5, "{p}");
        assert!(chi_square_uniform(&[100, 100, 100]).1 > 0.999);
        assert_eq!(chi_square_uniform(&[]).1, 1.0);
    }
}
