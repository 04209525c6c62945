//! From block differences to a verdict. "Undecided" is an answer of the first class: it comes with
//! what the experiment could have seen and how much more would settle it.

use serde::{Deserialize, Serialize};

use super::estimate::{Estimate, Interval, median, skewness};
use super::looks::LeftOut;
use super::rank::{hodges_lehmann, wilcoxon_p};
use super::shape::{Tail, median_interval, sign_p};

/// The answers. Exit codes belong to them: see [`Outcome::exit_code`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// B is better than A.
    Faster,
    /// B is worse than A.
    Slower,
    /// Whatever difference there is, it is smaller than the margin.
    NoDifference,
    /// The typical layouts differ by less than the margin, but a few of one side's layouts lie far off.
    Tail,
    /// The two files differ as they are, on the one layout of each: code or accident, nobody knows.
    Differs,
    /// The data allow none of these claims.
    Undecided,
    /// Something about the experiment itself was wrong; the numbers are shown, nothing is claimed.
    Untrusted,
}

impl Outcome {
    /// 0: no regression; 1: slower; 2: not decided; 3: not to be trusted.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Faster | Self::NoDifference => 0,
            Self::Slower => 1,
            Self::Undecided | Self::Differs | Self::Tail => 2,
            Self::Untrusted => 3,
        }
    }
}

/// What a decision needs to know beside the numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Differences smaller than this ratio do not matter, e.g. 0.01.
    pub margin: f64,
    /// Whether a larger value of the metric is better.
    pub higher_is_better: bool,
}

/// Blocks below which nothing is ever claimed.
pub const FEWEST_BLOCKS: usize = 6;
/// p value of Student's test below which the mean is said to differ where the middle does not.
const MEAN_CLAIMS: f64 = 0.05;
/// The estimate, its intervals and what they allow to say.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    pub outcome: Outcome,
    /// Mean and spread of log(B) − log(A) over the blocks, in the metric's own direction; not what is judged.
    pub estimate: Estimate,
    /// log(B) − log(A) of the typical layout: the median of the blocks. The intervals and p values are about it.
    pub centre: f64,
    /// The few layouts far from it.
    pub tail: Tail,
    /// For "is there a difference": 95 % over all looks.
    pub difference_interval: Interval,
    /// For "is it inside the margin": 90 % over all looks.
    pub equivalence_interval: Interval,
    /// Two-sided p value of "no difference", at this look alone.
    pub p: f64,
    /// The larger p value of the two one-sided tests against the margin, at this look alone.
    pub equivalence_p: f64,
    /// The cross-check by ranks.
    pub ranks: Ranks,
}

/// The cross-check by ranks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ranks {
    /// Hodges–Lehmann estimate of log(B) − log(A).
    pub shift: f64,
    /// Exact p value of Wilcoxon's signed-rank test.
    pub p: f64,
    /// Skewness of the block differences.
    pub skewness: f64,
    /// The mean alone would make a difference; the middle of the blocks does not, so none is claimed.
    pub overruled: bool,
}

/// Judges one difference per block at a look whose intervals leave out so many values.
/// `ranges` are what each block's runs allow, or empty.
pub fn decide(differences: &[f64], ranges: &[Interval], rule: &Rule, left_out: LeftOut) -> Decision {
    let mut decision = decide_by_interval(differences, ranges, rule, left_out);
    decision.ranks = Ranks {
        shift: hodges_lehmann(differences),
        p: wilcoxon_p(differences),
        skewness: skewness(differences),
        overruled: decision.outcome == Outcome::Undecided && mean_claims(&decision.estimate),
    };
    decision
}

/// Whether [`decide`] would claim anything that more blocks could not take back; cheaper while it would not.
pub fn claims(differences: &[f64], ranges: &[Interval], rule: &Rule, left_out: LeftOut) -> bool {
    let decision = decide_by_interval(differences, ranges, rule, left_out);
    match decision.outcome {
        Outcome::Undecided => false,
        // What looks one-sided with a few blocks may be noise that has not shown its other side yet.
        Outcome::Tail => decision.tail.is_surely_one_sided(),
        _ => true,
    }
}

/// Whether Student's test of the blocks' mean would have claimed a difference.
fn mean_claims(estimate: &Estimate) -> bool {
    estimate.blocks >= FEWEST_BLOCKS && estimate.p_value(0.0) < MEAN_CLAIMS
}

fn decide_by_interval(differences: &[f64], ranges: &[Interval], rule: &Rule, left_out: LeftOut) -> Decision {
    let tail = Tail::of(differences, ranges, rule.margin);
    let difference_interval = median_interval(differences, left_out.difference);
    let equivalence_interval = median_interval(differences, left_out.equivalence);
    let (up, down) = if rule.higher_is_better {
        (Outcome::Faster, Outcome::Slower)
    } else {
        (Outcome::Slower, Outcome::Faster)
    };
    let outcome = if differences.len() < FEWEST_BLOCKS {
        Outcome::Undecided
    } else if difference_interval.low > 0.0 {
        up
    } else if difference_interval.high < 0.0 {
        down
    } else if !equivalence_interval.within_margin(rule.margin) {
        Outcome::Undecided
    } else if tail.is_one_sided() {
        Outcome::Tail
    } else {
        Outcome::NoDifference
    };
    let (low, high) = ((1.0 - rule.margin).ln(), (1.0 + rule.margin).ln());
    let centre = median(differences);
    let inside = low < centre && centre < high;
    let outside = sign_p(differences, low).max(sign_p(differences, high));
    Decision {
        outcome,
        estimate: Estimate::of(differences),
        centre,
        tail,
        difference_interval,
        equivalence_interval,
        p: sign_p(differences, 0.0),
        equivalence_p: if inside { outside / 2.0 } else { 1.0 },
        ranks: Ranks { shift: 0.0, p: 1.0, skewness: 0.0, overruled: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { margin: 0.01, higher_is_better: false };

    /// One look of 5 % and 10 %.
    fn decide(differences: &[f64], rule: &Rule) -> Decision {
        let looks = super::super::looks::Looks::new(&[differences.len() as u32], 1);
        super::decide(differences, &[], rule, looks.left_out(differences.len() as u32))
    }

    fn spread(centre: f64, width: f64) -> Vec<f64> {
        (0..10).map(|i| centre + width * (f64::from(i) - 4.5) / 4.5).collect()
    }

    #[test]
    fn each_outcome_is_reached() {
        assert_eq!(decide(&spread(-0.02, 0.01), &RULE).outcome, Outcome::Faster);
        assert_eq!(decide(&spread(0.02, 0.01), &RULE).outcome, Outcome::Slower);
        assert_eq!(decide(&spread(0.0005, 0.01), &RULE).outcome, Outcome::NoDifference);
        assert_eq!(decide(&spread(0.001, 0.06), &RULE).outcome, Outcome::Undecided);
        assert_eq!(decide(&[-0.02; 5], &RULE).outcome, Outcome::Undecided, "too few blocks");
        assert_eq!(decide(&[0.0; 10], &RULE).outcome, Outcome::NoDifference, "all equal");
    }

    #[test]
    fn throughput_turns_the_direction_round() {
        let rule = Rule { higher_is_better: true, ..RULE };
        assert_eq!(decide(&spread(0.02, 0.01), &rule).outcome, Outcome::Faster);
        assert_eq!(decide(&spread(-0.02, 0.01), &rule).outcome, Outcome::Slower);
    }

    /// A sure difference that is smaller than the margin is a difference, and known to be small.
    #[test]
    fn a_sure_but_small_difference_is_still_named() {
        let d = decide(&spread(-0.003, 0.003), &RULE);
        assert_eq!(d.outcome, Outcome::Faster);
        assert!(d.equivalence_interval.within_margin(0.01));
    }

    /// Half of the blocks say nothing, the others are slow: the mean says slower, the middle does not.
    #[test]
    fn a_mean_made_by_a_part_of_the_blocks_is_no_difference_of_the_typical_one() {
        let d = [0.001, 0.002, -0.001, 0.02, 0.03, 0.04, -0.001, 0.03, 0.05, -0.002];
        let decision = decide(&d, &RULE);
        assert!(decision.estimate.interval(0.05).low > 0.0, "{decision:?}");
        assert!(decision.difference_interval.low < 0.0, "{decision:?}");
        assert_eq!(decision.outcome, Outcome::Undecided);
        assert!(decision.ranks.overruled);
    }

    /// Nine blocks between −0.1 and +2.7 % and one at −15.7 %, as a disturbed machine once gave them: a t interval of
    /// −6.4 to +5.3 %. At the first look of the default plan, one block is left out on each side.
    #[test]
    fn one_block_does_not_ruin_the_interval() {
        let d = [0.011, -0.001, 0.004, 0.027, -0.157, 0.006, 0.009, 0.002, 0.015, 0.008];
        let left_out = super::super::looks::Looks::up_to(60, 1).left_out(10);
        let decision = super::decide(&d, &[], &RULE, left_out);
        assert!(decision.estimate.interval(0.01).half_width() > 0.05, "{decision:?}");
        let ci = decision.difference_interval;
        assert!(ci.low == -0.001 && ci.high == 0.015, "{decision:?}");
    }

    /// A tenth of the layouts is slow: told as that, and no reason to go on once chance can't explain it.
    #[test]
    fn a_tail_on_one_side_is_an_answer_of_its_own() {
        let mut d: Vec<f64> = (0..20).map(|i| f64::from(i % 7) * 0.001 - 0.003).collect();
        d[4] = 0.15;
        let left_out = super::super::looks::Looks::new(&[20], 1).left_out(20);
        assert_eq!(decide(&d, &RULE).outcome, Outcome::Tail);
        assert!(!claims(&d, &[], &RULE, left_out), "one may be noise");
        (0..5).for_each(|i| d[4 * i] = 0.15);
        assert_eq!(decide(&d, &RULE).outcome, Outcome::Tail);
        assert!(claims(&d, &[], &RULE, left_out));
        (0..2).for_each(|i| d[4 * i] = -0.15);
        assert_eq!(decide(&d, &RULE).outcome, Outcome::NoDifference, "noise goes both ways, and is counted");
    }

    #[test]
    fn exit_codes_are_the_documented_ones() {
        let codes = [
            (Outcome::Faster, 0),
            (Outcome::NoDifference, 0),
            (Outcome::Slower, 1),
            (Outcome::Undecided, 2),
            (Outcome::Differs, 2),
            (Outcome::Tail, 2),
            (Outcome::Untrusted, 3),
        ];
        for (outcome, code) in codes {
            assert_eq!(outcome.exit_code(), code);
        }
    }
}
