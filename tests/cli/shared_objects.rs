//! Shared objects are rewritten: whoever loads them sees no difference, and functions of others still take the place of theirs.

use afterlink_testkit::execute::Outcome;
use afterlink_testkit::sandbox::{Sandbox, assert_clear_error};
use std::process::Command;

/// Compilers with the flags that make a difference for a shared object.
const BUILDS: [&str; 11] = [
    "gcc-12 -O2",
    "gcc-12 -O2 -mtls-dialect=gnu2",
    "gcc-12 -O1 -Wl,-Bsymbolic",
    "gcc-12 -O2 -Wl,-z,now",
    "gcc-12 -O2 -Wl,-z,pack-relative-relocs",
    "gcc-12 -O2 -fcf-protection=full",
    "gcc-12 -O2 -flto",
    "gcc-12 -O2 -fuse-ld=gold",
    "clang-22 -O2",
    "clang-22 -O2 -fuse-ld=lld",
    "clang-22 -O2 -fuse-ld=lld -Wl,--icf=all -ffunction-sections -Wl,--gc-sections",
];

const ORDERS: [&str; 2] = [
    "--order-functions reverse --order-blocks reverse --split none",
    "--order-functions random --order-blocks random --split random --seed 4",
];

/// Builds the object of the programs' folder as `in/libobject.so`, and two programs that load it.
fn build(sandbox: &Sandbox, with: &str) {
    let sources = afterlink_testkit::tests_folder().join("cli/programs/shared");
    let run = |command: &str, more: &[&str]| {
        let mut words = command.split(' ');
        let mut compiler = Command::new(words.next().unwrap());
        let outcome = sandbox.run(compiler.args(words).args(more));
        assert_eq!(outcome.exit, 0, "{command}: {}", outcome.stderr());
    };
    for folder in ["in", "out"] {
        std::fs::create_dir_all(sandbox.path(folder)).unwrap();
    }
    let source = |name: &str| sources.join(name).display().to_string();
    run(with, &["-shared", "-fPIC", "-Wl,-q", &source("object.c"), "-o", "in/libobject.so"]);
    let main = source("main.c");
    run("gcc-12 -O2", &[&main, "-Lin", "-lobject", "-o", "plain"]);
    run("gcc-12 -O2 -DWITH_OWN", &[&main, "-Lin", "-lobject", "-o", "with-own"]);
}

fn loaded(sandbox: &Sandbox, program: &str, folder: &str) -> Outcome {
    // A second copy, so that the dynamic linker loads it anew.
    let copy = format!("{folder}/again.so");
    std::fs::copy(sandbox.path(&format!("{folder}/libobject.so")), sandbox.path(&copy)).unwrap();
    let mut command = Command::new(sandbox.path(program));
    command.env("LD_LIBRARY_PATH", folder).arg("again.so");
    sandbox.run(&mut command)
}

#[test]
fn every_order_of_every_build() {
    for with in BUILDS {
        let sandbox = Sandbox::default();
        build(&sandbox, with);
        for order in ORDERS {
            let options = ["optimize", "in/libobject.so", "-o", "out/libobject.so", "--scope", "all"];
            let more = ["--trap-old-code", "--check-passes", "--json"];
            let words: Vec<&str> = options.into_iter().chain(more).chain(order.split(' ')).collect();
            let written = sandbox.afterlink(&words);
            assert_eq!(written.exit, 0, "{with}: {}", written.stderr());
            let report: serde_json::Value = serde_json::from_str(&written.stdout()).unwrap();
            assert!(report["moved_functions"].as_u64().unwrap() >= 6, "{with}: {report}");
            for program in ["plain", "with-own"] {
                let (old, new) = (loaded(&sandbox, program, "in"), loaded(&sandbox, program, "out"));
                assert_eq!((old.exit, old.stdout().lines().count()), (0, 9), "{with}: {}", old.stdout());
                assert_eq!((new.exit, new.stdout()), (0, old.stdout()), "{with}, {order}, {program}");
            }
            let own = loaded(&sandbox, "with-own", "out").stdout();
            assert_ne!(own, loaded(&sandbox, "plain", "out").stdout(), "{with}: nothing was preempted");
        }
    }
}

/// Several programs count one object, under both of its names, and it is laid out by what they did.
#[test]
fn counted_by_all_who_load_it() {
    for with in BUILDS {
        let sandbox = Sandbox::default();
        build(&sandbox, with);
        let made = sandbox.afterlink(&[
            "instrument",
            "in/libobject.so",
            "-o",
            "out/libobject.so",
            "--counters",
            "counters",
        ]);
        assert_eq!(made.exit, 0, "{with}: {}", made.stderr());
        for program in ["plain", "with-own", "plain"] {
            let (old, new) = (loaded(&sandbox, program, "in"), loaded(&sandbox, program, "out"));
            assert_eq!((new.exit, new.stdout(), new.stderr()), (0, old.stdout(), String::new()), "{with}");
        }
        let converted = sandbox.afterlink(&["profile", "convert", "counters", "-o", "profile.fdata"]);
        assert_eq!(converted.exit, 0, "{}", converted.stderr());
        let profile = std::fs::read_to_string(sandbox.path("profile.fdata")).unwrap();
        // Each program calls it twice, and three times more in the copy that it loads anew.
        assert_eq!(afterlink_testkit::report::calls(&profile, "work"), 3 * (2 + 3), "{with}");
        let options = ["optimize", "in/libobject.so", "-o", "out/libobject.so", "-p", "profile.fdata"];
        let written = sandbox.afterlink(&[&options[..], &["--trap-old-code", "--check-passes"]].concat());
        assert_eq!(written.exit, 0, "{with}: {}", written.stderr());
        for program in ["plain", "with-own"] {
            let (old, new) = (loaded(&sandbox, program, "in"), loaded(&sandbox, program, "out"));
            assert_eq!((new.exit, new.stdout()), (0, old.stdout()), "{with}, {program}");
        }
    }
}

/// Without a function that the dynamic linker calls first, nothing could set the counters up.
#[test]
fn an_object_that_is_told_nothing_when_it_is_loaded() {
    let sandbox = Sandbox::default();
    build(&sandbox, "gcc-12 -O2 -nostartfiles");
    let refused = sandbox.afterlink(&["instrument", "in/libobject.so", "-o", "out/libobject.so"]);
    assert_clear_error(&refused, &["DT_INIT", "-nostartfiles"]);
}
