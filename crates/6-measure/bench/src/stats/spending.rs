//! How many values an interval between order statistics may leave out at each look, so that all looks together err
//! no more often than promised.
//!
//! Whether a block lies below the true median is the toss of a fair coin, whatever the blocks' distribution is. So the
//! chance that the interval of any look misses the median is known exactly, by counting; neither a simulation nor
//! normal data are needed. Each look may use up what an error-spending function allows by then (Lan & DeMets,
//! Biometrika 70, 1983).

/// A look at an experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    pub blocks: u32,
    /// Share of the error that may be used up by then.
    pub share: f64,
}

/// The values left out on each side at each of these looks (ascending), for an error of `alpha` on one side; nothing where even
/// the extreme values would err too often.
pub fn left_out(looks: &[Look], alpha: f64) -> Vec<Option<u32>> {
    // Invariant: open[c] is the chance that c blocks so far lie below the median and no look has erred.
    let mut open = vec![1.0];
    let mut spent = 0.0;
    let look_at = |look: &Look| {
        while open.len() <= look.blocks as usize {
            toss(&mut open);
        }
        let allowed = alpha * look.share;
        let mut left_out = None;
        for (count, chance) in open.iter_mut().enumerate().take(look.blocks.div_ceil(2) as usize) {
            if spent + *chance > allowed {
                break;
            }
            spent += std::mem::take(chance);
            left_out = Some(count as u32);
        }
        left_out
    };
    looks.iter().map(look_at).collect()
}

/// One block more: below or above.
fn toss(open: &mut Vec<f64>) {
    open.push(0.0);
    for count in (0..open.len()).rev() {
        let below = if count > 0 { open[count - 1] } else { 0.0 };
        open[count] = (open[count] + below) / 2.0;
    }
}

/// The smallest error on one side, over all looks, with which the last of them would leave out `count` values: the p value
/// of the whole sequential experiment when `count` of its blocks lie on the other side.
pub fn overall_p(looks: &[Look], count: u32) -> f64 {
    let shows = |alpha: f64| left_out(looks, alpha).last().copied().flatten() >= Some(count);
    let (mut low, mut high) = (1e-12f64.ln(), 0.5f64.ln());
    if !shows(high.exp()) {
        return 1.0;
    }
    for _ in 0..30 {
        let middle = (low + high) / 2.0;
        if shows(middle.exp()) { high = middle } else { low = middle }
    }
    high.exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at these numbers of blocks, the last of which may use up everything.
    fn looks(schedule: &[u32]) -> Vec<Look> {
        let most = f64::from(*schedule.last().unwrap());
        schedule.iter().map(|&blocks| Look { blocks, share: (f64::from(blocks) / most).sqrt() }).collect()
    }

    /// Conover, "Practical Nonparametric Statistics": for n = 10 two of 2^10 orders have none below (0.098 % a side), 22 at
    /// most one (1.07 %); for n = 15 at most three have 1.76 %.
    #[test]
    fn one_look_is_the_tabled_interval() {
        for (n, alpha, want) in [
            (10, 0.0010, Some(0)),
            (10, 0.00097, None),
            (10, 0.0108, Some(1)),
            (10, 0.0107, Some(0)),
            (15, 0.0176, Some(3)),
            (5, 0.025, None),
            (6, 0.025, Some(0)),
        ] {
            assert_eq!(left_out(&looks(&[n]), alpha), [want], "{n} {alpha}");
        }
    }

    /// All 2^16 orders of sixteen blocks, looked at three times: as many err as were counted on, and not more than promised.
    #[test]
    fn all_looks_together_err_as_promised() {
        let schedule = [8, 12, 16];
        for alpha in [0.01, 0.025, 0.05, 0.1] {
            let plan = left_out(&looks(&schedule), alpha);
            let errs = |order: u32| {
                schedule.iter().zip(&plan).any(|(&look, out)| {
                    out.is_some_and(|out| (order & ((1 << look) - 1)).count_ones() <= out)
                })
            };
            let share = (0..1u32 << 16).filter(|&order| errs(order)).count() as f64 / 65_536.0;
            assert!(share <= alpha && share > 0.5 * alpha, "{alpha}: {share} {plan:?}");
        }
    }

    #[test]
    fn the_overall_p_undoes_the_plan() {
        let schedule = looks(&[10, 15, 20, 30, 40, 60]);
        for out in 0..25 {
            let p = overall_p(&schedule, out);
            let shown = |alpha: f64| left_out(&schedule, alpha)[5] >= Some(out);
            assert!(p >= 1.0 || shown(p * 1.001), "{out}: {p}");
        }
        assert!(overall_p(&schedule, 15) < 0.001 && overall_p(&schedule, 24) > 0.05);
        assert_eq!(overall_p(&looks(&[3]), 2), 1.0);
    }
}
