//! Small programs of `tests/cli/programs` and their counting twins, in a sandbox.

use crate::report;
use crate::sandbox::Sandbox;
use std::fs;
use std::process::Command;

/// Compiles a program of `tests/cli/programs`, with its relocations kept.
#[track_caller]
pub fn compile(sandbox: &Sandbox, source: &str, output: &str, flags: &[&str]) {
    let source = crate::tests_folder().join("cli/programs").join(source);
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-Wl,--emit-relocs", "-o", output]).args(flags).arg(source);
    assert_eq!(sandbox.run(&mut gcc).exit, 0);
}

/// Writes the counting twin of a program, which counts into the file `counters`.
#[track_caller]
pub fn instrument(sandbox: &Sandbox, program: &str, output: &str, flags: &[&str]) {
    let words = [&["instrument", program, "-o", output, "--counters", "counters"], flags].concat();
    let made = sandbox.afterlink(&words);
    assert_eq!(made.exit, 0, "{}", made.stderr());
}

/// A sandbox with the program `plain` and its twin `counting`.
#[track_caller]
pub fn twins(source: &str, flags: &[&str]) -> Sandbox {
    let sandbox = Sandbox::default();
    compile(&sandbox, source, "plain", &[]);
    instrument(&sandbox, "plain", "counting", flags);
    sandbox
}

/// How often `step` was called, by the profile that the counters in `file` give.
#[track_caller]
pub fn steps(sandbox: &Sandbox, file: &str) -> u64 {
    let converted = sandbox.afterlink(&["profile", "convert", file, "-o", "profile.fdata"]);
    assert_eq!(converted.exit, 0, "{}", converted.stderr());
    let fdata = fs::read_to_string(sandbox.path("profile.fdata")).expect("a profile was written");
    report::calls(&fdata, "step")
}
