//! Where an output goes: it appears whole or not at all, an earlier one is never harmed, devices stay what they are, and
//! whatever ends the command, nothing is left lying about.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use afterlink_testkit::sandbox::{Sandbox, assert_clear_error, built};
use afterlink_testkit::tool::afterlink;

fn sandbox_with_program() -> Sandbox {
    let sandbox = Sandbox::default();
    sandbox.put("in", &fs::read(built("tiny", "gcc -O2")).unwrap());
    sandbox
}

fn optimize_to(sandbox: &Sandbox, output: &str) -> afterlink_testkit::execute::Outcome {
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

#[test]
fn permissions_are_the_inputs() {
    let sandbox = sandbox_with_program();
    for mode in [0o755, 0o750, 0o700] {
        fs::set_permissions(sandbox.path("in"), fs::Permissions::from_mode(mode)).unwrap();
        let outcome = optimize_to(&sandbox, "out");
        assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
        let written = fs::metadata(sandbox.path("out")).unwrap().permissions().mode();
        assert_eq!(written & 0o7777, mode, "{written:o}");
    }
}

#[test]
fn an_output_replaces_a_file_that_runs() {
    let sandbox = sandbox_with_program();
    // The earlier file is in use: overwriting it in place would fail, or harm the running program.
    fs::copy("/bin/sleep", sandbox.path("out")).unwrap();
    let mut running = Command::new(sandbox.path("out")).arg("30").spawn().unwrap();
    let outcome = optimize_to(&sandbox, "out");
    let still_running = running.try_wait().unwrap().is_none();
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    assert!(still_running);
    assert_eq!(sandbox.run(&mut Command::new(sandbox.path("out"))).exit, 42);
}

/// An earlier output and the folder's other files are as before, after `optimize` failed for want of room.
fn assert_nothing_changed(sandbox: &Sandbox, folder: &Path, shell: &str, words: &[&str]) {
    let earlier = folder.join("out");
    fs::write(&earlier, b"the earlier output").unwrap();
    let input = sandbox.path("in");
    let command = format!("{shell}; exec \"$0\" optimize \"$1\" --scope all -o \"$2\"");
    let outcome =
        sandbox.run(Command::new("/bin/sh").args(["-c", &command]).arg(afterlink()).arg(input).arg(&earlier));
    assert_clear_error(&outcome, words);
    assert_eq!(fs::read(&earlier).unwrap(), b"the earlier output");
    let names: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["out"]);
}

#[test]
fn a_limit_on_file_sizes() {
    let sandbox = sandbox_with_program();
    let folder = sandbox.path("small");
    fs::create_dir(&folder).unwrap();
    assert_nothing_changed(&sandbox, &folder, "trap '' XFSZ; ulimit -f 8", &["out", "too large"]);
}

#[test]
fn a_full_disk() {
    let sandbox = sandbox_with_program();
    let folder = sandbox.path("full");
    fs::create_dir(&folder).unwrap();
    let mount =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=12k", "none"]).arg(&folder).output().unwrap();
    if !mount.status.success() {
        // Mounting needs privileges; the limit on file sizes takes the same way through the command.
        eprintln!("not tried, no tmpfs can be mounted: {}", String::from_utf8_lossy(&mount.stderr));
        return;
    }
    let result = std::panic::catch_unwind(|| {
        assert_nothing_changed(&sandbox, &folder, ":", &["out", "no space left"]);
    });
    Command::new("umount").arg(&folder).status().unwrap();
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// The command is ended at twenty moments, by each signal: afterwards there is the earlier output or the whole new one, and nothing else.
#[test]
fn a_signal_at_any_moment() {
    let sandbox = Sandbox::default();
    sandbox.put("in", &fs::read(built("cold_fragments", "gcc -O2 -static")).unwrap());
    let start = std::time::Instant::now();
    let outcome = optimize_to(&sandbox, "whole");
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    let (duration, whole) = (start.elapsed(), fs::read(sandbox.path("whole")).unwrap());
    let earlier = b"the earlier output".to_vec();
    let mut ended_early = 0;
    for moment in 0..20u32 {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGKILL] {
            sandbox.put("out", &earlier);
            let mut command = Command::new(afterlink());
            command.args(["optimize", "in", "--scope", "all", "-o", "out"]).current_dir(sandbox.path("."));
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(duration * moment / 20 + Duration::from_micros(300));
            // SAFETY: the child has not been waited for, so that the number is still its own.
            unsafe { libc::kill(child.id() as i32, signal) };
            let finished = child.wait().unwrap().success();
            ended_early += u32::from(!finished);
            let mut files = sandbox.files();
            let out = files.remove("out").unwrap();
            assert!(out == whole || (out == earlier && !finished), "{} bytes at moment {moment}", out.len());
            // A killed process can't tidy up; what it must not do is harm the output's name.
            files.retain(|name, _| signal != libc::SIGKILL || !name.starts_with(".out."));
            assert_eq!(
                files.keys().collect::<Vec<_>>(),
                ["in", "whole"],
                "signal {signal} at moment {moment}"
            );
        }
    }
    assert!(ended_early >= 10, "only {ended_early} of 60 were ended before they were done");
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
    assert_ne!(sandbox.afterlink(&["verify", "other", "out"]).exit, 0);
    assert_ne!(sandbox.afterlink(&["verify", "out", "in"]).exit, 0);
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
