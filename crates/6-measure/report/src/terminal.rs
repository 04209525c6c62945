//! The report as text, about a dozen lines: the verdict, then machine, layouts, both programs, what a naive comparison
//! would have said, and the estimate.

use std::fmt::Write;

use afterlink_bench::analyse::{Analysis, Change, Luck, SideSummary, SuiteAnalysis};
use afterlink_bench::baseline::age;
use afterlink_bench::record::{ExperimentRecord, LayoutMode, Plan, StopReason, Then};
use afterlink_bench::stats::verdict::Outcome;

use crate::numbers::{duration, p_value, percent, percentile, quantity, share, shell_line, signed_percent};
use crate::wrapping::{LABEL, write_line};

/// One experiment. `colour` adds ANSI colours to the verdict.
pub fn compare_text(record: &ExperimentRecord, analysis: &Analysis, colour: bool) -> String {
    let mut out = String::new();
    let mut line = |label: &str, text: String| write_line(&mut out, label, &text);
    line("VERDICT", verdict_line(analysis, colour));
    for detail in analysis.verdict.details.iter().skip(usize::from(joins_headline(analysis))) {
        line("", detail.clone());
    }
    line("machine", machine_line(record, analysis));
    line("layouts", layouts_line(record, analysis));
    if !record.plan.metric_choice.is_empty() {
        line("judged by", format!("{}: {}", analysis.metric.name, record.plan.metric_choice));
    }
    line("question", analysis.estimand.clone());
    for (letter, side) in [('A', &analysis.a), ('B', &analysis.b)] {
        let label = format!("{letter} ({})", side.label);
        if label.chars().count() < LABEL {
            line(&label, side_line(side, analysis));
        } else {
            line(&letter.to_string(), side.label.clone());
            line("", side_line(side, analysis));
        }
    }
    if let Some(text) = naive_line(analysis) {
        line("naive", text);
    }
    line("compare", compare_line(record, analysis));
    if let Some(then) = &record.then {
        line("baseline", baseline_line(then, analysis));
    }
    for other in &analysis.secondary {
        line("", secondary_line(other));
    }
    if analysis.counts.layouts >= 2 {
        let seen = percent(analysis.detectable_percent);
        line("power", format!("smallest difference this experiment could see: {seen} (80 % power)"));
    }
    for warning in &analysis.warnings {
        line("warning", warning.clone());
    }
    if !record.command.is_empty() {
        // A command stays in one piece, to be copied.
        let _ = writeln!(out, "{:<LABEL$}{}", "repeat", shell_line(&record.command));
    }
    out
}

/// Several benchmarks: each one's text, then a table and the mean.
pub fn suite_text(records: &[ExperimentRecord], suite: &SuiteAnalysis, colour: bool) -> String {
    if let ([record], [analysis]) = (records, &suite.benchmarks[..]) {
        return compare_text(record, analysis, colour);
    }
    let mut out = String::new();
    for (record, analysis) in records.iter().zip(&suite.benchmarks) {
        let _ = writeln!(out, "== {} ==\n{}", analysis.name, compare_text(record, analysis, colour));
    }
    let _ = writeln!(out, "== all {} comparisons, verdicts corrected by Holm's method ==", records.len());
    let mut row = |name: &str, said: &str, numbers: Option<&Change>| {
        let _ = writeln!(out, "{name}");
        if let Some(change) = numbers {
            write_line(&mut out, "", &format!("{}  {}", signed_percent(change.percent), change.interval()));
        }
        write_line(&mut out, "", said);
    };
    for b in &suite.benchmarks {
        row(&b.name, &b.verdict.headline, Some(&b.change).filter(|_| b.counts.layouts >= 2));
    }
    if let Some(mean) = &suite.geometric_mean {
        row("all", "geometric mean of the costs (a throughput turned round)", Some(mean));
    }
    out
}

/// What A took when it was kept, which is compared with nothing.
pub fn baseline_line(then: &Then, analysis: &Analysis) -> String {
    let age = age(then.kept);
    let now = analysis.a.typical;
    if then.metric != analysis.metric || then.typical <= 0.0 || !now.is_finite() {
        return format!("A was kept {age}; by what it was judged then is not what judges now");
    }
    let unit = &then.metric.unit;
    let place = if then.machine.is_empty() { String::new() } else { format!(" on {}", then.machine) };
    format!(
        "A was kept {age}: then {}{place}, here and now {} ({}). The program is the same, so that is the machine's doing; \
         B is compared with what A takes now",
        quantity(then.typical, unit),
        quantity(now, unit),
        signed_percent(100.0 * (now / then.typical - 1.0)),
    )
}

fn machine_line(record: &ExperimentRecord, analysis: &Analysis) -> String {
    let machine = &record.machine;
    let mut text =
        if machine.description.is_empty() { "unknown".to_string() } else { machine.description.clone() };
    let mut noise = Vec::new();
    if !machine.grade.is_empty() {
        noise.push(machine.grade.clone());
    }
    if let Some(pressure) = analysis.machine.cpu_pressure {
        noise.push(format!("CPU pressure {}", share(pressure)));
    }
    if let Some(steal) = analysis.machine.steal.filter(|s| *s > 0.001) {
        noise.push(format!("steal {}", share(steal)));
    }
    if !noise.is_empty() {
        let _ = write!(text, "   noise: {}", noise.join(", "));
    }
    text
}

/// The plan in parentheses.
fn plan_text(plan: &Plan) -> String {
    let mode = match plan.layout {
        LayoutMode::Shuffle => "shuffle",
        LayoutMode::Jitter => "jitter",
        LayoutMode::AsIs => return "as is".into(),
    };
    let pairing = if plan.coupled { "coupled" } else { "independent" };
    let timing = if plan.together { ", both at once" } else { "" };
    format!("{mode}, {pairing}{timing}, seed {:#x}", plan.seed)
}

/// What ended the experiment.
pub(crate) fn stop_text(stop: StopReason) -> &'static str {
    match stop {
        StopReason::Verdict => "verdict reached",
        StopReason::Precision => "precision reached",
        StopReason::MaxLayouts => "all layouts done",
        StopReason::MaxTime => "time is up",
        StopReason::Interrupted => "interrupted",
        StopReason::TooManyInvalid => "too many failures",
    }
}

fn layouts_line(record: &ExperimentRecord, analysis: &Analysis) -> String {
    let counts = &analysis.counts;
    let mut text = format!(
        "{} of {} ({}) x {} runs",
        counts.layouts,
        record.plan.most_layouts(),
        plan_text(&record.plan),
        counts.runs_per_layout
    );
    if counts.pilot > 0 {
        let _ = write!(text, "   + pilot of {}", counts.pilot);
    }
    if counts.invalid > 0 {
        let _ = write!(text, "   {} dropped", counts.invalid);
    }
    let _ = write!(text, "   {}   stopped: {}", duration(analysis.seconds), stop_text(analysis.stop));
    text
}

fn side_line(side: &SideSummary, analysis: &Analysis) -> String {
    if side.layouts.is_empty() {
        return "not measured".into();
    }
    let mut text = format!("{} {}", analysis.metric.name, quantity(side.typical, &analysis.metric.unit));
    if side.layouts.len() < 2 {
        return text;
    }
    if let Some(sd) = side.run_sd_percent {
        let _ = write!(text, "   runs ±{}", percent(sd));
    }
    let name = if analysis.layout == LayoutMode::AsIs { "copies" } else { "layouts" };
    let _ = write!(
        text,
        "   {name} ±{} (range {})",
        percent(side.layout_sd_percent),
        percent(side.range_percent)
    );
    if let Some(shipped) = side.shipped.as_ref().filter(|s| s.runs > 1) {
        let deviation =
            format!("{} ±{}", signed_percent(shipped.deviation_percent), percent(shipped.error_percent));
        let _ = write!(text, "   as shipped: {}", percentile(shipped.percentile));
        let _ = match shipped.luck {
            Luck::Lucky => write!(text, " (LUCKY, {deviation})"),
            Luck::Unlucky => write!(text, " (UNLUCKY, {deviation})"),
            Luck::Ordinary => write!(text, " ({deviation})"),
        };
    }
    text
}

/// `B is 2.9 % slower than A`, or the change of a quantity that is no time.
pub(crate) fn naive_claim(analysis: &Analysis) -> Option<String> {
    let naive = analysis.naive?;
    let w = naive.welch;
    let files = if analysis.layout == LayoutMode::AsIs { "" } else { " on the two shipped files" };
    let p = p_value(w.p);
    if w.p >= 0.05 {
        return Some(format!(
            "no significant difference{files}: {} ({} {p})",
            signed_percent(w.percent),
            naive.test
        ));
    }
    let claim = if analysis.metric.is_time() {
        format!("B is {} {}", percent(w.percent.abs()), if w.percent > 0.0 { "slower" } else { "faster" })
    } else {
        format!("{} of B: {}", analysis.metric.name, signed_percent(w.percent))
    };
    Some(format!("{claim}{files} ({} {p})", naive.test))
}

fn naive_line(analysis: &Analysis) -> Option<String> {
    Some(format!("{}   <- what other tools would say", naive_claim(analysis)?))
}

fn compare_line(record: &ExperimentRecord, analysis: &Analysis) -> String {
    if analysis.counts.layouts < 2 {
        return "not enough was measured".into();
    }
    let (change, parts) = (&analysis.change, &analysis.components);
    let level = if record.plan.family > 1 { "interval for all benchmarks together" } else { "95 %" };
    // A drift too small to be told from chance is not known to be none.
    let drift = if parts.drift_share < 0.005 {
        String::new()
    } else {
        format!(", drift {}", share(parts.drift_share))
    };
    format!(
        "B vs A  {} {level}   variance of a run: layout {}, run {}{drift}",
        change.text(),
        share(parts.layout_share),
        share(parts.run_share),
    )
}

fn secondary_line(other: &afterlink_bench::analyse::Secondary) -> String {
    let name = &other.metric.name;
    match (other.a, other.b, other.change) {
        (Some(a), Some(b), Some(change)) => format!(
            "{name}: A {}, B {}, {}",
            quantity(a, &other.metric.unit),
            quantity(b, &other.metric.unit),
            change.text(),
        ),
        (Some(_), Some(_), None) => format!("{name}: not enough was measured"),
        _ => format!("{name}: not counted on this machine"),
    }
}

/// Whether the first detail is short and belongs behind the headline.
fn joins_headline(analysis: &Analysis) -> bool {
    analysis.verdict.outcome == Outcome::NoDifference
        && analysis.verdict.details.first().is_some_and(|d| d.ends_with("layout accident"))
}

fn verdict_line(analysis: &Analysis, colour: bool) -> String {
    let verdict = &analysis.verdict;
    let mut text = verdict.headline.clone();
    if joins_headline(analysis) {
        let _ = write!(text, " — {}", verdict.details[0]);
    }
    if !colour {
        return text;
    }
    let code = match verdict.outcome {
        Outcome::Faster | Outcome::NoDifference => 32,
        Outcome::Slower | Outcome::Untrusted => 31,
        Outcome::Undecided | Outcome::Differs | Outcome::Tail => 33,
    };
    format!("\x1b[1;{code}m{text}\x1b[0m")
}

#[cfg(test)]
mod tests;
