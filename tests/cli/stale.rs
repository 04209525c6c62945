//! The profile of an older release is laid onto a newer one.

use afterlink_testkit::counting::{compile, instrument};
use afterlink_testkit::sandbox::{Sandbox, assert_clear_error};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// Both releases, and the counts of a run of each.
fn releases() -> Sandbox {
    let sandbox = Sandbox::default();
    for (program, flags) in [("old", &[][..]), ("new", &["-DSECOND"])] {
        compile(&sandbox, "releases.c", program, flags);
        instrument(&sandbox, program, "counting", &[]);
        assert_eq!(sandbox.run(&mut Command::new(sandbox.path("counting"))).exit, 0);
        let profile = format!("{program}.fdata");
        run(&sandbox, &["profile", "convert", "counters", "--binary", program, "-o", &profile]);
        fs::remove_file(sandbox.path("counters")).unwrap();
    }
    sandbox
}

/// Runs a command that succeeds; what it says on the side.
#[track_caller]
fn run(sandbox: &Sandbox, words: &[&str]) -> String {
    let done = sandbox.afterlink(words);
    assert_eq!(done.exit, 0, "{words:?}: {}", done.stderr());
    done.stderr()
}

fn counts(sandbox: &Sandbox, profile: &str) -> BTreeMap<String, u64> {
    let text = fs::read_to_string(sandbox.path(profile)).unwrap();
    let halves = text.lines().filter_map(|line| line.rsplit_once(' '));
    halves.map(|(what, count)| (what.to_owned(), count.parse().expect("a count"))).collect()
}

/// The share of all counts that two profiles have in common.
fn in_common(first: &BTreeMap<String, u64>, second: &BTreeMap<String, u64>) -> f64 {
    let both: u64 =
        first.iter().map(|(what, count)| second.get(what).map_or(0, |other| *count.min(other))).sum();
    2.0 * both as f64 / (first.values().sum::<u64>() + second.values().sum::<u64>()) as f64
}

#[test]
fn counts_are_where_the_new_release_has_them() {
    let sandbox = releases();
    let said = run(
        &sandbox,
        &["profile", "convert", "old.fdata", "--binary", "old", "--to", "new", "-o", "moved.fdata"],
    );
    assert!(said.contains("functions that ran") && said.contains("1 by what they do"), "{said}");
    let (moved, counted) = (counts(&sandbox, "moved.fdata"), counts(&sandbox, "new.fdata"));
    let share = in_common(&moved, &counted);
    assert!(share > 0.95, "{share}: {moved:#?}");
    assert!(in_common(&counts(&sandbox, "old.fdata"), &counted) < share - 0.1);
    // The function that was renamed has all of its counts.
    let of = |counts: &BTreeMap<String, u64>, name: &str| -> u64 {
        counts.iter().filter(|(what, _)| what.starts_with(&format!("1 {name}"))).map(|row| row.1).sum()
    };
    assert_eq!(of(&moved, "fold_words"), of(&counted, "fold_words"));
    // The one that is new is called as often as it is.
    let calls = |counts: &BTreeMap<String, u64>| -> u64 {
        counts.iter().filter(|(what, _)| what.ends_with(" checked/1 0 0")).map(|row| row.1).sum()
    };
    assert_eq!(calls(&moved), calls(&counted));
}

/// Nothing is lost on the way to the same program.
#[test]
fn of_the_same_build_nothing_changes() {
    let sandbox = releases();
    run(&sandbox, &["profile", "convert", "old.fdata", "--binary", "old", "--to", "old", "-o", "same.fdata"]);
    let (same, counted) = (counts(&sandbox, "same.fdata"), counts(&sandbox, "old.fdata"));
    assert!(in_common(&same, &counted) > 0.9999, "{same:#?}\n{counted:#?}");
}

#[test]
fn a_layout_by_an_older_profile() {
    let sandbox = releases();
    let by_old = ["optimize", "new", "-p", "old.fdata", "--profile-binary", "old", "-o", "out"];
    let said = run(&sandbox, &by_old);
    assert!(said.contains("new: of ") && said.contains("by what they do"), "{said}");
    let answers = |program: &str| sandbox.run(&mut Command::new(sandbox.path(program))).stdout();
    assert_eq!(answers("out"), answers("new"));
    let swapped = ["optimize", "new", "-p", "new.fdata", "--profile-binary", "gone", "-o", "out"];
    assert_clear_error(&sandbox.afterlink(&swapped), &["gone"]);
    sandbox.put("foreign.fdata", b"1 somewhere 0 1 elsewhere 0 0 7\n");
    let foreign = ["optimize", "new", "-p", "foreign.fdata", "--profile-binary", "old", "-o", "out"];
    assert_clear_error(&sandbox.afterlink(&foreign), &["old", "nothing of the profile"]);
}

/// Samples of single addresses go along, those of the function that was renamed, too.
#[test]
fn samples_are_led_to_the_new_release() {
    let sandbox = releases();
    sandbox.put(
        "samples.fdata",
        b"no_lbr cycles\n1 sum_of_words/1 0 7\n1 unchanged/1 0 5\n1 main 0 2\n1 gone 4 9\n",
    );
    run(
        &sandbox,
        &["profile", "convert", "samples.fdata", "--binary", "old", "--to", "new", "-o", "moved.fdata"],
    );
    let moved = fs::read_to_string(sandbox.path("moved.fdata")).unwrap();
    assert_eq!(moved, "no_lbr cycles\n1 fold_words/1 0 7\n1 main 0 2\n1 unchanged/1 0 5\n");
}
