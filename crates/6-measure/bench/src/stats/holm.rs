//! Holm's step-down correction (Scandinavian Journal of Statistics 6, 1979): keeps the chance of
//! any wrong claim among several benchmarks at the level that one alone would have.

/// The adjusted p value of each: compare it with the wanted overall level. Order is kept.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let m = p_values.len();
    let mut order: Vec<usize> = (0..m).collect();
    order.sort_by(|&i, &j| p_values[i].total_cmp(&p_values[j]).then(i.cmp(&j)));
    let mut adjusted = vec![1.0; m];
    let mut floor: f64 = 0.0;
    for (rank, &index) in order.iter().enumerate() {
        floor = floor.max((p_values[index] * (m - rank) as f64).min(1.0));
        adjusted[index] = floor;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") is 0.03 0.06 0.06 0.02.
    #[test]
    fn agrees_with_the_published_example() {
        let got = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (g, w) in got.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((g - w).abs() < 1e-12, "{got:?}");
        }
    }

    #[test]
    fn one_alone_is_unchanged_and_nothing_exceeds_one() {
        assert_eq!(holm(&[0.04]), vec![0.04]);
        assert_eq!(holm(&[0.9, 0.8]), vec![1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }
}
