//! The report as one HTML file: no network, no script, readable in light and dark. The complete data lie
//! in it as JSON, so that the page alone can be analysed again.

mod charts;
pub(crate) mod svg;

use std::fmt::Write;

use afterlink_bench::analyse::{Analysis, Change, Luck, SideSummary, SuiteAnalysis};
use afterlink_bench::record::{ExperimentRecord, LayoutMode};
use afterlink_bench::stats::verdict::Outcome;

use self::svg::escape;
use crate::json::{DATA_OPEN, to_compact_json};
use crate::numbers::{duration, percent, percentile, quantity, share, shell_line, signed_percent};
use crate::terminal::{baseline_line, naive_claim, stop_text};

const STYLE: &str = include_str!("html/style.css");

/// The page of one or several benchmarks of the same two programs.
pub fn html_page(records: &[ExperimentRecord], suite: &SuiteAnalysis) -> String {
    let title = records.first().map_or_else(String::new, |r| format!("{} against {}", r.b.label, r.a.label));
    let mut body = String::new();
    if records.len() > 1 {
        body.push_str(&overview(&title, suite));
    }
    for (record, analysis) in records.iter().zip(&suite.benchmarks) {
        body.push_str(&experiment(record, analysis, &title, records.len() == 1));
    }
    // In JSON "<" stands only inside strings, where it may be written like this; HTML then sees no tag.
    let data = to_compact_json(records, suite).replace('<', "\\u003c");
    body.push_str(
        "<p class=\"soft small\">All runs are inside this file: \
         <code>afterlink compare --replay THIS_FILE</code> analyses them again.</p>\n",
    );
    page(&format!("{title} · afterlink compare"), &body, &format!("{DATA_OPEN}{data}</script>\n"))
}

/// A page that needs no network: its title, what is shown, and what stands behind that unseen.
pub(crate) fn page(title: &str, shown: &str, unseen: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style></head>\n\
         <body><main>\n{shown}</main>\n{unseen}</body></html>\n",
        escape(title)
    )
}

fn overview(title: &str, suite: &SuiteAnalysis) -> String {
    let mut out = format!(
        "<h1>{}</h1>\n<p class=\"soft\">{} benchmarks; verdicts corrected by Holm's method so that \
         all together err in at most 5 % of suites</p>\n<figure>{}</figure>\n<table><tr><th>benchmark<th>metric<th>change\
         <th>interval<th>verdict</tr>\n",
        escape(title),
        suite.benchmarks.len(),
        charts::forest(&suite.benchmarks)
    );
    for b in &suite.benchmarks {
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td>{}</tr>",
            escape(&b.name),
            escape(&b.metric.name),
            signed_percent(b.change.percent),
            b.change.interval(),
            escape(&b.verdict.headline)
        );
    }
    if let Some(mean) = &suite.geometric_mean {
        let _ = writeln!(
            out,
            "<tr><th>all<td>geometric mean of costs<td class=\"n\">{}<td class=\"n\">{}<td></tr>",
            signed_percent(mean.percent),
            mean.interval()
        );
    }
    out.push_str("</table>\n");
    out
}

fn experiment(record: &ExperimentRecord, analysis: &Analysis, title: &str, alone: bool) -> String {
    let mut out = String::new();
    if alone {
        let _ = writeln!(out, "<h1>{}: {}</h1>", escape(title), escape(&analysis.name));
    } else {
        let _ = writeln!(out, "<h1 style=\"margin-top:56px\">{}</h1>", escape(&analysis.name));
    }
    let _ = writeln!(out, "<p class=\"soft\">{}</p>", escape(&facts(record, analysis)));
    out.push_str(&verdict_card(analysis));
    if analysis.counts.layouts >= 2 {
        out.push_str(&two_answers(record, analysis));
        out.push_str(&figures(record, analysis));
    }
    out.push_str(&numbers_table(analysis));
    out.push_str(&how(record, analysis));
    out
}

fn facts(record: &ExperimentRecord, analysis: &Analysis) -> String {
    format!(
        "{}: {} layouts of each program, {} runs of each layout, {} timed runs in {}; {}",
        analysis.metric.name,
        analysis.counts.layouts,
        record.runs_per_layout,
        analysis.counts.runs,
        duration(analysis.seconds),
        stop_text(analysis.stop)
    )
}

fn verdict_card(analysis: &Analysis) -> String {
    let verdict = &analysis.verdict;
    let class = match verdict.outcome {
        Outcome::Faster | Outcome::NoDifference => "good",
        Outcome::Slower | Outcome::Untrusted => "bad",
        Outcome::Undecided | Outcome::Differs | Outcome::Tail => "open",
    };
    let headline = capitalised(&verdict.headline);
    let mut out = format!("<div class=\"verdict {class}\"><strong>{}</strong>", escape(&headline));
    for detail in &verdict.details {
        let _ = write!(out, "<div>{}</div>", escape(detail));
    }
    if analysis.counts.layouts >= 2 {
        let _ = write!(
            out,
            "<div class=\"soft\">The smallest difference that this experiment could see: {} (80 % power).</div>",
            percent(analysis.detectable_percent)
        );
    }
    out.push_str("</div>\n");
    out
}

fn capitalised(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn two_answers(record: &ExperimentRecord, analysis: &Analysis) -> String {
    let change = &analysis.change;
    let naive = naive_claim(analysis).unwrap_or_else(|| "the shipped files were not run often enough".into());
    // A metric's name stays as the user wrote it.
    let naive = if naive.starts_with(&analysis.metric.name) { naive } else { capitalised(&naive) };
    let over = if record.plan.layout == LayoutMode::AsIs {
        "one layout of each"
    } else {
        "the typical layout: as many lie above as below"
    };
    let test = if record.plan.together {
        "Student's t test of the pairs of runs of the two files"
    } else {
        "Welch's t test, all runs of one file against all runs of the other"
    };
    let then = record
        .then
        .as_ref()
        .map(|then| format!("<p class=\"soft small\">{}</p>\n", escape(&baseline_line(then, analysis))));
    format!(
        "<div class=\"pair\"><div class=\"card\"><h3>What other tools would say</h3><b>{}</b>\
         <div class=\"soft small\">{test}</div></div>\n\
         <div class=\"card\"><h3>What this experiment says</h3><b>B against A: {}</b>\
         <div class=\"soft small\">{over}; 95 %, valid although the experiment chose when to stop</div></div></div>\n{}",
        escape(&naive),
        change.text(),
        then.unwrap_or_default(),
    )
}

fn figures(record: &ExperimentRecord, analysis: &Analysis) -> String {
    let as_is = record.plan.layout == LayoutMode::AsIs;
    let (each, spread) = if as_is {
        ("a fresh copy of each file", "Every block ran fresh copies of the same two files.")
    } else {
        (
            "one fresh layout of A and of B",
            "Each dot is the same program with its code at other addresses. The diamond is the file as it was \
             handed over: one draw from this distribution.",
        )
    };
    let better = match record.plan.metrics.first() {
        Some(metric) if metric.higher_is_better() => "right of zero: B does more",
        _ => "left of zero: B needs less",
    };
    format!(
        "<h2>Difference, block by block</h2><p class=\"soft small\">Each dot is one block: {each}. Dots {better}.</p><figure>{}</figure>\n\
         <h2>The layouts of both programs</h2><p class=\"soft small\">{spread}</p><figure>{}</figure>\n\
         <h2>Where the variance comes from</h2><figure>{}</figure>\n\
         <h2>Every run over time</h2><p class=\"soft small\">Against the mean of its program. Slow waves are the \
         machine's drift; both programs ride on them alike.</p><figure>{}</figure>\n",
        charts::differences(record, analysis),
        charts::layouts(analysis),
        charts::shares(analysis),
        charts::drift(record, analysis)
    )
}

fn numbers_table(analysis: &Analysis) -> String {
    let unit = &analysis.metric.unit;
    let mut out = format!(
        "<h2>Numbers</h2>\n<table><tr><th><th>A ({})<th>B ({})<th>B against A</tr>\n",
        escape(&analysis.a.label),
        escape(&analysis.b.label)
    );
    let mut row = |name: &str, a: String, b: String, change: String| {
        let _ = writeln!(
            out,
            "<tr><th>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}</tr>",
            escape(name),
            unbroken(&a),
            unbroken(&b),
            unbroken(&change)
        );
    };
    let each = |f: &dyn Fn(&SideSummary) -> String| (f(&analysis.a), f(&analysis.b));
    let (a, b) = each(&|s| quantity(s.typical, unit));
    row(&analysis.metric.name, a, b, analysis.change.text());
    let (a, b) = each(&|s| s.run_sd_percent.map_or("one run each".into(), |sd| format!("±{}", percent(sd))));
    row("spread of runs of one layout", a, b, String::new());
    let (a, b) = each(&|s| format!("±{}, range {}", percent(s.layout_sd_percent), percent(s.range_percent)));
    row(
        "spread of layouts",
        a,
        b,
        format!("correlation {:.2}", analysis.components.correlation).replace('-', "−"),
    );
    let (a, b) = each(&shipped_words);
    row("as shipped, among its layouts", a, b, String::new());
    for other in &analysis.secondary {
        let shown = |v: Option<f64>| v.map_or("not counted here".into(), |v| quantity(v, &other.metric.unit));
        row(
            &other.metric.name,
            shown(other.a),
            shown(other.b),
            other.change.as_ref().map(Change::text).unwrap_or_default(),
        );
    }
    out.push_str("</table>\n");
    out
}

/// Keeps a number and its unit on one line.
fn unbroken(text: &str) -> String {
    escape(text).replace(" %", "&nbsp;%").replace(" ±", "&nbsp;±")
}

fn shipped_words(side: &SideSummary) -> String {
    let Some(shipped) = side.shipped else { return "not run".into() };
    let luck = match shipped.luck {
        Luck::Lucky => ", lucky",
        Luck::Unlucky => ", unlucky",
        Luck::Ordinary => "",
    };
    format!(
        "{} ({} ±{}{luck})",
        percentile(shipped.percentile),
        signed_percent(shipped.deviation_percent),
        percent(shipped.error_percent)
    )
}

fn how(record: &ExperimentRecord, analysis: &Analysis) -> String {
    let mut out = String::from("<h2>How it was measured</h2>\n");
    if !analysis.warnings.is_empty() {
        out.push_str("<ul>");
        analysis.warnings.iter().for_each(|w| {
            let _ = write!(out, "<li>{}</li>", escape(w));
        });
        out.push_str("</ul>\n");
    }
    let mut facts: Vec<(&str, String)> = vec![("estimated", analysis.estimand.clone())];
    facts.push(("machine", machine(record, analysis)));
    let places = match record.rehearsal.pinned {
        true => "each block on one CPU, the CPUs in turn",
        false => "on any CPU",
    };
    facts.push((
        "runs",
        format!(
            "{}, {places}, environment size varied, output {}",
            if record.plan.together {
                "both programs of a pair at the same time, judged by the CPU time of each"
            } else {
                "in balanced order (ABBA or BAAB by coin)"
            },
            if record.rehearsal.output_checked { "equal in all runs" } else { "not compared" }
        ),
    ));
    facts.push(("random numbers", format!("all from seed {:#x}", record.plan.seed)));
    let ranks = &analysis.decision.ranks;
    if analysis.counts.layouts >= 2 {
        facts.push((
            "cross-check",
            format!(
                "Hodges–Lehmann {}, Wilcoxon {}",
                signed_percent(afterlink_bench::analyse::to_percent(ranks.shift)),
                crate::numbers::p_value(ranks.p)
            ),
        ));
    }
    out.push_str("<table>\n");
    for (name, text) in facts {
        let _ = writeln!(out, "<tr><th>{name}<td>{}</tr>", escape(&text));
    }
    out.push_str("</table>\n");
    if !record.command.is_empty() {
        let _ = writeln!(out, "<h2>Repeat it</h2>\n<pre>{}</pre>", escape(&shell_line(&record.command)));
    }
    out
}

fn machine(record: &ExperimentRecord, analysis: &Analysis) -> String {
    let mut parts = vec![record.machine.description.clone()];
    if !record.machine.grade.is_empty() {
        parts.push(format!("noise: {}", record.machine.grade));
    }
    if let Some(pressure) = analysis.machine.cpu_pressure {
        parts.push(format!("CPU pressure {}", share(pressure)));
    }
    if let Some(steal) = analysis.machine.steal {
        parts.push(format!("steal {}", share(steal)));
    }
    parts.retain(|p| !p.is_empty());
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::sample;
    use afterlink_bench::analyse_suite;
    use afterlink_bench::metric::MetricSpec;

    /// Every element that is opened is closed, in order; void and self-closing ones aside.
    fn assert_well_formed(page: &str) {
        let mut open: Vec<&str> = Vec::new();
        let mut rest = page;
        while let Some(start) = rest.find('<') {
            rest = &rest[start + 1..];
            let end = rest.find('>').expect("a tag ends");
            let (tag, after) = (&rest[..end], &rest[end + 1..]);
            rest = after;
            let name = tag.split([' ', '\n']).next().unwrap().trim_end_matches('/');
            if name == "script" || name == "style" {
                let close = rest.find(&format!("</{name}>")).expect("raw text ends");
                rest = &rest[close + name.len() + 3..];
            } else if let Some(closed) = name.strip_prefix('/') {
                // td, th and li may be left open in HTML.
                while matches!(open.last(), Some(&"td" | &"th")) && open.last() != Some(&closed) {
                    open.pop();
                }
                assert_eq!(open.pop(), Some(closed), "near {}", &rest[..rest.len().min(80)]);
            } else if !tag.ends_with('/') && !matches!(name, "!DOCTYPE" | "meta" | "br") {
                open.push(name);
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn pages_are_well_formed_and_need_no_network() {
        for (effect, blocks) in [(0.0, 30), (0.02, 12), (0.0, 0), (0.0, 1), (0.0, 2)] {
            let mut records = vec![sample(effect, blocks)];
            for layout in [LayoutMode::Shuffle, LayoutMode::AsIs] {
                records[0].plan.layout = layout;
                let page = html_page(&records, &analyse_suite(&records));
                assert_well_formed(&page);
                assert!(!page.contains("http") && !page.contains("NaN"), "{blocks} blocks");
                assert!(page.contains("prefers-color-scheme: dark"));
            }
        }
    }

    #[test]
    fn the_page_says_what_the_text_says() {
        let records = vec![sample(0.0, 30)];
        let suite = analyse_suite(&records);
        let page = html_page(&records, &suite);
        assert!(page.contains("No difference larger than 1 %"));
        assert!(page.contains("is a layout accident") && page.contains("as shipped: below every layout"));
        assert!(page.contains("queries &lt;all&gt;"), "names are escaped");
        assert!(page.contains("--seed 0x5eed -- &#39;./run it.sh&#39; {}"));
        // One dot a block, one a layout and side, one a run.
        assert_eq!(page.matches("<circle class=\"both\"").count(), 30);
        assert!(page.contains("Dots left of zero: B needs less"));
        let runs: usize = records[0].blocks.iter().map(|b| b.runs.len()).sum();
        let coloured = page.matches("<circle class=\"a").count()
            + page.matches("<circle class=\"b\"").count()
            + page.matches("<circle class=\"b hollow").count();
        let clipped = page.matches("<path class=\"a\"").count()
            + page.matches("<path class=\"b\"").count()
            + page.matches("<path class=\"a hollow").count()
            + page.matches("<path class=\"b hollow").count();
        assert_eq!(coloured + clipped, 60 + runs + 2, "and two in the legend");
    }

    #[test]
    fn where_more_is_better_the_better_dots_are_on_the_right() {
        let mut records = vec![sample(0.0, 10)];
        records[0].plan.metrics = vec![MetricSpec::parse("tps=higher:pattern:([0-9]+)").unwrap()];
        let page = html_page(&records, &analyse_suite(&records));
        assert!(page.contains("Dots right of zero: B does more") && !page.contains("needs less"));
    }

    #[test]
    fn several_benchmarks_share_a_page() {
        let mut records = vec![sample(0.0, 20), sample(0.02, 20), sample(-0.02, 20)];
        records[1].name = "second".into();
        let page = html_page(&records, &analyse_suite(&records));
        assert_well_formed(&page);
        assert!(page.contains("3 benchmarks") && page.contains("geometric mean of costs"));
        assert_eq!(page.matches("Every run over time").count(), 3);
    }

    /// A program's name must not break out of the page.
    #[test]
    fn hostile_names_stay_text() {
        let mut records = vec![sample(0.0, 12)];
        records[0].name = "</script><script>alert(1)</script>".into();
        records[0].a.label = "<img src=x onerror=alert(1)>".into();
        let page = html_page(&records, &analyse_suite(&records));
        assert!(!page.contains("<script>alert") && !page.contains("<img"));
        assert_eq!(page.matches("</script>").count(), 1);
        assert_eq!(crate::parse_records(&page).unwrap(), records);
    }
}
