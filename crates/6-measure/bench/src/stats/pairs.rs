//! What a fixed number of pairs of runs says: the median of their ratios, and its 95 % interval between two order statistics. It holds
//! whatever the pairs' distribution is; fewer than six pairs have none, as all of five lie on one side of nothing in 6 %.

use super::estimate::Interval;
use super::looks::Looks;
use super::shape::median_interval;

/// The interval about the median of these log ratios; without ends where there are too few of them.
pub fn pairs_interval(ratios: &[f64]) -> Interval {
    let pairs = ratios.len() as u32;
    median_interval(ratios, Looks::new(&[pairs], 1).left_out(pairs).difference)
}
