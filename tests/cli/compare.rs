//! `compare`, `shuffle` and `tune` as a user meets them. What a run costs is decided by the tests' own workloads, which print
//! it, so that nothing here depends on how fast or busy the machine is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use afterlink_testkit::execute::Outcome;
use afterlink_testkit::sandbox::{Sandbox, assert_clear_error, built};
use afterlink_testkit::tool::afterlink;
use serde_json::Value;

/// A sandbox with two builds of one small program: `a` and `b`.
fn sandbox() -> Sandbox {
    // Built once, whatever number of tests begin at the same time.
    static PROGRAMS: OnceLock<[Vec<u8>; 2]> = OnceLock::new();
    let build = |variant| fs::read(built("jump_table", variant)).unwrap();
    let programs = PROGRAMS.get_or_init(|| ["gcc -O2", "gcc -O1"].map(build));
    let sandbox = Sandbox::default();
    for (name, bytes) in ["a", "b"].into_iter().zip(programs) {
        sandbox.put(name, bytes);
        fs::set_permissions(sandbox.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    sandbox
}

/// `compare a b` with few layouts and this workload.
fn compare(sandbox: &Sandbox, options: &[&str], workload: &[&str]) -> Outcome {
    let mut arguments = vec!["compare", "a", "b", "--no-probe", "--runs", "2"];
    arguments.extend(options);
    arguments.push("--");
    arguments.extend(workload);
    sandbox.afterlink(&arguments)
}

/// A shell workload that prints `score N`, 15 % more for B, and up to 0.9 % at random.
const SCORES: &str =
    "{} > /dev/null; s=100; [ $AFTERLINK_SIDE = A ] || s=115; echo \"score $s.$(($$ % 10))\"";

fn shell(script: &str) -> [&str; 3] {
    ["sh", "-c", script]
}

#[track_caller]
fn assert_usage_error(outcome: &Outcome, words: &[&str]) {
    // Exit codes 1 to 3 are verdicts.
    assert_eq!(outcome.exit, 64, "{}", outcome.stderr());
    assert_eq!(outcome.stdout(), "");
    let said = outcome.stderr();
    let first = said.lines().next().unwrap_or_default();
    assert!(first.contains("error: "), "{said}");
    words.iter().for_each(|word| assert!(first.contains(word), "`{word}` is missing: {said}"));
}

#[test]
fn a_bad_input_is_one_clear_error_and_no_verdict() {
    let sandbox = sandbox();
    sandbox.put("text", b"no program");
    let plain = sandbox.path("plain");
    assert!(Command::new("strip").arg("-o").arg(&plain).arg(sandbox.path("a")).status().unwrap().success());
    let programs = |a: &str, b: &str| sandbox.afterlink(&["compare", a, b, "--no-probe", "--", "{}"]);
    assert_usage_error(&programs("a", "absent"), &["absent", "no such file", "check the path"]);
    assert_usage_error(&programs(".", "b"), &["is a directory"]);
    assert_usage_error(&programs("a", "text"), &["text", "not an ELF file", "--layout as-is"]);
    assert_usage_error(&programs("plain", "b"), &["plain", "stripped", "--layout as-is"]);
    let cases: &[(&[&str], &[&str])] = &[
        (&["--metric", "nonsense"], &["--metric", "`nonsense`"]),
        (&["--metric", "pattern:x=("], &["regular expression"]),
        (&["--metric", "pattern:tps ([0-9]+)"], &["no positive number", "tps"]),
        (&["--metric", "json:/p99"], &["JSON", "/p99"]),
        (&["--metric", "counter:no-such"], &["no-such"]),
        (&["--margin", "0"], &["--margin", "above 0"]),
        (&["--max-time", "0"], &["--max-time", "seconds above 0"]),
        (&["--max-time", "-3"], &["--max-time", "seconds above 0"]),
        (&["--timeout", "soon"], &["--timeout"]),
        (&["--blocks", "0"], &["--blocks"]),
        (&["--cpus", "4095"], &["CPU 4095"]),
        (&["--work-dir", "absent"], &["absent", "--work-dir"]),
        (&["--report", "absent/x.html"], &["absent/x.html"]),
        (&["--benchmarks", "text"], &["--benchmarks"]),
        (&["--set-up", "echo no port; exit 3"], &["set-up", "exit code 3", "no port"]),
        (&["--warm-up", "false"], &["warm-up", "exit code 1"]),
        (&["--tear-down", "false"], &["tear-down", "exit code 1"]),
        (&["--together", "--metric", "wall"], &["wall time", "--metric cpu"]),
        (&["--together", "--set-up", "true"], &["server", "--together"]),
    ];
    for (options, words) in cases {
        let mut arguments = vec!["compare", "a", "b", "--no-probe"];
        arguments.extend(*options);
        arguments.extend(["--", "{}"]);
        assert_usage_error(&sandbox.afterlink(&arguments), words);
    }
    assert_usage_error(&compare(&sandbox, &[], &["/absent"]), &["/absent", "cannot be started"]);
    assert_usage_error(&compare(&sandbox, &[], &shell("echo why; exit 5")), &["exit code 5", "why"]);
    let late = compare(&sandbox, &["--timeout", "0.3"], &["sleep", "20"]);
    assert_usage_error(&late, &["did not end within the time limit"]);
    let other = compare(&sandbox, &[], &shell("echo side $AFTERLINK_SIDE"));
    assert_usage_error(&other, &["print different output", "side A", "side B", "--ignore-output"]);
    assert_usage_error(&sandbox.afterlink(&["compare", "--replay", "text"]), &["not a report"]);
    assert_usage_error(&sandbox.afterlink(&["compare", "--self", "a", "b"]), &["--self"]);
    assert_usage_error(&sandbox.afterlink(&["compare"]), &["required"]);
    let both = ["--report", "same", "--record", "same"];
    assert_usage_error(&compare(&sandbox, &both, &["{}"]), &["same", "another file of this command"]);
    assert_usage_error(
        &compare(&sandbox, &["--record", "b"], &["{}"]),
        &["b", "another file of this command"],
    );
}

#[test]
fn a_printed_number_is_judged_in_its_direction() {
    let sandbox = sandbox();
    let judge = |metric: &str, script| {
        compare(&sandbox, &["--ignore-output", "--blocks", "10", "--metric", metric], &shell(script))
    };
    let pattern = "pattern:score ([0-9.]+)";
    let slower = judge(pattern, SCORES);
    assert_eq!(slower.exit, 1, "{}{}", slower.stdout(), slower.stderr());
    assert!(slower.stdout().contains("VERDICT    B is worse by 1"), "{}", slower.stdout());
    let faster = judge(&format!("score=higher:{pattern}"), SCORES);
    assert_eq!(faster.exit, 0, "{}", faster.stdout());
    assert!(faster.stdout().contains("B is better by 1"), "{}", faster.stdout());
    let json = "{} > /dev/null; echo warming up; echo \"{\\\"run\\\": {\\\"p99\\\": 2.0$(($$ % 9))}}\"";
    let same = judge("json:/run/p99", json);
    assert!(same.stdout().contains("A (a)      p99 2.0"), "{}{}", same.stdout(), same.stderr());
}

#[test]
fn as_is_never_names_a_cause() {
    let sandbox = sandbox();
    sandbox.put("a", b"#!/bin/sh\necho score 100\n");
    sandbox.put("b", b"#!/bin/sh\necho score 103\n");
    let options =
        ["--layout", "as-is", "--blocks", "10", "--ignore-output", "--metric", "pattern:score (.*)"];
    let outcome = compare(&sandbox, &options, &["{}"]);
    assert_eq!(outcome.exit, 2, "{}", outcome.stderr());
    assert!(
        outcome.stdout().contains("VERDICT    differs on this one layout, by +3 %"),
        "{}",
        outcome.stdout()
    );
}

#[test]
fn every_kind_of_layout_runs() {
    let sandbox = sandbox();
    let kinds: &[(&[&str], &str)] = &[
        (&[], "(shuffle, coupled, seed 0x1)"),
        (&["--independent", "--seed", "7"], "(shuffle, independent, seed 0x7)"),
        (&["--layout", "jitter"], "(jitter, coupled, seed 0x1)"),
        (&["--together"], "(shuffle, coupled, both at once, seed 0x1)"),
    ];
    for (options, shown) in kinds {
        let options = [&["--blocks", "3", "--metric", "cpu"], *options].concat();
        let outcome = compare(&sandbox, &options, &["{}"]);
        assert!((0..=3).contains(&outcome.exit), "{options:?}: {}", outcome.stderr());
        assert!(outcome.stdout().contains(shown), "{options:?}: {}", outcome.stdout());
        assert!(outcome.stdout().contains("3 of 3"), "{options:?}: {}", outcome.stdout());
    }
    let own = sandbox.afterlink(&[
        "compare",
        "--self",
        "a",
        "--no-probe",
        "--runs",
        "2",
        "--blocks",
        "3",
        "--",
        "{}",
    ]);
    assert!(own.stdout().contains("independent") && own.stdout().contains("noise floor"), "{}", own.stdout());
}

#[test]
fn several_benchmarks_are_corrected_and_all_of_it_is_json() {
    let sandbox = sandbox();
    let score = |name: &str, plus: u32| {
        format!(
            "{{\"name\": \"{name}\", \"metrics\": [\"pattern:score ([0-9.]+)\"], \"workload\": \"s=100; [ $AFTERLINK_SIDE \
             = A ] || s=$((100 + {plus})); echo score $s.5\"}}"
        )
    };
    let text =
        format!("{{\"benchmarks\": [{}, {}, {}]}}", score("same", 0), score("more", 3), score("again", 0));
    sandbox.put("benchmarks.json", text.as_bytes());
    let outcome = sandbox.afterlink(&[
        "compare",
        "a",
        "b",
        "--no-probe",
        "--runs",
        "2",
        "--blocks",
        "20",
        "--ignore-output",
        "--json",
        "--benchmarks",
        "benchmarks.json",
        "--report",
        "page.html",
        "--junit",
        "junit.xml",
        "--markdown",
        "table.md",
        "--csv",
        "table.csv",
    ]);
    assert_eq!(outcome.exit, 1, "one of them is slower: {}", outcome.stderr());
    let written = |name: &str| fs::read_to_string(sandbox.path(name)).unwrap();
    assert!(written("junit.xml").contains("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"0\""));
    // No chance is in it: where nothing else runs, numbers of processes are none.
    assert!(written("table.md").contains("| ✗ | more | B is worse by 3"), "{}", written("table.md"));
    assert_eq!(written("table.csv").lines().count(), 4);
    assert_eq!(outcome.stderr(), "");
    let json: Value = serde_json::from_str(&outcome.stdout()).unwrap();
    let verdicts: Vec<&str> = json["analysis"]["benchmarks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|b| b["verdict"]["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(verdicts, ["no-difference", "slower", "no-difference"]);
    let p = |i: usize| json["analysis"]["adjusted_p"][i].as_f64().unwrap();
    assert!(p(0) < 0.05 && p(1) < 0.05, "{} {}", p(0), p(1));
    let page = fs::read_to_string(sandbox.path("page.html")).unwrap();
    assert!(!page.contains("http://") && !page.contains("https://"), "the page needs no network");
    let wider = sandbox.afterlink(&["compare", "--replay", "page.html", "--csv", "page.html"]);
    assert_usage_error(&wider, &["page.html", "the output is the input"]);
    let replayed = sandbox.afterlink(&["compare", "--replay", "page.html"]);
    assert_eq!(replayed.exit, 1);
    assert!(replayed.stdout().contains("all 3 comparisons, verdicts corrected"), "{}", replayed.stdout());
}

/// The workload counts its runs in a file and misbehaves in one of them.
fn misbehaving(sandbox: &Sandbox, how: &str, options: &[&str]) -> Outcome {
    let counter = sandbox.put("runs", b"");
    let (counter, script) = (counter.display(), sandbox.path("work.sh"));
    // Only one of two runs that go on at once makes the folder.
    let once = sandbox.path("once");
    let _ = fs::remove_dir(&once);
    let bad = format!("[ $(wc -l < {counter}) -ge 24 ] && mkdir {} 2> /dev/null", once.display());
    let text = format!("#!/bin/sh\necho x >> {counter}\nif {bad}; then\n{how}\nfi\n$1\n");
    fs::write(&script, text).unwrap();
    let all = [&["--blocks", "4", "--metric", "cpu"], options].concat();
    compare(sandbox, &all, &["sh", &script.display().to_string(), "{}"])
}

#[test]
fn a_run_that_fails_or_differs_is_shown_and_takes_its_pair_with_it() {
    let sandbox = sandbox();
    for options in [&[][..], &["--together"]] {
        let failed = misbehaving(&sandbox, "echo the disk is full; exit 7", options);
        assert!(failed.stderr().contains("exit code 7"), "{}{}", failed.stdout(), failed.stderr());
        assert!(failed.stderr().contains("the disk is full"), "{}", failed.stderr());
        assert!(
            failed.stdout().contains("4 of 4") && failed.stdout().contains("1 dropped"),
            "{}",
            failed.stdout()
        );
        let differing = misbehaving(&sandbox, "echo something new", options);
        assert!(differing.stderr().contains("printed something else than before"), "{}", differing.stderr());
        assert!(differing.stderr().contains("something new"), "{}", differing.stderr());
        assert!(differing.stdout().contains("1 dropped"), "{}", differing.stdout());
    }
}

#[test]
fn an_interrupt_gives_the_verdict_so_far_and_leaves_nothing() {
    let sandbox = sandbox();
    fs::create_dir(sandbox.path("work")).unwrap();
    let arguments =
        ["compare", "a", "b", "--no-probe", "--work-dir", "work", "--", "sh", "-c", "{} && sleep 0.1"];
    let child = Command::new(afterlink())
        .args(arguments)
        .current_dir(sandbox.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Until the second layouts are there.
    let start = Instant::now();
    let under_test = || -> usize {
        let folders = fs::read_dir(sandbox.path("work")).unwrap().map(|e| e.unwrap().path().join("0000/b/a"));
        folders.filter(|p| p.exists()).count()
    };
    while under_test() == 0 && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(4));
    // SAFETY: the child has not been waited for, so that the number is still its own.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("stopped: interrupted") && text.contains("VERDICT    undecided"), "{text}");
    assert_eq!(fs::read_dir(sandbox.path("work")).unwrap().count(), 0);
}

#[test]
fn a_server_is_set_up_warmed_up_and_torn_down() {
    let sandbox = sandbox();
    let log = sandbox.path("log");
    let log = log.display();
    // The server is a process in the background that outlives the set-up command.
    let set_up = format!("sleep 300 > /dev/null 2>&1 & echo $! > {log}.pid; echo up {{}} >> {log}");
    let tear_down = format!("kill $(cat {log}.pid); echo down >> {log}");
    let workload =
        format!("kill -0 $(cat {log}.pid) && grep -c warm {log} > /dev/null && echo tps 100.$(($$ % 10))");
    let warm_up = format!("echo warm >> {log}");
    let options = [
        "--set-up",
        &set_up,
        "--warm-up",
        &warm_up,
        "--tear-down",
        &tear_down,
        "--blocks",
        "3",
        "--ignore-output",
        "--metric",
        "tps=higher:pattern:tps ([0-9.]+)",
    ];
    let outcome = compare(&sandbox, &options, &shell(&workload));
    assert!(
        outcome.stdout().contains("3 of 3") && !outcome.stdout().contains("dropped"),
        "{}",
        outcome.stderr()
    );
    let text = fs::read_to_string(sandbox.path("log")).unwrap();
    let count = |word: &str| text.lines().filter(|l| l.starts_with(word)).count();
    assert!(count("up") >= 6 && count("up") == count("down") && count("up") == count("warm"), "{text}");
    // A process that has ended has no command line any more, even if nobody has waited for it yet.
    let pid = fs::read_to_string(sandbox.path("log.pid")).unwrap();
    let command = fs::read(format!("/proc/{}/cmdline", pid.trim())).unwrap_or_default();
    assert!(command.is_empty(), "the last server still runs");
}

#[test]
fn shuffle_writes_different_working_layouts() {
    let sandbox = sandbox();
    let expected = sandbox.run(&mut Command::new(sandbox.path("a"))).stdout();
    for (folder, extra) in [("shuffled", None), ("jittered", Some("--jitter"))] {
        let mut arguments = vec!["shuffle", "a", "-n", "5", "-o", folder, "--json"];
        arguments.extend(extra);
        let outcome = sandbox.afterlink(&arguments);
        assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
        let names: Vec<String> = serde_json::from_str(&outcome.stdout()).unwrap();
        let files: std::collections::BTreeSet<Vec<u8>> =
            names.iter().map(|name| fs::read(sandbox.path(name)).unwrap()).collect();
        assert_eq!((names.len(), files.len()), (5, 5), "{folder}");
        for name in &names {
            assert_eq!(sandbox.run(&mut Command::new(sandbox.path(name))).stdout(), expected);
        }
    }
}

/// A layout is judged in its own order: the program against itself laid out by a profile.
#[test]
fn a_layout_by_profile_is_compared_with_other_gaps() {
    let sandbox = Sandbox::default();
    sandbox.put("program", &fs::read(built("hot_loop", "gcc -O2")).unwrap());
    fs::set_permissions(sandbox.path("program"), fs::Permissions::from_mode(0o755)).unwrap();
    let tune = ["tune", "program", "-o", "fast", "--pairs", "0", "--keep-profile", "profile", "--", "{}"];
    assert_eq!(sandbox.afterlink(&tune).exit, 0);
    let options =
        ["--profile-b", "profile", "--blocks", "2", "--runs", "2", "--no-probe", "--record", "record"];
    let compare = |extra: &[&str]| {
        sandbox.afterlink(&[&["compare", "program"], &options[..], extra, &["--", "{}"]].concat())
    };
    let outcome = compare(&[]);
    assert!(outcome.exit <= 3, "{}", outcome.stderr());
    assert!(outcome.stdout().contains("program laid out by profile"), "{}", outcome.stdout());
    let record: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(sandbox.path("record")).unwrap()).unwrap();
    let experiment = &record["experiments"][0];
    assert_eq!(experiment["plan"]["layout"], "jitter", "{experiment}");
    assert_ne!(experiment["a"]["sha1"], experiment["b"]["sha1"]);
    let jitter = ["shuffle", "program", "-n", "2", "-o", "layouts", "--jitter", "--profile", "profile"];
    assert_eq!(sandbox.afterlink(&jitter).exit, 0);
    for name in ["layouts/program.0000", "layouts/program.0001"] {
        let run = |name: &str| sandbox.run(&mut Command::new(sandbox.path(name))).stdout();
        assert_eq!(run(name), run("program"));
        assert_ne!(fs::read(sandbox.path(name)).unwrap(), fs::read(sandbox.path("fast")).unwrap());
    }
    assert_usage_error(
        &compare(&["--layout", "shuffle"]),
        &["--layout", "in its own order", "--layout jitter"],
    );

    // Two of three names are another program's.
    sandbox.put("other", b"1 main 0 1 main 1 0 5\n1 nowhere 0 1 elsewhere 0 0 5\n");
    let other = sandbox.afterlink(&["compare", "program", "--profile-b", "other", "--", "{}"]);
    let words = ["program", "most of the profile is not about", "1 of 3 names", "--any-profile"];
    assert_usage_error(&other, &words);
    let other = ["shuffle", "program", "-n", "1", "-o", "layouts", "--jitter", "--profile", "other"];
    assert_clear_error(&sandbox.afterlink(&other), &words);
    let insisting = sandbox.afterlink(&[&other[..], &["--any-profile"]].concat());
    assert_eq!(insisting.exit, 0, "{}", insisting.stderr());
}

#[test]
fn tune_ends_with_the_timing_and_what_to_do_next() {
    let sandbox = Sandbox::default();
    sandbox.put("program", &fs::read(built("hot_loop", "gcc -O2")).unwrap());
    fs::set_permissions(sandbox.path("program"), fs::Permissions::from_mode(0o755)).unwrap();
    let tune = |workload: &[&str]| {
        let options =
            ["tune", "program", "-o", "fast", "--pairs", "2", "--keep-profile", "profile.fdata", "--"];
        sandbox.afterlink(&[&options[..], workload].concat())
    };
    let outcome = tune(&["{}"]);
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    let text = outcome.stdout();
    assert!(["GAIN ", "LOSS ", "undecided "].iter().any(|verdict| text.contains(verdict)), "{text}");
    assert!(text.contains("the workload prints the same with both"), "{text}");
    assert!(text.contains("afterlink compare program --profile-b profile.fdata -- {}"), "{text}");
    let left: Vec<_> = fs::read_dir(sandbox.path(".")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
    let different = tune(&shell("{}; case {} in *-new) echo new;; *) echo old;; esac"));
    assert!(different.stdout().contains("WARNING"), "{}", different.stdout());
    assert_clear_error(&tune(&["true"]), &["did not run the program", "{}"]);
    assert_clear_error(&tune(&["false"]), &["the workload failed", "original program first"]);
    // The second run is the first of what would be handed over.
    fs::remove_file(sandbox.path("fast")).unwrap();
    let fails_later = "{} && if [ -e ran ]; then exit 7; else touch ran; fi";
    assert_clear_error(&tune(&shell(fails_later)), &["status: 7", "afterlink bisect"]);
    assert!(!sandbox.path("fast").exists());
}

#[test]
fn what_is_undecided_goes_on_and_keeps_what_was_found() {
    let sandbox = sandbox();
    let record = || -> Value { serde_json::from_slice(&fs::read(sandbox.path("r.json")).unwrap()).unwrap() };
    let options =
        ["--blocks", "5", "--ignore-output", "--metric", "pattern:score ([0-9.]+)", "--record", "r.json"];
    let first = compare(&sandbox, &options, &shell(SCORES));
    assert_eq!(first.exit, 2, "five layouts have no interval: {}", first.stderr());
    assert!(first.stdout().contains("afterlink compare --resume r.json --blocks "), "{}", first.stdout());
    let before = record();

    let resume = |more: &[&str]| sandbox.afterlink(&[&["compare", "--resume", "r.json"], more].concat());
    let more = resume(&["--blocks", "10", "--report", "page.html"]);
    assert_eq!(more.exit, 1, "{}", more.stderr());
    assert!(more.stdout().contains("15 of 15") || more.stdout().contains("10 of 15"), "{}", more.stdout());
    let after = record();
    let experiment = |json: &Value| json["experiments"][0].clone();
    let [old, new] = [&before, &after].map(experiment);
    assert_eq!(new["plan"]["resumed"], serde_json::json!([{"after": 5, "max_layouts": 15}]));
    let blocks = |json: &Value| json["blocks"].as_array().unwrap().clone();
    assert_eq!(blocks(&new)[..5], blocks(&old)[..], "what was found is kept");
    let seeds: std::collections::BTreeSet<String> =
        blocks(&new).iter().map(|b| b["seed_a"].to_string()).collect();
    assert_eq!(seeds.len(), blocks(&new).len(), "each layout is another");
    assert!(new["blocks"][5]["started"].as_f64() > old["seconds"].as_f64(), "time goes on");
    assert_eq!(new["command"], old["command"]);
    let replayed = sandbox.afterlink(&["compare", "--replay", "r.json"]);
    assert_eq!((replayed.exit, replayed.stdout()), (1, more.stdout()));

    // Nothing is added to a record of other programs, and it stays as it is.
    let kept = fs::read(sandbox.path("r.json")).unwrap();
    fs::copy(sandbox.path("b"), sandbox.path("a")).unwrap();
    assert_usage_error(&resume(&[]), &["error: a: ", "not the file that the record is of", "put back"]);
    assert_usage_error(&resume(&["--layout", "as-is", "a", "b"]), &["--resume"]);
    sandbox.put(
        "other.json",
        &String::from_utf8(kept.clone()).unwrap().replacen("\"compare\"", "\"tune\"", 1).into_bytes(),
    );
    assert_usage_error(
        &sandbox.afterlink(&["compare", "--resume", "other.json"]),
        &["`tune`", "a comparison of its own"],
    );
    assert!(fs::read(sandbox.path("r.json")).unwrap() == kept);
}
