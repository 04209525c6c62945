//! Symbolizers say of an instruction in an output what they say of it in the program: the function, the calls that a compiler
//! inlined, the file, the line, the column. In C, C++ and Rust, by two compilers, in DWARF 4 and 5.

use afterlink_testkit::sandbox::Sandbox;
use afterlink_testkit::symbolizers::{SYMBOL, Symbolizer, places, sample};
use std::process::Command;

const MOVE: &str = "--scope all --order-functions random --order-blocks random --split random --seed 5";

/// Builds by each command, in the folder of tests, and asks both symbolizers for all that was moved.
#[track_caller]
fn same_answers(builds: &[String], least_places: usize) {
    for build in builds {
        let sandbox = Sandbox::default();
        let (input, output) = (sandbox.path("in"), sandbox.path("out"));
        let mut words = build.split_whitespace();
        let mut command = Command::new(words.next().unwrap());
        command.args(words).arg("-o").arg(&input).current_dir(afterlink_testkit::tests_folder());
        let built = command.output().unwrap();
        assert!(built.status.success(), "{build}: {}", String::from_utf8_lossy(&built.stderr));
        let optimize = format!("optimize in -o out {MOVE}");
        let outcome = sandbox.afterlink(&optimize.split_whitespace().collect::<Vec<_>>());
        assert!(
            outcome.stdout().contains("follows the code"),
            "{build}: {}{}",
            outcome.stdout(),
            outcome.stderr()
        );
        let places = sample(&places(&input, &output).unwrap(), 5_000);
        assert!(places.len() >= least_places, "{build}: only {} places", places.len());
        assert!(places.iter().any(|p| p.is_apart) && places.iter().any(|p| !p.is_apart), "{build}");
        for symbolizer in [Symbolizer::Addr2line, Symbolizer::Llvm] {
            let questions = tempfile::tempdir().unwrap();
            let mut found = symbolizer.differences(&input, &output, &places, questions.path()).unwrap();
            found.retain(|difference| difference.kind() != SYMBOL);
            assert!(found.is_empty(), "{build}: {symbolizer:?}: {found:#?}");
        }
    }
}

#[test]
fn c() {
    let sources = "cli/programs/debugged/main.c cli/programs/debugged/work.c";
    let compilers = ["gcc-12 -O2 -Wl,-q", "clang-22 -O2 -Wl,-q"];
    let builds = compilers.iter().flat_map(|c| [4, 5].map(|v| format!("{c} -gdwarf-{v} {sources}")));
    same_answers(&builds.collect::<Vec<_>>(), 50);
}

/// Padding stands behind a call that was written anew.
#[test]
fn calls_that_come_back_nowhere() {
    let build = |v| format!("gcc-12 -O2 -Wl,-q -gdwarf-{v} cli/programs/leaves.c");
    same_answers(&[4, 5].map(build), 50);
}

#[test]
fn exceptions() {
    let compilers = ["g++-12 -gdwarf-4", "g++-12 -gdwarf-5", "clang++-22 -gdwarf-4", "clang++-22 -gdwarf-5"];
    let build = |c| format!("{c} -O2 -Wl,-q -std=c++14 -Icases cases/exceptions/main.cc");
    same_answers(&compilers.map(build), 500);
}

#[test]
fn rust() {
    let rustc = "rustc --edition 2021 -C opt-level=2 -C debuginfo=2 -C link-arg=-Wl,-q";
    let builds = [4, 5].map(|v| format!("{rustc} -C dwarf-version={v} cases/rust_panics/main.rs"));
    same_answers(&builds, 1_000);
}
