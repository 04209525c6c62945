//! Where an output goes: never over an input, a directory or a device, and in place of what runs.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::process::Command;

use afterlink_testkit::execute::{Outcome, start};
use afterlink_testkit::sandbox::{Sandbox, assert_clear_error, built};

fn sandbox_with_program() -> Sandbox {
    let sandbox = Sandbox::default();
    sandbox.put("in", &fs::read(built("tiny", "gcc -O2")).unwrap());
    sandbox
}

fn optimize_to(sandbox: &Sandbox, output: &str) -> Outcome {
    sandbox.afterlink(&["optimize", "in", "--scope", "all", "-o", output])
}

#[test]
fn a_directory_a_device_and_the_input_are_no_outputs() {
    let sandbox = sandbox_with_program();
    fs::create_dir(sandbox.path("folder")).unwrap();
    assert_clear_error(&optimize_to(&sandbox, "folder"), &["folder", "directory"]);
    assert_clear_error(&optimize_to(&sandbox, "."), &["directory"]);
    assert_clear_error(&optimize_to(&sandbox, "in"), &["in:", "input"]);
    std::os::unix::fs::symlink("in", sandbox.path("link")).unwrap();
    assert_clear_error(&optimize_to(&sandbox, "link"), &["input"]);
    fs::hard_link(sandbox.path("in"), sandbox.path("second-name")).unwrap();
    assert_clear_error(&optimize_to(&sandbox, "second-name"), &["input"]);

    let mode = |path: &str| fs::metadata(path).unwrap().permissions().mode();
    let before = mode("/dev/null");
    assert_clear_error(&optimize_to(&sandbox, "/dev/null"), &["/dev/null", "device"]);
    assert_eq!(mode("/dev/null"), before);
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    assert_eq!(fs::read(sandbox.path("in")).unwrap(), fs::read(built("tiny", "gcc -O2")).unwrap());
}

#[test]
fn a_place_that_is_not_there_or_can_not_be_written() {
    let sandbox = sandbox_with_program();
    let before = sandbox.files();
    assert_clear_error(&optimize_to(&sandbox, "absent/out"), &["absent"]);
    assert_clear_error(&optimize_to(&sandbox, "in/out"), &["out"]);
    // Nothing can be created there, not even by root.
    assert_clear_error(&optimize_to(&sandbox, "/proc/sys/afterlink-out"), &["/proc/sys/afterlink-out"]);
    assert_eq!(sandbox.files(), before);
}

/// As a linker's output has them: the umask is the user's, and raised rights are nobody's to hand on.
#[test]
fn permissions_are_the_inputs_less_the_umask() {
    let sandbox = sandbox_with_program();
    let raised = "set-user-id or set-group-id";
    for (umask, mode, expected) in [
        ("022", 0o755, 0o755),
        ("022", 0o750, 0o750),
        ("022", 0o777, 0o755),
        ("077", 0o755, 0o700),
        ("027", 0o644, 0o740),
        ("000", 0o777, 0o777),
        ("022", 0o4755, 0o755),
        ("022", 0o2755, 0o755),
        ("022", 0o6711, 0o711),
    ] {
        fs::set_permissions(sandbox.path("in"), fs::Permissions::from_mode(mode)).unwrap();
        let script = format!(r#"umask {umask}; "$0" "$@""#);
        for (job, more) in [("optimize", &["--scope", "all", "--report", "report"][..]), ("instrument", &[])]
        {
            fs::remove_file(sandbox.path("report")).ok();
            let mut command = Command::new("bash");
            command.arg("-c").arg(&script).arg(afterlink_testkit::tool::afterlink());
            let outcome = sandbox.run(command.args([job, "in", "-o", "out"]).args(more));
            assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
            let mode_of = |name| fs::metadata(sandbox.path(name)).unwrap().permissions().mode() & 0o7777;
            assert_eq!(mode_of("out"), expected, "{job} {umask} {mode:o}: {:o}", mode_of("out"));
            assert_eq!(outcome.stderr().contains(raised), mode & 0o6000 != 0, "{}", outcome.stderr());
            if job == "optimize" {
                assert_eq!(mode_of("report"), 0o666 & !u32::from_str_radix(umask, 8).unwrap());
            }
        }
    }
}

#[test]
fn an_output_replaces_a_file_that_runs() {
    let sandbox = sandbox_with_program();
    // The earlier file is in use: overwriting it in place would fail, or harm the running program.
    fs::copy("/bin/sleep", sandbox.path("out")).unwrap();
    let mut running = start(Command::new(sandbox.path("out")).arg("30")).unwrap();
    let outcome = optimize_to(&sandbox, "out");
    let still_running = running.try_wait().unwrap().is_none();
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    assert!(still_running);
    assert_eq!(sandbox.run(&mut Command::new(sandbox.path("out"))).exit, 42);
}

#[test]
fn json_is_all_that_is_printed_when_asked_for() {
    let sandbox = sandbox_with_program();
    for arguments in [
        &["info", "in", "--json"][..],
        &["optimize", "in", "--scope", "all", "-o", "out", "--json"],
        &["verify", "in", "out", "--json"],
        &["instrument", "in", "-o", "counted", "--counters", "counters", "--json"],
    ] {
        let outcome = sandbox.afterlink(arguments);
        assert_eq!(outcome.exit, 0, "{arguments:?}: {}", outcome.stderr());
        assert_eq!(outcome.stderr(), "", "{arguments:?}");
        serde_json::from_str::<serde_json::Value>(&outcome.stdout())
            .unwrap_or_else(|e| panic!("{arguments:?}: {e}"));
    }
}

#[test]
fn verify_refuses_what_is_not_the_program_rearranged() {
    let sandbox = sandbox_with_program();
    assert_eq!(optimize_to(&sandbox, "out").exit, 0);
    assert_eq!(sandbox.afterlink(&["verify", "in", "out"]).exit, 0);
    sandbox.put("other", &fs::read(built("jump_table", "gcc -O2")).unwrap());
    let other = sandbox.afterlink(&["verify", "other", "out"]);
    assert_clear_error(&other, &["out: this was not made of other", "build-id", "findings", "--json"]);
    let turned_round = sandbox.afterlink(&["verify", "out", "in"]);
    assert_clear_error(
        &turned_round,
        &["in: this was not made of out", "no .note.afterlink", "as it was linked and then"],
    );
    // A program whose debug information is in another file is told to be another one first.
    let mut link = Command::new("objcopy");
    link.arg(format!("--add-gnu-debuglink={}", sandbox.path("in").display()));
    assert_eq!(sandbox.run(link.arg(sandbox.path("other")).arg(sandbox.path("linked"))).exit, 0);
    let linked = sandbox.afterlink(&["verify", "in", "linked"]);
    assert_clear_error(&linked, &["linked: this was not made of in", "no .note.afterlink"]);
    let mut bytes = fs::read(sandbox.path("out")).unwrap();
    let cut = bytes.len() / 2;
    sandbox.put("cut", &bytes[..cut]);
    assert_ne!(sandbox.afterlink(&["verify", "in", "cut"]).exit, 0);
    // The string that `printf` is given, in unmoved data.
    let at = bytes.windows(6).position(|w| w == b"%08x\n\0").expect("the format is in the file");
    bytes[at + 2] = b'7';
    sandbox.put("changed", &bytes);
    let changed = sandbox.afterlink(&["verify", "in", "changed"]);
    assert_ne!(changed.exit, 0);
    assert!(!(changed.stdout() + &changed.stderr()).contains("panicked"));
}

#[test]
fn what_was_stripped_can_no_longer_be_proven() {
    let sandbox = sandbox_with_program();
    assert_eq!(optimize_to(&sandbox, "out").exit, 0);
    let strip = sandbox.run(Command::new("strip").arg(sandbox.path("out")));
    assert_eq!(strip.exit, 0, "{}", strip.stderr());
    assert_clear_error(
        &sandbox.afterlink(&["verify", "in", "out"]),
        &["out: it has been stripped", "before `strip`"],
    );
}

#[test]
fn no_program_is_recorded_or_counted_into() {
    let sandbox = sandbox_with_program();
    sandbox.put("other", &fs::read(built("tiny", "gcc -O2")).unwrap());
    let before = sandbox.files();
    for words in [
        &["record", "-o", "in", "--", "./in"][..],
        &["record", "-o", "./other", "--binary", "other", "--", "./in"],
        &["record", "-o", "other", "--original", "other", "--binary", "in", "--", "./in"],
    ] {
        assert_clear_error(&sandbox.afterlink(words), &["the output is the input"]);
    }
    let whole = sandbox.path("out").display().to_string();
    for counters in ["in", "./in", "out", &whole, ".", "/dev/null"] {
        let words = ["instrument", "in", "-o", "out", "--counters", counters];
        assert_clear_error(&sandbox.afterlink(&words), &["would count into", "--counters"]);
    }
    assert_eq!(sandbox.files(), before);
    // A program may run where there is such a folder.
    let elsewhere = sandbox.afterlink(&["instrument", "in", "-o", "out", "--counters", "absent/counters"]);
    assert_eq!(elsewhere.exit, 0, "{}", elsewhere.stderr());
    assert!(
        elsewhere.stderr().contains("note: ") && elsewhere.stderr().contains("not there"),
        "{}",
        elsewhere.stderr()
    );
}

/// More threads than processors only wait for one another: a hundred thousand of them did so for half an hour.
#[test]
fn any_number_of_threads_is_as_good_as_the_processors() {
    let sandbox = sandbox_with_program();
    let words = ["optimize", "in", "--scope", "all", "-o", "out", "--threads", "100000"];
    let outcome = sandbox.afterlink(&words);
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    let one = sandbox.afterlink(&["optimize", "in", "--scope", "all", "-o", "one", "--threads", "1"]);
    assert_eq!(one.exit, 0, "{}", one.stderr());
    assert_eq!(fs::read(sandbox.path("out")).unwrap(), fs::read(sandbox.path("one")).unwrap());
}

/// With stderr on a full disk, the exit code is still that of an error.
#[test]
fn an_error_that_can_not_be_told() {
    let sandbox = Sandbox::default();
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    for (words, exit) in [(&["info", "absent"][..], 1), (&["compare", "absent", "absent"], 64)] {
        let mut command = Command::new(afterlink_testkit::tool::afterlink());
        let status = command.args(words).current_dir(sandbox.path(".")).stderr(full()).status().unwrap();
        assert_eq!(status.code(), Some(exit), "{words:?}");
    }
    // A result that can't be told is an error, too.
    let sandbox = sandbox_with_program();
    let mut command = Command::new(afterlink_testkit::tool::afterlink());
    let status = command.args(["info", "in"]).current_dir(sandbox.path(".")).stdout(full()).status().unwrap();
    assert_eq!(status.code(), Some(1));
    let mut command = Command::new(afterlink_testkit::tool::afterlink());
    assert_eq!(command.arg("help").stdout(full()).status().unwrap().code(), Some(1));
}

#[test]
fn an_output_is_no_other_file_of_the_command() {
    let sandbox = sandbox_with_program();
    sandbox.put("profile", b"1 main 0 1 main 0 0 1\n");
    std::os::unix::fs::symlink("profile", sandbox.path("link")).unwrap();
    let before = sandbox.files();
    for words in [
        ["-p", "profile", "-o", "profile", "--report", "report"],
        ["-p", "profile", "-o", "./link", "--report", "report"],
        ["-p", "profile", "-o", "out", "--report", "profile"],
        ["-p", "profile", "-o", "out", "--report", "./out"],
        ["-p", "profile", "-o", "out", "--report", "absent/report"],
    ] {
        let words = [&["optimize", "in", "--scope", "all"][..], &words].concat();
        assert_clear_error(&sandbox.afterlink(&words), &[]);
        assert_eq!(sandbox.files(), before, "{words:?}");
    }
}

#[test]
fn debug_information_follows_or_is_kept_and_the_user_is_told() {
    let sandbox = Sandbox::default();
    sandbox.put("tiny.c", b"#include <stdio.h>\nint main(void) { return puts(\"tiny\") < 0; }\n");
    let build = |flags: &str| {
        let mut gcc = Command::new("gcc");
        gcc.args(["-O2", "-Wl,--emit-relocs", "tiny.c", "-o", "in"]).args(flags.split_whitespace());
        assert_eq!(sandbox.run(&mut gcc).exit, 0);
    };
    let optimize = |keep: &[&str]| {
        fs::remove_file(sandbox.path("out")).ok();
        let words = ["optimize", "in", "-o", "out", "--scope", "all", "--order-functions", "reverse"];
        let outcome = sandbox.afterlink(&[&words[..], keep].concat());
        assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
        outcome.stdout().to_owned()
    };
    // Where main is, by the symbols, and by the debug information.
    let lines = |file: &str| {
        let mut nm = Command::new("nm");
        let symbols = sandbox.run(nm.arg(file)).stdout().to_owned();
        let main = symbols.lines().find(|line| line.ends_with(" T main")).expect("a symbol").to_owned();
        let mut ask = Command::new("addr2line");
        sandbox.run(ask.args(["-e", file, main.split_whitespace().next().unwrap()])).stdout().to_owned()
    };
    build("-g");
    let said = optimize(&[]);
    assert!(said.contains("follows the code"), "{said}");
    assert!(lines("in").contains("tiny.c:2"), "{}", lines("in"));
    assert_eq!(lines("out"), lines("in"));
    let said = optimize(&["--keep-debug-info"]);
    assert!(said.contains("kept, with the addresses that the code had"), "{said}");
    assert!(!lines("out").contains("tiny.c"), "{}", lines("out"));
    build("");
    assert!(!optimize(&[]).contains("debug info"));
}

/// As a name `-` means standard output, where a text goes; a program there would be a file called so.
#[test]
fn no_file_is_called_like_standard_output() {
    let sandbox = sandbox_with_program();
    let before = sandbox.files();
    for command in [
        "optimize in --scope all -o -",
        "optimize in --scope all -o out --report -",
        "instrument in --counters counters -o -",
        "shuffle in -n 1 -o -",
        "heatmap in --binary in -o -",
        "record -o - -- /bin/true",
        "tune in -o - -- ./in",
    ] {
        let outcome = sandbox.afterlink(&command.split(' ').collect::<Vec<_>>());
        assert_clear_error(&outcome, &["-: ", "standard output", "./-"]);
        assert_eq!(sandbox.files(), before, "{command}");
        assert!(!sandbox.path("-").exists(), "{command}");
    }
    let printed = sandbox.afterlink(&["export", "in"]);
    let told = sandbox.afterlink(&["export", "in", "-o", "-"]);
    assert_eq!((told.exit, told.stdout()), (0, printed.stdout()));
    assert_eq!(optimize_to(&sandbox, "./-").exit, 0);
    assert!(sandbox.path("-").is_file());
}
