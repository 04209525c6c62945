//! `afterlink record`: commands and running processes, with threads and children.

use afterlink_testkit::sandbox::{Sandbox, assert_clear_error};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A folder with a program that works in a thread, a child and itself; `None`, with a line that says so, where nothing may be sampled.
fn sampled() -> Option<Sandbox> {
    let sandbox = Sandbox::default();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/programs/sampled.c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-pthread", "-Wl,-q", "-Wl,--build-id", "-o"]).arg(sandbox.path("in")).arg(source);
    assert!(gcc.status().unwrap().success());
    let tried = sandbox.afterlink(&["record", "-o", "tried.data", "--", "./in", "1"]);
    let why = tried.stderr();
    if ["CAP_PERFMON", "not permitted", "no performance events", "offers no event"]
        .iter()
        .any(|w| why.contains(w))
    {
        eprintln!("not tested here: {why}");
        return None;
    }
    assert_eq!(tried.exit, 0, "{why}");
    Some(sandbox)
}

/// Whether a line of a profile tells of a branch from or to the program; the other end may be in a library.
fn is_branch(line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    let [from, .., _mispredicted, count] = words[..] else { return false };
    let is_place =
        |kind: &str, name: &str| (kind == "1") != (name == "[unknown]") && ["0", "1"].contains(&kind);
    words.len() == 8
        && is_place(from, words[1])
        && is_place(words[3], words[4])
        && [from, words[3]].contains(&"1")
        && count.parse::<u64>().is_ok_and(|count| count > 0)
}

/// All three have their share of the samples.
#[track_caller]
fn assert_all_are_there(sandbox: &Sandbox, profile: &str) {
    let text = fs::read_to_string(sandbox.path(profile)).unwrap();
    assert!(text.starts_with("no_lbr c") || text.lines().all(is_branch), "{text}");
    for name in ["in_thread", "in_child", "in_itself"] {
        let of = text.lines().filter(|line| line.contains(name));
        let count: u64 = of.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum();
        assert!(count > 20, "{name}: {count}\n{text}");
    }
}

#[test]
fn a_command_with_its_threads_and_children() {
    let Some(sandbox) = sampled() else { return };
    let recorded = sandbox.afterlink(&["record", "-o", "P.fdata", "--", "./in", "5"]);
    assert_eq!(recorded.exit, 0, "{}", recorded.stderr());
    let said = recorded.stdout();
    assert!(
        said.starts_with("P.fdata: ") && said.contains(" samples of c") && said.lines().count() == 1,
        "{said}"
    );
    assert_all_are_there(&sandbox, "P.fdata");
    let optimized = sandbox.afterlink(&["optimize", "in", "--profile", "P.fdata", "-o", "out"]);
    assert_eq!(optimized.exit, 0, "{}", optimized.stderr());
    // By way of a shell, which is not the program.
    let command = ["record", "-o", "Q.fdata", "--binary", "in", "--", "sh", "-c", "./in 5; true"];
    let recorded = sandbox.afterlink(&command);
    assert_eq!(recorded.exit, 0, "{}", recorded.stderr());
    assert_all_are_there(&sandbox, "Q.fdata");
    // What it ended with is passed on, when all is written.
    for (end, expected) in [("exit 7", 7), ("kill -9 $$", 128 + 9)] {
        let command = format!("./in 1; {end}");
        let recorded =
            sandbox.afterlink(&["record", "-o", "R.fdata", "--binary", "in", "--", "sh", "-c", &command]);
        assert_eq!(recorded.exit, expected, "{}", recorded.stderr());
        assert!(recorded.stdout().starts_with("R.fdata: "), "{}", recorded.stdout());
    }
}

#[test]
fn a_program_that_leaves_all_work_to_a_library() {
    let Some(sandbox) = sampled() else { return };
    sandbox.put("spin.c", b"volatile long n; void spin(void) { for (long i = 0; i < 300000000; i++) n++; }");
    sandbox.put("main.c", b"void spin(void); int main(void) { spin(); return 0; }");
    sandbox.say("gcc -O2 -fPIC -shared -Wl,-q spin.c -o libspin.so");
    sandbox.say("gcc -O2 -Wl,-q main.c -o main -L. -lspin -Wl,-rpath,.");
    let recorded = sandbox.afterlink(&["record", "--no-branches", "-o", "P.fdata", "--", "./main"]);
    assert!(recorded.stderr().contains(", 0 of them in the program: if a library"), "{}", recorded.stderr());
    assert!(recorded.stderr().contains("--binary"), "{}", recorded.stderr());
    let of_library = ["record", "--no-branches", "--binary", "libspin.so", "-o", "L.fdata", "--", "./main"];
    let recorded = sandbox.afterlink(&of_library);
    assert!(!recorded.stderr().contains(" 0 of them"), "{}", recorded.stderr());
    assert!(fs::read_to_string(sandbox.path("L.fdata")).unwrap().contains(" spin "));
}

/// What a program does to itself takes no sample away.
#[test]
fn programs_that_change_themselves_are_recorded() {
    let Some(sandbox) = sampled() else { return };
    for change in ["closed", "again", "loaded", "copied", "other", "killed"] {
        let command = format!("./in 5 {change}; echo $? > status");
        let recorded =
            sandbox.afterlink(&["record", "-o", "P.fdata", "--binary", "in", "--", "sh", "-c", &command]);
        assert_eq!(recorded.exit, 0, "{change}: {}", recorded.stderr());
        if fs::read_to_string(sandbox.path("status")).unwrap() == "77\n" {
            eprintln!("not tested here: {change}");
            continue;
        }
        assert_all_are_there(&sandbox, "P.fdata");
    }
}

#[test]
fn a_process_that_runs_already() {
    let Some(sandbox) = sampled() else { return };
    let mut server = Command::new("./in").arg("30").current_dir(sandbox.path(".")).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let id = server.id().to_string();
    let recorded = sandbox.afterlink(&["record", "-o", "P.fdata", "-p", &id, "--seconds", "1", "--json"]);
    assert_eq!(recorded.exit, 0, "{}", recorded.stderr());
    assert!(recorded.stdout().contains("\"lost\": 0"), "{}", recorded.stdout());
    assert_all_are_there(&sandbox, "P.fdata");
    // Until it ends.
    let recorded = sandbox.afterlink(&["record", "-o", "Q.fdata", "-p", &id]);
    assert_eq!(recorded.exit, 0, "{}", recorded.stderr());
    assert!(server.wait().unwrap().success());
}

/// Its code is a copy by then, which was mapped before anybody looked.
#[test]
fn a_process_that_runs_a_copy_of_its_code() {
    let Some(sandbox) = sampled() else { return };
    let mut server =
        Command::new("./in").args(["20", "copied"]).current_dir(sandbox.path(".")).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let id = server.id().to_string();
    for follow in ["--no-branches", "--follow"] {
        let command = ["record", "-o", "perf.data", "-p", &id, "--seconds", "0.5", follow];
        let recorded = sandbox.afterlink(&command);
        assert_eq!(recorded.exit, 0, "{}", recorded.stderr());
        let converted =
            sandbox.afterlink(&["profile", "convert", "perf.data", "--binary", "in", "-o", "P.fdata"]);
        assert_eq!(converted.exit, 0, "{}", converted.stderr());
        let told = converted.stderr();
        assert!(told.contains("in memory that took the place of the program's code"), "{told}");
        let text = fs::read_to_string(sandbox.path("P.fdata")).unwrap();
        assert!(text.contains("in_thread") && text.contains("in_child"), "{text}");
    }
    assert!(server.wait().unwrap().success());
}

/// What a process runs is read where the process has it: in a container's file system, which nobody else sees, or as a file that a newer one has
/// replaced.
#[test]
fn programs_that_have_no_path_here() {
    let Some(sandbox) = sampled() else { return };
    let record = |process: &std::process::Child| {
        std::thread::sleep(Duration::from_millis(300));
        let id = process.id().to_string();
        let recorded = sandbox.afterlink(&["record", "-o", "P.fdata", "-p", &id, "--seconds", "1"]);
        assert_eq!(recorded.exit, 0, "{}", recorded.stderr());
        assert_all_are_there(&sandbox, "P.fdata");
    };
    let own = sandbox.path(".");
    let run = |script: &str| Command::new("sh").args(["-c", script]).current_dir(&own).spawn().unwrap();

    fs::copy(sandbox.path("in"), sandbox.path("replaced")).unwrap();
    let mut server = run("exec ./replaced 20");
    std::thread::sleep(Duration::from_millis(100));
    fs::remove_file(sandbox.path("replaced")).unwrap();
    fs::copy("/bin/true", sandbox.path("replaced")).unwrap();
    record(&server);
    assert!(server.wait().unwrap().success());

    fs::create_dir(sandbox.path("inner")).unwrap();
    let inner = "mount -t tmpfs none inner && cp in inner/server && cd inner && exec ./server 20";
    let may = Command::new("unshare")
        .args(["-m", "sh", "-c", "mount -t tmpfs none inner"])
        .current_dir(&own)
        .output();
    if !may.is_ok_and(|done| done.status.success()) {
        eprintln!("not tested here: file systems of its own");
        return;
    }
    let mut server =
        Command::new("unshare").args(["-m", "sh", "-c", inner]).current_dir(&own).spawn().unwrap();
    record(&server);
    assert!(!sandbox.path("inner/server").exists());
    assert!(server.wait().unwrap().success());
}

/// The counts of branches from a function, by where they start and where they lead.
fn branches_of(sandbox: &Sandbox, profile: &str, function: &str) -> BTreeMap<(String, String, String), u64> {
    let text = fs::read_to_string(sandbox.path(profile)).unwrap();
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["1", from, at, "1", to, target, _, count] = words[..]
            && from == function
        {
            let place = (at.to_owned(), to.to_owned(), target.to_owned());
            *counts.entry(place).or_default() += count.parse::<u64>().unwrap();
        }
    }
    counts
}

/// Where the machine has no branch stacks, threads are followed, and what is seen then is what happens.
#[test]
fn followed_threads_take_the_ways_that_are_counted() {
    if sampled().is_none() {
        return;
    }
    let sandbox = Sandbox::default();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/programs/chances.c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-Wl,-q", "-o"]).arg(sandbox.path("in")).arg(source);
    assert!(gcc.status().unwrap().success());
    let command = ["record", "-o", "P.fdata", "-F", "2000", "--json", "--", "./in", "200000000"];
    let recorded = sandbox.afterlink(&command);
    assert_eq!(recorded.exit, 0, "{}", recorded.stderr());
    // Behind what the program says.
    let said: serde_json::Value =
        serde_json::from_str(recorded.stdout().split_once('\n').unwrap().1).unwrap();
    assert_eq!(said["branch_stacks"], true, "{said}");
    if let Some(followed) = said["followed"].as_u64() {
        assert!(followed > 100 && followed * 4 > said["samples"].as_u64().unwrap(), "{said}");
    }
    assert_eq!(sandbox.afterlink(&["instrument", "in", "-o", "counting", "--counters", "counters"]).exit, 0);
    let mut counting = Command::new("./counting");
    assert!(
        counting
            .arg("1000000")
            .current_dir(sandbox.path("."))
            .stdout(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    let converted =
        sandbox.afterlink(&["profile", "convert", "counters", "--binary", "in", "-o", "exact.fdata"]);
    assert_eq!(converted.exit, 0, "{}", converted.stderr());
    for function in ["decides", "main"] {
        let (seen, counted) =
            (branches_of(&sandbox, "P.fdata", function), branches_of(&sandbox, "exact.fdata", function));
        // Counters of a round stand for so much of what was seen.
        let scale = seen.values().sum::<u64>() as f64 / counted.values().sum::<u64>() as f64;
        assert!(seen.values().sum::<u64>() > 2_000, "{function}: {seen:?}");
        for (place, &count) in counted.iter().filter(|(_, count)| **count > 1000) {
            let share = seen.get(place).copied().unwrap_or(0) as f64 / (count as f64 * scale);
            assert!((0.7..1.3).contains(&share), "{function} {place:?}: {share}\n{seen:?}\n{counted:?}");
        }
    }
}

/// Processes that run already are held only if they are to be.
#[test]
fn threads_of_others_are_not_held_unasked() {
    let Some(sandbox) = sampled() else { return };
    let server = || Command::new("./in").arg("20").current_dir(sandbox.path(".")).spawn().unwrap();
    for (flag, stacks) in [(None, false), (Some("--follow"), true)] {
        let mut server = server();
        std::thread::sleep(Duration::from_millis(300));
        let id = server.id().to_string();
        let mut command = vec!["record", "-o", "P.data", "-p", &id, "--seconds", "1", "--json"];
        command.extend(flag);
        let recorded = sandbox.afterlink(&command);
        assert_eq!(recorded.exit, 0, "{}", recorded.stderr());
        let said = recorded.stdout();
        let has_hardware = said.contains("\"branch_stacks\": true") && said.contains("\"followed\": null");
        assert!(has_hardware || said.contains(&format!("\"branch_stacks\": {stacks}")), "{flag:?}: {said}");
        assert!(server.wait().unwrap().success());
    }
    let both = sandbox.afterlink(&["record", "-o", "P.data", "--follow", "--no-branches", "--", "./in", "1"]);
    assert!(
        both.exit == 64 && both.stderr().contains("cannot be used with '--no-branches'"),
        "{}",
        both.stderr()
    );
}

/// The recording is one that others read, and they read the same out of it.
#[test]
fn perf_and_perf2bolt_read_the_recording() {
    let Some(sandbox) = sampled() else { return };
    let run = |tool: &str, arguments: &[&str]| {
        let mut command = Command::new(tool);
        let done = command.args(arguments).current_dir(sandbox.path(".")).stdin(Stdio::null()).output();
        match done {
            Ok(done) => {
                assert!(done.status.success(), "{tool}: {}", String::from_utf8_lossy(&done.stderr));
                Some(String::from_utf8_lossy(&done.stdout).into_owned())
            }
            Err(_) => {
                eprintln!("not tested here: {tool} is not installed");
                None
            }
        }
    };
    let recorded =
        sandbox.afterlink(&["record", "-o", "perf.data", "--no-branches", "--json", "--", "./in", "3"]);
    assert_eq!(recorded.exit, 0, "{}", recorded.stderr());
    let Some(script) = run("perf", &["script", "-i", "perf.data", "-F", "pid,event,ip"]) else { return };
    let count = script.lines().filter(|line| !line.is_empty()).count();
    assert!(recorded.stdout().contains(&format!("\"samples\": {count},")), "{count}: {}", recorded.stdout());
    let convert = ["profile", "convert", "perf.data", "--binary", "in", "-o", "own.fdata"];
    assert_eq!(sandbox.afterlink(&convert).exit, 0);
    if run("perf2bolt-22", &["-nl", "-p", "perf.data", "-o", "bolt.fdata", "in"]).is_none() {
        return;
    }
    let sorted = |name: &str| {
        let text = fs::read_to_string(sandbox.path(name)).unwrap();
        let known = |line: &&str| !line.contains("@PLT ") && !line.starts_with("no_lbr");
        let mut lines: Vec<String> = text.lines().filter(known).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted("own.fdata"), sorted("bolt.fdata"));
}

#[test]
fn what_cannot_be_recorded() {
    let sandbox = Sandbox::default();
    let record = |arguments: &[&str]| sandbox.afterlink(&[&["record", "-o", "P.data"], arguments].concat());
    assert_clear_error(&record(&[]), &["nothing to record", "-p"]);
    assert_clear_error(&record(&["-p", "1", "--", "true"]), &["a command and processes at once"]);
    assert_clear_error(&record(&["-p", "999999999"]), &["999999999", "no process"]);
    assert_clear_error(&record(&["-F", "0", "--", "true"]), &["--frequency"]);
    assert_clear_error(&record(&["--seconds=-1", "--", "true"]), &["--seconds"]);
    let profile = sandbox.afterlink(&["record", "-o", "P.fdata", "--", "no-such-command"]);
    assert_clear_error(&profile, &["no-such-command"]);
    assert!(!sandbox.path("P.fdata").exists() && !sandbox.path("P.data").exists());
    let Some(sandbox) = sampled() else { return };
    let short = sandbox.afterlink(&["record", "-o", "short.data", "-F", "1", "--", "true"]);
    assert_clear_error(&short, &["no sample was taken", "-F"]);
    let other = sandbox.afterlink(&["record", "-o", "P.fdata", "--", "sh", "-c", "./in 1"]);
    assert_clear_error(&other, &["sh", "stripped"]);
    assert!(!sandbox.path("short.data").exists() && !sandbox.path("P.fdata").exists());
}

#[test]
fn a_recording_is_drawn_before_and_after() {
    let Some(sandbox) = sampled() else { return };
    let ok = |arguments: &[&str]| {
        let outcome = sandbox.afterlink(arguments);
        assert_eq!(outcome.exit, 0, "{arguments:?}: {}", outcome.stderr());
        outcome
    };
    ok(&["record", "-o", "before.data", "--", "./in", "5"]);
    ok(&["optimize", "in", "--profile", "before.data", "-o", "out"]);
    let drawn =
        ok(&["heatmap", "before.data", "--binary", "in", "--optimized", "out", "-o", "map.html", "--json"]);
    let samples: serde_json::Value = serde_json::from_str(&drawn.stdout()).unwrap();
    assert_eq!(samples["samples"][0], samples["samples"][1], "the same samples at other places");
    let page = fs::read_to_string(sandbox.path("map.html")).unwrap();
    assert!(!page.contains("http") && page.contains("</html>"), "the page needs no network");
    for name in ["in_thread", "in_child", "in_itself", ">.text<"] {
        assert!(page.contains(name), "{name}");
    }
    assert!(!page.contains(".text.input"), "nothing was seen where the code was");
    assert!(!page.contains("stayed"), "the three functions have moved");

    ok(&["record", "-o", "after.data", "--", "./out", "5"]);
    ok(&["heatmap", "before.data", "after.data", "--binary", "in", "--optimized", "out", "-o", "both.html"]);
    let both = fs::read_to_string(sandbox.path("both.html")).unwrap();
    assert!(both.contains("samples of before.data") && both.contains("samples of after.data"));

    let heatmap = |arguments: &[&str]| sandbox.afterlink(&[&["heatmap"], arguments].concat());
    let other = heatmap(&["after.data", "--binary", "in", "-o", "no.html"]);
    assert_clear_error(&other, &["after.data", "in"]);
    sandbox.put("P.fdata", b"1 main 0 1 main 1 0 5\n");
    let untimed = heatmap(&["P.fdata", "--binary", "in", "-o", "no.html"]);
    assert_clear_error(&untimed, &["P.fdata", "when its samples were taken", "afterlink record"]);
    let none = heatmap(&["before.data", "--binary", "in", "--optimized", "in", "-o", "no.html"]);
    assert_clear_error(&none, &["no output of afterlink", "afterlink optimize"]);
    assert!(!sandbox.path("no.html").exists());
}
