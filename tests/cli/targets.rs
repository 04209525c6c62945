//! Where indirect calls lead: the profile says for each site what the program itself says, whoever calls at once and however it ends. And
//! nobody finds another caller or another stack in the code that counts, not even an exception.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use afterlink_testkit::counting::{compile, instrument, twins};
use afterlink_testkit::report;
use afterlink_testkit::sandbox::Sandbox;

/// The counts that `targets.c` prints, by site and target.
fn said(text: &str) -> BTreeMap<(String, String), u64> {
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let [site, target, count] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        *counts.entry((site.into(), target.into())).or_default() += count.parse::<u64>().unwrap();
    }
    assert_eq!(counts.len(), 21, "{text}");
    counts
}

fn profile(sandbox: &Sandbox, words: &[&str]) -> String {
    let done = sandbox.afterlink(&[&["profile"], words, &["-o", "profile.fdata"]].concat());
    assert_eq!(done.exit, 0, "{}", done.stderr());
    fs::read_to_string(sandbox.path("profile.fdata")).unwrap()
}

/// Runs the program and gives what it said, and what was counted since.
fn count(sandbox: &Sandbox, how: &str) -> (BTreeMap<(String, String), u64>, String) {
    let _ = fs::remove_file(sandbox.path("counters"));
    let outcome = sandbox.run(Command::new(sandbox.path("counting")).arg(how));
    assert_eq!((outcome.exit, outcome.stderr()), (0, String::new()), "{how}");
    (said(&outcome.stdout()), profile(sandbox, &["convert", "counters"]))
}

/// Whether every site led to its targets as often as was said, and to nothing else.
#[track_caller]
fn assert_same(how: &str, said: &BTreeMap<(String, String), u64>, fdata: &str) {
    for ((site, target), &expected) in said {
        assert_eq!(report::calls_from(fdata, site, target), expected, "{how}: {site} to {target}");
    }
    for (site, _) in said.keys() {
        assert_eq!(report::calls_from(fdata, site, "[unknown]"), 0, "{how}: {site}");
    }
}

#[test]
fn exact_counts_are_those_that_the_program_tells() {
    let sandbox = twins("targets.c", &["--exact"]);
    for how in ["alone", "threads", "children", "signals", "again"] {
        let (said, fdata) = count(&sandbox, how);
        assert_same(how, &said, &fdata);
    }
}

#[test]
fn one_thread_loses_nothing_without_a_lock() {
    for flags in [&[][..], &["-fno-pie", "-no-pie"], &["-static"]] {
        let sandbox = Sandbox::default();
        compile(&sandbox, "targets.c", "plain", flags);
        instrument(&sandbox, "plain", "counting", &[]);
        let (said, fdata) = count(&sandbox, "again");
        assert_same("again", &said, &fdata);
    }
}

/// Threads that count at once lose counts, but none of them goes to another target.
#[test]
fn racing_threads_count_no_other_targets() {
    let sandbox = twins("targets.c", &[]);
    let (said, fdata) = count(&sandbox, "threads");
    for ((site, target), &expected) in &said {
        let found = report::calls_from(&fdata, site, target);
        assert!((expected / 8..=expected).contains(&found), "{site} to {target}: {found} of {expected}");
    }
    let lines =
        fdata.lines().filter(|line| said.keys().any(|(site, _)| line.starts_with(&format!("1 {site} "))));
    let to = |name: &str| said.keys().any(|(_, target)| name.split('/').next() == Some(target));
    let strange = lines.filter(|line| {
        !line.split(' ').nth(4).is_some_and(|name| to(name) || said.keys().any(|k| k.0 == name))
    });
    assert_eq!(strange.collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn targets_survive_merging_and_are_not_counted_if_nobody_wants_them() {
    let sandbox = twins("targets.c", &[]);
    let (said, first) = count(&sandbox, "alone");
    fs::write(sandbox.path("first.fdata"), &first).unwrap();
    let both = profile(&sandbox, &["merge", "first.fdata", "counters"]);
    let twice = said.into_iter().map(|(way, count)| (way, 2 * count)).collect();
    assert_same("merged", &twice, &both);
    assert_eq!(sandbox.afterlink(&["profile", "reset", "counters"]).exit, 0);
    let none = profile(&sandbox, &["convert", "counters"]);
    assert_eq!(report::calls_from(&none, "by_register", "add"), 0);
    instrument(&sandbox, "plain", "counting", &["--no-targets"]);
    let (_, without) = count(&sandbox, "alone");
    assert_eq!(report::calls_from(&without, "by_register", "add"), 0);
    assert_eq!(report::calls(&without, "add"), report::calls(&first, "add"));
}

/// At every instruction from in front of a call into the callee, all callers are found; and what a handler throws there lands in a frame
/// that is as it was.
#[test]
fn the_stack_is_whole_at_every_step() {
    for kind in [&["-fomit-frame-pointer"][..], &["-fno-omit-frame-pointer", "-fno-pie", "-no-pie"]] {
        let sandbox = Sandbox::default();
        compile(&sandbox, "stepped.cc", "plain", &[&["-Wl,--no-as-needed", "-lstdc++"], kind].concat());
        let plain = sandbox.run(&mut Command::new(sandbox.path("plain")));
        assert_eq!((plain.exit, plain.stdout().as_str()), (0, "78 78 21 lost 0\n"), "{}", plain.stderr());
        for exact in [&[][..], &["--exact"]] {
            let _ = fs::remove_file(sandbox.path("counters"));
            instrument(&sandbox, "plain", "counting", exact);
            // At first the code takes a pair of words for the target, later it finds it.
            for _ in 0..2 {
                let outcome = sandbox.run(&mut Command::new(sandbox.path("counting")));
                assert_eq!((outcome.exit, outcome.stdout()), (0, plain.stdout()), "{}", outcome.stderr());
            }
            let thrown = sandbox.run(Command::new(sandbox.path("counting")).args(["throw", "15"]));
            let way = format!("78 {}", "62 ".repeat(15));
            let expected = format!("{way}{way}21 lost 0\n");
            assert_eq!((thrown.exit, thrown.stdout()), (0, expected), "{kind:?} {}", thrown.stderr());
        }
    }
}
