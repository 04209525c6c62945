//! When the experiment may be looked at, and how strict each look has to be so that all together
//! err no more often than promised: repeated confidence intervals with a constant nominal level
//! (Pocock's boundary, Biometrika 64, 1977; Jennison & Turnbull, JRSS B 51, 1989).
//!
//! The levels of the default plan are constants; those of any other plan come from a seeded
//! simulation of the smallest p value over its looks, so they are the same on every machine.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::student::{t_quantile, t_two_sided_p};

/// Numbers of blocks at which the default plan looks.
pub const DEFAULT_LOOKS: [u32; 6] = [10, 15, 20, 30, 40, 60];
/// The levels of the default plan, from 2,000,000 simulated experiments.
const DEFAULT_DIFFERENCE: f64 = 0.0102;
const DEFAULT_EQUIVALENCE: f64 = 0.0221;
/// What a whole experiment may err, on normal data: 4 % where 5 % is promised. The rest is kept for
/// data that are not normal (two-valued layout effects, outliers, drift); see the simulations.
pub const OVERALL_DIFFERENCE: f64 = 0.04;
/// The same for the two one-sided tests together: 8 % where 10 % is promised, that is 5 % for each.
pub const OVERALL_EQUIVALENCE: f64 = 0.08;
/// What is left of these levels for an experiment that ends as soon as its interval is narrow enough (Chow & Robbins,
/// Ann. Math. Stat. 36, 1965): the spread is underestimated just where it ends, and more than the promised 5 % would err.
const WHEN_NARROW: f64 = 0.75;
/// Simulated experiments for a plan of one's own: its level is then known to about ± 2 % of itself.
const REPLICATES: usize = 100_000;

/// A plan of looks and its nominal levels.
#[derive(Debug, Clone, PartialEq)]
pub struct Looks {
    /// Numbers of blocks, ascending.
    pub schedule: Vec<u32>,
    /// Level of each look's interval for "is there a difference".
    pub difference: f64,
    /// Level of each look's interval for "is it smaller than the margin", two-sided.
    pub equivalence: f64,
}

impl Looks {
    /// The plan for these numbers of blocks. `family` is the number of benchmarks that share
    /// the promise (1 for a single one): the levels are divided among them.
    pub fn new(schedule: &[u32], family: u32) -> Self {
        let mut schedule = schedule.to_vec();
        schedule.sort_unstable();
        schedule.dedup();
        schedule.retain(|&look| look >= 2);
        let share = f64::from(family.max(1));
        let (difference, equivalence) = if schedule == DEFAULT_LOOKS && family <= 1 {
            (DEFAULT_DIFFERENCE, DEFAULT_EQUIVALENCE)
        } else if schedule.len() < 2 {
            (OVERALL_DIFFERENCE / share, OVERALL_EQUIVALENCE / share)
        } else {
            let smallest = SmallestP::over(&schedule);
            (smallest.nominal(OVERALL_DIFFERENCE / share), smallest.nominal(OVERALL_EQUIVALENCE / share))
        };
        Self { schedule, difference, equivalence }
    }

    /// One look, wherever the interval becomes narrow enough, at `max_blocks` at the latest.
    pub fn when_narrow(max_blocks: u32, family: u32) -> Self {
        let Self { schedule, difference, equivalence } = Self::new(&[max_blocks.max(2)], family);
        Self { schedule, difference: WHEN_NARROW * difference, equivalence: WHEN_NARROW * equivalence }
    }

    /// The default looks up to `max_blocks`; beyond 60, each look is half as large again as the
    /// one before. The last look is at `max_blocks` itself.
    pub fn up_to(max_blocks: u32, family: u32) -> Self {
        let mut schedule: Vec<u32> = DEFAULT_LOOKS.iter().copied().filter(|&l| l < max_blocks).collect();
        let mut next = 90;
        while next < max_blocks {
            schedule.push(next);
            next = next * 3 / 2;
        }
        schedule.push(max_blocks);
        Self::new(&schedule, family)
    }

    /// The first look at or after `blocks`.
    pub fn next_after(&self, blocks: u32) -> Option<u32> {
        self.schedule.iter().copied().find(|&look| look > blocks)
    }
}

/// The distribution, under "no difference", of the smallest p value over the looks of a plan.
#[derive(Debug, Clone)]
pub struct SmallestP {
    sorted: Vec<f64>,
}

impl SmallestP {
    /// Simulates it for this schedule with a fixed seed.
    pub fn over(schedule: &[u32]) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(0x1007);
        // Only p values below this one can matter; t's are compared with its quantile first.
        let ceiling = 0.25;
        let gates: Vec<f64> =
            schedule.iter().map(|&l| t_quantile(1.0 - ceiling / 2.0, f64::from(l) - 1.0)).collect();
        let mut sorted: Vec<f64> =
            (0..REPLICATES).map(|_| smallest_p(schedule, &gates, ceiling, &mut rng)).collect();
        sorted.sort_by(f64::total_cmp);
        Self { sorted }
    }

    /// The constant nominal level that makes the plan err with probability `overall`.
    pub fn nominal(&self, overall: f64) -> f64 {
        let rank = (overall * self.sorted.len() as f64).floor() as usize;
        self.sorted[rank.min(self.sorted.len() - 1)]
    }

    /// The chance that some look of the plan shows a p value this small: the p value of the whole
    /// sequential experiment.
    pub fn overall(&self, nominal: f64) -> f64 {
        let below = self.sorted.partition_point(|p| *p <= nominal);
        ((below + 1) as f64 / (self.sorted.len() + 1) as f64).max(nominal).min(1.0)
    }
}

fn smallest_p(schedule: &[u32], gates: &[f64], ceiling: f64, rng: &mut ChaCha8Rng) -> f64 {
    let (mut n, mut sum, mut squares) = (0u32, 0.0, 0.0);
    let mut smallest = 1.0f64;
    for (&look, &gate) in schedule.iter().zip(gates) {
        while n < look {
            let z = standard_normal(rng);
            sum += z;
            squares += z * z;
            n += 1;
        }
        let count = f64::from(n);
        let sd = ((squares - sum * sum / count) / (count - 1.0)).max(f64::MIN_POSITIVE).sqrt();
        let t = sum / count.sqrt() / sd;
        let p = if t.abs() < gate { ceiling } else { t_two_sided_p(t, count - 1.0) };
        smallest = smallest.min(p);
    }
    smallest
}

/// One standard normal number by Box and Muller's formula (Annals of Mathematical Statistics 29, 1958).
pub(crate) fn standard_normal(rng: &mut ChaCha8Rng) -> f64 {
    let uniform = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let (u, v) = (uniform(rng.next_u64()), uniform(rng.next_u64()));
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pocock's published nominal levels for 5 % over all looks at many observations each.
    #[test]
    fn levels_agree_with_pococks_table() {
        for (schedule, want) in
            [(&[150, 300][..], 0.0294), (&[100, 200, 300], 0.0221), (&[80, 160, 240, 320, 400], 0.0158)]
        {
            let got = SmallestP::over(schedule).nominal(0.05);
            assert!((got - want).abs() < 0.0012, "{schedule:?}: {got}, table {want}");
        }
    }

    #[test]
    fn the_default_levels_are_those_of_the_simulation() {
        let smallest = SmallestP::over(&DEFAULT_LOOKS);
        assert!((smallest.overall(DEFAULT_DIFFERENCE) - OVERALL_DIFFERENCE).abs() < 0.0015);
        assert!((smallest.overall(DEFAULT_EQUIVALENCE) - OVERALL_EQUIVALENCE).abs() < 0.002);
    }

    #[test]
    fn one_look_needs_no_correction() {
        let looks = Looks::new(&[20], 1);
        assert_eq!((looks.difference, looks.equivalence), (0.04, 0.08));
        let three = Looks::new(&[20], 3);
        assert!((three.difference - 0.04 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn the_overall_p_undoes_the_nominal_level_and_never_flatters() {
        let smallest = SmallestP::over(&DEFAULT_LOOKS);
        let back = smallest.overall(smallest.nominal(0.05));
        assert!((back - 0.05).abs() < 0.001, "{back}");
        for p in [1e-9, 1e-4, 0.01, 0.2, 0.9] {
            assert!(smallest.overall(p) >= p);
        }
    }

    #[test]
    fn schedules_grow_with_the_maximum() {
        assert_eq!(Looks::up_to(60, 1).schedule, DEFAULT_LOOKS);
        assert_eq!(Looks::up_to(60, 1).difference, 0.0102);
        assert_eq!(Looks::up_to(8, 1).schedule, [8]);
        assert_eq!(Looks::up_to(200, 1).schedule, [10, 15, 20, 30, 40, 60, 90, 135, 200]);
        assert_eq!(Looks::up_to(60, 1).next_after(15), Some(20));
        assert_eq!(Looks::up_to(60, 1).next_after(60), None);
    }
}
