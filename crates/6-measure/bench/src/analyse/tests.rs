use super::fixture::{Truth, simulated};
use super::*;
use crate::metric::{Direction, MetricSource};
use crate::record::{Failure, MachineDelta, StopReason};

fn shuffled(truth: Truth) -> ExperimentRecord {
    simulated(truth, LayoutMode::Shuffle)
}

fn analysed(truth: Truth) -> Analysis {
    analyse(&shuffled(truth))
}

/// The case the whole thing is for: equal code, a lucky layout of A.
#[test]
fn a_layout_accident_is_named_as_one() {
    let a = analysed(Truth {
        shipped_a: -0.024,
        shipped_b: 0.004,
        layout_sd: 0.008,
        blocks: 40,
        ..Truth::default()
    });
    assert_eq!(a.verdict.outcome, Outcome::NoDifference);
    assert_eq!(a.verdict.headline, "no difference larger than 1 %");
    let naive = a.naive.unwrap();
    assert!(naive.welch.p < 1e-6 && (naive.welch.percent - 2.8).abs() < 0.5, "{naive:?}");
    assert_eq!((naive.runs_a, naive.runs_b), (10, 10));
    assert!(
        a.verdict.details[0].ends_with("between the shipped files is a layout accident"),
        "{:?}",
        a.verdict
    );
    let shipped = a.a.shipped.unwrap();
    assert_eq!(shipped.luck, Luck::Lucky);
    assert!(shipped.percentile <= 5.0 && (shipped.deviation_percent + 2.4).abs() < 0.8, "{shipped:?}");
    assert_eq!(a.b.shipped.unwrap().luck, Luck::Ordinary);
    assert_eq!(a.verdict.outcome.exit_code(), 0);
}

/// Ten blocks with untypical layouts must not move the place of a shipped file that was measured well;
/// a machine that was slow just then must not either.
#[test]
fn the_shipped_place_resists_untypical_layouts_and_drift() {
    let truth = Truth { layout_sd: 0.05, run_sd: 0.0005, blocks: 60, shipped_b: 0.02, ..Truth::default() };
    let mut record = shuffled(truth);
    let b = analyse(&record).b;
    let centre = b.layouts.iter().map(|v| v.ln()).sum::<f64>() / 60.0;
    let shipped = b.shipped.unwrap();
    assert!((shipped.value.ln() - 0.02).abs() < 0.001, "the file itself is known exactly: {shipped:?}");
    assert!((shipped.deviation_percent - to_percent(0.02 - centre)).abs() < 0.1);

    let quiet = Truth { layout_sd: 0.002, blocks: 40, shipped_b: 0.01, ..Truth::default() };
    record = shuffled(quiet);
    for (i, block) in record.blocks.iter_mut().enumerate() {
        let slowness = 1.0 + 0.2 * (-(i as f64) / 10.0).exp();
        block.runs.iter_mut().for_each(|r| r.values[0] = r.values[0].map(|v| v * slowness));
    }
    let shipped = analyse(&record).b.shipped.unwrap();
    assert!((shipped.deviation_percent - 1.0).abs() < 0.4, "{shipped:?}");
}

#[test]
fn effects_are_found_with_their_size() {
    let a = analysed(Truth { effect: -0.03, ..Truth::default() });
    assert_eq!(a.verdict.outcome, Outcome::Faster);
    assert!(a.change.low < -2.96 && a.change.high > -2.96, "the truth is exp(-0.03) - 1: {:?}", a.change);
    assert!(a.verdict.headline.starts_with("B is faster by 3 %, at least 2."), "{}", a.verdict.headline);
    let a = analysed(Truth { effect: 0.03, ..Truth::default() });
    assert_eq!((a.verdict.outcome, a.verdict.outcome.exit_code()), (Outcome::Slower, 1));
    assert_eq!(a.blocks.len(), 20);
    assert!((a.a.typical - 1.0).abs() < 0.01 && (a.b.typical - 1.03).abs() < 0.01);
    let small = analysed(Truth { effect: -0.003, layout_sd: 0.0005, run_sd: 0.0005, ..Truth::default() });
    assert!(
        small.verdict.headline.starts_with("B is faster, but by less than 1 %: by 0."),
        "{}",
        small.verdict.headline
    );
}

#[test]
fn a_hidden_effect_is_shown_against_the_shipped_files() {
    let truth = Truth {
        effect: -0.02,
        shipped_a: -0.02,
        shipped_b: 0.02,
        layout_sd: 0.008,
        blocks: 30,
        ..Truth::default()
    };
    let a = analysed(truth);
    assert_eq!(a.verdict.outcome, Outcome::Faster);
    assert!(a.verdict.details[0].contains("differ the other way"), "{:?}", a.verdict);
}

#[test]
fn too_much_noise_is_undecided_with_a_plan() {
    let a = analysed(Truth { layout_sd: 0.02, run_sd: 0.01, blocks: 15, ..Truth::default() });
    assert_eq!((a.verdict.outcome, a.verdict.outcome.exit_code()), (Outcome::Undecided, 2));
    assert!(
        a.verdict.headline.starts_with("undecided: the difference lies between −"),
        "{}",
        a.verdict.headline
    );
    let more = a.more.unwrap();
    assert!(more.layouts > 20 && more.layouts < 400, "{more:?}");
    // Half a second of layout, two of preparation and four runs of a second each.
    assert!((more.seconds / f64::from(more.layouts) - 6.5).abs() < 0.3);
    assert!(a.verdict.details[0].contains("more layouts"), "{:?}", a.verdict.details);
    // 80 % power at about the nominal level: between three and six standard errors.
    let se = 100.0 * a.decision.estimate.standard_error();
    assert!(a.detectable_percent > 3.0 * se && a.detectable_percent < 6.0 * se);
}

#[test]
fn nothing_measured_is_no_panic() {
    for blocks in [0, 1] {
        let a = analysed(Truth { blocks, ..Truth::default() });
        assert_eq!(a.verdict.outcome, Outcome::Undecided);
        assert_eq!(a.verdict.headline, "undecided: not enough was measured");
    }
}

#[test]
fn as_is_never_names_a_winner() {
    let as_is = |shipped_b| simulated(Truth { shipped_b, ..Truth::default() }, LayoutMode::AsIs);
    let a = analyse(&as_is(0.03));
    assert_eq!((a.verdict.outcome, a.verdict.outcome.exit_code()), (Outcome::Differs, 2));
    assert!(a.verdict.headline.starts_with("differs on this one layout, by +2."), "{}", a.verdict.headline);
    assert!(a.warnings.iter().any(|w| w.contains("27 to 85 %")));
    assert_eq!(a.naive.unwrap().runs_a, 40, "every run is one of the shipped file");
    let equal = analyse(&as_is(0.0));
    assert_eq!(equal.verdict.headline, "no difference larger than 1 % between these two files");
}

#[test]
fn calibration_answers_about_the_set_up() {
    let calibrated = |effect| {
        let mut record = shuffled(Truth { effect, ..Truth::default() });
        record.plan.calibration = true;
        analyse(&record)
    };
    let good = calibrated(0.0);
    assert_eq!(good.verdict.outcome, Outcome::NoDifference);
    assert!(good.verdict.details[0].starts_with("noise floor"), "{:?}", good.verdict);
    let bad = calibrated(0.03);
    assert_eq!((bad.verdict.outcome, bad.verdict.outcome.exit_code()), (Outcome::Untrusted, 3));
    assert!(bad.verdict.headline.starts_with("A differs from itself by +3 %:"), "{}", bad.verdict.headline);
}

#[test]
fn a_machine_that_swaps_or_throttles_is_not_trusted() {
    let with = |delta: MachineDelta, every: usize| {
        let mut record = shuffled(Truth { effect: 0.03, ..Truth::default() });
        record.blocks.iter_mut().step_by(every).for_each(|b| b.machine = delta);
        analyse(&record)
    };
    let swapped = MachineDelta { swapped_pages: Some(9), ..MachineDelta::default() };
    assert_eq!(with(swapped, 2).verdict.outcome, Outcome::Untrusted);
    assert_eq!(with(swapped, 10).verdict.outcome, Outcome::Slower, "two of twenty blocks are bearable");
    let throttled = MachineDelta { throttled_seconds: Some(0.1), ..MachineDelta::default() };
    let a = with(throttled, 2);
    assert!(a.verdict.details[0].contains("CPU quota in 10 of 20 blocks"), "{:?}", a.verdict);
    assert!((a.change.percent - 3.0).abs() < 0.6, "the numbers are still shown");
    let busy = MachineDelta { cpu_pressure: Some(0.4), ..MachineDelta::default() };
    let a = with(busy, 1);
    assert_eq!(a.verdict.outcome, Outcome::Slower, "noise alone only widens the interval");
    assert!(a.warnings[0].contains("40 % of the time"));
    let beside = MachineDelta { sibling_busy: Some(0.3), ..MachineDelta::default() };
    assert!(with(beside, 1).warnings[0].contains("was busy for 30 % of the time"));
}

#[test]
fn what_was_counted_in_part_is_told() {
    let mut record = shuffled(Truth::default());
    record.blocks[2].runs[0].counted_share = Some(0.6);
    let warnings = analyse(&record).warnings;
    assert!(warnings[0].contains("counted for 60 % of a run only"), "{warnings:?}");
}

#[test]
fn an_estimate_that_was_only_just_clear_is_told_to_be_one() {
    let said = |effect: f64, stop: StopReason| {
        let mut record = shuffled(Truth { effect, layout_sd: 0.02, blocks: 60, ..Truth::default() });
        record.stop = stop;
        let verdict = analyse(&record).verdict;
        assert_eq!(verdict.outcome, Outcome::Slower, "{verdict:?}");
        verdict.details.iter().any(|detail| detail.contains("a little too large on average"))
    };
    assert!(said(0.018, StopReason::Verdict), "early, and near to nothing");
    assert!(!said(0.018, StopReason::MaxLayouts), "it was not ended early");
    assert!(!said(0.2, StopReason::Verdict), "far from nothing");
}

/// A load generator that runs for two seconds does so with any server.
#[test]
fn a_fixed_time_says_nothing_of_a_server() {
    let fixed = |seconds: f64, spread: f64| {
        let mut record = shuffled(Truth::default());
        record.workload.set_up = Some(vec!["./start".into()]);
        for (i, run) in record.blocks.iter_mut().flat_map(|b| &mut b.runs).enumerate() {
            run.cost.wall_seconds = seconds + spread * (i % 3) as f64;
            run.values[0] = Some(run.cost.wall_seconds);
        }
        record
    };
    let said = analyse(&fixed(2.004, 0.005));
    assert_eq!(said.verdict.outcome, Outcome::Untrusted, "{:?}", said.verdict);
    assert!(
        said.verdict.details[0].contains("every run took 2 s")
            && said.verdict.details[0].contains("server-cpu")
    );
    assert_ne!(analyse(&fixed(1.7, 0.005)).verdict.outcome, Outcome::Untrusted, "no whole second");
    assert_ne!(analyse(&fixed(2.004, 0.1)).verdict.outcome, Outcome::Untrusted, "it varies");
    let mut without = fixed(2.004, 0.005);
    without.workload.set_up = None;
    assert_ne!(analyse(&without).verdict.outcome, Outcome::Untrusted, "no server");
}

#[test]
fn hard_findings_of_the_machine_forbid_a_verdict() {
    let mut record = shuffled(Truth { effect: 0.03, ..Truth::default() });
    record.machine.hard_failures = vec!["the CPU governor changed".into()];
    let a = analyse(&record);
    assert_eq!(a.verdict.outcome, Outcome::Untrusted);
    assert_eq!(a.verdict.details, ["the CPU governor changed"]);
}

/// A dropped block takes both sides with it: removing runs of one side alone changes nothing else.
#[test]
fn dropped_blocks_leave_no_trace_in_the_estimate() {
    let mut record = shuffled(Truth { effect: 0.01, blocks: 12, ..Truth::default() });
    let whole = analyse(&record);
    let mut broken = record.blocks[0].clone();
    broken.runs.truncate(1);
    broken.runs[0].failure = Some(Failure { what: "A ended with exit code 1".into(), output: "oops".into() });
    broken.excluded = Some(Exclusion::Invalid("A ended with exit code 1".into()));
    record.blocks.insert(5, broken);
    let with_broken = analyse(&record);
    assert_eq!(with_broken.change, whole.change);
    assert_eq!(with_broken.counts.invalid, 1);
    assert!(
        with_broken.warnings[0].contains("1 block was dropped; the first because A ended with exit code 1")
    );
}

#[test]
fn secondary_metrics_are_shown_where_they_exist() {
    let mut record = shuffled(Truth { effect: 0.02, ..Truth::default() });
    let throughput = MetricSpec {
        name: "tps".into(),
        unit: "/s".into(),
        source: MetricSource::Json("/tps".into()),
        per: None,
        direction: Direction::HigherIsBetter,
    };
    record.plan.metrics.extend([throughput, MetricSpec::counter("cycles")]);
    for run in record.blocks.iter_mut().flat_map(|b| &mut b.runs) {
        run.values.extend([Some(500.0 / run.cost.wall_seconds), None]);
    }
    let a = analyse(&record);
    let tps = &a.secondary[0];
    let (x, y) = ((1.0 + tps.change.unwrap().percent / 100.0), (1.0 + a.change.percent / 100.0));
    assert!((x * y - 1.0).abs() < 1e-9, "throughput is the inverse of time");
    assert_eq!((a.secondary[1].a, a.secondary[1].change), (None, None), "an absent counter is absent");
}

fn suite_of(effects: &[f64], noise: f64) -> SuiteAnalysis {
    let records: Vec<ExperimentRecord> = effects
        .iter()
        .enumerate()
        .map(|(i, &effect)| {
            let seed = 100 + i as u64;
            let mut r =
                shuffled(Truth { effect, layout_sd: noise, run_sd: noise / 2.0, seed, ..Truth::default() });
            r.plan.family = effects.len() as u32;
            r.name = format!("bench{i}");
            r
        })
        .collect();
    analyse_suite(&records)
}

#[test]
fn a_suite_keeps_clear_claims_and_sums_up() {
    let suite = suite_of(&[0.03, 0.0, 0.0, 0.0], 0.004);
    let outcomes: Vec<Outcome> = suite.benchmarks.iter().map(|b| b.verdict.outcome).collect();
    assert_eq!(outcomes[0], Outcome::Slower);
    assert!(outcomes[1..].iter().all(|o| *o == Outcome::NoDifference), "{outcomes:?}");
    assert_eq!(suite.outcome, Outcome::Slower);
    let mean = suite.geometric_mean.unwrap();
    assert!((mean.percent - 0.75).abs() < 0.2 && mean.low < 0.0, "{mean:?}");
    assert_eq!(suite_of(&[0.03], 0.004).geometric_mean, None);
    assert_eq!(suite_of(&[0.03], 0.004).benchmarks[0].verdict.outcome, Outcome::Slower);
}

/// Two dozen benchmarks without any effect, many times over: a wrong claim in at most 5 % of suites, where
/// the uncorrected verdicts would be wrong in far more.
#[test]
fn simulated_suites_rarely_hold_a_wrong_claim() {
    let (mut corrected, mut uncorrected) = (0, 0);
    let suites = 60;
    let benchmarks = 24;
    for suite in 0..suites {
        let records: Vec<ExperimentRecord> = (0..benchmarks)
            .map(|i| {
                let seed = 5_000 + suite * 100 + i;
                let mut r =
                    shuffled(Truth { layout_sd: 0.015, run_sd: 0.005, blocks: 20, seed, ..Truth::default() });
                r.plan.stop = crate::stats::stopping::StopRule::Never;
                r
            })
            .collect();
        let wrong = |a: &Analysis| matches!(a.verdict.outcome, Outcome::Faster | Outcome::Slower);
        uncorrected += u32::from(records.iter().any(|r| wrong(&analyse(r))));
        corrected += u32::from(analyse_suite(&records).benchmarks.iter().any(wrong));
    }
    println!(
        "{benchmarks} benchmarks without effect: a wrong claim in {corrected} of {suites} suites, uncorrected {uncorrected}"
    );
    assert!(f64::from(corrected) <= 0.05 * suites as f64 && f64::from(uncorrected) > 0.2 * suites as f64);
}
