//! Whoever is held while it waits in the kernel does not notice.

use crate::Follow;
use crate::follow::Follower;
use crate::hold::{self, Stop};
use std::io::{BufRead, BufReader, read_to_string};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn compiled(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/cli/programs/waits.c");
    let program = folder.join("waits");
    let mut gcc = Command::new("gcc");
    assert!(gcc.args(["-O1", "-w", "-o"]).arg(&program).arg(source).status().unwrap().success());
    program
}

/// Runs the program and holds it again and again, mostly inside of the kernel. A call that the kernel gives up begins anew, all of its time before it:
/// `pause` must be longer than that, unless something else ends the calls.
fn held_often(program: &Path, arguments: &[&str], pause: Duration) -> (String, usize) {
    let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let id = child.id();
    let mut follower = Follower::for_threads(&[id], Follow::Always(10)).unwrap().unwrap();
    let mut held = 0;
    let start = Instant::now();
    while follower.ask(id, &[]).is_ok() {
        held += follower.follow().len();
        std::thread::sleep(pause);
        while follower.waits() {
            held += follower.finish().len();
        }
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("{arguments:?} does not end, held {held} times");
        }
    }
    let said = read_to_string(child.stdout.take().unwrap()).unwrap();
    // Its end may have been seen by the one who held it.
    let _ = child.wait();
    (said, held)
}

#[test]
fn waits_end_as_if_nobody_was_held() {
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path());
    let ways =
        [(vec![], Duration::from_millis(5), "whole"), (vec!["alarms"], Duration::from_micros(500), "ended")];
    for (arguments, pause, outcome) in ways {
        let (said, held) = held_often(&program, &arguments, pause);
        assert_eq!(said.lines().count(), 5, "{said}");
        assert!(
            said.lines().all(|line| line.ends_with(outcome)),
            "{arguments:?}, held {held} times:\n{said}"
        );
        assert!(held > 50, "{held}");
    }
}

/// A process of its own parent, ours, may end while it is asked to stop.
#[test]
fn whoever_ends_meanwhile_is_let_go() {
    for _ in 0..50 {
        let mut child = Command::new("true").spawn().unwrap();
        let id = child.id();
        let Ok(Some(mut follower)) = Follower::for_threads(&[id], Follow::Always(10)) else { continue };
        while follower.ask(id, &[]).is_ok() {
            follower.finish();
        }
        let _ = child.wait();
        assert!(!Path::new(&format!("/proc/{id}")).exists());
    }
}

/// Killed while it is held, it is seen to have ended by whoever waits for it.
#[test]
fn whoever_is_killed_meanwhile_has_ended() {
    let mut child = Command::new("sh")
        .args(["-c", "sleep 60 & kill -0 $!; echo $!; wait"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let sleeper: u32 = line.trim().parse().unwrap();
    let Stop::Held(held) = hold::ask(sleeper).unwrap().wait(Duration::from_secs(1)) else {
        panic!("not held")
    };
    assert!(Command::new("sh").args(["-c", &format!("kill -9 {sleeper}")]).status().unwrap().success());
    drop(held);
    // It waits for the sleeper, which is not our child.
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < Duration::from_secs(10), "its parent does not see that it has ended");
        std::thread::sleep(Duration::from_millis(5));
    }
}
