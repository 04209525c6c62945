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

/// How often each way to fail is tried.
const MOMENTS: u32 = 50;

/// Numbers from 0 to 1, the same in every run (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A folder with a file system of its own; `None` where nothing can be mounted.
struct Mount(std::path::PathBuf);

impl Mount {
    fn new(folder: std::path::PathBuf, size: &str) -> Option<Self> {
        fs::create_dir(&folder).unwrap();
        let size = format!("size={size}");
        let output =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(&folder).output().unwrap();
        if !output.status.success() {
            // Mounting needs privileges; the limit on file sizes takes the same way through the command.
            eprintln!("not tried, no tmpfs can be mounted: {}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Some(Self(folder))
    }

    /// False while a file there is open for writing.
    fn remount(&self, how: &str) -> bool {
        let how = format!("remount,{how}");
        Command::new("mount")
            .args(["-o", &how])
            .arg(&self.0)
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// The disk is full, or becomes so while the output is written: 50 random amounts of room.
#[test]
fn a_full_disk() {
    let sandbox = sandbox_with_program();
    let Some(mount) = Mount::new(sandbox.path("full"), "64k") else { return };
    let mut random = Random(7);
    let needed = {
        let outcome = optimize_to(&sandbox, "whole");
        assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
        fs::metadata(sandbox.path("whole")).unwrap().len() as f64
    };
    assert!(needed < 50_000.0, "the disk of this test is too small");
    for _ in 0..MOMENTS {
        // A page is for the earlier output; what is left is never enough.
        let room = (random.next() * (needed - 8192.0)) as usize;
        fs::write(mount.0.join("filler"), vec![1; 15 * 4096 - room]).unwrap();
        let earlier = mount.0.join("out");
        fs::write(&earlier, b"the earlier output").unwrap();
        let arguments =
            ["optimize".as_ref(), "in".as_ref(), "--scope".as_ref(), "all".as_ref(), "-o".as_ref()];
        let mut arguments: Vec<&std::ffi::OsStr> = arguments.to_vec();
        arguments.push(earlier.as_os_str());
        assert_clear_error(&sandbox.afterlink(&arguments), &["out", "no space left"]);
        assert_eq!(fs::read(&earlier).unwrap(), b"the earlier output", "{room} bytes of room");
        let mut names: Vec<_> = fs::read_dir(&mount.0).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["filler", "out"], "{room} bytes of room");
    }
}

/// A program that takes a while, how long it takes, and what comes out.
fn longer_job(sandbox: &Sandbox) -> (Duration, Vec<u8>) {
    sandbox.put("in", &fs::read(built("cold_fragments", "gcc -O2 -static")).unwrap());
    let start = std::time::Instant::now();
    let outcome = optimize_to(sandbox, "whole");
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    (start.elapsed(), fs::read(sandbox.path("whole")).unwrap())
}

fn start_to(sandbox: &Sandbox, output: &Path) -> std::process::Child {
    let mut command = Command::new(afterlink());
    command.args(["optimize", "in", "--scope", "all", "-o"]).arg(output).current_dir(sandbox.path("."));
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The output's file system becomes read-only at 50 random moments.
#[test]
fn a_directory_that_can_no_longer_be_written() {
    let sandbox = Sandbox::default();
    let (duration, whole) = longer_job(&sandbox);
    let Some(mount) = Mount::new(sandbox.path("fickle"), "16m") else { return };
    let mut random = Random(11);
    let (out, mut failed) = (mount.0.join("out"), 0);
    for _ in 0..MOMENTS {
        fs::write(&out, b"the earlier output").unwrap();
        let moment = duration.mul_f64(random.next());
        let mut child = start_to(&sandbox, &out);
        std::thread::sleep(moment);
        while !mount.remount("ro") {
            std::thread::sleep(Duration::from_micros(200));
        }
        let finished = child.wait().unwrap().success();
        failed += u32::from(!finished);
        let found = fs::read(&out).unwrap();
        let expected: &[u8] = if finished { &whole } else { b"the earlier output" };
        assert!(found == expected, "{} bytes after {moment:?}", found.len());
        assert!(mount.remount("rw"));
        let names: Vec<_> = fs::read_dir(&mount.0).unwrap().map(|e| e.unwrap().file_name()).collect();
        // It may be taken from under the command between its last two steps.
        let others =
            names.iter().filter(|n| *n != "out" && !n.to_string_lossy().starts_with(".out.")).count();
        assert_eq!(others, 0, "{names:?}");
        names.iter().filter(|n| *n != "out").for_each(|n| fs::remove_file(mount.0.join(n)).unwrap());
    }
    assert!(failed >= MOMENTS / 4, "only {failed} of {MOMENTS} failed");
}

/// The command is ended at 50 random moments, by each signal: afterwards there is the earlier output or the whole new
/// one, and nothing else.
#[test]
fn a_signal_at_any_moment() {
    let sandbox = Sandbox::default();
    let (duration, whole) = longer_job(&sandbox);
    let earlier = b"the earlier output".to_vec();
    let mut random = Random(13);
    let mut ended_early = 0;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGKILL] {
        for _ in 0..MOMENTS {
            sandbox.put("out", &earlier);
            let moment = duration.mul_f64(random.next());
            let mut child = start_to(&sandbox, &sandbox.path("out"));
            std::thread::sleep(moment);
            // SAFETY: the child has not been waited for, so that the number is still its own.
            unsafe { libc::kill(child.id() as i32, signal) };
            let finished = child.wait().unwrap().success();
            ended_early += u32::from(!finished);
            let mut files = sandbox.files();
            let out = files.remove("out").unwrap();
            assert!(out == whole || (out == earlier && !finished), "{} bytes after {moment:?}", out.len());
            // A killed process can't tidy up; what it must not do is harm the output's name.
            files.retain(|name, _| signal != libc::SIGKILL || !name.starts_with(".out."));
            assert_eq!(files.keys().collect::<Vec<_>>(), ["in", "whole"], "signal {signal} after {moment:?}");
        }
    }
    assert!(ended_early >= MOMENTS, "only {ended_early} of {} were ended early", 3 * MOMENTS);
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
