//! When the experiment may be looked at, and how many values the interval of each look leaves out, so that all
//! looks together err no more often than promised: repeated confidence intervals (Jennison & Turnbull, JRSS B 51, 1989),
//! here between order statistics, whose error is known exactly ([`super::spending`]).

use super::spending::{left_out, overall_p};

/// Numbers of blocks at which the default plan looks.
pub const DEFAULT_LOOKS: [u32; 6] = [10, 15, 20, 30, 40, 60];
/// What a whole experiment may err: 4.5 % where 5 % is promised. The rest is kept for blocks that are not quite independent
/// of each other (drift).
pub const OVERALL_DIFFERENCE: f64 = 0.045;
/// The same for the two one-sided tests together: 9 % where 10 % is promised, that is 5 % for each.
pub const OVERALL_EQUIVALENCE: f64 = 0.09;

/// How many values the two intervals of a look leave out on each side; nothing where no interval holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// Of the interval for "is there a difference".
    pub difference: Option<u32>,
    /// Of the interval for "is it smaller than the margin".
    pub equivalence: Option<u32>,
}

/// A plan of looks.
#[derive(Debug, Clone, PartialEq)]
pub struct Looks {
    /// Numbers of blocks, ascending.
    pub schedule: Vec<u32>,
    /// What each of them leaves out.
    planned: Vec<LeftOut>,
    family: u32,
}

impl Looks {
    /// The plan for these numbers of blocks. `family` is the number of benchmarks that share
    /// the promise (1 for a single one): the errors are divided among them.
    pub fn new(schedule: &[u32], family: u32) -> Self {
        let mut schedule = schedule.to_vec();
        schedule.sort_unstable();
        schedule.dedup();
        schedule.retain(|&look| look >= 2);
        let mut looks = Self { schedule, planned: Vec::new(), family: family.max(1) };
        looks.planned = looks.plan(&looks.schedule, looks.most());
        looks
    }

    fn plan(&self, schedule: &[u32], end: u32) -> Vec<LeftOut> {
        let most = self.most();
        let of = |overall: f64| left_out(schedule, most, end, overall / 2.0 / f64::from(self.family));
        let (difference, equivalence) = (of(OVERALL_DIFFERENCE), of(OVERALL_EQUIVALENCE));
        let both = difference.into_iter().zip(equivalence);
        both.map(|(difference, equivalence)| LeftOut { difference, equivalence }).collect()
    }

    fn most(&self) -> u32 {
        self.schedule.last().copied().unwrap_or(2)
    }

    /// The looks before `blocks`, and `blocks`.
    fn until(&self, blocks: u32) -> Vec<u32> {
        let before = self.schedule.iter().copied().filter(|&look| look < blocks);
        before.chain([blocks]).collect()
    }

    /// What the intervals of an experiment of `blocks` blocks leave out; where no look was planned, it is the end (a time
    /// limit, an interrupt), which may use up all that is left.
    pub fn left_out(&self, blocks: u32) -> LeftOut {
        match self.schedule.binary_search(&blocks) {
            Ok(look) => self.planned[look],
            Err(_) => self
                .plan(&self.until(blocks), blocks)
                .pop()
                .unwrap_or(LeftOut { difference: None, equivalence: None }),
        }
    }

    /// The p value on one side, over all looks, of `count` blocks of `blocks` on the other side.
    pub fn overall_p(&self, blocks: u32, count: u32) -> f64 {
        let end = if self.schedule.contains(&blocks) { self.most() } else { blocks };
        overall_p(&self.until(blocks), self.most(), end, count)
    }

    /// Looks close to each other, for an experiment that ends as soon as its interval is narrow.
    pub fn when_narrow(max_blocks: u32, family: u32) -> Self {
        let mut schedule = Vec::new();
        let mut next = DEFAULT_LOOKS[0];
        while next < max_blocks {
            schedule.push(next);
            next += (next / 5).max(1);
        }
        schedule.push(max_blocks);
        Self::new(&schedule, family)
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

/// One standard normal number by Box and Muller's formula (Annals of Mathematical Statistics 29, 1958).
#[cfg(test)]
pub(crate) fn standard_normal(rng: &mut rand_chacha::ChaCha8Rng) -> f64 {
    use rand_chacha::rand_core::Rng;
    let uniform = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let (u, v) = (uniform(rng.next_u64()), uniform(rng.next_u64()));
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At the first look nine of ten blocks have to lie on one side, at the last one 40 of 60.
    #[test]
    fn the_default_plan_is_the_documented_one() {
        let looks = Looks::up_to(60, 1);
        let out = |of: fn(&LeftOut) -> Option<u32>| looks.planned.iter().filter_map(of).collect::<Vec<_>>();
        assert_eq!(out(|l| l.difference), [1, 2, 3, 7, 11, 20]);
        assert_eq!(out(|l| l.equivalence), [1, 3, 4, 8, 12, 21]);
    }

    #[test]
    fn a_family_shares_the_promise() {
        let (one, three) = (Looks::new(&[20], 1), Looks::new(&[20], 3));
        assert_eq!(one.left_out(20), LeftOut { difference: Some(5), equivalence: Some(5) });
        assert!(three.left_out(20).difference < one.left_out(20).difference);
        assert_eq!(Looks::new(&[5], 1).left_out(5).difference, None, "five blocks have 6.25 %");
    }

    #[test]
    fn the_overall_p_undoes_the_plan_and_never_flatters() {
        let looks = Looks::up_to(60, 1);
        for blocks in [10, 17, 30, 60] {
            let out = looks.left_out(blocks).difference.unwrap();
            assert!(looks.overall_p(blocks, out) <= OVERALL_DIFFERENCE / 2.0);
            assert!(looks.overall_p(blocks, out + 2) > OVERALL_DIFFERENCE / 2.0);
            for count in 0..blocks / 2 {
                let at_once = super::super::shape::at_most(count, blocks, 0.5);
                assert!(looks.overall_p(blocks, count) >= 0.999 * at_once.min(0.5), "{blocks} {count}");
            }
        }
    }

    #[test]
    fn schedules_grow_with_the_maximum() {
        assert_eq!(Looks::up_to(60, 1).schedule, DEFAULT_LOOKS);
        assert_eq!(Looks::up_to(8, 1).schedule, [8]);
        assert_eq!(Looks::up_to(200, 1).schedule, [10, 15, 20, 30, 40, 60, 90, 135, 200]);
        assert_eq!(Looks::when_narrow(30, 1).schedule, [10, 12, 14, 16, 19, 22, 26, 30]);
        assert_eq!(Looks::up_to(60, 1).next_after(15), Some(20));
        assert_eq!(Looks::up_to(60, 1).next_after(60), None);
    }
}
