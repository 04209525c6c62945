//! When the experiment may be looked at, and how many values the interval of each look leaves out, so that all
//! looks together err no more often than promised: repeated confidence intervals (Jennison & Turnbull, JRSS B 51, 1989),
//! here between order statistics, whose error is known exactly ([`super::spending`]).

use super::spending::{Look, left_out, overall_p};

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

/// Power of the share of blocks that gives the share of the error that may be used up by then. 1 would leave little for the
/// first looks, where most experiments could end, and let one block out of ten ruin the interval there; 0.3 would leave little for
/// the last ones, which decide the hard cases.
const EXPONENT: f64 = 0.36;
/// Share of the error that the first go of an experiment may use up. Whoever goes on has half of what is left then, so that one may
/// go on for ever.
const FIRST_GO: f64 = 0.92;

/// From where on, and with which shares of the error, an experiment is run in one go.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Go {
    from: u32,
    most: u32,
    used: f64,
    /// What its end may use up, planned or not: a time limit knows nothing of the differences.
    share: f64,
}

impl Go {
    fn share_at(&self, blocks: u32) -> f64 {
        let done = f64::from(blocks - self.from) / f64::from(self.most.max(blocks) - self.from);
        self.used + (self.share - self.used) * done.powf(EXPONENT)
    }
}

/// A plan of looks.
#[derive(Debug, Clone, PartialEq)]
pub struct Looks {
    /// Ascending.
    looks: Vec<Look>,
    /// What each of them leaves out.
    planned: Vec<LeftOut>,
    /// The last go.
    go: Go,
    family: u32,
}

impl Looks {
    /// The plan for these numbers of blocks. `family` is the number of benchmarks that share
    /// the promise (1 for a single one): the errors are divided among them.
    pub fn new(schedule: &[u32], family: u32) -> Self {
        let go = Go { from: 0, most: 0, used: 0.0, share: FIRST_GO };
        Self { looks: Vec::new(), planned: Vec::new(), go, family: family.max(1) }.with(schedule)
    }

    /// The plan of an experiment that ended after `blocks` blocks, for whatever reason, and goes on, with looks at those of
    /// `schedule` that are still to come.
    pub fn go_on(mut self, blocks: u32, schedule: &[u32]) -> Self {
        let used = self.until(blocks);
        let share = used.last().map_or(0.0, |last| last.share);
        self.looks = used;
        self.go = Go { from: blocks, most: 0, used: share, share: (1.0 + self.go.share) / 2.0 };
        self.with(schedule)
    }

    /// Adds looks of the last go.
    fn with(mut self, schedule: &[u32]) -> Self {
        let mut schedule: Vec<u32> =
            schedule.iter().copied().filter(|&look| look >= 2 && look > self.go.from).collect();
        schedule.sort_unstable();
        schedule.dedup();
        self.go.most = schedule.last().copied().unwrap_or(self.go.from.max(2));
        let go = self.go;
        self.looks.extend(schedule.into_iter().map(|blocks| Look { blocks, share: go.share_at(blocks) }));
        self.planned = self.plan(&self.looks);
        self
    }

    fn plan(&self, looks: &[Look]) -> Vec<LeftOut> {
        let of = |overall: f64| left_out(looks, overall / 2.0 / f64::from(self.family));
        let (difference, equivalence) = (of(OVERALL_DIFFERENCE), of(OVERALL_EQUIVALENCE));
        let both = difference.into_iter().zip(equivalence);
        both.map(|(difference, equivalence)| LeftOut { difference, equivalence }).collect()
    }

    /// The looks before `blocks`, and `blocks`: where no look was planned there, it is the end (a time limit, an interrupt), which may
    /// use up all that is left to this go.
    fn until(&self, blocks: u32) -> Vec<Look> {
        let before = self.looks.iter().copied().filter(|look| look.blocks < blocks);
        let planned = self.looks.iter().copied().find(|look| look.blocks == blocks);
        before.chain([planned.unwrap_or(Look { blocks, share: self.go.share })]).collect()
    }

    /// Whether a look was planned after so many blocks.
    pub fn is_planned(&self, blocks: u32) -> bool {
        self.looks.iter().any(|look| look.blocks == blocks)
    }

    /// What the intervals of an experiment of `blocks` blocks leave out.
    pub fn left_out(&self, blocks: u32) -> LeftOut {
        match self.looks.iter().position(|look| look.blocks == blocks) {
            Some(look) => self.planned[look],
            None => self
                .plan(&self.until(blocks))
                .pop()
                .unwrap_or(LeftOut { difference: None, equivalence: None }),
        }
    }

    /// The p value on one side, over all looks, of `count` blocks of `blocks` on the other side.
    pub fn overall_p(&self, blocks: u32, count: u32) -> f64 {
        overall_p(&self.until(blocks), count)
    }

    /// Numbers of blocks close to each other, for an experiment that ends as soon as its interval is narrow.
    pub fn when_narrow(max_blocks: u32) -> Vec<u32> {
        let mut schedule = Vec::new();
        let mut next = DEFAULT_LOOKS[0];
        while next < max_blocks {
            schedule.push(next);
            next += (next / 5).max(1);
        }
        schedule.push(max_blocks);
        schedule
    }

    /// The plan of an experiment that ends with a verdict.
    pub fn up_to(max_blocks: u32, family: u32) -> Self {
        Self::new(&Self::for_verdict(max_blocks), family)
    }

    /// The default looks up to `max_blocks`; beyond 60, each look is half as large again as the
    /// one before. The last look is at `max_blocks` itself.
    pub fn for_verdict(max_blocks: u32) -> Vec<u32> {
        let mut schedule: Vec<u32> = DEFAULT_LOOKS.iter().copied().filter(|&l| l < max_blocks).collect();
        let mut next = 90;
        while next < max_blocks {
            schedule.push(next);
            next = next * 3 / 2;
        }
        schedule.push(max_blocks);
        schedule
    }

    /// Where the last look is.
    pub fn end(&self) -> u32 {
        self.go.most
    }

    /// The first look behind `blocks`.
    pub fn next_after(&self, blocks: u32) -> Option<u32> {
        self.looks.iter().map(|look| look.blocks).find(|&look| look > blocks)
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
        assert_eq!(Looks::for_verdict(60), DEFAULT_LOOKS);
        assert_eq!(Looks::for_verdict(8), [8]);
        assert_eq!(Looks::for_verdict(200), [10, 15, 20, 30, 40, 60, 90, 135, 200]);
        assert_eq!(Looks::when_narrow(30), [10, 12, 14, 16, 19, 22, 26, 30]);
        assert_eq!(Looks::up_to(60, 1).next_after(15), Some(20));
        assert_eq!(Looks::up_to(60, 1).next_after(60), None);
    }

    /// The chance that any of these looks misses the median, by counting ways: `open[c]` is that of c blocks below with no error yet.
    fn error(looks: &[(u32, Option<u32>)]) -> f64 {
        let (mut open, mut erred, mut blocks) = (vec![1.0], 0.0, 0);
        for &(look, out) in looks {
            for _ in blocks..look {
                let next = |c: usize| {
                    (open.get(c).unwrap_or(&0.0) + c.checked_sub(1).map_or(0.0, |c| open[c])) / 2.0
                };
                open = (0..=open.len()).map(next).collect();
            }
            blocks = look;
            for chance in open.iter_mut().take(out.map_or(0, |out| out as usize + 1)) {
                erred += std::mem::take(chance);
            }
        }
        erred
    }

    /// What a time limit ends after 18 blocks may use up what the looks of 10 and 15 left, and no more than was promised.
    #[test]
    fn an_unplanned_end_has_what_is_left() {
        let looks = Looks::up_to(60, 1);
        let out = |blocks| looks.left_out(blocks).difference;
        let all = [10, 15, 18].map(|blocks| (blocks, out(blocks)));
        let planned = Looks::new(&[10, 15, 18, 20, 30, 40, 60], 1);
        assert!(out(18) > planned.left_out(18).difference, "{all:?}");
        let share = error(&all);
        assert!(share <= FIRST_GO * OVERALL_DIFFERENCE / 2.0, "{share}");
    }

    /// However often and after whatever end one goes on, all looks together err no more often than was promised.
    #[test]
    fn who_goes_on_has_what_was_kept() {
        for ends in [vec![60, 120, 180, 240], vec![18, 40, 45, 200], vec![10, 70], vec![7, 8, 9, 10, 11, 12]]
        {
            let mut looks = Looks::up_to(60, 1);
            let mut seen = Vec::new();
            for &end in &ends {
                let from = seen.last().map_or(0, |last: &(u32, Option<u32>)| last.0);
                let planned: Vec<u32> =
                    looks.looks.iter().map(|l| l.blocks).filter(|&l| l > from && l < end).collect();
                seen.extend(planned.into_iter().chain([end]).map(|l| (l, looks.left_out(l).difference)));
                looks = looks.go_on(end, &Looks::for_verdict(end + 60));
                let again: Vec<_> = seen.iter().map(|&(l, _)| (l, looks.left_out(l).difference)).collect();
                assert_eq!(again, seen, "what was looked at does not change");
            }
            let share = error(&seen);
            assert!(share <= OVERALL_DIFFERENCE / 2.0, "{ends:?}: {share}");
        }
    }

    /// Going on is worth it: 60 blocks more, and the interval leaves out nearly as many as if all had been planned.
    #[test]
    fn more_blocks_are_worth_their_time() {
        let resumed = Looks::up_to(60, 1).go_on(60, &Looks::for_verdict(120));
        let planned = Looks::up_to(120, 1);
        let [resumed, planned] = [resumed, planned].map(|looks| looks.left_out(120).difference.unwrap());
        assert!(resumed >= 43 && planned <= resumed + 3, "{resumed} {planned}");
    }
}
