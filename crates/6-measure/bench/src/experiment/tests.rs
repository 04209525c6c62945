//! Real runs of tiny programs: shell scripts, and a C program compiled here.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::layouts::{AsIs, PairPaths, PairSeeds};
use super::progress::Silent;
use super::*;
use crate::analyse::analyse;
use crate::metric::{Direction, MetricSource, MetricSpec};
use crate::record::{OutputCheck, Side};
use crate::stats::verdict::Outcome;

fn script(path: &Path, body: &str) {
    fs::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// "Layouts" that are copies: what a writer gives, without its effect.
struct Copies {
    a: PathBuf,
    b: PathBuf,
    mode: LayoutMode,
    seen: Vec<(u32, PairSeeds)>,
}

impl LayoutSource for Copies {
    fn mode(&self) -> LayoutMode {
        self.mode
    }

    fn write_pair(&mut self, block: u32, seeds: PairSeeds, paths: PairPaths) -> Result<()> {
        assert!(!paths.a.exists() && !paths.b.exists(), "every block gets new files");
        assert_eq!(paths.a.as_os_str().len(), paths.b.as_os_str().len());
        self.seen.push((block, seeds));
        copy_program(&self.a, paths.a)?;
        copy_program(&self.b, paths.b)
    }

    fn shipped(&self) -> PairPaths<'_> {
        PairPaths { a: &self.a, b: &self.b }
    }
}

struct Bench {
    dir: tempfile::TempDir,
    source: Copies,
    setup: Setup,
}

/// Two scripts under the names `prog` and `patched`, compared by fake shuffling.
fn bench(a: &str, b: &str) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let (path_a, path_b) = (dir.path().join("prog"), dir.path().join("patched"));
    script(&path_a, a);
    script(&path_b, b);
    let plan = Plan { runs: Runs::Fixed(2), max_layouts: 8, ..Plan::default() };
    let setup = Setup {
        name: "test".into(),
        label_a: "old".into(),
        label_b: "new".into(),
        plan,
        workload: Workload { argv: vec!["{}".into()], timeout_seconds: 20.0, ..Workload::default() },
        work_dir: dir.path().join("work"),
        machine: MachineRecord::default(),
        library: None,
        command: vec!["afterlink".into(), "compare".into()],
        earlier: None,
        then: None,
    };
    Bench { source: Copies { a: path_a, b: path_b, mode: LayoutMode::Shuffle, seen: Vec::new() }, setup, dir }
}

impl Bench {
    fn run(&mut self) -> Result<ExperimentRecord> {
        run_experiment(&self.setup, &mut self.source, &mut Silent, &AtomicBool::new(false))
    }

    fn by_pattern(mut self, direction: Direction) -> Self {
        let source = MetricSource::Pattern("score ([0-9.]+)".into());
        self.setup.plan.metrics =
            vec![MetricSpec { name: "score".into(), unit: "/s".into(), source, per: None, direction }];
        self
    }
}

#[test]
fn a_block_is_balanced_padded_and_complete() {
    let mut bench = bench("echo hello", "echo hello");
    let record = bench.run().unwrap();
    assert_eq!(record.blocks.len(), 8);
    assert_eq!(record.stop, StopReason::MaxLayouts);
    assert!(record.rehearsal.output_checked);
    for block in &record.blocks {
        let order: String = block.runs.iter().map(|r| r.side.letter()).collect();
        let layouts: String = block.runs.iter().filter(|r| !r.shipped).map(|r| r.side.letter()).collect();
        assert!(layouts == "ABBA" || layouts == "BAAB", "{order}");
        assert_eq!(order.len(), 6, "two runs of each layout and one of each shipped file");
        assert!(block.runs[2].shipped && block.runs[3].shipped, "the shipped pair stands in the middle");
        assert_eq!(block.runs[0].padding, block.runs[1].padding, "one padding for a pair");
        assert_eq!(block.runs[4].padding, block.runs[5].padding);
        assert!(block.runs.iter().all(|r| r.cost.wall_seconds > 0.0 && r.failure.is_none()));
        assert!(block.cpu.is_some(), "a shell script is pinned");
        assert_eq!(block.seed_a, block.seed_b, "coupled");
    }
    assert_eq!(bench.source.seen.len(), 8);
    assert!(bench.source.seen.iter().all(|(_, seeds)| seeds.are_coupled()));
    let coins: std::collections::BTreeSet<char> =
        record.blocks.iter().map(|b| b.runs[0].side.letter()).collect();
    assert_eq!(coins.len(), 2, "both sides go first now and then");
}

#[test]
fn the_printed_number_is_judged_in_its_direction() {
    for (direction, outcome) in
        [(Direction::HigherIsBetter, Outcome::Faster), (Direction::LowerIsBetter, Outcome::Slower)]
    {
        let mut bench = bench("echo score 100.0", "echo score 103.0").by_pattern(direction);
        bench.setup.plan.output = OutputCheck::Ignore;
        let record = bench.run().unwrap();
        let analysis = analyse(&record);
        assert_eq!(analysis.verdict.outcome, outcome);
        assert!((analysis.change.percent - 3.0).abs() < 1e-9, "{:?}", analysis.change);
        assert!((analysis.naive.unwrap().welch.percent - 3.0).abs() < 1e-9);
    }
}

#[test]
fn a_real_slowdown_is_found_and_named_only_where_layouts_vary() {
    let dir = tempfile::tempdir().unwrap();
    let compile = |name: &str, rounds: u32| {
        let source = dir.path().join(format!("{name}.c"));
        let text = format!(
            "#include <stdio.h>\nint main(void) {{ volatile unsigned x = 1; \
             for (unsigned i = 0; i < {rounds}u; i++) x = x * 3u + i; puts(\"done\"); return 0; }}\n"
        );
        fs::write(&source, text).unwrap();
        let out = dir.path().join(name);
        assert!(Command::new("cc").arg("-O1").arg("-o").arg(&out).arg(&source).status().unwrap().success());
        out
    };
    let (a, b) = (compile("prog", 2_000_000), compile("prog2", 20_000_000));
    let mut bench = bench("", "");
    bench.setup.plan.metrics = vec![MetricSpec::cpu(), MetricSpec::wall(), MetricSpec::max_rss()];
    let mut as_is = AsIs::new(&a, &b);
    bench.setup.plan.layout = LayoutMode::AsIs;
    let stop = AtomicBool::new(false);
    let record = run_experiment(&bench.setup, &mut as_is, &mut Silent, &stop).unwrap();
    let analysis = analyse(&record);
    assert_eq!(analysis.verdict.outcome, Outcome::Differs, "{:?}", analysis.verdict);
    assert!(record.blocks.iter().all(|b| b.runs.iter().all(|r| !r.shipped)));
    assert!(analysis.naive.unwrap().welch.p < 0.05 && analysis.naive.unwrap().runs_a == 16);
    assert_eq!(analysis.secondary.len(), 2);
    assert!(analysis.warnings.iter().any(|w| w.contains("one layout of each")));

    let mode = LayoutMode::Shuffle;
    bench.setup.plan.layout = mode;
    bench.setup.work_dir = dir.path().join("again");
    let mut source = Copies { a, b, mode, seen: Vec::new() };
    let record = run_experiment(&bench.setup, &mut source, &mut Silent, &stop).unwrap();
    let analysis = analyse(&record);
    assert_eq!(analysis.verdict.outcome, Outcome::Slower, "{:?}", analysis.verdict);
    assert!(analysis.change.low > 20.0, "{:?}", analysis.change);
    assert_eq!(analysis.a.shipped.unwrap().runs, 8);
}

/// Every third run of B fails: its whole block goes, never one side only, and the experiment gives up.
#[test]
fn a_failing_run_drops_its_block() {
    let mut bench = bench("echo hello", "");
    let tally = bench.dir.path().join("tally");
    let body = format!(
        "n=$(cat {0} 2>/dev/null || echo 0); n=$((n+1)); echo $n >{0}; \
         if [ $((n % 3)) = 0 ]; then echo broken >&2; exit 3; fi; echo hello",
        tally.display()
    );
    script(&bench.source.b.clone(), &body);
    let mut told = Vec::new();
    let mut progress = |event: &Event| told.push(event.clone());
    let record =
        run_experiment(&bench.setup, &mut bench.source, &mut progress, &AtomicBool::new(false)).unwrap();
    assert_eq!(record.stop, StopReason::TooManyInvalid);
    let invalid: Vec<&BlockRecord> = record.blocks.iter().filter(|b| b.excluded.is_some()).collect();
    assert!(invalid.len() >= 3);
    let spoken: Vec<&Event> = told.iter().filter(|e| matches!(e, Event::Invalid { .. })).collect();
    assert_eq!(spoken.len(), invalid.len());
    let Event::Invalid { what, .. } = spoken[0] else { unreachable!() };
    assert!(what.contains("B ended with exit code 3"), "{what}");
    let shown = invalid.iter().flat_map(|b| &b.runs).find_map(|r| r.failure.clone());
    assert!(shown.is_none_or(|f| f.output.contains("broken")));
    let analysis = analyse(&record);
    assert_eq!(analysis.verdict.outcome, Outcome::Untrusted);
    assert_eq!(analysis.counts.invalid, invalid.len());
    assert_eq!(analysis.a.layouts.len(), analysis.b.layouts.len());
}

#[test]
fn different_output_is_refused_unless_allowed() {
    let error = bench("echo one", "echo two").run().unwrap_err().to_string();
    assert!(error.contains("A and B print different output") && error.contains("`one` and `two`"), "{error}");
    assert!(error.contains("--ignore-output"), "{error}");
    let mut allowed = bench("echo one", "echo two");
    allowed.setup.plan.output = OutputCheck::Ignore;
    assert!(!allowed.run().unwrap().rehearsal.output_checked);
    // A program that prints the time can't be compared by its output; the others of its kind neither.
    let clock = "date +%N";
    assert!(!bench(clock, clock).run().unwrap().rehearsal.output_checked);
    let mut strict = bench(clock, clock);
    strict.setup.plan.output = OutputCheck::Same;
    assert!(strict.run().unwrap_err().to_string().contains("two runs of A"));
}

#[test]
fn a_changed_output_drops_its_block() {
    let mut bench = bench("echo hello", "");
    let flag = bench.dir.path().join("flag");
    let body = format!(
        "n=$(cat {0} 2>/dev/null || echo 0); echo $((n+1)) >{0}; [ $n = 4 ] && echo surprise; echo hello",
        flag.display()
    );
    script(&bench.source.b.clone(), &body);
    let record = bench.run().unwrap();
    let invalid: Vec<&BlockRecord> = record.blocks.iter().filter(|b| b.excluded.is_some()).collect();
    assert_eq!(invalid.len(), 1);
    let failure = invalid[0].runs.iter().find_map(|r| r.failure.as_ref()).unwrap();
    assert!(failure.what.contains("B printed something else") && failure.output.contains("surprise"));
    assert_eq!(analyse(&record).counts.layouts, 8, "another block takes its place");
}

#[test]
fn a_broken_workload_is_told_before_measuring() {
    let error = bench("echo hello", "echo 'no such table' >&2; exit 1").run().unwrap_err().to_string();
    assert!(error.contains("B ended with exit code 1") && error.contains("no such table"), "{error}");
    let error = bench("echo x", "echo x").by_pattern(Direction::LowerIsBetter).run().unwrap_err().to_string();
    assert!(error.contains("printed no positive number that matches `score"), "{error}");
    let mut slow = bench("sleep 100", "sleep 100");
    slow.setup.workload.timeout_seconds = 0.3;
    let error = slow.run().unwrap_err().to_string();
    assert!(error.contains("A did not end within the time limit"), "{error}");
    let mut odd = bench("echo x", "echo x");
    odd.setup.plan.metrics = vec![MetricSpec::counter("no-such-counter")];
    assert!(odd.run().unwrap_err().to_string().contains("does not count `no-such-counter`"));
}

#[test]
fn the_workload_gets_the_path_in_both_ways() {
    let mut bench = bench("echo ignored", "echo ignored");
    let log = bench.dir.path().join("log");
    let check = format!(
        "[ \"$1\" = \"--bin=$AFTERLINK_BINARY\" ] || exit 9; echo \"$AFTERLINK_BINARY $AFTERLINK_SIDE ${{#AFTERLINK_PADDING}}\" >>{}",
        log.display()
    );
    bench.setup.workload.argv = vec!["/bin/sh".into(), "-c".into(), check, "sh".into(), "--bin={}".into()];
    bench.run().unwrap();
    let text = fs::read_to_string(log).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split(' ').collect()).collect();
    let lengths: std::collections::BTreeSet<usize> = lines.iter().map(|l| l[0].len()).collect();
    assert_eq!(lengths.len(), 1, "paths of one length: {text}");
    assert!(lines.iter().any(|l| l[1] == "B") && lines.iter().any(|l| l[2].parse::<u32>().unwrap() > 1000));
}

/// Set-up, warm-up and tear-down surround each change of the program, in this order.
#[test]
fn a_server_is_brought_up_and_down_around_its_runs() {
    let mut bench = bench("exit 0", "exit 0");
    let log = bench.dir.path().join("log");
    let note = |word: &str| {
        let line = format!("echo {word} $(basename $(dirname {{}})) >>{}", log.display());
        Some(vec!["/bin/sh".to_string(), "-c".into(), line])
    };
    bench.setup.workload.argv = note("run").unwrap();
    bench.setup.workload.set_up = note("up");
    bench.setup.workload.warm_up = note("warm");
    bench.setup.workload.tear_down = note("down");
    bench.setup.plan.max_layouts = 2;
    bench.setup.plan.shipped_runs = 0;
    let record = bench.run().unwrap();
    assert!(!record.rehearsal.pinned, "a server is not pinned");
    let text = fs::read_to_string(log).unwrap();
    let mut up: Option<&str> = None;
    let mut runs = 0;
    for line in text.lines() {
        let (word, who) = line.split_once(' ').unwrap();
        match word {
            "up" => assert!(up.replace(who).is_none(), "{text}"),
            "down" => assert_eq!(up.take(), Some(who), "{text}"),
            _ => {
                assert_eq!(up, Some(who), "{text}");
                runs += usize::from(word == "run");
            }
        }
    }
    assert_eq!(up, None, "the last server is stopped");
    assert_eq!(runs, 3 + 2 * 4, "three rehearsals, two blocks of four");
    assert_eq!(text.matches("up").count(), 3 + 2 * 3, "A | B B | A");
}

#[test]
fn a_failing_set_up_is_a_fault_of_the_block() {
    let mut bench = bench("exit 0", "exit 0");
    let flag = bench.dir.path().join("flag");
    let line = format!("n=$(cat {0} 2>/dev/null || echo 0); echo $((n+1)) >{0}; [ $n != 5 ]", flag.display());
    bench.setup.workload.set_up = Some(vec!["/bin/sh".into(), "-c".into(), line]);
    let record = bench.run().unwrap();
    let excluded: Vec<&Exclusion> = record.blocks.iter().filter_map(|b| b.excluded.as_ref()).collect();
    assert_eq!(excluded.len(), 1);
    assert!(
        matches!(excluded[0], Exclusion::Invalid(what) if what.contains("set-up command")),
        "{excluded:?}"
    );
}

#[test]
fn an_interrupt_keeps_the_blocks_so_far() {
    let mut bench = bench("echo hello", "echo hello");
    let stop = AtomicBool::new(false);
    let mut progress = |event: &Event| {
        if matches!(event, Event::BlockFinished { valid: 3, .. }) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let record = run_experiment(&bench.setup, &mut bench.source, &mut progress, &stop).unwrap();
    assert_eq!((record.stop, record.blocks.len()), (StopReason::Interrupted, 3));
    let analysis = analyse(&record);
    assert_eq!(analysis.verdict.outcome, Outcome::Undecided);
    assert_eq!(analysis.counts.layouts, 3);
}

#[test]
fn the_time_limit_ends_it_between_blocks() {
    let mut bench = bench("sleep 0.02", "sleep 0.02");
    bench.setup.plan.max_layouts = 1_000;
    bench.setup.plan.max_seconds = Some(4.0);
    // On a quiet machine the two are told to be alike before that.
    bench.setup.plan.stop = StopRule::Never;
    let record = bench.run().unwrap();
    assert_eq!(record.stop, StopReason::MaxTime);
    assert!(record.blocks.len() < 500, "{} blocks in {} s", record.blocks.len(), record.seconds);
    assert!(record.blocks.iter().all(|b| b.excluded.is_none() && (b.block == 0 || b.started < 4.0)));
}

/// The pilot chooses more runs for a noisy workload, and its own blocks then no longer count. The noise
/// has a period of five runs, a block's warm-up and four runs: every block sees the same, so that all the
/// noise is the runs' and none the layouts'.
#[test]
fn a_noisy_pilot_is_dropped_for_more_runs() {
    let mut bench = bench("", "").by_pattern(Direction::LowerIsBetter);
    let body = format!(
        "f={}/$AFTERLINK_SIDE; n=$(cat $f 2>/dev/null || echo 0); echo $((n + 1)) >$f; \
         echo score $((900 + n % 5 * 50))",
        bench.dir.path().display()
    );
    script(&bench.source.a.clone(), &body);
    script(&bench.source.b.clone(), &body);
    bench.setup.plan.shipped_runs = 0;
    bench.setup.plan.runs = Runs::Auto;
    bench.setup.plan.max_layouts = 6;
    let mut planned = None;
    let mut progress = |event: &Event| {
        if let Event::Planned { runs_per_layout, .. } = event {
            planned = Some(*runs_per_layout);
        }
    };
    let record =
        run_experiment(&bench.setup, &mut bench.source, &mut progress, &AtomicBool::new(false)).unwrap();
    assert_eq!(planned, Some(record.runs_per_layout));
    let analysis = analyse(&record);
    let expected = if record.runs_per_layout > PILOT_RUNS { PILOT_BLOCKS as usize } else { 0 };
    assert_eq!((analysis.counts.pilot, analysis.counts.layouts), (expected, 6));
    assert!(record.runs_per_layout >= 6, "8 % of run noise and none of layouts ask for many runs");
    let last = record.blocks.last().unwrap();
    let runs = last.runs.iter().filter(|r| r.side == Side::A && !r.shipped).count();
    assert_eq!(runs as u32, record.runs_per_layout);
}

/// A program against itself must get independent layouts; coupled ones would be equal by construction.
#[test]
fn calibration_insists_on_independent_layouts() {
    let mut bench = bench("echo hello", "echo hello");
    bench.setup.plan.calibration = true;
    assert!(bench.run().unwrap_err().to_string().contains("independent layouts"));
    bench.setup.plan.coupled = false;
    bench.run().unwrap();
    assert!(bench.source.seen.iter().all(|(_, seeds)| !seeds.are_coupled()));
}

#[test]
fn a_record_survives_json_and_says_the_same_again() {
    let mut bench = bench("echo hello", "echo hello; :");
    bench.setup.plan.seed = u64::MAX - 12345;
    let record = bench.run().unwrap();
    let text = serde_json::to_string(&record).unwrap();
    let again: ExperimentRecord = serde_json::from_str(&text).unwrap();
    assert_eq!(again, record);
    assert_eq!(again.plan.seed, u64::MAX - 12345);
    assert_eq!(analyse(&again), analyse(&record));
}

/// Both scripts of a pair must be at work at the same time: each waits until the other one has left its mark.
#[test]
fn a_pair_runs_at_once() {
    let marks = tempfile::tempdir().unwrap();
    let meet = |own: &str, other: &str| {
        format!(
            "n=$(cat {0}/{own} 2>/dev/null || echo 0)\n[ $AFTERLINK_PADDING ] || exit 0\n\
             echo $((n + 1)) > {0}/{own}\ni=0\nwhile [ $i -lt 20000 ]; do i=$((i + 1)); done\n\
             [ -f {0}/{other} ] && echo met >> {0}/meetings\nrm -f {0}/{own}\necho done",
            marks.path().display()
        )
    };
    let mut bench = bench(&meet("a", "b"), &meet("b", "a"));
    bench.setup.plan.together = true;
    bench.setup.plan.metrics = vec![MetricSpec::cpu()];
    bench.setup.plan.output = OutputCheck::Ignore;
    bench.setup.plan.max_layouts = 4;
    let record = bench.run().unwrap();
    for block in &record.blocks {
        for pair in block.runs.chunks(2) {
            assert_eq!(pair[0].started, pair[1].started);
            assert_eq!(pair[0].padding, pair[1].padding);
            assert!(pair[0].side != pair[1].side && pair[0].shipped == pair[1].shipped);
        }
    }
    let meetings = fs::read_to_string(marks.path().join("meetings")).unwrap_or_default().lines().count();
    assert!(meetings >= record.blocks.len(), "{meetings} meetings");
    assert!(analyse(&record).naive.is_some_and(|n| n.test == "paired t"));
    bench.setup.plan.metrics = vec![MetricSpec::wall()];
    let error = bench.run().unwrap_err().to_string();
    assert!(error.contains("wall time") && error.contains("--metric cpu"), "{error}");
}

/// The pages that a file gets in memory stay its own: no two runs in a row share them.
#[test]
fn each_run_meets_a_file_of_its_own() {
    let text = "echo \"score $(stat -c %i \"$0\")\"";
    let mut bench = bench(text, text).by_pattern(Direction::LowerIsBetter);
    bench.setup.plan.max_layouts = 3;
    bench.setup.plan.output = OutputCheck::Ignore;
    let record = bench.run().unwrap();
    for block in &record.blocks {
        for side in [Side::A, Side::B] {
            let runs = block.runs.iter().filter(|r| r.side == side && !r.shipped);
            let inodes: Vec<f64> = runs.filter_map(|r| r.values[0]).collect();
            assert!(inodes.len() == 2 && inodes[0] != inodes[1], "{inodes:?}");
        }
    }
}

/// A server that answers through two pipes; each answer costs it so many rounds of a loop.
fn serving(rounds: u32) -> String {
    format!(
        "cd \"$(dirname \"$0\")/..\"; while read -r line < ask; do i=0; while [ $i -lt {rounds} ]; do i=$((i+1)); done; \
         echo done > answer; done"
    )
}

#[test]
fn a_server_is_judged_by_what_it_uses_for_a_transaction() {
    // Three times as much is seen beside whatever else a machine does; half as much again was not always.
    let mut bench = bench(&serving(20_000), &serving(60_000));
    bench.setup.plan.max_layouts = 24;
    let shell = |line: &str| vec!["/bin/sh".to_string(), "-c".into(), line.to_string()];
    let work = bench.setup.work_dir.display().to_string();
    bench.setup.workload.set_up =
        Some(shell(&format!("cd {work}; rm -f ask answer; mkfifo ask answer; {{}} > log 2>&1 & ")));
    // It runs for as long as it is told to, and answers as often as it comes to.
    let load = format!(
        "cd {work}; echo a > ask; read x < answer; echo b > ask; read x < answer; sleep 0.1; \
         echo 'number of transactions actually processed: 2'"
    );
    bench.setup.workload.argv = shell(&load);
    bench.setup.plan.metric_choice = "the workload's own CPU time is not the server's".into();
    let record = bench.run().unwrap();
    let analysis = analyse(&record);
    assert_eq!(
        record.plan.metrics[0].name, "server CPU time per transaction",
        "{:?}",
        record.blocks[0].excluded
    );
    assert_eq!(record.plan.metrics[1].name, "throughput");
    assert!(record.plan.metric_choice.contains("transactions"), "{}", record.plan.metric_choice);
    assert_eq!(analysis.verdict.outcome, Outcome::Slower, "{:?}", analysis.verdict);
    assert!((100.0..300.0).contains(&analysis.change.percent), "three times as much: {:?}", analysis.change);
}

#[test]
fn logs_of_transactions_are_read_and_belong_to_their_run() {
    let mut bench = bench(
        "printf '0 1 1000 0 1 1\\n' > $AFTERLINK_RUN_DIRECTORY/log.$$",
        "printf '0 1 1100 0 1 1\\n' > $AFTERLINK_RUN_DIRECTORY/log.$$",
    );
    bench.setup.plan.metrics = vec![MetricSpec::parse("latency:p99").unwrap()];
    let analysis = analyse(&bench.run().unwrap());
    assert_eq!(analysis.verdict.outcome, Outcome::Slower, "{:?}", analysis.verdict);
    assert!((analysis.change.percent - 10.0).abs() < 1e-6, "{:?}", analysis.change);
}

#[test]
fn a_server_that_is_not_there_is_told() {
    let mut no_server = bench("echo hello", "echo hello");
    no_server.setup.plan.metrics = vec![MetricSpec::server_cpu()];
    let error = no_server.run().unwrap_err().to_string();
    assert!(error.contains("--set-up") && error.contains("--server-pid"), "{error}");
    let mut gone = bench("echo hello", "echo hello");
    gone.setup.plan.metrics = vec![MetricSpec::server_cpu()];
    gone.setup.workload.set_up = Some(vec!["true".into()]);
    let error = gone.run().unwrap_err().to_string();
    assert!(error.contains("no process executes the program"), "{error}");
}
