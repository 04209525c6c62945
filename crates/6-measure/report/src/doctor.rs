//! The examination of a machine as text.

use std::fmt::Write;

use afterlink_bench::doctor::{Check, Examination, Status, Weight};

use crate::numbers::{duration, percent};

/// Findings, probe, grade, what can be seen in what time, and what to change. With `all`, also the
/// checks that found nothing wrong.
pub fn doctor_text(examination: &Examination, all: bool) -> String {
    let mut out = format!("{}\n\n", examination.description);
    let (shown, hidden): (Vec<&Check>, Vec<&Check>) =
        examination.checks.iter().partition(|c| all || c.status == Status::Poor);
    let width = shown.iter().map(|c| c.title.chars().count()).max().unwrap_or(0);
    for check in &shown {
        let _ = writeln!(out, "{}  {:<width$}  {}", mark(check), check.title, check.value);
    }
    if !hidden.is_empty() {
        let count = |status| hidden.iter().filter(|c| c.status == status).count();
        let _ = writeln!(
            out,
            "    {} more: {} good, {} unknown, {} for the record (--all shows them)",
            hidden.len(),
            count(Status::Good),
            count(Status::Unknown),
            count(Status::Noted)
        );
    }
    out.push_str(&probe_text(examination));
    let advice = examination.advice();
    if !advice.is_empty() {
        out.push_str("\nwhat would help, the weightiest first (nothing has been changed):\n");
        for line in advice {
            let _ = writeln!(out, "    {line}");
        }
    }
    out
}

/// How much it can fake or hide, by the number of marks.
fn mark(check: &Check) -> &'static str {
    match (check.status, check.weight) {
        (Status::Poor, Weight::Heavy) => "!!",
        (Status::Poor, _) => " !",
        (Status::Good, _) => "ok",
        (Status::Unknown, _) => " ?",
        (Status::Noted, _) => "  ",
    }
}

fn probe_text(examination: &Examination) -> String {
    let (Some(probe), Some(grade)) = (&examination.probe, &examination.grade) else { return String::new() };
    let mut out = String::from("\nprobe\n");
    for spin in &probe.cpus {
        let _ = writeln!(
            out,
            "    CPU {}: spread {} of {:.1} ms of computing; slowest twentieth +{}, slowest +{}; between neighbours {}",
            spin.cpu,
            percent(spin.sd_percent),
            spin.median_microseconds / 1000.0,
            percent(spin.p95_percent),
            percent(spin.max_percent),
            percent(spin.adjacent_sd_percent),
        );
    }
    if let Some(pair) = probe.pair {
        let _ = writeln!(
            out,
            "    CPUs {} and {} at once: {:.2} to {:.2} times as long",
            pair.first, pair.second, pair.range.0, pair.range.1
        );
    }
    let _ = writeln!(out, "    memory: spread {}", percent(probe.memory.sd_percent));
    let _ = writeln!(
        out,
        "    starting a process: {:.0} µs, spread {}; reading the clock: {:.0} ns",
        probe.start_microseconds,
        percent(probe.start_sd_percent),
        probe.clock_nanoseconds
    );
    let _ = writeln!(out, "\ngrade: {}", grade.line());
    for remark in &grade.remarks {
        let _ = writeln!(out, "    {remark}");
    }
    let run = examination.predictions.first().map_or(1.0, |p| p.run_seconds);
    let _ = writeln!(out, "\nwhat can be seen (runs of {run} s, layouts assumed to spread by 1 %):");
    for p in &examination.predictions {
        let _ = match (p.layouts, p.seconds) {
            (Some(n), Some(s)) => {
                writeln!(out, "    {} with {n} layouts in about {}", percent(p.margin_percent), duration(s))
            }
            _ => writeln!(out, "    {} is out of reach here", percent(p.margin_percent)),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use afterlink_bench::doctor::{ProbeOptions, examine};
    use std::path::Path;

    #[test]
    fn the_real_machine_is_described() {
        let probe = ProbeOptions { spin_seconds: 0.05, most_cpus: 1 };
        let e = examine(Path::new("/"), None, Some(probe));
        let text = doctor_text(&e, true);
        for check in &e.checks {
            assert!(text.contains(check.title) && text.contains(&check.value), "{}", check.id);
        }
        assert!(text.contains("grade: ") && text.contains("what can be seen"), "{text}");
        let short = doctor_text(&e, false);
        assert!(short.len() < text.len() && short.contains("--all"), "{short}");
        for line in e.advice() {
            assert!(short.contains(&line));
        }
    }
}
