//! `perf.data` where a profile is wanted.

use afterlink_testkit::sandbox::{Sandbox, assert_clear_error, built};
use std::fs;
use std::process::{Command, Stdio};

/// A program and a recording of it; `None`, with a line that says so, where `perf` is missing or may not record.
fn recorded() -> Option<Sandbox> {
    let sandbox = Sandbox::default();
    sandbox.put("in", &fs::read(built("hot_loop", "gcc -O2")).unwrap());
    let perf = ["record", "-q", "-e", "cpu-clock:u", "-F", "5000", "-o", "perf.data", "sh", "-c"];
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(sandbox.path("in"), mode).unwrap();
    // Again and again: one run is short.
    let runs = "i=0; while [ $i -lt 40 ]; do ./in > /dev/null; i=$((i+1)); done";
    let status = Command::new("perf")
        .args(perf)
        .arg(runs)
        .current_dir(sandbox.path("."))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !status.is_ok_and(|s| s.success()) {
        eprintln!("not tested here: perf is missing or may not record");
        return None;
    }
    Some(sandbox)
}

#[test]
fn a_recording_is_a_profile() {
    let Some(sandbox) = recorded() else { return };
    let optimized = sandbox.afterlink(&["optimize", "in", "--profile", "perf.data", "-o", "out"]);
    assert_eq!(optimized.exit, 0, "{}", optimized.stderr());
    assert!(optimized.stderr().contains("samples of cpu-clock:u"), "{}", optimized.stderr());
    let convert = ["profile", "convert", "perf.data", "--binary", "in", "-o", "P.fdata"];
    let converted = sandbox.afterlink(&convert);
    assert_eq!(converted.exit, 0, "{}", converted.stderr());
    assert!(fs::read_to_string(sandbox.path("P.fdata")).unwrap().starts_with("no_lbr cpu-clock:u\n"));
    let again = sandbox.afterlink(&["optimize", "in", "--profile", "P.fdata", "-o", "out2"]);
    assert_eq!(again.exit, 0, "{}", again.stderr());
    assert_eq!(fs::read(sandbox.path("out")).unwrap(), fs::read(sandbox.path("out2")).unwrap());
    let shown = sandbox.afterlink(&["profile", "show", "perf.data", "--binary", "in"]);
    assert!(shown.stdout().contains("cpu-clock:u"), "{}", shown.stdout());
}

#[test]
fn without_the_program_that_ran() {
    let Some(sandbox) = recorded() else { return };
    let convert = sandbox.afterlink(&["profile", "convert", "perf.data", "-o", "P.fdata"]);
    assert_clear_error(&convert, &["perf.data", "--binary"]);
    sandbox.put("other", &fs::read(built("hot_loop", "clang -O2")).unwrap());
    let other = sandbox.afterlink(&["optimize", "other", "--profile", "perf.data", "-o", "out"]);
    assert_clear_error(&other, &["perf.data", "other did not run in this recording"]);
    assert!(!sandbox.path("out").exists() && !sandbox.path("P.fdata").exists());
}
