//! The order of the runs inside a block: counter-balanced, the first mover chosen by a coin.
//!
//! Pairs follow the Thue–Morse sequence (AB, BA, BA, AB, …): two pairs cancel a linear drift of the
//! machine, four cancel a quadratic one, and neither side is first more often than the other.

/// Which side each run takes, `false` for A and `true` for B: `runs` of each. `coin` exchanges the sides.
pub fn pair_order(runs: u32, coin: bool) -> Vec<bool> {
    (0..runs)
        .flat_map(|pair| {
            let b_first = (pair.count_ones() % 2 == 1) != coin;
            [b_first, !b_first]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(runs: u32, coin: bool) -> String {
        pair_order(runs, coin).iter().map(|&b| if b { 'B' } else { 'A' }).collect()
    }

    #[test]
    fn two_runs_are_abba_or_baab() {
        assert_eq!(letters(2, false), "ABBA");
        assert_eq!(letters(2, true), "BAAB");
        assert_eq!(letters(1, true), "BA");
        assert_eq!(letters(4, false), "ABBABAAB");
    }

    /// Sum of position^power over B's places less A's: what a drift of that order adds to B − A.
    fn leak(runs: u32, power: i32) -> f64 {
        pair_order(runs, false)
            .iter()
            .enumerate()
            .map(|(i, &b)| if b { 1.0 } else { -1.0 } * f64::from(i as u32).powi(power))
            .sum()
    }

    #[test]
    fn even_counts_cancel_linear_drift_and_multiples_of_four_quadratic() {
        for runs in [2, 4, 6, 8, 10, 12] {
            assert_eq!(leak(runs, 0), 0.0);
            assert_eq!(leak(runs, 1), 0.0, "{runs} runs");
        }
        assert_eq!(leak(4, 2), 0.0);
        assert_eq!(leak(8, 2), 0.0);
    }

    #[test]
    fn an_effect_of_going_first_falls_on_both_sides_alike() {
        for runs in [2u32, 4, 6] {
            let b_first = pair_order(runs, true).chunks(2).filter(|pair| pair[0]).count();
            assert_eq!(b_first as u32, runs / 2);
        }
    }
}
