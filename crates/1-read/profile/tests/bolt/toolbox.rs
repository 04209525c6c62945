//! Runs tools, and builds the program that the tests share.

use std::path::Path;
use std::process::{Command, Stdio};

/// Whether each tool is installed; if not, says so.
pub fn installed(tools: &[&str]) -> bool {
    let missing: Vec<&&str> = tools
        .iter()
        .filter(|tool| {
            Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err()
        })
        .collect();
    if !missing.is_empty() {
        eprintln!("not tested here: {missing:?} not installed");
    }
    missing.is_empty()
}

/// Runs a tool in `folder`; its output and error output. It must succeed.
pub fn run(folder: &Path, tool: &str, arguments: &[&str]) -> String {
    let (ok, text) = try_run(folder, tool, arguments);
    assert!(ok, "{tool} {arguments:?}: {text}");
    text
}

/// As [`run`], and whether it succeeded.
pub fn try_run(folder: &Path, tool: &str, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(tool).args(arguments).current_dir(folder).output().expect(tool);
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.success(), text.concat())
}

const A: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static int table[4] = {1, 2, 3, 4};     /* data; a function of this name is in b.c */
static __thread int counter = 3;        /* thread-local; a function of this name is in b.c */
int b_entry(int), b_alias(int), c_entry(int), d_entry(int);
static int __attribute__((noinline)) work(int x) { return x & 1 ? x * 3 + table[x & 3] : x / 2; }
static int __attribute__((noinline)) twice(int x) { return work(x) + 1; }
static int __attribute__((noinline, alias("twice"))) twice_alias(int);
int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 100, sum = 0;
    for (int i = 0; i < n; i++)
        sum += work(i) + twice(i) + twice_alias(i) + b_entry(i) + c_entry(i) + d_entry(i) + counter;
    printf("%d\n", sum);
    return 0;
}
"#;

const B: &str = r#"
static int __attribute__((noinline)) work(int x) { return x % 3 ? x * 5 : x / 3; }
static int __attribute__((noinline)) table(int x) { return x ^ 5; }
static int __attribute__((noinline)) counter(int x) { return x ^ 7; }
static int __attribute__((noinline)) twice(int x) { return work(x) + 2; }
int b_entry(int x) { return twice(x) + table(x) + counter(x) + work(x); }
int b_alias(int) __attribute__((alias("b_entry")));
"#;

/// A second a.c, in another folder.
const C: &str = r#"
static volatile int twice = 5;          /* data named as a function elsewhere */
static int __attribute__((noinline)) work(int x) { return x % 7 ? x * 7 + twice : x / 7; }
int c_entry(int x) { return work(x); }
"#;

/// Names that need care; gcc cannot write them, so `objcopy` renames.
const D: &str = r#"
static int __attribute__((noinline, cold)) work(int x) { return x * 11; }
static int __attribute__((noinline)) kept(int x) { return x * 11 + 1; }
static int __attribute__((noinline)) spaced(int x) { return x * 13; }
int d_entry(int x) { return work(x) + kept(x) + spaced(x); }
"#;

pub const TOOLS: [&str; 4] = ["gcc", "objcopy", "llvm-bolt-22", "merge-fdata-22"];

/// Builds a program of four C files with equal names; `flags` go to the link, which keeps relocations.
pub fn build_program(folder: &Path, name: &str, flags: &[&str]) {
    std::fs::create_dir_all(folder.join("sub")).unwrap();
    for (file, text) in [("a.c", A), ("b.c", B), ("sub/a.c", C), ("d.c", D)] {
        std::fs::write(folder.join(file), text).unwrap();
        run(folder, "gcc", &["-O2", "-c", file, "-o", &format!("{file}.o")]);
    }
    run(folder, "objcopy", &["--redefine-sym", "kept=.Lkept", "--redefine-sym", r"spaced=sp ace\d", "d.c.o"]);
    let mut arguments = vec!["-Wl,--emit-relocs", "-Wl,--discard-none", "-o", name];
    arguments.extend(flags);
    arguments.extend(["a.c.o", "b.c.o", "sub/a.c.o", "d.c.o"]);
    run(folder, "gcc", &arguments);
}

/// Instruments the program, runs it, and gives the profile's text.
pub fn instrumented_profile(folder: &Path, program: &str, iterations: &str) -> String {
    let profile = folder.join(format!("{program}.fdata"));
    let option = format!("--instrumentation-file={}", profile.display());
    let output = format!("{program}.instrumented");
    run(folder, "llvm-bolt-22", &[program, "-instrument", &option, "-o", &output]);
    run(folder, folder.join(&output).to_str().unwrap(), &[iterations]);
    std::fs::read_to_string(&profile).unwrap()
}
