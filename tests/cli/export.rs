//! `export` prints what is asked for, and says clearly what it cannot print.

use afterlink_testkit::sandbox::{Sandbox, assert_clear_error, built};
use std::process::Command;

fn sandbox_with_program() -> Sandbox {
    let sandbox = Sandbox::default();
    sandbox.put("in", &std::fs::read(built("jump_table", "gcc -O2")).unwrap());
    sandbox
}

fn exported(sandbox: &Sandbox, options: &[&str]) -> String {
    let outcome = sandbox.afterlink(&[&["export", "in"], options].concat());
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    outcome.stdout()
}

#[test]
fn a_program_and_some_of_its_functions() {
    let sandbox = sandbox_with_program();
    let whole = exported(&sandbox, &[]);
    assert!(whole.starts_with("program x86-64\n"), "{whole}");
    assert!(
        ["\nfunction main 0x", "\ntable 0x", "\nunwind fde", "\nrow0 cfa r7 + 8"]
            .iter()
            .all(|w| whole.contains(w))
    );
    let part = exported(&sandbox, &["--functions", "^main$"]);
    assert_eq!(part.matches("\nfunction ").count(), 1, "{part}");
    assert!(part.contains("(call 0x") && !part.contains("(call step)") && whole.contains("(call step)"));
    sandbox.afterlink(&["export", "in", "-o", "out"]);
    assert_eq!(std::fs::read_to_string(sandbox.path("out")).unwrap(), whole);
}

#[test]
fn after_a_pass() {
    let sandbox = sandbox_with_program();
    let order = ["--scope", "all", "--order-functions", "reverse"];
    let first = |text: &str| text.lines().find(|l| l.starts_with("fragment")).unwrap_or_default().to_owned();
    let all = exported(&sandbox, &[&order[..], &["--after", "all"]].concat());
    let before_order = exported(&sandbox, &[&order[..], &["--after-pass", "splitting"]].concat());
    assert_ne!(first(&all), first(&before_order));
    assert!(exported(&sandbox, &["--scope", "all", "--after-pass", "plt-calls"]).contains("\n  new 0x"));
    let without_profile = sandbox.afterlink(&["export", "in", "--after", "all"]);
    assert_clear_error(&without_profile, &["--profile", "--scope all"]);
}

#[test]
fn what_cannot_be_printed() {
    let sandbox = sandbox_with_program();
    assert_clear_error(
        &sandbox.afterlink(&["export", "in", "--functions", "^nobody$"]),
        &["nobody", "--functions"],
    );
    assert_clear_error(
        &sandbox.afterlink(&["export", "in", "--functions", "("]),
        &["--functions", "regular expression"],
    );
    assert_clear_error(&sandbox.afterlink(&["export", "in", "-o", "in"]), &["output is the input"]);
    sandbox.put("text", b"no program");
    assert_clear_error(&sandbox.afterlink(&["export", "text"]), &["text"]);
}

#[test]
fn a_program_for_aarch64() {
    let sandbox = Sandbox::default();
    sandbox.put(
        "small.c",
        b"int main(int n, char **v) { switch (n) { case 1: return 3; default: return v[0][0]; } }",
    );
    let mut compiler = Command::new("aarch64-linux-gnu-gcc");
    assert_eq!(sandbox.run(compiler.args(["-O2", "-Wl,-q", "small.c", "-o", "in"])).exit, 0);
    let text = exported(&sandbox, &["--functions", "^main$"]);
    assert!(text.starts_with("program AArch64\n") && text.contains("; ret"), "{text}");
    let passed = sandbox.afterlink(&["export", "in", "--scope", "all", "--after", "all"]);
    assert_clear_error(&passed, &["AArch64"]);
}

/// The outline names what the text form prints, number by number.
#[test]
fn an_outline_for_scripts() {
    let sandbox = sandbox_with_program();
    let options = ["--scope", "all", "--after", "all"];
    let outline = exported(&sandbox, &[&options[..], &["--json"]].concat());
    let outline: serde_json::Value = serde_json::from_str(&outline).unwrap();
    let functions = outline["functions"].as_array().unwrap();
    let text = exported(&sandbox, &options);
    assert_eq!(functions.len(), text.matches("\nfunction ").count());
    let main = functions.iter().find(|function| function["name"] == "main").unwrap();
    let blocks = main["blocks"].as_array().unwrap();
    assert!(blocks.len() > 1 && blocks[0]["address"] == main["address"], "{main}");
    let leads = |block: &serde_json::Value| block["successors"].as_array().unwrap().len();
    assert!(blocks.iter().any(|block| leads(block) == 2) && blocks.iter().any(|block| leads(block) == 0));
    let fragments = outline["fragments"].as_array().unwrap();
    assert_eq!(fragments.len(), text.matches("\nfragment ").count());
    let of_main: usize = fragments
        .iter()
        .filter(|fragment| fragment["function"] == "main")
        .map(|fragment| fragment["blocks"].as_array().unwrap().len())
        .sum();
    assert_eq!(of_main, blocks.len());
    let before: serde_json::Value = serde_json::from_str(&exported(&sandbox, &["--json"])).unwrap();
    assert!(before["fragments"].is_null());
}
