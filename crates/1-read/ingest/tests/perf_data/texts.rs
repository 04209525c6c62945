//! Text of `perf script`, and BOLT's pre-aggregated text.

use crate::oracles::{by_perf2bolt, is_installed, lines, run};
use crate::subject::{Link, Subject, text};
use crate::writer::{ANY, CALLCHAIN, CYCLES, Event, IDENTIFIER, Recording, Sample};
use proptest::prelude::*;
use std::sync::LazyLock;

/// What the recording itself gives is what comes of its text, whichever fields that has.
#[track_caller]
fn same_by_script(subject: &Subject, recording: &Recording, fields: &[&str]) {
    let bytes = recording.file();
    std::fs::write(subject.folder.path().join("r.data"), &bytes).unwrap();
    let whole = subject.fdata(&bytes);
    for fields in fields {
        let arguments =
            ["script", "-G", "-i", "r.data", "-F", fields, "--show-mmap-events", "--show-task-events"];
        let script = run(subject.folder.path(), "perf", &arguments);
        let reading = subject.read(script.as_bytes()).unwrap_or_else(|e| panic!("{fields}: {e}\n{script}"));
        assert_eq!(text(&reading), whole, "{fields}\n{script}");
    }
}

#[test]
fn perf_script_says_what_the_recording_says() {
    if !is_installed("perf") {
        return;
    }
    for link in [Link::Fixed, Link::Pie] {
        let subject = Subject::new(link);
        let mut recording = Recording::new(&[CYCLES.with_branches(ANY)]);
        recording.build_ids.push((subject.build_id(), subject.name().to_owned()));
        recording.fork(5, 4, 5);
        recording.exec(5, 8, "a 1.5: b");
        recording.mmap2(5, 10, subject.mapping, subject.name());
        recording.mmap(6, 11, subject.mapping, "/lib/other.so");
        subject.record_stacks(&mut recording, 200);
        let branches =
            ["pid,time,event,ip,brstack", "comm,pid,tid,time,event,ip,brstack", "pid,event,brstack"];
        same_by_script(&subject, &recording, &branches);
        // What llvm-profgen is given names no process; there is only one.
        let script = run(
            subject.folder.path(),
            "perf",
            &["script", "-i", "r.data", "-F", "ip,brstack", "--show-mmap-events"],
        );
        assert_eq!(subject.fdata(script.as_bytes()), subject.fdata(&recording.file()));

        let marked = CYCLES.with(IDENTIFIER | CALLCHAIN);
        let misses = Event { name: "cache-misses:u", config: 3, number: 12, ..marked.clone() };
        let mut recording = Recording::new(&[marked, misses]);
        recording.build_ids.push((subject.build_id(), subject.name().to_owned()));
        recording.sample(&Sample { ip: subject.start, pid: 5, time: 5, ..Sample::default() });
        recording.mmap2(5, 10, subject.mapping, subject.name());
        for (time, number) in (20..).zip([11, 12, 12, 11]) {
            let ip = subject.start + time % 2;
            recording.sample(&Sample { ip, pid: 5, time, number, ..Sample::default() });
        }
        same_by_script(&subject, &recording, &["pid,time,event,ip", "comm,tid,time,event,ip,sym"]);
        let with_callers = run(
            subject.folder.path(),
            "perf",
            &["script", "-i", "r.data", "-F", "pid,event,ip", "--show-mmap-events"],
        );
        let error = subject.read(with_callers.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("callers stand below") && error.contains("perf script -G"), "{error}");
    }
}

#[test]
fn text_without_what_is_needed() {
    let subject = Subject::new(Link::Pie);
    let error = |text: String| subject.read(text.as_bytes()).unwrap_err().to_string();
    let sample = format!("    5 1.000000: cycles: {:x}\n", subject.start);
    assert!(error(sample.clone()).contains("--show-mmap-events"));
    let (start, size, offset) = subject.mapping;
    let mapped = |name: &str| {
        format!(
            "    5 0.5: PERF_RECORD_MMAP2 5/5: [{start:#x}({size:#x}) @ {offset:#x} 8:1 77 0]: r-xp {name}\n"
        )
    };
    assert!(error(mapped(subject.name())).contains("no line of it is a sample"));
    assert!(error(mapped("/other") + &sample).contains("did not run"));
    let reading =
        subject.read(format!("{}{sample}what is this\n", mapped(subject.name())).as_bytes()).unwrap();
    assert_eq!(text(&reading), "no_lbr cycles\n1 _start 0 1\n");
    assert!(reading.notes.iter().any(|n| n.starts_with("1 lines are no samples")), "{reading:?}");
}

/// The addresses of a program as pre-aggregated text counts them.
fn own(subject: &Subject, address: u64) -> u64 {
    match subject.start >= 0x5555_0000_0000 {
        true => address - 0x5555_0000_0000,
        false => address,
    }
}

#[test]
fn pre_aggregated_text_means_what_it_means_to_perf2bolt() {
    if !is_installed("perf2bolt-22") {
        return;
    }
    for link in [Link::Fixed, Link::Pie] {
        let subject = Subject::new(link);
        let (s, w) = (own(&subject, subject.start), own(&subject, subject.work));
        let texts = [
            format!("B {:x} {w:x} 10 3\nB {:x} {:x} 7 0\nF {w:x} {:x} 4\n", s + 5, w + 7, s + 10, w + 7),
            format!("T {:x} {w:x} {:x} 6\nT {:x} {:x} ffffffffffffffff 5\n", s + 5, w + 7, s + 12, s + 5),
            format!("R {:x} {:x} {:x} 6\nf {w:x} {:x} 2\n", w + 7, s + 10, s + 12, w + 3),
            format!("B X:10 {w:x} 3 0\nB {:x} X:20 2 0\n", s + 5),
            format!("T ffffffffffffffff {w:x} {:x} 6\nT 0 {w:x} {:x} 2\n", w + 3, w + 7),
            format!("F {w:x} {:x} 9\nB {:x} {:x} 1 1\n", s + 5, s + 12, s + 5),
        ];
        for text in texts {
            std::fs::write(subject.folder.path().join("r.data"), &text).unwrap();
            let theirs = by_perf2bolt(&subject, &["--pa"]);
            assert_eq!(lines(&subject.fdata(text.as_bytes())), theirs, "{link:?}\n{text}");
        }
        let samples = format!("E cycles\nS {:x} 5\nS {:x} 2\nS {:x} 1\n", s + 5, w, s + 5);
        std::fs::write(subject.folder.path().join("r.data"), &samples).unwrap();
        let theirs = by_perf2bolt(&subject, &["--pa", "-nl"]);
        assert_eq!(lines(&subject.fdata(samples.as_bytes())), theirs, "{link:?}");
    }
}

#[test]
fn pre_aggregated_text_of_later_versions_and_of_none() {
    let subject = Subject::new(Link::Pie);
    let (s, w) = (own(&subject, subject.start), own(&subject, subject.work));
    let id: String = subject.build_id().iter().map(|b| format!("{b:02x}")).collect();
    let call =
        format!("T {id}:{:x} {id}:{w:x} -1 6 2\nT -1 {w:x} {:x} 1\nr {w:x} {:x} 1\n", s + 5, w + 3, w + 7);
    let expected = "1 _start 5 1 work/1 0 2 6\n1 work/1 3 1 work/1 5 0 1\n1 work/1 6 1 work/1 7 0 1\n";
    assert_eq!(subject.fdata(call.as_bytes()), expected);
    let other = format!("B abcd:{:x} abcd:{w:x} 6 2\nB {:x} {w:x} 1 0\n", s + 5, s + 5);
    let reading = subject.read(other.as_bytes()).unwrap();
    assert_eq!(text(&reading), "1 _start 5 1 work/1 0 0 1\n");
    for (wrong, what) in
        [("B 10 20 x 0\n", "no count"), ("B 10 zz 1 0\n", "no address"), ("B 10 20\n", "no line of")]
    {
        let error = subject.read(format!("B {:x} {w:x} 1 0\n{wrong}", s + 5).as_bytes()).unwrap_err();
        assert!(error.to_string().starts_with("line 2: ") && error.next.is_some(), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
}

static SUBJECT: LazyLock<Subject> = LazyLock::new(|| Subject::new(Link::Pie));

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damaged_text_never_panics(
        choices in proptest::collection::vec((0usize..26, any::<u8>()), 1..30),
    ) {
        const PARTS: [&str; 26] = [
            " ", "\n", "\t", "5", "5/5", "1.5: ", "cycles: ", "0x10/0x20/P/-/-/0 ", "/", "PERF_RECORD_MMAP2 5/5: [0x", "(0x1000) @ ",
            "PERF_RECORD_FORK(6:7):(4:5)", "PERF_RECORD_COMM exec: a:6/7", "]: r-xp /a", "<ab\u{e9}>", "ffffffffffffffff ", "-1 ", "B ", "T ", "S ",
            "F ", "X:", "E cycles\n", "#", "[003]", "\u{2003}",
        ];
        for start in ["    5 cycles: 10\n", "S 10 1\n", ""] {
            let mut bytes = start.as_bytes().to_vec();
            for &(part, byte) in &choices {
                bytes.extend(PARTS[part].as_bytes());
                bytes.extend((byte > 250).then_some(byte));
            }
            if let Err(error) = SUBJECT.read(&bytes) {
                prop_assert!(error.next.is_some(), "{error}");
            }
        }
    }
}
