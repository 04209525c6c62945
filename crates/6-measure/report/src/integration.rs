//! What a continuous integration reads: JUnit's XML, Markdown for a comment, and a table of comma-separated values (RFC 4180).

use std::fmt::Write;

use afterlink_bench::analyse::{Analysis, SuiteAnalysis};
use afterlink_bench::record::ExperimentRecord;

use crate::html::svg::escape;
use crate::numbers::{duration, percent, shell_line};

/// One test case for each benchmark: a regression beyond the margin is a failure, a comparison that is not to be trusted an error,
/// one that decided nothing is skipped.
pub fn junit_xml(records: &[ExperimentRecord], suite: &SuiteAnalysis) -> String {
    let count = |code: u8| suite.benchmarks.iter().filter(|b| b.exit_code() == code).count();
    let seconds: f64 = records.iter().map(|record| record.seconds).sum();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuite name=\"afterlink compare\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{seconds:.3}\">",
        suite.benchmarks.len(),
        count(1),
        count(3),
        count(2),
    );
    for (record, analysis) in records.iter().zip(&suite.benchmarks) {
        let verdict = &analysis.verdict;
        let _ = writeln!(
            out,
            "  <testcase name=\"{}\" classname=\"{}\" time=\"{:.3}\">",
            escape(&record.name),
            escape(&format!("{} against {}", record.b.label, record.a.label)),
            record.seconds
        );
        let element = match analysis.exit_code() {
            1 => Some("failure"),
            2 => Some("skipped"),
            3 => Some("error"),
            _ => None,
        };
        let details = escape(&verdict.details.join("\n"));
        if let Some(element) = element {
            let _ = writeln!(
                out,
                "    <{element} message=\"{}\">{details}</{element}>",
                escape(&verdict.headline)
            );
        }
        let text = format!("{}: {}", verdict.headline, analysis.change.text());
        let _ = writeln!(out, "    <system-out>{}</system-out>\n  </testcase>", escape(&text));
    }
    out.push_str("</testsuite>\n");
    out
}

/// A table with a row for each benchmark, and below it what has to be said with the verdicts.
pub fn markdown(records: &[ExperimentRecord], suite: &SuiteAnalysis) -> String {
    let mut out = String::from(
        "| | benchmark | verdict | change (95 % interval) | judged by | layouts | took |\n|---|---|---|---|---|---|---|\n",
    );
    for (record, analysis) in records.iter().zip(&suite.benchmarks) {
        let sign = match analysis.exit_code() {
            0 => "✓",
            1 => "✗",
            _ => "?",
        };
        let _ = writeln!(
            out,
            "| {sign} | {} | {} | {} | {} | {} | {} |",
            cell(&record.name),
            cell(&analysis.verdict.headline),
            cell(&analysis.change.text()),
            cell(&analysis.metric.name),
            analysis.counts.layouts,
            duration(record.seconds)
        );
    }
    for (record, analysis) in records.iter().zip(&suite.benchmarks) {
        for said in analysis.verdict.details.iter().chain(&analysis.warnings) {
            let _ = writeln!(out, "\n- {}: {}", cell(&record.name), cell(said));
        }
    }
    if let Some(record) = records.first() {
        let margin = percent(100.0 * record.plan.margin);
        let _ = write!(
            out,
            "\nA is `{}`, B is `{}`. Each was laid out anew for every row of runs; differences below {margin} count as none.\n",
            record.a.label, record.b.label
        );
        if !record.command.is_empty() {
            let _ = write!(out, "\n    {}\n", shell_line(&record.command));
        }
    }
    out
}

/// Text in a table's cell.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}

/// One row for each benchmark under a row of names; numbers of percent are of A.
pub fn csv(records: &[ExperimentRecord], suite: &SuiteAnalysis) -> String {
    let mut out = String::from(
        "benchmark,a,b,metric,unit,outcome,exit_code,change_percent,low_percent,high_percent,margin_percent,layouts,\
         runs_per_layout,typical_a,typical_b,adjusted_p,seconds\r\n",
    );
    for ((record, analysis), p) in records.iter().zip(&suite.benchmarks).zip(&suite.adjusted_p) {
        let texts =
            [&record.name, &record.a.label, &record.b.label, &analysis.metric.name, &analysis.metric.unit];
        for text in texts {
            let _ = write!(out, "{},", quoted(text));
        }
        let change = &analysis.change;
        let _ = write!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{p},{:.3}\r\n",
            outcome(analysis),
            analysis.exit_code(),
            change.percent,
            change.low,
            change.high,
            100.0 * record.plan.margin,
            analysis.counts.layouts,
            analysis.counts.runs_per_layout,
            analysis.a.typical,
            analysis.b.typical,
            record.seconds
        );
    }
    out
}

/// The outcome's name, as in the JSON.
fn outcome(analysis: &Analysis) -> String {
    let name = serde_json::to_value(analysis.verdict.outcome).expect("an outcome has a name");
    name.as_str().unwrap_or_default().to_string()
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::sample;
    use afterlink_bench::analyse_suite;

    fn three() -> Vec<ExperimentRecord> {
        let named = |name: &str, effect: f64, blocks| ExperimentRecord {
            name: name.into(),
            ..sample(effect, blocks)
        };
        vec![named("sort, a|b", 0.0, 20), named("a < b", 0.08, 20), named("few", 0.0, 3)]
    }

    #[test]
    fn a_regression_fails_and_what_is_undecided_is_skipped() {
        let records = three();
        let text = junit_xml(&records, &analyse_suite(&records));
        assert!(text.contains("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""), "{text}");
        let case = |name: &str| {
            let from =
                text.find(&format!("<testcase name=\"{name}\"")).unwrap_or_else(|| panic!("{name}: {text}"));
            &text[from..from + text[from..].find("</testcase>").unwrap()]
        };
        assert!(case("a &lt; b").contains("<failure message=\"B is slower"), "{text}");
        assert!(case("few").contains("<skipped message=\"undecided"), "{text}");
        let fine = case("sort, a|b");
        assert!(!["failure", "skipped", "error"].iter().any(|e| fine.contains(&format!("<{e}"))), "{fine}");
    }

    #[test]
    fn tables_hold_what_separates_their_cells() {
        let records = three();
        let suite = analyse_suite(&records);
        let table = markdown(&records, &suite);
        assert!(table.contains("| ✓ | sort, a\\|b | no difference larger than 1 % |"), "{table}");
        assert!(table.contains("| ✗ | a < b | B is slower"), "{table}");
        let rows: Vec<String> = csv(&records, &suite).split("\r\n").map(String::from).collect();
        assert_eq!(rows.len(), 5, "a head, three rows, and an end");
        assert!(rows[1].starts_with("\"sort, a|b\","), "{}", rows[1]);
        let columns = rows[0].split(',').count();
        assert_eq!(rows[2].split(',').count(), columns);
        assert!(rows[2].contains(",slower,1,") && rows[3].contains(",undecided,2,"), "{rows:?}");
    }
}
