//! Counting: nothing is lost however the program ends, it can be read while the program runs, and nobody can tell a
//! counting program from the original by what it prints or how it ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use afterlink_testkit::counting;
use afterlink_testkit::execute::Outcome;
use afterlink_testkit::sandbox::Sandbox;

fn end_by(sandbox: &Sandbox, ending: &str) -> Outcome {
    sandbox.run(Command::new(sandbox.path("counting")).arg(ending))
}

fn sandbox() -> Sandbox {
    counting::twins("endings.c", &[])
}

fn steps(sandbox: &Sandbox) -> u64 {
    counting::steps(sandbox, "counters")
}

#[test]
fn no_ending_loses_a_count() {
    let sandbox = sandbox();
    for (i, (ending, exit)) in (1..).zip([("return", 3), ("_exit", 7), ("abort", -6), ("kill", -9)]) {
        let outcome = end_by(&sandbox, ending);
        assert_eq!((outcome.exit, outcome.stderr()), (exit, String::new()), "{ending}");
        assert_eq!(steps(&sandbox), 1000 * i, "after {ending}; the file is added to by every run");
    }
}

/// A program counts on when it has another root directory, another user or no descriptor, and after it has started itself anew.
#[test]
fn programs_that_change_themselves_count_on() {
    let sandbox = sandbox();
    let mut counted = 0;
    for (change, more) in [("closed", 1000), ("again", 2000), ("root", 1000), ("user", 1000)] {
        let outcome = end_by(&sandbox, change);
        if outcome.exit == 77 {
            eprintln!("not tested here: {change}");
            continue;
        }
        counted += more;
        assert_eq!((outcome.exit, outcome.stderr()), (3, String::new()), "{change}");
        assert_eq!(steps(&sandbox), counted, "{change}");
    }
    // What it leaves behind in the background counts, too, until it ends.
    assert_eq!(end_by(&sandbox, "daemon").exit, 3);
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while steps(&sandbox) < counted + 1000 && std::time::Instant::now() < end {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(steps(&sandbox), counted + 1000);
}

#[test]
fn children_count_into_the_same_file() {
    let sandbox = sandbox();
    assert_eq!(end_by(&sandbox, "children").exit, 0);
    let counted = steps(&sandbox);
    // Counting takes no locks: two processors that count at the same moment may lose some of their counts.
    assert!((4000..=8000).contains(&counted), "{counted} of 8000");
}

#[test]
fn exact_counters_lose_nothing_however_many_count() {
    let sandbox = counting::twins("endings.c", &["--exact"]);
    assert_eq!(end_by(&sandbox, "children").exit, 0);
    assert_eq!(steps(&sandbox), 8000);
}

#[test]
fn a_running_program_can_be_read() {
    let sandbox = sandbox();
    let mut running = Command::new(sandbox.path("counting"))
        .arg("wait")
        .current_dir(sandbox.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(running.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!((said.as_str(), steps(&sandbox)), ("walked\n", 1000));
    assert!(running.try_wait().unwrap().is_none(), "it runs on");
    drop(running.stdin.take());
    running.wait().unwrap();
}

#[test]
fn without_a_counter_file_it_runs_on() {
    let sandbox = sandbox();
    let plain = sandbox.run(&mut Command::new(sandbox.path("plain")));
    symlink("/proc/sys/no-such-file", sandbox.path("nowhere")).unwrap();
    for file in ["absent/counters", ".", "nowhere", "/dev/full"] {
        let mut command = Command::new(sandbox.path("counting"));
        let outcome = sandbox.run(command.env("AFTERLINK_COUNTERS", file));
        assert_eq!((outcome.exit, outcome.stdout()), (plain.exit, plain.stdout()), "{file}");
        let said = outcome.stderr();
        assert_eq!(said.lines().count(), 1, "{file}: {said}");
        assert!(said.contains(file) && said.contains("uncounted"), "{said}");
    }
    let mut off = Command::new(sandbox.path("counting"));
    let outcome = sandbox.run(off.env("AFTERLINK_COUNTERS", ""));
    assert_eq!((outcome.exit, outcome.stderr()), (plain.exit, String::new()), "turned off");
    assert!(!sandbox.path("counters").exists());
}

#[test]
fn another_programs_counters_are_not_touched() {
    let sandbox = sandbox();
    sandbox.put("counters", &[b'x'; 70_000]);
    let outcome = end_by(&sandbox, "return");
    assert_eq!(outcome.exit, 3);
    assert!(outcome.stderr().contains("counters"), "{}", outcome.stderr());
    assert_eq!(fs::read(sandbox.path("counters")).unwrap(), [b'x'; 70_000]);
}
