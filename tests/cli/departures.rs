//! Counting goes on when a program leaves the surroundings that it was started in, as servers do: its root directory, its user,
//! its descriptors, its terminal, its own image. And the phases of one that runs on can be profiled apart from outside.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use afterlink_testkit::counting;
use afterlink_testkit::sandbox::Sandbox;

/// How counting may be asked for.
const COUNTING: [&[&str]; 2] = [&[], &["--exact"]];
/// How the program ends where it may not leave in that way.
const NOT_ALLOWED: i32 = 9;

fn sandbox(options: &[&str]) -> Sandbox {
    counting::twins("departures.c", options)
}

#[track_caller]
fn steps(sandbox: &Sandbox) -> u64 {
    counting::steps(sandbox, "counters")
}

/// Every step is counted, those before the program left and those after.
#[track_caller]
fn counts_on_after_leaving(way: &str) {
    for options in COUNTING {
        let sandbox = sandbox(options);
        let plain = sandbox.run(Command::new(sandbox.path("plain")).arg(way));
        if plain.exit == NOT_ALLOWED {
            eprintln!("not tried: only root may do this");
            return;
        }
        let counted = sandbox.run(Command::new(sandbox.path("counting")).arg(way));
        assert_eq!((plain.exit, plain.stderr()), (3, String::new()));
        assert_eq!((counted.exit, counted.stderr()), (3, String::new()), "{options:?}");
        assert_eq!(steps(&sandbox), 2000, "{options:?}");
    }
}

#[test]
fn another_root_directory() {
    counts_on_after_leaving("root");
}

#[test]
fn another_user() {
    counts_on_after_leaving("user");
}

#[test]
fn no_descriptor_left_open() {
    counts_on_after_leaving("descriptors");
}

#[test]
fn a_daemon() {
    counts_on_after_leaving("daemon");
}

/// Executed again by itself, with an empty environment.
#[test]
fn another_image() {
    counts_on_after_leaving("image");
}

/// A snapshot of each phase of a running program: read, set back to zero, read again.
#[test]
fn phases_of_a_running_program_are_profiled_apart() {
    for options in COUNTING {
        let sandbox = sandbox(options);
        let mut running = Command::new(sandbox.path("counting"))
            .arg("phases")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(running.stdout.take().unwrap()).lines();
        let mut told = running.stdin.take().unwrap();
        assert_eq!(said.next().unwrap().unwrap(), "first");
        assert_eq!((steps(&sandbox), steps(&sandbox)), (1000, 1000), "reading changes nothing");
        let reset = sandbox.afterlink(&["profile", "reset", "counters"]);
        assert_eq!((reset.exit, steps(&sandbox)), (0, 0), "{}", reset.stderr());
        told.write_all(b"\n").unwrap();
        assert_eq!(said.next().unwrap().unwrap(), "second");
        assert_eq!(steps(&sandbox), 1000, "of the second phase alone, {options:?}");
        // Killed, it has lost nothing.
        running.kill().unwrap();
        running.wait().unwrap();
        assert_eq!(steps(&sandbox), 1000);
    }
}
