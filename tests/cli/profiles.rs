//! Profiles that don't fit: empty, damaged, of another program, of another build. Each is said in one line with numbers.

use std::fs;

use afterlink_testkit::sandbox::{Sandbox, assert_clear_error, built};

fn sandbox_with_program() -> Sandbox {
    let sandbox = Sandbox::default();
    sandbox.put("in", &fs::read(built("hot_loop", "gcc -O2")).unwrap());
    sandbox
}

fn optimize_by(sandbox: &Sandbox, profile: &str) -> afterlink_testkit::execute::Outcome {
    sandbox.afterlink(&["optimize", "in", "--profile", profile, "-o", "out"])
}

/// The profile of a run of the instrumented program, as text.
fn recorded(sandbox: &Sandbox) -> String {
    let instrument = sandbox.afterlink(&["instrument", "in", "-o", "counted", "--counters", "counters"]);
    assert_eq!(instrument.exit, 0, "{}", instrument.stderr());
    assert_eq!(sandbox.run(&mut std::process::Command::new(sandbox.path("counted"))).exit, 0);
    let convert = sandbox.afterlink(&["profile", "convert", "counters", "-o", "recorded.fdata"]);
    assert!(convert.stdout().contains("written      recorded.fdata"), "{}", convert.stdout());
    assert_eq!(convert.exit, 0, "{}", convert.stderr());
    let written = fs::read_to_string(sandbox.path("recorded.fdata")).unwrap();
    let piped = sandbox.afterlink(&["profile", "convert", "counters", "-o", "-"]);
    assert_eq!((piped.exit, piped.stdout()), (0, written.clone()), "{}", piped.stderr());
    assert!(piped.stderr().contains("branches in") && !sandbox.path("-").exists(), "{}", piped.stderr());
    written
}

#[test]
fn empty() {
    let sandbox = sandbox_with_program();
    sandbox.put("empty", b"");
    assert_clear_error(&optimize_by(&sandbox, "empty"), &["empty"]);
    assert_clear_error(&optimize_by(&sandbox, "absent"), &["absent"]);
    assert!(!sandbox.path("out").exists());
    for job in ["convert", "merge"] {
        assert_clear_error(&sandbox.afterlink(&["profile", job, "empty", "-o", "out"]), &["empty"]);
        assert!(!sandbox.path("out").exists());
    }
}

#[test]
fn of_another_program() {
    let sandbox = sandbox_with_program();
    sandbox.put("foreign", b"1 somewhere 0 1 elsewhere 0 0 7\n1 elsewhere 4 1 elsewhere 8 0 700\n");
    assert_clear_error(&optimize_by(&sandbox, "foreign"), &["2", "names"]);
    assert!(!sandbox.path("out").exists());
}

/// A few names that every program has do not make a profile this program's.
#[test]
fn mostly_of_another_program() {
    let sandbox = sandbox_with_program();
    let other: String = (0..7).map(|i| format!("1 other_{i} 4 1 other_{i} 0 0 10\n")).collect();
    sandbox.put("names", format!("{other}1 [libc] 0 1 main 0 0 100000\n").as_bytes());
    let calls = "1 main 1 1 sieve 0 0 1\n1 sieve 1 1 round_trip 0 0 1\n1 elsewhere 8 1 elsewhere 0 0 900\n";
    sandbox.put("counts", calls.as_bytes());
    for (profile, names) in [("names", "1 of 8 names"), ("counts", "3 of 4 names")] {
        let words = ["most of the profile is not about", names, "--any-profile"];
        assert_clear_error(&optimize_by(&sandbox, profile), &words);
        assert!(!sandbox.path("out").exists());
        let arguments = ["optimize", "in", "--profile", profile, "-o", "insisted", "--any-profile"];
        let insisted = sandbox.afterlink(&arguments);
        assert_eq!(insisted.exit, 0, "{}", insisted.stderr());
        assert!(insisted.stdout().contains("WARNING"), "{}", insisted.stdout());
    }
    // Calls out of the program say nothing.
    let stubs: String = (0..7).map(|i| format!("1 main 4 1 stub_{i}@PLT 0 0 10\n")).collect();
    sandbox.put("stubs", format!("{stubs}1 main 1 1 sieve 0 0 1\n").as_bytes());
    let outcome = optimize_by(&sandbox, "stubs");
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
}

/// Samples of single addresses are shown and summed, and a layout is made by them.
#[test]
fn samples_without_branches() {
    let sandbox = sandbox_with_program();
    sandbox.put("samples", b"no_lbr cycles\n1 main 10 5\n1 sieve 20 7\n");
    let outcome = optimize_by(&sandbox, "samples");
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    assert!(
        outcome.stdout().contains("2 of 2 names known, 100.0 % of the counts fit"),
        "{}",
        outcome.stdout()
    );
    assert_eq!(sandbox.afterlink(&["verify", "in", "out"]).exit, 0);
    let shuffle = ["shuffle", "in", "-n", "1", "-o", "layouts", "--jitter", "--profile", "samples"];
    let outcome = sandbox.afterlink(&shuffle);
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    // Counts of branches and samples of time can't be summed.
    sandbox.put("branches", b"1 main 10 1 main 20 0 5\n");
    let both = ["optimize", "in", "-p", "samples", "-p", "branches", "-o", "both"];
    assert_clear_error(&sandbox.afterlink(&both), &["samples", "branches"]);
    assert!(!sandbox.path("both").exists());
    let merged = sandbox.afterlink(&["profile", "merge", "samples", "samples", "-o", "twice"]);
    assert_eq!(merged.exit, 0, "{}", merged.stderr());
    let twice = fs::read_to_string(sandbox.path("twice")).unwrap();
    assert!(twice.contains("1 sieve 20 e") || twice.contains("1 sieve 20 14"), "{twice}");
    let shown = sandbox.afterlink(&["profile", "show", "twice"]);
    assert!(shown.stdout().starts_with("24 samples"), "{}", shown.stdout());
}

#[test]
fn partly_of_another_build() {
    let sandbox = sandbox_with_program();
    let mut text = recorded(&sandbox);
    text.push_str("1 removed 0 1 renamed 0 0 7\n1 sieve ffff 1 sieve fff0 0 12\n");
    sandbox.put("stale", text.as_bytes());
    let outcome = optimize_by(&sandbox, "stale");
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    let said = outcome.stdout();
    let line = said.lines().find(|l| l.starts_with("profile")).expect("a line about the profile");
    assert!(line.contains(" of ") && line.contains('%'), "{line}");
    assert!(!line.contains("100.0 %"), "the records that don't fit are not told: {line}");
}

/// Whoever counts calls but no branch of a function says nothing of what is cold in it.
#[test]
fn without_counts_inside_nothing_is_split() {
    let sandbox = sandbox_with_program();
    let text = recorded(&sandbox);
    let inside = |line: &&str| line.starts_with("1 sieve ") && line.contains(" 1 sieve ");
    assert!(text.lines().any(|line| inside(&line)));
    let calls: Vec<&str> = text.lines().filter(|line| !inside(line)).collect();
    sandbox.put("calls", format!("{}\n", calls.join("\n")).as_bytes());
    let outcome = optimize_by(&sandbox, "calls");
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    // Its instructions, one behind the other; padding between blocks is dropped.
    let instructions = |program: &str| {
        let options = ["-d", "--no-show-raw-insn", "--disassemble=sieve", program];
        let listed =
            String::from_utf8(sandbox.run(std::process::Command::new("objdump").args(options)).stdout);
        let words = listed.unwrap();
        let names =
            words.lines().filter_map(|l| Some(l.split_once(":\t")?.1.split_whitespace().next()?.to_owned()));
        names.filter(|name| !name.starts_with("nop") && name != "data16" && name != "cs").collect::<Vec<_>>()
    };
    assert!(instructions("in").len() > 20);
    assert_eq!(instructions("in"), instructions("out"), "it is whole, and its blocks are in their order");
}

#[test]
fn damaged() {
    let sandbox = sandbox_with_program();
    let text = recorded(&sandbox);
    let lines = text.lines().count();
    sandbox.put("damaged", format!("{text}1 sieve zz 1 sieve 10 0 5\n").as_bytes());
    assert_clear_error(&optimize_by(&sandbox, "damaged"), &["damaged", &format!("{}", lines + 1)]);
    sandbox.put("noise", &[0xff, 0, 1, 2, 3, 0x80].repeat(50));
    assert_clear_error(&optimize_by(&sandbox, "noise"), &["noise"]);
    let counters = fs::read(sandbox.path("counters")).unwrap();
    sandbox.put("cut", &counters[..counters.len() / 2]);
    assert_clear_error(&sandbox.afterlink(&["profile", "convert", "cut", "-o", "cut.fdata"]), &["cut"]);
    sandbox.put("in-for-profile", &fs::read(sandbox.path("in")).unwrap());
    assert_clear_error(&optimize_by(&sandbox, "in-for-profile"), &["in-for-profile"]);
}

/// Two runs' profiles given together count as their merged profile does.
#[test]
fn several_are_summed() {
    let sandbox = sandbox_with_program();
    recorded(&sandbox);
    let merged =
        sandbox.afterlink(&["profile", "merge", "recorded.fdata", "recorded.fdata", "-o", "twice.fdata"]);
    assert_eq!(merged.exit, 0, "{}", merged.stderr());
    let total = |name: &str| -> u64 {
        let text = fs::read_to_string(sandbox.path(name)).unwrap();
        text.lines().filter_map(|l| l.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    };
    assert_eq!(total("twice.fdata"), 2 * total("recorded.fdata"));
    let both =
        ["optimize", "in", "--profile", "recorded.fdata", "--profile", "recorded.fdata", "-o", "by-both"];
    assert_eq!(sandbox.afterlink(&both).exit, 0);
    let twice = sandbox.afterlink(&["optimize", "in", "--profile", "twice.fdata", "-o", "by-merged"]);
    assert_eq!(twice.exit, 0, "{}", twice.stderr());
    assert_eq!(fs::read(sandbox.path("by-both")).unwrap(), fs::read(sandbox.path("by-merged")).unwrap());
}

/// BOLT's merge-fdata reads what is written here, and what it writes is read.
#[test]
fn bolts_merge_fdata_agrees() {
    let sandbox = sandbox_with_program();
    recorded(&sandbox);
    let merged =
        sandbox.run(std::process::Command::new("merge-fdata-22").args(["recorded.fdata", "recorded.fdata"]));
    assert_eq!(merged.exit, 0, "{}", merged.stderr());
    sandbox.put("by-bolt", &merged.stdout);
    let ours = sandbox.afterlink(&["profile", "merge", "recorded.fdata", "recorded.fdata", "-o", "ours"]);
    assert_eq!(ours.exit, 0);
    let again = sandbox.afterlink(&["profile", "merge", "by-bolt", "-o", "by-bolt-again"]);
    assert_eq!(again.exit, 0, "{}", again.stderr());
    assert_eq!(fs::read(sandbox.path("ours")).unwrap(), fs::read(sandbox.path("by-bolt-again")).unwrap());
}

/// A profile is graded before it is used, by the program that it is of if that is at hand.
#[test]
fn grades() {
    let sandbox = sandbox_with_program();
    recorded(&sandbox);
    let show = |arguments: &[&str]| {
        let shown = sandbox.afterlink(&[&["profile", "show"], arguments].concat());
        assert_eq!(shown.exit, 0, "{}", shown.stderr());
        shown.stdout()
    };
    let good = show(&["recorded.fdata", "--binary", "in"]);
    assert!(good.contains("\ngrade: good\n") && !good.contains("better"), "{good}");
    for aspect in ["kind", "density", "staleness", "flow", "coverage"] {
        assert!(good.contains(&format!("  {aspect} ")), "{good}");
    }
    // Of another compiler's build.
    sandbox.put("other", &fs::read(built("hot_loop", "clang -O2")).unwrap());
    let stale = show(&["recorded.fdata", "--binary", "other"]);
    assert!(
        !stale.contains("grade: good") && stale.contains("better staleness: profile this very"),
        "{stale}"
    );
    sandbox.put("samples", b"no_lbr cycles\n1 main 10 5\n1 sieve 20 1\n");
    let thin = show(&["samples", "--binary", "in"]);
    assert!(thin.contains("\ngrade: ") && thin.contains("better density: record for longer"), "{thin}");
    assert!(thin.contains("better kind: count with") && !thin.contains("  flow "), "{thin}");
    let json: serde_json::Value =
        serde_json::from_str(&show(&["recorded.fdata", "--binary", "in", "--json"])).unwrap();
    assert_eq!((&json["grade"]["grade"], &json["kind"]), (&"good".into(), &"branches".into()));
    assert_eq!(json["grade"]["aspects"][2]["name"], "staleness");
}

/// The hottest function is where the report says, with no more taken branches than all functions have.
#[test]
fn the_report_tells_what_became_of_the_hottest() {
    let sandbox = sandbox_with_program();
    recorded(&sandbox);
    let optimize = |report: &str| {
        let arguments = ["optimize", "in", "--profile", "recorded.fdata", "-o", "out", "--report", report];
        let outcome = sandbox.afterlink(&arguments);
        assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
        fs::read_to_string(sandbox.path(report)).unwrap()
    };
    let json: serde_json::Value = serde_json::from_str(&optimize("report.json")).unwrap();
    let hottest = json["hottest"].as_array().unwrap();
    let count = |of: &serde_json::Value, key: &str| of[key].as_u64().unwrap();
    assert!(
        hottest.windows(2).all(|two| count(&two[0], "executed_blocks") >= count(&two[1], "executed_blocks"))
    );
    for side in ["before", "after"] {
        let sum: u64 =
            hottest.iter().map(|function| count(&function["expected"][side], "taken_branches")).sum();
        assert_eq!(sum, count(&json["dyno_stats"][side], "taken_branches"), "{side}: all functions are told");
        assert_eq!(sum, count(&json["expected"][side], "taken_branches"), "{side}");
    }
    let first = &hottest[0];
    let address = count(&first["fragments"][0], "address");
    let symbols = std::process::Command::new("nm").arg(sandbox.path("out")).output().unwrap();
    let symbols = String::from_utf8(symbols.stdout).unwrap();
    let line = format!("{address:016x} ");
    let name = first["name"].as_str().unwrap();
    assert!(
        symbols.lines().any(|l| l.starts_with(&line) && l.ends_with(name)),
        "{name} at {address:#x}: {symbols}"
    );
    let page = optimize("report.html");
    assert!(page.contains("</html>") && page.contains(name) && !page.contains("http"));
    assert!(page.contains(&format!("{address:#x} in .text, ")), "{page}");
    let text = optimize("report.txt");
    assert!(text.contains("not measured") && text.contains(&format!("{address:#x} in .text, ")), "{text}");
    assert!(text.contains(&format!("\n{name} (")) && text.contains("functions    "), "{text}");
    // Nobody waits for what nobody asked for.
    let quiet = sandbox.afterlink(&["optimize", "in", "--profile", "recorded.fdata", "-o", "out"]);
    assert!(!quiet.stdout().contains("What to expect"), "{}", quiet.stdout());
}
