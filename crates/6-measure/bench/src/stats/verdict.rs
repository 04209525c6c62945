//! From block differences to a verdict. "Undecided" is an answer of the first class: it comes with
//! what the experiment could have seen and how much more would settle it.

use serde::{Deserialize, Serialize};

use super::estimate::{Estimate, Interval, skewness};
use super::rank::{hodges_lehmann, wilcoxon_p};
use super::shape::{Tail, Typical};

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
            Self::Undecided | Self::Differs => 2,
            Self::Untrusted => 3,
        }
    }
}

/// What a decision needs to know beside the numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Differences smaller than this ratio do not matter, e.g. 0.01.
    pub margin: f64,
    /// Nominal two-sided level of the interval for "is there a difference".
    pub difference: f64,
    /// Nominal two-sided level of the interval for "is it inside the margin".
    pub equivalence: f64,
    /// Whether a larger value of the metric is better.
    pub higher_is_better: bool,
}

/// Blocks below which nothing is ever claimed.
pub const FEWEST_BLOCKS: usize = 6;
/// Skewness of the block differences from which on ranks must agree with t.
const SKEWED: f64 = 1.0;

/// The estimate, its intervals and what they allow to say.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    pub outcome: Outcome,
    /// Mean and spread of log(B) − log(A) over the blocks, in the metric's own direction.
    pub estimate: Estimate,
    /// What the typical layout is taken to be; the intervals and p values are about it.
    pub typical: Typical,
    /// log(B) − log(A) of the typical layout.
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
    /// The mean alone made a difference; the middle of skewed data did not, so none is claimed.
    pub overruled: bool,
}

/// Judges one difference per block at a planned look.
pub fn decide(differences: &[f64], rule: &Rule) -> Decision {
    decide_about(Typical::of(differences), differences, rule)
}

/// The same with what is typical given.
pub fn decide_about(typical: Typical, differences: &[f64], rule: &Rule) -> Decision {
    let mut decision = decide_by_interval(typical, differences, rule);
    decision.ranks = ranks(differences);
    if matches!(decision.outcome, Outcome::Faster | Outcome::Slower) && ranks_object(&decision, rule) {
        decision.ranks.overruled = true;
        decision.outcome = Outcome::Undecided;
    }
    if decision.typical == Typical::Median && decision.outcome == Outcome::Undecided {
        decision.ranks.overruled = mean_claims(&decision.estimate, rule);
    }
    decision
}

/// Whether [`decide`] would claim anything; cheaper while it would not.
pub fn claims(differences: &[f64], rule: &Rule) -> bool {
    match decide_by_interval(Typical::of(differences), differences, rule).outcome {
        Outcome::Faster | Outcome::Slower => decide(differences, rule).outcome != Outcome::Undecided,
        outcome => outcome != Outcome::Undecided,
    }
}

fn ranks(differences: &[f64]) -> Ranks {
    Ranks {
        shift: hodges_lehmann(differences),
        p: wilcoxon_p(differences),
        skewness: skewness(differences),
        overruled: false,
    }
}

fn ranks_object(decision: &Decision, rule: &Rule) -> bool {
    let r = &decision.ranks;
    decision.typical == Typical::Mean
        && r.skewness.abs() > SKEWED
        && (r.p > rule.difference || r.shift.signum() != decision.centre.signum())
}

/// Whether the blocks' mean alone would have claimed a difference.
fn mean_claims(estimate: &Estimate, rule: &Rule) -> bool {
    let interval = estimate.interval(rule.difference);
    estimate.blocks >= FEWEST_BLOCKS && (interval.low > 0.0 || interval.high < 0.0)
}

fn decide_by_interval(typical: Typical, differences: &[f64], rule: &Rule) -> Decision {
    let estimate = Estimate::of(differences);
    let tail = Tail::of(differences, rule.margin);
    let difference_interval = typical.interval(differences, rule.difference);
    let equivalence_interval = typical.interval(differences, rule.equivalence);
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
    } else if equivalence_interval.within_margin(rule.margin) && !tail.is_one_sided() {
        Outcome::NoDifference
    } else {
        Outcome::Undecided
    };
    let outside = |edge: f64| typical.p_value(differences, edge);
    let (low, high) = ((1.0 - rule.margin).ln(), (1.0 + rule.margin).ln());
    let centre = typical.centre(differences);
    let inside = low < centre && centre < high;
    Decision {
        outcome,
        estimate,
        typical,
        centre,
        tail,
        difference_interval,
        equivalence_interval,
        p: outside(0.0),
        equivalence_p: if inside { outside(low).max(outside(high)) / 2.0 } else { 1.0 },
        ranks: Ranks { shift: 0.0, p: 1.0, skewness: 0.0, overruled: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { margin: 0.01, difference: 0.05, equivalence: 0.10, higher_is_better: false };

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

    /// Eight tiny gains and two great losses: the mean says slower at a loose level, the ranks do not.
    #[test]
    fn ranks_overrule_a_mean_made_by_few_blocks() {
        let loose = Rule { difference: 0.25, equivalence: 0.25, ..RULE };
        let d = [-0.001, -0.002, -0.001, -0.003, -0.002, -0.001, -0.002, 0.001, 0.06, 0.09];
        let decision = decide(&d, &loose);
        assert!(decision.estimate.interval(loose.difference).low > 0.0, "{decision:?}");
        assert!(decision.difference_interval.low < 0.0, "{decision:?}");
        assert_eq!(decision.outcome, Outcome::Undecided);
        assert!(decision.ranks.overruled);
    }

    #[test]
    fn exit_codes_are_the_documented_ones() {
        let codes = [
            (Outcome::Faster, 0),
            (Outcome::NoDifference, 0),
            (Outcome::Slower, 1),
            (Outcome::Undecided, 2),
            (Outcome::Differs, 2),
            (Outcome::Untrusted, 3),
        ];
        for (outcome, code) in codes {
            assert_eq!(outcome.exit_code(), code);
        }
    }
}
