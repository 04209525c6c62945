//! Every command that writes a file, when the disk is full, the directory becomes read-only, or the command is ended, at 50
//! random moments each: the earlier file is as it was or the new one is there whole, and nothing else is left.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use afterlink_testkit::execute::Outcome;
use afterlink_testkit::mount::Mount;
use afterlink_testkit::sandbox::{Sandbox, assert_clear_error, built};
use afterlink_testkit::tool::afterlink;

/// How often each way to fail is tried on each command.
const MOMENTS: u32 = 50;
const EARLIER: &[u8] = b"the earlier output";

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

/// A command that writes one file, whose name comes behind its words, and in front of those of a command that it runs.
struct Job {
    words: &'static [&'static str],
    command: &'static [&'static str],
    /// What it writes when it is left alone, how it exits then, and how long it takes.
    whole: Vec<u8>,
    exit: i32,
    duration: Duration,
}

/// A folder with what the commands read, and the commands.
fn jobs() -> (Sandbox, Vec<Job>) {
    let sandbox = Sandbox::default();
    sandbox.put("in", &fs::read(built("cold_fragments", "gcc -O2 -static")).unwrap());
    sandbox.put("small", &fs::read(built("tiny", "gcc -O2")).unwrap());
    let run = |words: &[&str]| {
        let outcome = sandbox.afterlink(words);
        assert!(outcome.exit < 4, "{words:?}: {}", outcome.stderr());
    };
    run(&["instrument", "small", "-o", "counted", "--counters", "counters"]);
    sandbox.run(&mut Command::new(sandbox.path("counted")));
    let measured = ["--no-probe", "--blocks", "4", "--runs", "2", "--max-time", "2", "--record", "record"];
    run(&[&["compare", "--self", "small"][..], &measured, &["--", "/bin/sh", "-c", "{}; true"]].concat());
    let mut all: Vec<[&[&str]; 2]> = vec![
        [&["optimize", "in", "--scope", "all", "-o"], &[]],
        [&["instrument", "in", "--counters", "/no/such/folder/counters", "-o"], &[]],
        [&["profile", "convert", "counters", "-o"], &[]],
        [&["compare", "--replay", "record", "--report"], &[]],
    ];
    let busy = ["--", "/bin/sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"];
    if sandbox.afterlink(&[&["record", "-o", "tried"][..], &busy].concat()).exit == 0 {
        all.push([
            &["record", "-o"],
            &["--", "/bin/sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"],
        ]);
    } else {
        eprintln!("not tested here: nothing may be recorded");
    }
    let jobs = all.into_iter().map(|[words, command]| {
        let start = Instant::now();
        let outcome = sandbox.afterlink(&[words, &["whole"], command].concat());
        assert!(outcome.exit < 4, "{words:?}: {}", outcome.stderr());
        let duration = start.elapsed();
        let whole = fs::read(sandbox.path("whole")).unwrap();
        fs::remove_file(sandbox.path("whole")).unwrap();
        Job { words, command, whole, exit: outcome.exit, duration }
    });
    let jobs = jobs.collect();
    (sandbox, jobs)
}

impl Job {
    /// Whether this is what it writes. No recording is like another, but each says how long it is.
    fn is_whole(&self, bytes: &[u8]) -> bool {
        if self.words[0] != "record" {
            return bytes == self.whole;
        }
        let word = |at: usize| bytes.get(at..at + 8).map_or(0, |w| u64::from_le_bytes(w.try_into().unwrap()));
        let (records, size) = (word(40), word(48));
        bytes.starts_with(b"PERFILE2") && size > 0 && records + size <= bytes.len() as u64
    }

    /// How much less it may write at another time, in bytes.
    fn least(&self) -> usize {
        if self.words[0] == "record" { self.whole.len() / 4 } else { self.whole.len() }
    }

    fn start(&self, sandbox: &Sandbox, output: &Path) -> Child {
        let mut command = Command::new(afterlink());
        command.args(self.words).arg(output).args(self.command).current_dir(sandbox.path("."));
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Runs it behind `shell`, and asserts that it fails with `words` and changes nothing in the output's folder.
    fn assert_fails(&self, sandbox: &Sandbox, output: &Path, shell: &str, words: &[&str]) {
        fs::write(output, EARLIER).unwrap();
        let folder = output.parent().unwrap();
        let before = names(folder);
        let command = format!("{shell}; exec \"$0\" \"$@\"");
        let mut command_line = Command::new("/bin/sh");
        command_line.args(["-c", &command]).arg(afterlink()).args(self.words).arg(output).args(self.command);
        let outcome = sandbox.run(&mut command_line);
        // `compare` has other exit codes for its verdicts.
        let exit = if outcome.exit == 64 && self.words[0] == "compare" { 1 } else { outcome.exit };
        assert_clear_error(&Outcome { exit, ..outcome }, words);
        assert_eq!(fs::read(output).unwrap(), EARLIER, "{:?}", self.words);
        assert_eq!(names(folder), before, "{:?}", self.words);
    }
}

/// The names of a folder's files, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|e| e.unwrap().file_name().into_string().expect("plain names")).collect();
    names.sort();
    names
}

/// Of a killed command, which can't tidy up: what has no name yet may get one just then.
fn is_unfinished(name: &str) -> bool {
    name.starts_with(".out.")
}

#[test]
fn a_limit_on_file_sizes() {
    let (sandbox, jobs) = jobs();
    let folder = sandbox.path("small-files");
    fs::create_dir(&folder).unwrap();
    // What is printed is a file here too: an output of less than a block can't be held back by this.
    for job in jobs.iter().filter(|job| job.whole.len() > 512) {
        let limit = (job.least() - 1) / 512;
        let shell = format!("trap '' XFSZ; ulimit -f {limit}");
        job.assert_fails(&sandbox, &folder.join("out"), &shell, &["out", "too large"]);
    }
}

/// The disk is full, or becomes so while the output is written: 50 random amounts of room. Where nothing can be mounted,
/// the limit on file sizes takes the same way through the command.
#[test]
fn a_full_disk() {
    let (sandbox, jobs) = jobs();
    for (i, job) in jobs.iter().enumerate() {
        let needed = job.least().div_ceil(4096);
        let Some(mount) = Mount::new(sandbox.path(&format!("full-{i}")), needed + 1) else { return };
        let mut random = Random(7);
        for _ in 0..MOMENTS {
            // A page is for the earlier output; what is left is never enough.
            let room = (random.next() * needed as f64) as usize;
            fs::write(mount.0.join("filler"), vec![1; (needed - room) * 4096]).unwrap();
            job.assert_fails(
                &sandbox,
                &mount.0.join("out"),
                ":",
                &["out: cannot be written", "no space left"],
            );
        }
    }
    let Some(mount) = Mount::new(sandbox.path("full"), 25) else { return };
    let manual = sandbox.afterlink(&["manual".as_ref(), mount.0.join("manual").as_os_str()]);
    assert_clear_error(&manual, &["cannot be written: no space left"]);
}

/// The output's file system becomes read-only at 50 random moments.
#[test]
fn a_directory_that_can_no_longer_be_written() {
    let (sandbox, jobs) = jobs();
    for (i, job) in jobs.iter().enumerate() {
        let pages = job.whole.len().div_ceil(4096);
        let Some(mount) = Mount::new(sandbox.path(&format!("fickle-{i}")), pages + 8) else { return };
        let mut random = Random(11);
        let (out, mut failed) = (mount.0.join("out"), 0);
        for _ in 0..MOMENTS {
            fs::write(&out, EARLIER).unwrap();
            // One in four is too early, so that quick commands meet it too.
            let early = random.next() < 0.25;
            assert!(!early || mount.remount("ro"));
            let moment = job.duration.mul_f64(random.next());
            let mut child = job.start(&sandbox, &out);
            std::thread::sleep(moment);
            while !early && !mount.remount("ro") {
                std::thread::sleep(Duration::from_micros(200));
            }
            let finished = child.wait().unwrap().code() == Some(job.exit);
            failed += u32::from(!finished);
            let found = fs::read(&out).unwrap();
            let expected = if finished { job.is_whole(&found) } else { found == EARLIER };
            assert!(expected, "{:?}: {} bytes after {moment:?}", job.words, found.len());
            assert!(mount.remount("rw"));
            // It may be taken from under the command between its last two steps.
            let (unfinished, others): (Vec<_>, Vec<_>) =
                names(&mount.0).into_iter().partition(|n| is_unfinished(n));
            assert_eq!(others, ["out"], "{:?}", job.words);
            unfinished.iter().for_each(|n| fs::remove_file(mount.0.join(n)).unwrap());
        }
        assert!(failed >= MOMENTS / 8, "{:?}: only {failed} of {MOMENTS} failed", job.words);
    }
}

/// The command is ended at 50 random moments, by each signal: afterwards there is the earlier output or the whole new
/// one, and nothing else.
#[test]
fn a_signal_at_any_moment() {
    let (sandbox, jobs) = jobs();
    let folder = sandbox.path("outputs");
    fs::create_dir(&folder).unwrap();
    let out = folder.join("out");
    for job in &jobs {
        let (mut random, mut ended_early) = (Random(13), 0);
        // Follows the command's true duration, which changes with what else the machine does.
        let mut longest = job.duration;
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGKILL] {
            for _ in 0..MOMENTS {
                fs::write(&out, EARLIER).unwrap();
                let moment = longest.mul_f64(random.next());
                let mut child = job.start(&sandbox, &out);
                std::thread::sleep(moment);
                // SAFETY: the child has not been waited for, so that the number is still its own.
                unsafe { libc::kill(child.id() as i32, signal) };
                let finished = child.wait().unwrap().code() == Some(job.exit);
                ended_early += u32::from(!finished);
                longest = longest.mul_f64(if finished { 0.8 } else { 1.1 }).min(2 * job.duration);
                let found = fs::read(&out).unwrap();
                assert!(
                    job.is_whole(&found) || (found == EARLIER && !finished),
                    "{:?}: {} bytes after {moment:?}",
                    job.words,
                    found.len()
                );
                let (unfinished, others): (Vec<_>, Vec<_>) =
                    names(&folder).into_iter().partition(|n| signal == libc::SIGKILL && is_unfinished(n));
                assert_eq!(others, ["out"], "{:?}: signal {signal} after {moment:?}", job.words);
                // They must not be taken for what the next command left.
                unfinished.iter().for_each(|n| fs::remove_file(folder.join(n)).unwrap());
            }
        }
        assert!(ended_early >= MOMENTS / 2, "{:?}: only {ended_early} were ended early", job.words);
    }
}

/// Layouts appear together: of a command that is ended there are all, or those of an earlier one and nothing else.
#[test]
fn a_signal_while_layouts_are_written() {
    const LAYOUTS: usize = 20;
    let sandbox = Sandbox::default();
    sandbox.put("in", &fs::read(built("cold_fragments", "gcc -O2 -static")).unwrap());
    let shuffle = ["shuffle", "in", "-n", &LAYOUTS.to_string(), "-o"].map(str::to_owned);
    let start = Instant::now();
    assert_eq!(sandbox.afterlink(&[&shuffle[..], &["whole/layouts".to_owned()]].concat()).exit, 0);
    let (duration, whole) = (start.elapsed(), names(&sandbox.path("whole/layouts")));
    assert_eq!(whole.len(), LAYOUTS);
    let outputs = sandbox.path("outputs");
    fs::create_dir(&outputs).unwrap();
    let (mut random, mut ended_early) = (Random(17), 0);
    for (i, signal) in [libc::SIGINT, libc::SIGTERM].repeat(15).into_iter().enumerate() {
        // Half of them into a folder that is there, with a layout in it.
        let folder = outputs.join("some/layouts");
        let earlier = i % 4 < 2;
        if earlier {
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(&whole[3]), EARLIER).unwrap();
        }
        let moment = duration.mul_f64(random.next());
        let mut command = Command::new(afterlink());
        command.args(&shuffle).arg(&folder).current_dir(sandbox.path("."));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(moment);
        // SAFETY: the child has not been waited for, so that the number is still its own.
        unsafe { libc::kill(child.id() as i32, signal) };
        let finished = child.wait().unwrap().code() == Some(0);
        ended_early += u32::from(!finished);
        match (folder.is_dir().then(|| names(&folder)), earlier) {
            (None, false) => assert_eq!((names(&outputs), finished), (vec![], false), "after {moment:?}"),
            (Some(found), true) if found.len() == 1 => {
                assert_eq!(fs::read(folder.join(&found[0])).unwrap(), EARLIER);
                assert!(!finished);
            }
            (found, _) => assert_eq!(found.as_ref(), Some(&whole), "after {moment:?}"),
        }
        if outputs.join("some").exists() {
            assert_eq!(names(&outputs.join("some")), ["layouts"]);
            fs::remove_dir_all(outputs.join("some")).unwrap();
        }
    }
    assert!(ended_early >= 10, "only {ended_early} were ended early");
}
