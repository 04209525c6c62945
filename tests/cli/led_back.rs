//! What is seen of an optimized program is led back to the program that it was made of.

use afterlink_testkit::counting::compile;
use afterlink_testkit::sandbox::{Sandbox, assert_clear_error, built};
use afterlink_testkit::stepping;
use object::{Object, ObjectSymbol, SymbolKind};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The program's code, and the output's, lies below this address.
const LIMIT: u64 = 0x1000_0000;

fn run(sandbox: &Sandbox, words: &[&str]) -> String {
    let done = sandbox.afterlink(words);
    assert_eq!(done.exit, 0, "{words:?}: {}", done.stderr());
    done.stdout()
}

/// Converts what was seen of `program`, and returns the profile.
fn converted(sandbox: &Sandbox, seen: &str, program: &str, profile: &str, more: &[&str]) -> String {
    run(sandbox, &[&["profile", "convert", seen, "--binary", program, "-o", profile], more].concat());
    fs::read_to_string(sandbox.path(profile)).unwrap()
}

fn seen(sandbox: &Sandbox, program: &str, name: &str) {
    sandbox.put(name, stepping::branches(&sandbox.path(program), LIMIT).as_bytes());
}

/// Counts by what they are of.
fn counts(profile: &str) -> BTreeMap<&str, u64> {
    let halves = profile.lines().filter_map(|line| line.rsplit_once(' '));
    halves.map(|(what, count)| (what, count.parse().expect("a count"))).collect()
}

/// The share of all counts that is in one of two profiles only.
fn difference(first: &str, second: &str) -> f64 {
    let (first, second) = (counts(first), counts(second));
    let of = |counts: &BTreeMap<&str, u64>, what: &str| counts.get(what).copied().unwrap_or(0);
    let mut all: Vec<&str> = first.keys().chain(second.keys()).copied().collect();
    all.sort_unstable();
    all.dedup();
    let sum: u64 = all.iter().map(|what| of(&first, what).abs_diff(of(&second, what))).sum();
    sum as f64 / first.values().sum::<u64>() as f64
}

/// A folder with a program, its profile by all that it does, and its output by that. What all that the output does tells is the same, but
/// for a jump or two that the output leads around a jump.
#[track_caller]
fn assert_led_back(flags: &[&str], options: &[&str]) -> Sandbox {
    assert_program_led_back("led_back.c", flags, options)
}

#[track_caller]
fn assert_program_led_back(source: &str, flags: &[&str], options: &[&str]) -> Sandbox {
    let sandbox = Sandbox::default();
    let all = [&["-no-pie", "-static", "-nostdlib", "-Wl,--build-id"], flags].concat();
    compile(&sandbox, source, "in", &all);
    seen(&sandbox, "in", "in.seen");
    let first = converted(&sandbox, "in.seen", "in", "in.fdata", &[]);
    run(&sandbox, &[&["optimize", "in", "-p", "in.fdata", "-o", "out"], options].concat());
    seen(&sandbox, "out", "out.seen");
    assert_ne!(fs::read(sandbox.path("in.seen")).unwrap(), fs::read(sandbox.path("out.seen")).unwrap());
    let second = converted(&sandbox, "out.seen", "out", "out.fdata", &["--original", "in"]);
    let difference = difference(&first, &second);
    assert!(difference < 0.02, "{difference}\n{first}\n{second}");
    sandbox
}

#[test]
fn all_that_an_output_does_is_what_its_input_does() {
    for order in ["ext-tsp", "reverse", "random"] {
        let sandbox = assert_led_back(&[], &["--order-blocks", order]);
        let alone = converted(&sandbox, "out.seen", "out", "alone.fdata", &[]);
        assert_eq!(alone, fs::read_to_string(sandbox.path("out.fdata")).unwrap());
    }
}

#[test]
fn code_that_was_inlined_and_folded() {
    let sandbox = assert_led_back(&[], &["--pass", "identical-functions", "--pass", "inlining"]);
    let alone = ["profile", "convert", "out.seen", "--binary", "out", "-o", "alone.fdata"];
    assert_clear_error(&sandbox.afterlink(&alone), &["several functions became one", "--original"]);
}

#[test]
fn hot_parts_in_place_of_calls() {
    assert_led_back(&[], &["--pass", "hot-inlining"]);
}

/// Of a call through a pointer whose callee's code stands in its place, the other callees are called by a way out to the call itself.
#[test]
fn hot_parts_in_place_of_indirect_calls() {
    let options = ["--pass", "call-promotion", "--report", "report.json"];
    let sandbox = assert_program_led_back("led_back_pointers.c", &[], &options);
    let report = fs::read_to_string(sandbox.path("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let pass = report["passes"].as_array().unwrap().iter().find(|pass| pass["name"] == "call-promotion");
    assert_eq!(pass.unwrap()["changes"], 1, "{pass:?}");
    let led_back = fs::read_to_string(sandbox.path("out.fdata")).unwrap();
    let calls = |profile: &str, callee: &str| -> u64 {
        let of = |line: &&str| line.contains(" work/1 ") && line.contains(&format!(" {callee}/1 0 "));
        profile.lines().filter(of).map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
    };
    let before = fs::read_to_string(sandbox.path("in.fdata")).unwrap();
    for callee in ["often", "seldom"] {
        assert_eq!(calls(&led_back, callee), calls(&before, callee), "{callee}\n{led_back}\n{before}");
    }
    assert_eq!(calls(&before, "seldom"), 7, "{before}");
}

/// An entry without its mark is where the function is entered.
#[test]
fn entries_without_marks() {
    let flags = ["-fcf-protection=branch", "-Dstatic="];
    let sandbox = assert_led_back(&flags, &["--pass", "entry-marks", "--report", "report.json"]);
    let report = fs::read_to_string(sandbox.path("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let pass = report["passes"].as_array().unwrap().iter().find(|pass| pass["name"] == "entry-marks");
    assert!(pass.unwrap()["changes"].as_u64().unwrap() > 3, "{pass:?}");
}

#[test]
fn blocks_that_stand_twice() {
    let sandbox = assert_led_back(&[], &["--pass", "tail-duplication"]);
    let map = run(&sandbox, &["where", "out", "--json"]);
    assert!(map.contains("duplicated"), "{map}");
}

/// Control that runs from one function into the next one jumped there in the input, with nothing between the two and with a nop.
#[test]
fn functions_that_run_on_into_others() {
    // Behind `next_one` a nop stands; `only_jumps` is one.
    for (order, name, next, sizes) in
        [("cdsort", "next_one", "only_jumps", (8, 4)), ("reverse", "only_jumps", "last", (5, 2))]
    {
        let options = ["--skip-pass", "hot-inlining", "--skip-pass", "branches", "--order-functions", order];
        let sandbox = assert_program_led_back("runs_on.c", &[], &options);
        let with_jumps = [
            &["optimize", "in", "-p", "in.fdata", "-o", "jumps", "--skip-pass", "adjacent-functions"],
            &options[..],
        ];
        run(&sandbox, &with_jumps.concat());
        let [jumps, out] = ["jumps", "out"].map(|output| functions_by_name(&sandbox.path(output)));
        assert_eq!(out[name].1, out[next].0, "{order}: {out:x?}");
        let size = |functions: &BTreeMap<String, (u64, u64)>| functions[name].1 - functions[name].0;
        assert_eq!((size(&jumps), size(&out)), sizes, "{order}");
    }
}

/// The functions of an output, and the parts that its compiler had cut off, have the names that they have in its input.
#[test]
fn places_have_the_names_of_the_input() {
    for case in ["cold_fragments", "jump_table", "hot_loop"] {
        let sandbox = Sandbox::default();
        sandbox.put("in", &fs::read(built(case, "gcc -O2 -no-pie")).unwrap());
        run(&sandbox, &["optimize", "in", "--scope", "all", "--order-blocks", "random", "-o", "out"]);
        let places: String = functions(&sandbox.path("in"))
            .iter()
            .map(|at| format!("S {at:x} 1\nS {:x} 1\n", at + 1))
            .collect();
        sandbox.put("seen", places.as_bytes());
        let named = converted(&sandbox, "seen", "in", "in.fdata", &[]);
        assert_eq!(converted(&sandbox, "seen", "out", "out.fdata", &[]), named, "{case}");
    }
}

/// Where the functions of a program start.
fn functions(program: &Path) -> Vec<u64> {
    let bytes = fs::read(program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let functions = file.symbols().filter(|s| s.kind() == SymbolKind::Text && s.is_definition());
    functions.map(|s| s.address()).collect()
}

/// Samples of the output are taken where the machine lets anybody sample, with and without the original at hand.
#[test]
fn recordings_of_an_output() {
    let sandbox = Sandbox::default();
    compile(&sandbox, "sampled.c", "in", &["-pthread", "-Wl,--build-id"]);
    let heat = |profile: &str| {
        let text = fs::read_to_string(sandbox.path(profile)).unwrap();
        let of = |name: &str| -> u64 {
            let lines = text.lines().filter(|line| line.contains(name));
            lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
        };
        ["in_thread", "in_child", "in_itself"].map(of)
    };
    let first = sandbox.afterlink(&["record", "-o", "in.fdata", "--", "./in", "5"]);
    if first.exit != 0 {
        eprintln!("not tested here: {}", first.stderr());
        return;
    }
    run(&sandbox, &["optimize", "in", "-p", "in.fdata", "-o", "out"]);
    run(&sandbox, &["record", "-o", "out.fdata", "--", "./out", "5"]);
    run(&sandbox, &["record", "-o", "out.data", "--", "./out", "5"]);
    // The output is found where it was when it was recorded.
    run(&sandbox, &["profile", "convert", "out.data", "--binary", "in", "-o", "found.fdata"]);
    for profile in ["out.fdata", "found.fdata"] {
        let heat = heat(profile);
        assert!(heat.iter().all(|&samples| samples > 20), "{profile}: {heat:?}");
        run(&sandbox, &["optimize", "in", "-p", profile, "-o", "again"]);
    }
    run(&sandbox, &["optimize", "in", "-p", "out.data", "-o", "again"]);
    fs::rename(sandbox.path("out"), sandbox.path("elsewhere")).unwrap();
    let lost = sandbox.afterlink(&["optimize", "in", "-p", "out.data", "-o", "again"]);
    assert_clear_error(&lost, &["did not run in this recording", "--binary"]);
}

#[test]
fn an_original_that_is_none() {
    let sandbox = assert_led_back(&[], &[]);
    compile(&sandbox, "sampled.c", "other", &["-Wl,--build-id"]);
    let convert = |binary: &str, original: &str| {
        let words = ["profile", "convert", "out.seen", "-o", "P", "--binary", binary, "--original", original];
        sandbox.afterlink(&words)
    };
    assert_clear_error(&convert("out", "other"), &["not made of the program"]);
    assert_clear_error(&convert("in", "in"), &["no output of afterlink"]);
    assert_eq!(sandbox.run(std::process::Command::new("strip").args(["out", "-o", "stripped"])).exit, 0);
    let alone = ["profile", "convert", "out.seen", "-o", "P", "--binary", "stripped"];
    assert_clear_error(&sandbox.afterlink(&alone), &["stripped", "--original"]);
    assert_eq!(convert("stripped", "in").exit, 0);
    let stripped = fs::read_to_string(sandbox.path("P")).unwrap();
    assert_eq!(stripped, fs::read_to_string(sandbox.path("out.fdata")).unwrap());
}

/// Where functions start and end.
fn functions_by_name(program: &Path) -> BTreeMap<String, (u64, u64)> {
    let bytes = fs::read(program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let functions = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0);
    let ends = |at: u64, size: u64| (at, at + size);
    functions.map(|f| (f.name().unwrap().to_owned(), ends(f.address(), f.size()))).collect()
}
