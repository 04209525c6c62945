//! Passes are turned off and on by name, one by one; the report tells which ran.

use afterlink_testkit::execute::Outcome;
use afterlink_testkit::sandbox::{Sandbox, built};

fn sandbox_with_program() -> Sandbox {
    let sandbox = Sandbox::default();
    sandbox.put("in", &std::fs::read(built("jump_table", "gcc -O2")).unwrap());
    sandbox
}

fn optimize(sandbox: &Sandbox, options: &[&str]) -> Outcome {
    let words = ["optimize", "in", "--scope", "all", "-o", "out", "--json", "--check-passes"];
    sandbox.afterlink(&[&words[..], options].concat())
}

/// The names of the passes that ran.
fn ran(outcome: &Outcome) -> Vec<String> {
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    let report: serde_json::Value = serde_json::from_str(&outcome.stdout()).unwrap();
    let passes = report["passes"].as_array().unwrap();
    assert!(passes.iter().all(|pass| pass["seconds"].as_f64().unwrap() >= 0.0), "{report}");
    passes.iter().map(|pass| pass["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn each_pass_can_be_left_out() {
    let sandbox = sandbox_with_program();
    let all = ran(&optimize(&sandbox, &[]));
    assert!(all.len() >= 4, "{all:?}");
    let help = sandbox.afterlink(&["optimize", "--help"]).stdout();
    for name in &all {
        assert!(help.contains(&format!("- {name}:")), "{help}");
        let expected: Vec<String> = all.iter().filter(|other| *other != name).cloned().collect();
        assert_eq!(ran(&optimize(&sandbox, &["--skip-pass", name])), expected);
        assert_eq!(ran(&optimize(&sandbox, &["--pass", name])), all);
    }
    let none: Vec<&str> = all.iter().flat_map(|name| ["--skip-pass", name]).collect();
    assert_eq!(ran(&optimize(&sandbox, &none)), [""; 0]);
}

/// An order that leaves a pass nothing to do is as good as leaving it out.
#[test]
fn an_order_that_changes_nothing_is_no_pass() {
    let sandbox = sandbox_with_program();
    let options = ["--order-blocks", "input", "--order-functions", "input", "--split", "none"];
    let others = ["hot-inlining", "plt-calls", "branches", "adjacent-functions", "function-alignment"];
    assert_eq!(ran(&optimize(&sandbox, &options)), others);
    let as_ordered = code(&sandbox);
    let skipped = ["--skip-pass", "block-order", "--skip-pass", "function-order", "--skip-pass", "splitting"];
    assert_eq!(ran(&optimize(&sandbox, &skipped)), others);
    assert_eq!(code(&sandbox), as_ordered);
}

/// The moved code; the note beside it tells the options.
fn code(sandbox: &Sandbox) -> String {
    let mut dump = std::process::Command::new("objdump");
    let text = sandbox.run(dump.args(["-d", "-j", ".text", "out"]));
    assert_eq!(text.exit, 0, "{}", text.stderr());
    text.stdout()
}

#[test]
fn an_unknown_pass_is_an_error() {
    let sandbox = sandbox_with_program();
    let outcome = optimize(&sandbox, &["--skip-pass", "branch"]);
    let said = outcome.stderr();
    assert_eq!(outcome.exit, 64, "{said}");
    assert!(["'branch'", "branches", "block-order"].iter().all(|word| said.contains(word)), "{said}");
    assert!(!sandbox.path("out").exists());
}

/// Calls through the slots of the linkage table bind lazily, and an auditor of the dynamic linker still sees each.
#[test]
fn an_auditor_sees_calls_that_leave_out_the_stub() {
    let sandbox = Sandbox::default();
    let programs = afterlink_testkit::tests_folder().join("cli/programs");
    let compile = |source: &str, options: &[&str]| {
        let mut gcc = std::process::Command::new("gcc");
        let built = sandbox.run(gcc.args(["-O1", "-fno-builtin"]).arg(programs.join(source)).args(options));
        assert_eq!(built.exit, 0, "{}", built.stderr());
    };
    compile("audited.c", &["-Wl,-z,lazy,--emit-relocs", "-fcf-protection=none", "-o", "in"]);
    compile("auditor.c", &["-shared", "-fPIC", "-o", "auditor.so"]);
    let report = optimize(&sandbox, &["--pass", "plt-calls", "--order-functions", "reverse"]);
    assert_eq!(report.exit, 0, "{}", report.stderr());
    let report: serde_json::Value = serde_json::from_str(&report.stdout()).unwrap();
    let passes = report["passes"].as_array().unwrap();
    let pass = passes.iter().find(|pass| pass["name"] == "plt-calls").unwrap();
    assert!(pass["changes"].as_u64().unwrap() >= 4, "{pass}");
    let audited = |program: &str| {
        let mut command = std::process::Command::new(sandbox.path(program));
        sandbox.run(command.env("LD_AUDIT", sandbox.path("auditor.so")))
    };
    let (original, rewritten) = (audited("in"), audited("out"));
    assert_eq!(original.stderr().matches("strcpy\n").count(), 5, "{}", original.stderr());
    assert_eq!(original.stdout(), "right\n");
    assert_eq!((rewritten.exit, rewritten.stdout()), (0, original.stdout()));
    assert_eq!(rewritten.stderr(), original.stderr());
}

/// Calls through pointers that nearly always lead to one function have its code in their place, and still lead to others.
#[test]
fn counted_targets_stand_in_place_of_indirect_calls() {
    let sandbox = Sandbox::default();
    let source = afterlink_testkit::tests_folder().join("cli/programs/pointers.c");
    std::fs::copy(source, sandbox.path("pointers.c")).unwrap();
    for compiler in ["gcc-12", "clang-22"] {
        sandbox.say(&format!("{compiler} -O2 pointers.c -o in -Wl,-q"));
        let counting = sandbox.afterlink(&["instrument", "in", "-o", "counting", "--counters", "counters"]);
        assert_eq!(counting.exit, 0, "{}", counting.stderr());
        sandbox.say("./counting often");
        let words = ["optimize", "in", "-o", "out", "--json", "--check-passes", "--profile", "counters"];
        let report = sandbox.afterlink(&[&words[..], &["--pass", "call-promotion"]].concat());
        assert_eq!(report.exit, 0, "{}", report.stderr());
        let report: serde_json::Value = serde_json::from_str(&report.stdout()).unwrap();
        let passes = report["passes"].as_array().unwrap();
        let pass = passes.iter().find(|pass| pass["name"] == "call-promotion").unwrap();
        assert_eq!(pass["changes"], 2, "{pass}");
        // Both are called by `work` alone, which is called often enough.
        let names = sandbox.say("nm out");
        assert!(names.contains(" scaled.inlined") && names.contains(" first_sum.inlined"), "{names}");
        assert!(!names.contains(" mixed.inlined") && !names.contains(" second_sum.inlined"), "{names}");
        for command in ["./in", "./in often"] {
            assert_eq!(sandbox.say(command), sandbox.say(&command.replace("in", "out")), "{compiler}");
        }
        std::fs::remove_file(sandbox.path("counters")).unwrap();
    }
}
