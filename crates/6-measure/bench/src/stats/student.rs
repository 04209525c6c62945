//! Normal, Student's t and chi-square: the distributions whose quantiles the intervals need.

use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};

/// The value that a t variable with `df` degrees of freedom stays below with probability `p`.
/// With no degree of freedom nothing is known, and the answer is infinite.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    if p == 0.5 {
        return 0.0;
    }
    match StudentsT::new(0.0, 1.0, df) {
        Ok(t) if df > 0.0 => t.inverse_cdf(p),
        _ => f64::INFINITY.copysign(p - 0.5),
    }
}

/// The value that a standard normal variable stays below with probability `p`.
pub fn normal_quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

/// The probability of a t at least this far from zero, on either side.
pub fn t_two_sided_p(t: f64, df: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, df) {
        Ok(_) if t.is_infinite() => 0.0,
        Ok(dist) if df > 0.0 && t.is_finite() => (2.0 * dist.cdf(-t.abs())).min(1.0),
        _ => 1.0,
    }
}

/// The probability that a t variable exceeds `t`.
pub fn t_upper_p(t: f64, df: f64) -> f64 {
    let half = t_two_sided_p(t, df) / 2.0;
    if t > 0.0 { half } else { 1.0 - half }
}

/// The value that a chi-square variable with `df` degrees of freedom stays below with probability `p`.
pub fn chi_square_quantile(p: f64, df: f64) -> f64 {
    ChiSquared::new(df).map_or(f64::NAN, |c| c.inverse_cdf(p))
}

/// The probability of a chi-square value at least as large as `x`.
pub fn chi_square_upper_p(x: f64, df: f64) -> f64 {
    ChiSquared::new(df).map_or(1.0, |c| c.sf(x))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from the printed table of the t distribution (Fisher & Yates, table III).
    #[test]
    fn quantiles_agree_with_the_printed_table() {
        for (p, df, want) in [
            (0.975, 1.0, 12.706),
            (0.975, 4.0, 2.776),
            (0.975, 9.0, 2.262),
            (0.95, 9.0, 1.833),
            (0.995, 9.0, 3.250),
            (0.975, 29.0, 2.045),
            (0.80, 9.0, 0.883),
            (0.025, 9.0, -2.262),
        ] {
            let got = t_quantile(p, df);
            assert!((got - want).abs() < 6e-4, "t({p}, {df}) = {got}, table {want}");
        }
        assert_eq!(t_quantile(0.975, 0.0), f64::INFINITY);
    }

    #[test]
    fn p_values_invert_the_quantiles() {
        for df in [1.0, 3.0, 9.0, 59.0] {
            for p in [0.001, 0.0138, 0.05, 0.3] {
                let t = t_quantile(1.0 - p / 2.0, df);
                assert!((t_two_sided_p(t, df) - p).abs() < 1e-9);
                assert!((t_two_sided_p(-t, df) - p).abs() < 1e-9);
                assert!((t_upper_p(t, df) - p / 2.0).abs() < 1e-9);
                assert!((t_upper_p(-t, df) - (1.0 - p / 2.0)).abs() < 1e-9);
            }
        }
        assert_eq!(t_two_sided_p(f64::INFINITY, 5.0), 0.0);
    }

    #[test]
    fn chi_square_agrees_with_the_printed_table() {
        assert!((chi_square_quantile(0.95, 4.0) - 9.488).abs() < 1e-3);
        assert!((chi_square_quantile(0.025, 10.0) - 3.247).abs() < 1e-3);
        assert!((chi_square_upper_p(9.488, 4.0) - 0.05).abs() < 1e-4);
    }
}
