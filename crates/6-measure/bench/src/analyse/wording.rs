//! The verdict in words.

use super::trust::reasons_for_distrust;
use super::{Analysis, Verdict};
use crate::metric::MetricSpec;
use crate::numbers::{duration, percent, signed_percent};
use crate::record::{ExperimentRecord, LayoutMode, Plan, StopReason};
use crate::stats::shape::unseen_share;
use crate::stats::verdict::Outcome;

/// What the experiment estimates.
pub fn estimand(plan: &Plan) -> String {
    let question = match plan.layout {
        LayoutMode::Shuffle => {
            "the effect of the code on the typical layout: the median over random orders of the functions"
        }
        LayoutMode::Jitter => {
            "the effect of code and layout together: each program keeps its order of functions, and the median is \
             taken over accidental shifts"
        }
        LayoutMode::AsIs => {
            "these two files, one layout of each: what causes a difference, code or layout, cannot be told"
        }
    };
    question.to_string()
}

/// The words for better and worse.
fn comparatives(metric: &MetricSpec) -> (&'static str, &'static str) {
    if metric.is_time() { ("faster", "slower") } else { ("better", "worse") }
}

/// The verdict on an analysis that is complete but for it.
pub fn verdict(record: &ExperimentRecord, analysis: &Analysis) -> Verdict {
    let distrust = reasons_for_distrust(record);
    let measured = analysis.decision.outcome;
    let differs = matches!(measured, Outcome::Faster | Outcome::Slower);
    if !distrust.is_empty() {
        let headline = "not to be trusted; the numbers are shown, nothing is claimed".to_string();
        return Verdict { outcome: Outcome::Untrusted, headline, details: distrust };
    }
    if record.plan.calibration {
        return calibration(record, analysis, differs);
    }
    let margin = percent(100.0 * record.plan.margin);
    let mut details = Vec::new();
    let (outcome, headline) = match measured {
        Outcome::Faster | Outcome::Slower if record.plan.layout == LayoutMode::AsIs => {
            details.push("another layout of the same code may well differ the other way".to_string());
            (
                Outcome::Differs,
                format!("differs on this one layout, by {}", signed_percent(analysis.change.percent)),
            )
        }
        Outcome::Faster | Outcome::Slower => (measured, difference_headline(analysis, record)),
        Outcome::NoDifference => {
            let place = if record.plan.layout == LayoutMode::AsIs { " between these two files" } else { "" };
            details.extend(accident(analysis, record));
            details.push(tail_detail(analysis));
            (measured, format!("no difference larger than {margin}{place}"))
        }
        Outcome::Tail => {
            details.extend(accident(analysis, record));
            details.push(tail_detail(analysis));
            (measured, tail_headline(analysis, &margin))
        }
        _ => {
            details.extend(undecided_details(analysis, record));
            (measured, undecided_headline(analysis))
        }
    };
    if outcome == Outcome::Faster || outcome == Outcome::Slower {
        details.extend(shipped_contradiction(analysis));
        details.extend(ended_early(analysis, record));
    }
    Verdict { outcome, headline, details }
}

fn difference_headline(analysis: &Analysis, record: &ExperimentRecord) -> String {
    let (better, worse) = comparatives(&analysis.metric);
    let word = if analysis.decision.outcome == Outcome::Faster { better } else { worse };
    let change = &analysis.change;
    let near = if change.percent < 0.0 { -change.high } else { change.low };
    let inside = analysis.decision.equivalence_interval.within_margin(record.plan.margin);
    if inside {
        return format!(
            "B is {word}, but by less than {}: by {}",
            percent(100.0 * record.plan.margin),
            percent(change.percent.abs())
        );
    }
    let by = percent(change.percent.abs());
    match percent(near.max(0.0)) {
        none if none == "0 %" => format!("B is {word} by {by}"),
        least => format!("B is {word} by {by}, at least {least}"),
    }
}

fn tail_headline(analysis: &Analysis, margin: &str) -> String {
    let tail = &analysis.decision.tail;
    let (better, worse) = comparatives(&analysis.metric);
    let above = tail.above >= tail.below;
    format!(
        "no difference larger than {margin} in the typical layout, but in {} of {} layouts B is more than {} {}",
        tail.above.max(tail.below),
        analysis.counts.layouts,
        percent(super::to_percent(tail.beyond)),
        if above == analysis.metric.higher_is_better() { better } else { worse }
    )
}

/// What others would have taken for an effect.
fn accident(analysis: &Analysis, record: &ExperimentRecord) -> Option<String> {
    let naive = analysis.naive?.welch;
    let claimed = naive.p < 0.05 && naive.percent.abs() > 100.0 * record.plan.margin;
    (claimed && record.plan.layout != LayoutMode::AsIs).then(|| {
        format!("the {} between the shipped files is a layout accident", percent(naive.percent.abs()))
    })
}

fn shipped_contradiction(analysis: &Analysis) -> Option<String> {
    let naive = analysis.naive?.welch;
    let opposite = naive.p < 0.05 && naive.percent.signum() != analysis.change.percent.signum();
    opposite.then(|| {
        "the shipped files differ the other way: a layout accident hides the effect of the code".into()
    })
}

/// Who stops as soon as a difference is clear stops more often where chance has made it larger. That matters where it is only just clear.
fn ended_early(analysis: &Analysis, record: &ExperimentRecord) -> Option<String> {
    let change = &analysis.change;
    let nearest = if change.percent < 0.0 { -change.high } else { change.low };
    let is_just_clear = 2.0 * nearest < change.percent.abs();
    (record.stop == StopReason::Verdict && is_just_clear).then(|| {
        "it ended as soon as that was clear: such estimates are a little too large on average; the interval holds".into()
    })
}

fn undecided_headline(analysis: &Analysis) -> String {
    if analysis.counts.layouts < 2 {
        return "undecided: not enough was measured".into();
    }
    if !analysis.change.high.is_finite() {
        return format!("undecided: {} layouts are too few for an interval", analysis.counts.layouts);
    }
    format!(
        "undecided: the difference lies between {} and {}",
        signed_percent(analysis.change.low),
        signed_percent(analysis.change.high)
    )
}

fn undecided_details(analysis: &Analysis, record: &ExperimentRecord) -> Vec<String> {
    let mut details = Vec::new();
    if analysis.decision.tail.is_one_sided() {
        details.push(tail_detail(analysis));
    }
    if analysis.decision.ranks.overruled {
        details.push(format!(
            "the mean says {}, but a part of the blocks makes it: the middle one says {}",
            signed_percent(super::to_percent(analysis.decision.estimate.mean)),
            signed_percent(analysis.change.percent)
        ));
    }
    match analysis.more {
        Some(more) => details.push(format!(
            "about {} more layouts ({}) would settle it",
            two_digits(more.layouts),
            duration(more.seconds)
        )),
        None if analysis.counts.layouts >= 2 => details.push(format!(
            "more layouts alone will not settle it within a margin of {}: a quieter machine, a longer run or a wider \
             margin might",
            percent(100.0 * record.plan.margin)
        )),
        None => {}
    }
    details
}

/// What the few layouts far from the typical one do; the second half of "no difference".
fn tail_detail(analysis: &Analysis) -> String {
    let tail = &analysis.decision.tail;
    let layouts = analysis.counts.layouts;
    let beyond = percent(super::to_percent(tail.beyond));
    if tail.above + tail.below > 0 {
        return format!(
            "in {} of {layouts} layouts B lies more than {beyond} above the typical one, in {} below",
            tail.above, tail.below
        );
    }
    format!(
        "no layout differs from the typical one by more than {beyond}; a tail rarer than {} would not have been seen",
        percent(100.0 * unseen_share(layouts))
    )
}

/// An estimate should not look exact.
fn two_digits(n: u32) -> u32 {
    let unit = 10u32.pow(n.max(1).ilog10().saturating_sub(1));
    (n + unit / 2) / unit * unit
}

/// A against itself: the only honest answer is "no difference".
fn calibration(record: &ExperimentRecord, analysis: &Analysis, differs: bool) -> Verdict {
    let margin = percent(100.0 * record.plan.margin);
    if differs && !analysis.decision.equivalence_interval.within_margin(record.plan.margin) {
        return Verdict {
            outcome: Outcome::Untrusted,
            headline: format!(
                "A differs from itself by {}: do not measure with this set-up",
                signed_percent(analysis.change.percent)
            ),
            details: vec![
                "look for what treats the first and the second program differently: paths, caches, order"
                    .into(),
            ],
        };
    }
    let floor =
        format!("noise floor: differences below {} cannot be seen", percent(analysis.detectable_percent));
    let (outcome, headline) = match analysis.decision.outcome {
        Outcome::Undecided => (Outcome::Undecided, undecided_headline(analysis)),
        Outcome::Tail => (Outcome::Tail, tail_headline(analysis, &margin)),
        _ => (Outcome::NoDifference, format!("A does not differ from itself by more than {margin}")),
    };
    let mut details = if analysis.counts.layouts < 2 { Vec::new() } else { vec![floor] };
    if outcome == Outcome::Undecided {
        details.extend(undecided_details(analysis, record));
    }
    Verdict { outcome, headline, details }
}
