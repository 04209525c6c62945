//! The same recordings as `perf script` and `perf2bolt` read them.

use crate::subject::{Link, Subject, text};
use crate::writer::{ANY, CYCLES, Recording, Sample};
use std::path::Path;
use std::process::{Command, Stdio};

/// Whether a tool is installed; if not, says so.
pub fn is_installed(tool: &str) -> bool {
    let run = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if run.is_err() {
        eprintln!("not tested here: {tool} is not installed");
    }
    run.is_ok()
}

#[track_caller]
pub fn run(folder: &Path, tool: &str, arguments: &[&str]) -> String {
    let output = Command::new(tool).args(arguments).current_dir(folder).output().expect(tool);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} {arguments:?}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What perf2bolt makes of a recording, sorted.
#[track_caller]
pub fn by_perf2bolt(subject: &Subject, arguments: &[&str]) -> Vec<String> {
    let all = [arguments, &["-p", "r.data", "-o", "bolt.fdata", subject.name()]].concat();
    run(subject.folder.path(), "perf2bolt-22", &all);
    lines(&std::fs::read_to_string(subject.folder.path().join("bolt.fdata")).unwrap())
}

pub fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn perf_script_reads_what_the_writer_writes() {
    if !is_installed("perf") {
        return;
    }
    let subject = Subject::new(Link::Pie);
    let mut recording = Recording::new(&[CYCLES.with_branches(ANY)]);
    recording.build_ids.push((subject.build_id(), subject.name().to_owned()));
    recording.fork(5, 4, 5);
    recording.exec(5, 8, "subject");
    recording.mmap2(5, 10, subject.mapping, subject.name());
    recording.mmap(5, 11, (0x7000_0000, 0x1000, 0), "/lib/old.so");
    recording.lost(3);
    subject.record_stacks(&mut recording, 40);
    for (kind, bytes) in [("file", recording.file()), ("pipe", recording.pipe())] {
        std::fs::write(subject.folder.path().join("r.data"), bytes).unwrap();
        let fields = [
            "script",
            "-i",
            "r.data",
            "-F",
            "pid,time,ip,event,brstack",
            "--show-mmap-events",
            "--show-task-events",
        ];
        let script = run(subject.folder.path(), "perf", &fields);
        let expected = [
            format!(
                "PERF_RECORD_MMAP2 5/5: [{:#x}({:#x}) @ {:#x}",
                subject.mapping.0, subject.mapping.1, subject.mapping.2
            ),
            "PERF_RECORD_MMAP 5/5: [0x70000000(0x1000) @ 0".to_owned(),
            "PERF_RECORD_FORK(5:5):(4:4)".to_owned(),
            "PERF_RECORD_COMM exec: subject:5/5".to_owned(),
            "cycles:u:".to_owned(),
            format!("{:#x}/{:#x}/P/-/-/0", subject.start + 5, subject.work),
            format!("{:#x}/{:#x}/M/-/-/0", subject.work + 3, subject.work + 7),
        ];
        for text in expected {
            assert!(script.contains(&text), "{kind}: {text}\n{script}");
        }
        let entries = script.matches("/-/-/0").count();
        assert_eq!(entries, subject.branches(40).len(), "{kind}");
    }
    let ids = run(subject.folder.path(), "perf", &["buildid-list", "-i", "r.data"]);
    let hexadecimal: String = subject.build_id().iter().map(|b| format!("{b:02x}")).collect();
    assert!(ids.contains(&hexadecimal), "{ids}");
}

#[test]
fn perf2bolt_makes_the_same_of_branch_stacks() {
    if !is_installed("perf2bolt-22") || !is_installed("perf") {
        return;
    }
    let subject = Subject::new(Link::Pie);
    let mut recording = Recording::new(&[CYCLES.with_branches(ANY)]);
    recording.build_ids.push((subject.build_id(), subject.name().to_owned()));
    recording.mmap2(5, 10, subject.mapping, subject.name());
    subject.record_stacks(&mut recording, 1000);
    let bytes = recording.file();
    std::fs::write(subject.folder.path().join("r.data"), &bytes).unwrap();
    assert_eq!(lines(&subject.fdata(&bytes)), by_perf2bolt(&subject, &[]));
}

#[test]
fn perf2bolt_makes_the_same_of_samples() {
    if !is_installed("perf2bolt-22") || !is_installed("perf") {
        return;
    }
    for link in [Link::Fixed, Link::Pie] {
        let subject = Subject::new(link);
        let mut recording = Recording::new(&[CYCLES]);
        recording.build_ids.push((subject.build_id(), subject.name().to_owned()));
        recording.mmap2(5, 10, subject.mapping, subject.name());
        for (time, offset) in (20..).zip([0, 5, 5, 12, 32, 35, 38, 39, 39, 40, 47, 48]) {
            recording.sample(&Sample { ip: subject.start + offset, pid: 5, time, ..Sample::default() });
        }
        let bytes = recording.file();
        std::fs::write(subject.folder.path().join("r.data"), &bytes).unwrap();
        assert_eq!(
            lines(&subject.fdata(&bytes)),
            known_differences(by_perf2bolt(&subject, &["-nl"])),
            "{link:?}"
        );
    }
}

/// perf2bolt keeps the colon that `perf script` puts behind an event's name, and names the linker's stubs.
pub fn known_differences(lines: Vec<String>) -> Vec<String> {
    let kept = lines.into_iter().filter(|line| !line.contains("@PLT "));
    kept.map(|line| if line.starts_with("no_lbr") { line.trim_end_matches(':').to_owned() } else { line })
        .collect()
}

const BUSY: &str = r"
#include <stdlib.h>
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((noinline)) static long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) long work(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) { if (i % 3 == 0) sum += i; else if (i % 5 == 0) sum ^= i; else sum--; }
    return sum;
}
int main(void) {
    static int numbers[20000];
    long sum = 0;
    for (int round = 0; round < 40; round++) {
        sum += work(3000000 + round) + fib(22 + round % 3);
        for (int i = 0; i < 20000; i++) numbers[i] = rand();
        qsort(numbers, 20000, sizeof *numbers, compare);
    }
    return sum == 0;
}
";

/// A real recording, in the forms that `perf record` has; every count of every place is perf2bolt's.
#[test]
fn a_real_recording() {
    if !is_installed("perf2bolt-22") || !is_installed("perf") {
        return;
    }
    let mut subject = Subject::new(Link::Pie);
    let folder = subject.folder.path().to_owned();
    std::fs::write(folder.join("busy.c"), BUSY).unwrap();
    subject.path = folder.join("busy");
    let may_record = Command::new("perf")
        .args(["record", "-q", "-e", "cpu-clock:u", "-o", "/dev/null", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !may_record.is_ok_and(|s| s.success()) {
        eprintln!("not tested here: perf may not record");
        return;
    }
    for link in ["-pie", "-no-pie"] {
        run(&folder, "gcc", &["-O2", link, "-Wl,-q", "-Wl,--build-id", "-o", "busy", "busy.c"]);
        subject.bytes = std::fs::read(&subject.path).unwrap();
        for options in [&[][..], &["-z"], &["-z", "-s", "-d"], &["-z", "-g"], &["-e", "task-clock:u"]] {
            let all =
                [&["record", "-q", "-e", "cpu-clock:u", "-F", "2000", "-o", "r.data"], options, &["./busy"]];
            run(&folder, "perf", &all.concat());
            let reading = subject.read(&std::fs::read(folder.join("r.data")).unwrap()).unwrap();
            // At how many places depends on the machine; how many there are, on the time that it runs.
            let inside: u64 = reading.profile.samples().iter().map(|sample| sample.count).sum();
            assert!(inside > 50, "{reading:?}");
            // Of call chains perf2bolt reads nothing, and several events it sums.
            if options.contains(&"task-clock:u") {
                assert!(reading.notes.iter().any(|n| n.contains("left out: task-clock:u")), "{reading:?}");
            } else if !options.contains(&"-g") {
                let theirs = known_differences(by_perf2bolt(&subject, &["-nl"]));
                assert_eq!(lines(&text(&reading)), theirs, "{link} {options:?}");
            }
        }
        let shell = "perf record -q -e cpu-clock:u -F 2000 -o - ./busy > r.data";
        run(&folder, "sh", &["-c", shell]);
        let reading = subject.read(&std::fs::read(folder.join("r.data")).unwrap()).unwrap();
        assert_eq!(
            lines(&text(&reading)),
            known_differences(by_perf2bolt(&subject, &["-nl"])),
            "{link} pipe"
        );
    }
}
