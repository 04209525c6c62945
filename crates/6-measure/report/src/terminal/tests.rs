use super::*;
use crate::sample::sample;
use crate::wrapping::WIDTH;
use afterlink_bench::metric::MetricSpec;
use afterlink_bench::record::Exclusion;
use afterlink_bench::{analyse, analyse_suite};

/// The line that begins with this label, with what of it stands below.
fn line(text: &str, label: &str) -> String {
    let mut lines = text.lines().skip_while(|l| !l.starts_with(label));
    let first = lines.next().unwrap_or_else(|| panic!("no line `{label}` in\n{text}"));
    let indent = " ".repeat(LABEL + 2);
    let below = lines.map_while(|l| l.strip_prefix(indent.as_str()));
    below.fold(first.to_owned(), |all, more| format!("{all} {more}"))
}

#[test]
fn text_keeps_within_80_columns() {
    for (effect, blocks) in [(0.0, 3), (0.0, 30), (0.02, 20)] {
        let mut record = sample(effect, blocks);
        record.plan.metric_choice =
            "some task waited for a CPU most of the time ".repeat(6).trim_end().into();
        let text = compare_text(&record, &analyse(&record), false);
        for line in text.lines().filter(|l| !l.starts_with("repeat")) {
            assert!(line.chars().count() <= WIDTH && !line.ends_with(' '), "{line}");
            assert!(!line.trim_start().starts_with('%'), "{line}");
        }
        assert!(text.lines().any(|l| l.ends_with("stopped: all layouts done")), "{text}");
        let coloured = compare_text(&record, &analyse(&record), true);
        assert_eq!(coloured.lines().count(), text.lines().count());
    }
}

#[test]
fn drift_is_named_only_where_there_is_some() {
    let record = sample(0.0, 30);
    let mut analysis = analyse(&record);
    for (share, named) in [(0.0, false), (0.004, false), (0.03, true)] {
        analysis.components.drift_share = share;
        let text = compare_text(&record, &analysis, false);
        assert_eq!(line(&text, "compare").contains(", drift 3 %"), named, "{text}");
        assert_eq!(line(&text, "compare").contains("drift"), named, "{text}");
    }
}

#[test]
fn a_layout_accident_reads_as_in_the_manual() {
    let record = sample(0.0, 30);
    let text = compare_text(&record, &analyse(&record), false);
    println!("{text}");
    assert!(
        line(&text, "machine").contains("2 CPUs, Test & Co   noise: OK (spin sd 1.0 %), CPU pressure 2 %")
    );
    assert!(line(&text, "layouts").contains("30 of 60 (shuffle, coupled, seed 0x5eed) x 2 runs"));
    assert!(line(&text, "layouts").ends_with("stopped: all layouts done"));
    assert!(line(&text, "A (main)").contains("as shipped: below every layout (LUCKY, −2"), "{text}");
    assert!(line(&text, "naive").contains("slower on the two shipped files (Welch p = "));
    assert!(line(&text, "naive").ends_with("<- what other tools would say"));
    assert!(line(&text, "compare").contains("95 % variance of a run: layout "));
    let verdict = line(&text, "VERDICT");
    assert!(
        verdict.contains("no difference larger than 1 % — the 2.")
            && verdict.ends_with("is a layout accident"),
        "{verdict}"
    );
    assert!(text.contains("smallest difference this experiment could see: 0."));
    assert!(text.contains("cycles: not counted on this machine"));
    assert!(line(&text, "repeat").ends_with("--seed 0x5eed -- './run it.sh' {}"));
}

#[test]
fn colours_touch_the_verdict_alone() {
    let record = sample(0.02, 20);
    let analysis = analyse(&record);
    let (plain, coloured) = (compare_text(&record, &analysis, false), compare_text(&record, &analysis, true));
    assert!(!plain.contains('\x1b'));
    assert_eq!(coloured.replace("\x1b[1;31m", "").replace("\x1b[0m", ""), plain);
    assert!(
        line(&plain, "VERDICT").contains("B is slower by 2")
            && line(&plain, "VERDICT").contains(", at least 1."),
        "{plain}"
    );
}

#[test]
fn every_outcome_and_an_empty_record_have_a_text() {
    for (effect, blocks) in [(0.0, 0), (0.0, 1), (0.0, 3), (0.0, 20), (-0.02, 20), (0.02, 20)] {
        let mut record = sample(effect, blocks);
        for layout in [LayoutMode::Shuffle, LayoutMode::Jitter, LayoutMode::AsIs] {
            record.plan.layout = layout;
            let text = compare_text(&record, &analyse(&record), false);
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            assert!(text.contains("VERDICT"));
        }
    }
}

#[test]
fn dropped_blocks_are_told() {
    let mut record = sample(0.0, 12);
    record.blocks[3].excluded = Some(Exclusion::Invalid("B ended with exit code 3".into()));
    let text = compare_text(&record, &analyse(&record), false);
    assert!(line(&text, "layouts").contains("11 of 60") && line(&text, "layouts").contains("1 dropped"));
    assert!(line(&text, "warning").contains("B ended with exit code 3"));
}

#[test]
fn a_suite_ends_with_a_table() {
    let mut records = vec![sample(0.0, 20), sample(0.02, 20), sample(-0.02, 20)];
    for (record, name) in records.iter_mut().zip(["read", "write", "mixed"]) {
        record.name = name.into();
        record.plan.family = 3;
    }
    let text = suite_text(&records, &analyse_suite(&records), false);
    assert!(text.contains("== read ==") && text.contains("== all 3 comparisons"));
    // Each has its name on a line of its own, then the numbers and the words.
    let table: Vec<&str> = text.lines().rev().take(12).collect();
    assert!(table[2] == "all" && table[1].contains('[') && table[0].contains("geometric mean"), "{table:?}");
    assert!(table[8] == "write" && table[7].contains('[') && table[6].contains("slower"), "{table:?}");
    assert!(text.lines().all(|line| line.chars().count() <= 80 || line.starts_with("repeat")), "{text}");
    records[2].b.sha1 = "of another program".into();
    assert!(!suite_text(&records, &analyse_suite(&records), false).contains("geometric mean"));
    assert_eq!(suite_text(&records[..1], &analyse_suite(&records[..1]), false).matches("VERDICT").count(), 1);
}

#[test]
fn a_stored_number_is_shown_and_compared_with_nothing() {
    let mut record = sample(0.02, 20);
    let before = analyse(&record);
    let metric = record.plan.metrics[0].clone();
    let then = Then { kept: 0, machine: "1 CPU".into(), metric, typical: before.a.typical / 2.0 };
    record.then = Some(then.clone());
    let after = analyse(&record);
    assert_eq!((&after.verdict, &after.change), (&before.verdict, &before.change));
    let said = compare_text(&record, &after, false);
    let joined = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("days ago: then") && joined.contains("on 1 CPU, here and now"), "{said}");
    assert!(joined.contains("(+100 %). The program is the same, so that is the machine's doing"), "{said}");
    record.then = Some(Then { metric: MetricSpec::max_rss(), ..then });
    let said = line(&compare_text(&record, &after, false), "baseline")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(said.contains("what it was judged then is not what judges now"), "{said}");
}
