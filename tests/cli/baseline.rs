//! `compare` of more than two programs, and with a program that was kept.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use afterlink_testkit::execute::Outcome;
use afterlink_testkit::sandbox::Sandbox;
use serde_json::Value;

/// A program that prints what it takes: 100 and `more`. No chance is in it: numbers of processes are none where nothing else runs.
fn put_program(sandbox: &Sandbox, name: &str, more: u32) {
    sandbox.put(name, format!("#!/bin/sh\necho \"score {}.5\"\n", 100 + more).as_bytes());
    fs::set_permissions(sandbox.path(name), fs::Permissions::from_mode(0o755)).unwrap();
}

const OPTIONS: [&str; 9] = [
    "--no-probe",
    "--runs",
    "2",
    "--blocks",
    "10",
    "--layout",
    "as-is",
    "--ignore-output",
    "--metric=pattern:score ([0-9.]+)",
];

fn compare(sandbox: &Sandbox, arguments: &[&str]) -> Outcome {
    sandbox.afterlink(&[&["compare"], arguments, &OPTIONS].concat())
}

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout()).unwrap_or_else(|e| panic!("{e}: {}", outcome.stderr()))
}

#[test]
fn each_further_program_is_compared_with_the_first() {
    let sandbox = Sandbox::default();
    for (name, more) in [("main", 0), ("one", 8), ("two", 0)] {
        put_program(&sandbox, name, more);
    }
    let outcome = compare(&sandbox, &["main", "one", "two", "--json", "--record", "r.json"]);
    let said = json(&outcome);
    let experiments = said["experiments"].as_array().unwrap();
    let labels: Vec<[&str; 2]> =
        experiments.iter().map(|e| ["a", "b"].map(|side| e[side]["label"].as_str().unwrap())).collect();
    assert_eq!(labels, [["main", "one"], ["main", "two"]]);
    assert_eq!(experiments[0]["plan"]["family"], 2, "both share the promise");
    let outcomes: Vec<&str> = said["analysis"]["benchmarks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|b| b["verdict"]["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["differs", "no-difference"]);
    let names: Vec<&str> = experiments.iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert!(names[0].starts_with("one: ") && names[1].starts_with("two: "), "{names:?}");
    // What goes on finds both again.
    let more = sandbox.afterlink(&["compare", "--resume", "r.json", "--blocks", "2", "--json"]);
    let counts: Vec<u64> = json(&more)["analysis"]["benchmarks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|b| b["counts"]["layouts"].as_u64().unwrap())
        .collect();
    assert_eq!(counts, [12, 12], "{}", more.stderr());
    let twice = compare(&sandbox, &["main", "one", "one"]);
    assert_eq!(twice.exit, 64);
    assert!(twice.stderr().contains("one: the program is given twice"), "{}", twice.stderr());
}

#[test]
fn what_was_kept_runs_again_and_its_numbers_are_only_shown() {
    let sandbox = Sandbox::default();
    put_program(&sandbox, "main", 0);
    let kept = compare(&sandbox, &["--self", "main", "--keep-baseline", "kept"]);
    assert!(kept.stdout().contains("kept          main in kept"), "{}{}", kept.stdout(), kept.stderr());
    assert_eq!(fs::read(sandbox.path("kept/main")).unwrap(), fs::read(sandbox.path("main")).unwrap());
    // The program of then goes; the machine becomes half as fast, as far as anybody can see.
    fs::remove_file(sandbox.path("main")).unwrap();
    let index = sandbox.path("kept/baseline.json");
    let mut stored: Value = serde_json::from_slice(&fs::read(&index).unwrap()).unwrap();
    let typical = stored["benchmarks"][0]["typical"].as_f64().unwrap();
    assert!((100.0..101.0).contains(&typical), "{typical}");
    stored["benchmarks"][0]["typical"] = Value::from(typical / 2.0);
    fs::write(&index, stored.to_string()).unwrap();

    put_program(&sandbox, "new", 0);
    let same = compare(&sandbox, &["--baseline", "kept", "new"]);
    let words = same.stdout().split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(same.exit, 0, "{}{}", same.stdout(), same.stderr());
    assert!(words.contains("VERDICT no difference larger than 1 %"), "{}", same.stdout());
    assert!(words.contains("(+100 %). The program is the same, so that is the machine's doing"), "{words}");

    put_program(&sandbox, "slow", 9);
    let slow = compare(&sandbox, &["--baseline", "kept", "slow", "--keep-baseline", "kept"]);
    assert!(slow.stdout().contains("differs on this one layout, by +"), "{}", slow.stdout());
    let mut files: Vec<_> =
        fs::read_dir(sandbox.path("kept")).unwrap().map(|e| e.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["baseline.json", "slow"], "what was kept before is gone");
    let all = compare(&sandbox, &["--baseline", "kept", "new", "slow", "--json"]);
    assert_eq!(json(&all)["experiments"].as_array().unwrap().len(), 2, "{}", all.stderr());
}

#[test]
fn a_folder_that_holds_no_baseline_is_told() {
    let sandbox = Sandbox::default();
    put_program(&sandbox, "main", 0);
    fs::create_dir(sandbox.path("empty")).unwrap();
    let none = compare(&sandbox, &["--baseline", "empty", "main"]);
    assert_eq!(none.exit, 64);
    assert!(
        none.stderr().contains("empty: no baseline is kept there")
            && none.stderr().contains("--keep-baseline")
    );
    assert_eq!(compare(&sandbox, &["--self", "main", "--keep-baseline", "kept"]).exit, 0);
    put_program(&sandbox, "kept/main", 1);
    let changed = compare(&sandbox, &["--baseline", "kept", "main"]);
    assert!(changed.stderr().contains("is not the program that was kept"), "{}", changed.stderr());
    fs::write(sandbox.path("kept/baseline.json"), "{\"format\": 1}").unwrap();
    let broken = compare(&sandbox, &["--baseline", "kept", "main"]);
    assert!(broken.stderr().contains("not a baseline"), "{}", broken.stderr());
    let both = compare(&sandbox, &["--baseline", "kept", "--self", "main"]);
    assert_eq!(both.exit, 64);
    assert!(both.stderr().contains("--baseline") && both.stderr().contains("--self"), "{}", both.stderr());
}
