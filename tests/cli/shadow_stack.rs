//! `optimize --drop-shadow-stack`: what the mark of `-fcf-protection` keeps `hot-inlining` from, and how it is taken off.

use afterlink_testkit::counting::compile;
use afterlink_testkit::execute::Outcome;
use afterlink_testkit::sandbox::Sandbox;
use std::process::Command;

/// Linkers set the mark if all objects have it, those of the C library too, which not every distribution builds so: here they are told to.
const MARKED: [&str; 2] = ["-fcf-protection=full", "-Wl,-z,ibt,-z,shstk"];

/// Of a program without a profile, calls are drawn at random.
const ASKED: [&str; 2] = ["--pass", "hot-inlining"];

fn sandbox(flags: &[&str]) -> Sandbox {
    sandbox_of("leaves.c", flags)
}

fn sandbox_of(source: &str, flags: &[&str]) -> Sandbox {
    let sandbox = Sandbox::default();
    compile(&sandbox, source, "plain", flags);
    sandbox
}

/// What `optimize` says; the output does what the program does, and is proven.
#[track_caller]
fn optimized(sandbox: &Sandbox, flags: &[&str]) -> String {
    let words =
        ["optimize", "plain", "-o", "out", "--scope", "all", "--order-blocks", "random", "--seed", "1"];
    let done = sandbox.afterlink(&[&words[..], flags].concat());
    assert_eq!(done.exit, 0, "{}", done.stderr());
    let outcome = |program: &str| sandbox.run(&mut Command::new(program));
    let said = |outcome: Outcome| (outcome.exit, outcome.stdout());
    assert_eq!(said(outcome("./plain")), said(outcome("./out")));
    let verified = sandbox.afterlink(&["verify", "plain", "out"]);
    let is_told = verified.stdout().contains("the mark for shadow stacks is gone");
    assert_eq!((verified.exit, is_told), (0, done.stdout().contains("the program's mark for one is gone")));
    done.stdout()
}

/// What the output is marked for, and whether code stands in place of calls.
fn marks(sandbox: &Sandbox) -> (String, bool) {
    let notes = sandbox.run(Command::new("readelf").args(["-n", "out"])).stdout();
    let features = notes.lines().find_map(|line| line.split_once("x86 feature: "));
    let symbols = sandbox.run(Command::new("nm").arg("out")).stdout();
    (features.map_or("", |(_, features)| features).to_owned(), symbols.contains(".inlined"))
}

#[test]
fn the_mark_is_kept_unless_it_is_to_go() {
    let sandbox = sandbox(&MARKED);
    let said = optimized(&sandbox, &ASKED);
    assert!(said.contains("--drop-shadow-stack takes the mark off"), "{said}");
    assert_eq!(marks(&sandbox), ("IBT, SHSTK".to_owned(), false));

    let said = optimized(&sandbox, &[&ASKED[..], &["--drop-shadow-stack"]].concat());
    assert!(said.contains("the program's mark for one is gone"), "{said}");
    assert_eq!(marks(&sandbox), ("IBT".to_owned(), true));

    // Who does not want code in place of calls is not told what keeps it away.
    let said = optimized(&sandbox, &["--skip-pass", "hot-inlining"]);
    assert!(!said.contains("shadow stack"), "{said}");
    assert_eq!(marks(&sandbox), ("IBT, SHSTK".to_owned(), false));
}

#[test]
fn indirect_calls_are_left_alone_like_others() {
    let sandbox = sandbox_of("pointers.c", &MARKED);
    let asked = ["--skip-pass", "hot-inlining", "--pass", "call-promotion"];
    let said = optimized(&sandbox, &asked);
    assert!(said.contains("--drop-shadow-stack takes the mark off"), "{said}");
    assert_eq!(marks(&sandbox), ("IBT, SHSTK".to_owned(), false));

    optimized(&sandbox, &[&asked[..], &["--drop-shadow-stack"]].concat());
    assert_eq!(marks(&sandbox).0, "IBT");
}

#[test]
fn a_program_without_the_mark_is_as_it_would_be() {
    let sandbox = sandbox(&["-fcf-protection=none"]);
    for flags in [&[][..], &["--drop-shadow-stack"]] {
        let said = optimized(&sandbox, &[&ASKED[..], flags].concat());
        assert!(!said.contains("shadow stack"), "{said}");
        assert_eq!(marks(&sandbox), (String::new(), true));
    }
}
