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

/// Two builds of an object that tells what it costs, in folders of their own, and a program that loads whichever it finds by soname.
fn costs(sandbox: &Sandbox) {
    sandbox.put(
        "object.c",
        b"static int twice(int n) { return 2 * n; }\n\
        __attribute__((noinline)) int more(int n) { return twice(n) + 1; }\n\
        int cost(int n) { return n > 1000 ? more(n) : COST * n; }\n",
    );
    sandbox.put("main.c", b"#include <stdio.h>\nint cost(int);\nint main(void) { printf(\"cost %d\\n\", cost(7)); return 0; }\n");
    let run = |line: &str| {
        let mut words = line.split(' ');
        let outcome = sandbox.run(Command::new(words.next().unwrap()).args(words));
        assert_eq!(outcome.exit, 0, "{line}: {}", outcome.stderr());
    };
    for (folder, cost) in [("a", 100), ("b", 120)] {
        std::fs::create_dir(sandbox.path(folder)).unwrap();
        run(&format!(
            "gcc-12 -O2 -DCOST={cost} -shared -fPIC -Wl,-q -Wl,-soname,libcost.so.1 object.c -o {folder}/libcost.so.1.2"
        ));
    }
    std::os::unix::fs::symlink("libcost.so.1.2", sandbox.path("a/libcost.so.1")).unwrap();
    run("gcc-12 -O2 main.c a/libcost.so.1.2 -o loader");
    run("gcc-12 -O2 main.c a/libcost.so.1.2 -Wl,--disable-new-dtags,-rpath,a -o set-on-its-own");
}

#[test]
fn two_builds_are_compared_in_the_program_that_loads_them() {
    let sandbox = Sandbox::default();
    costs(&sandbox);
    let compare = |files: [&str; 2], workload: &[&str]| {
        let mut words = vec!["compare", files[0], files[1], "--no-probe", "--runs", "2", "--blocks", "8"];
        words.extend(["--ignore-output", "--metric", "pattern:cost ([0-9]+)", "--json", "--"]);
        words.extend(workload);
        sandbox.afterlink(&words)
    };
    let objects = ["a/libcost.so.1.2", "b/libcost.so.1.2"];
    // `loader` finds neither of them by itself.
    let judged = compare(objects, &["./loader"]);
    assert_eq!(judged.exit, 1, "{}", judged.stderr());
    let json: serde_json::Value = serde_json::from_str(&judged.stdout()).unwrap();
    let change = json["analysis"]["benchmarks"][0]["change"]["percent"].as_f64();
    assert_eq!(change.map(f64::round), Some(20.0), "{}", json["analysis"]["benchmarks"][0]);
    let same = compare([objects[0]; 2], &["sh", "-c", "./loader; test -s $AFTERLINK_LIBRARIES/libcost.so.1"]);
    assert_eq!(same.exit, 0, "{}", same.stderr());

    let refused = |files, workload: &[&str], words: &[&str]| {
        let outcome = compare(files, workload);
        let said = outcome.stderr();
        // Exit codes 1 to 3 are verdicts.
        assert_eq!((outcome.exit, outcome.stdout().as_str()), (64, ""), "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    };
    refused(objects, &["./set-on-its-own"], &["does not load A", "RPATH"]);
    refused(objects, &["echo", "cost 7"], &["does not load A", "LD_LIBRARY_PATH"]);
    refused(
        ["a/libcost.so.1.2", "loader"],
        &["./loader"],
        &["libcost.so.1.2", "shared object, and the other"],
    );
    refused(objects, &[], &["does not run by itself", "a command that loads it"]);
}
