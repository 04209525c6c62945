//! `afterlink bisect` on real programs. Faults are planted by the command under test, which breaks the code of some functions
//! in what it is handed if they were moved: so no afterlink that is given to users can plant any.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use afterlink_testkit::execute::Outcome;
use afterlink_testkit::sandbox::{Sandbox, assert_clear_error, built};

/// A program with ten functions besides those of the C runtime, and a command that runs a copy of it in which a trap stands at
/// the start of each function named in `broken`, if that one was moved and, with `all`, only if all were.
fn sandbox(broken: &[&str], all: bool) -> Sandbox {
    let sandbox = Sandbox::default();
    sandbox.put("in", &fs::read(built("function_pointers", "gcc -O2")).unwrap());
    let script = format!(
        r#"#!/bin/bash
# The address of a function in a file, as nm prints it.
address() {{ nm "$1" | sed -n "s/^0*\([0-9a-f]*\) [Tt] $2\$/\1/p"; }}
cp "$1" copy; moved=0; places=""
for name in {names}; do
    new=$(address "$1" $name)
    [ "$new" = "$(address in $name)" ] && continue
    # File offset of the new section, and how far behind its start the function stands.
    read -r start offset < <(readelf -SW "$1" | sed -n 's/.* \.text  *PROGBITS *\([0-9a-f]*\) \([0-9a-f]*\) .*/\1 \2/p')
    moved=$((moved + 1)); places="$places $((0x$new - 0x$start + 0x$offset))"
done
[ {all} = true ] && [ $moved -lt {count} ] && places=""
for place in $places; do printf '\x0f\x0b' | dd of=copy bs=1 seek=$place conv=notrunc status=none; done
exec ./copy
"#,
        names = broken.join(" "),
        count = broken.len(),
    );
    let script = sandbox.put("plant.sh", script.as_bytes());
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    sandbox
}

fn bisect(sandbox: &Sandbox, options: &[&str]) -> Outcome {
    let mut words = vec!["bisect", "in", "--scope", "all", "--order-functions", "reverse"];
    words.extend(options);
    words.extend(["--", "./plant.sh", "{}"]);
    sandbox.afterlink(&words)
}

fn report(outcome: &Outcome) -> serde_json::Value {
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    serde_json::from_str(&outcome.stdout()).unwrap()
}

fn names(report: &serde_json::Value) -> Vec<&str> {
    report["functions"].as_array().unwrap().iter().map(|f| f["name"].as_str().unwrap()).collect()
}

/// Functions of the program that it calls, so that a trap in one of them is met.
fn called() -> [&'static str; 2] {
    ["main", CALLED]
}

const CALLED: &str = "red";

#[test]
fn one_culprit() {
    let sandbox = sandbox(&[CALLED], false);
    let report = report(&bisect(&sandbox, &["--json"]));
    assert_eq!(names(&report), [CALLED]);
    assert_eq!(report["passes_without"], true);
    // Nothing that can be turned off helps: a moved function is broken however it is laid out.
    assert_eq!(report["passes"].as_array().unwrap().len(), 0);
    let moved = report["moved_functions"].as_f64().unwrap();
    assert!(report["runs"].as_f64().unwrap() <= 2.0 * moved.log2().ceil() + 10.0, "{report}");

    // What it says to do helps.
    let skip = report["skip_functions"].as_str().unwrap();
    assert_eq!(skip, format!("--skip-functions '^{CALLED}$'"));
    let pattern = format!("^{CALLED}$");
    let arguments = ["optimize", "in", "--scope", "all", "--skip-functions", &pattern, "-o", "out"];
    assert_eq!(sandbox.afterlink(&arguments).exit, 0);
    assert_eq!(sandbox.run(std::process::Command::new("./plant.sh").arg("out")).exit, 0);
}

#[test]
fn two_that_only_fail_together() {
    let sandbox = sandbox(&called(), true);
    let outcome = bisect(&sandbox, &["--json"]);
    let report = report(&outcome);
    let mut found = names(&report);
    found.sort_unstable();
    let mut expected = called();
    expected.sort_unstable();
    assert_eq!(found, expected);
    let text = bisect(&sandbox, &[]).stdout();
    assert!(text.contains("2 functions of") && text.contains("are needed together"), "{text}");
}

/// The fault is there only where a function was split, so that it is found together with what splits it.
#[test]
fn the_pass_that_breaks_it() {
    let sandbox = sandbox(&["which"], false);
    // The other script, behind a condition.
    let script = "#!/bin/bash\nif nm \"$1\" | grep -q ' which\\.cold$'; then exec ./plant.sh \"$1\"; fi\nexec \"$1\"\n";
    let script = sandbox.put("split.sh", script.as_bytes());
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    let words = ["bisect", "in", "--scope", "all", "--split", "random", "--seed", "1"];
    let report = report(&sandbox.afterlink(&[&words[..], &["--json", "--", "./split.sh", "{}"]].concat()));
    assert_eq!(names(&report), ["which"]);
    assert_eq!(report["passes"], serde_json::json!(["splitting"]));
    let text = sandbox.afterlink(&[&words[..], &["--", "./split.sh", "{}"]].concat()).stdout();
    assert!(text.contains("it does not fail with --split none"), "{text}");
}

#[test]
fn a_program_that_does_not_fail_or_always_does() {
    let sandbox = sandbox(&["no_such_function"], false);
    assert_clear_error(&bisect(&sandbox, &[]), &["passes with the optimized program"]);
    let always = sandbox.afterlink(&["bisect", "in", "--scope", "all", "--", "/bin/false", "{}"]);
    assert_clear_error(&always, &["original"]);
    let absent = sandbox.afterlink(&["bisect", "in", "--scope", "all", "--", "/no/such/command", "{}"]);
    assert_clear_error(&absent, &["/no/such/command"]);
    // No scratch folder is left in the sandbox, and the input is as it was.
    assert_eq!(sandbox.files().into_keys().collect::<Vec<_>>(), ["copy", "in", "plant.sh"]);
}
