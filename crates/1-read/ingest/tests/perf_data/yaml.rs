//! BOLT's YAML profiles: those that perf2bolt writes, and what a writer of these tests' own makes of their traps.

use crate::oracles::{is_installed, lines, run};
use crate::subject::{Link, Subject, text};
use proptest::prelude::*;
use std::process::Command;
use std::sync::LazyLock;

const HEADER: &str = "---
header:
  profile-version: 1
  binary-name:     'subject'
  profile-flags:   [ lbr ]
  profile-events:  ''
  dfs-order:       false
  hash-func:       xxh3
functions:
";

/// The subject's functions as LLVM 22 writes them, after a thousand rounds of its loop.
const FUNCTIONS: &str = "  - name:            _start
    fid:             2
    hash:            0x568B47EBBE8E8752
    exec:            1
    nblocks:         3
    blocks:
      - bid:             0
        insns:           1
        hash:            0xB50092CEC0700000
        exec:            1
        succ:            [ { bid: 1, cnt: 1 } ]
      - bid:             1
        insns:           3
        hash:            0x42A7B546D67B0005
        calls:           [ { off: 0x0, fid: 3, cnt: 1000, mis: 4 } ]
        succ:            [ { bid: 1, cnt: 999, mis: 2 }, { bid: 2, cnt: 1 } ]
      - bid:             2
        insns:           2
        hash:            0x15E47C1550D6000E
  - name:            'work/1'
    fid:             3
    hash:            0x9D1DBFF7672A15EE
    exec:            1003
    nblocks:         3
    blocks:
      - bid:             0
        insns:           2
        hash:            0x400B766B72C0000
        exec:            1003
        succ:            [ { bid: 1, cnt: 500 }, { bid: 2, cnt: 503 } ]
      - bid:             2
        insns:           1
        hash:            0x797DA63DE5C60007
...
";

const EXPECTED: &str = "0 [unknown] 0 1 _start 0 0 1
0 [unknown] 0 1 work/1 0 0 3
1 _start 0 1 _start 5 0 1
1 _start 5 1 work/1 0 4 1000
1 _start c 1 _start 5 2 999
1 _start c 1 _start e 0 1
1 work/1 3 1 work/1 7 0 503
";

fn fdata(subject: &Subject, functions: &str) -> String {
    subject.fdata(format!("{HEADER}{functions}").as_bytes())
}

fn error(subject: &Subject, functions: &str) -> String {
    let error = subject.read(format!("{HEADER}{functions}").as_bytes()).expect_err("it is an error");
    assert!(error.next.is_some(), "{error}");
    error.to_string()
}

#[test]
fn blocks_become_places() {
    for link in [Link::Fixed, Link::Pie, Link::SharedObject] {
        assert_eq!(fdata(&Subject::new(link), FUNCTIONS), EXPECTED, "{link:?}");
    }
}

/// What others write differently, or later versions besides.
#[test]
fn forms_of_yaml() {
    let subject = Subject::new(Link::Pie);
    let wrapped =
        FUNCTIONS.replace("cnt: 999, mis: 2 }, {", "cnt: 999, mis: 2 },\n                           {");
    assert_ne!(wrapped, FUNCTIONS);
    assert_eq!(fdata(&subject, &wrapped), EXPECTED);
    assert_eq!(fdata(&subject, &FUNCTIONS.replace('\n', "\r\n")), EXPECTED);
    assert_eq!(fdata(&subject, &FUNCTIONS.replace("'work/1'", "\"work\\x2f1\"")), EXPECTED);
    assert_eq!(fdata(&subject, &FUNCTIONS.replace("_start\n", "'_start(*2)'\n")), EXPECTED);
    let more = "        probes:          [ { blk: [ 1 ], ids: [ 0 ] } ]\n        news:            7\n";
    let more =
        FUNCTIONS.replace("        insns:           3\n", &format!("        insns:           3\n{more}"));
    assert_eq!(fdata(&subject, &more), EXPECTED);
    let tree = "    inline_tree:\n      - { g: 0 }\n      - bid: 1\n        hash: 0x5\n";
    let tree = FUNCTIONS.replace(
        "    nblocks:         3\n    blocks:\n",
        &format!("    nblocks:         3\n{tree}    blocks:\n"),
    );
    assert_eq!(fdata(&subject, &tree), EXPECTED);
}

#[test]
fn samples_of_blocks() {
    let subject = Subject::new(Link::Pie);
    let functions = "  - name:            _start
    fid:             2
    exec:            0
    nblocks:         3
    blocks:
      - bid:             1
        insns:           3
        hash:            0x42A7B546D67B0005
        events:          2333
";
    let header = HEADER.replace("[ lbr ]", "[ sample ]").replace("''", "'cycles:u'");
    let profile = subject.fdata(format!("{header}{functions}").as_bytes());
    assert_eq!(profile, "no_lbr cycles:u\n1 _start 5 3\n1 _start a 2\n1 _start c 2\n");
}

#[test]
fn what_cannot_be_told() {
    let subject = Subject::new(Link::Pie);
    let shifted = FUNCTIONS.replace("67B0005", "67B0006").replace("72C0000", "72C0001");
    assert!(error(&subject, &shifted).contains("of 2 functions, 2 are not as in this program"));
    let one = FUNCTIONS.replace("503", "3").replace("1003", "3").replace("72C0000", "72C0001");
    let reading = subject.read(format!("{HEADER}{one}").as_bytes()).unwrap();
    assert!(text(&reading).contains("1 _start c 1 _start 5 2 999\n") && !text(&reading).contains("work/1 3"));
    assert!(reading.notes[0].starts_with("1 functions, with "), "{reading:?}");
    let unhashed: String =
        FUNCTIONS.lines().filter(|l| !l.contains("hash:")).map(|l| format!("{l}\n")).collect();
    assert!(error(&subject, &unhashed).contains("no hashes"));
    let renamed = FUNCTIONS.replace("_start", "start").replace("work/1", "works");
    assert!(error(&subject, &renamed).contains("none of its functions"));
    assert!(
        error(&subject, &FUNCTIONS.replace("fid:             3", "fid:             2")).contains("number 2")
    );
    let wrong = FUNCTIONS.replace("insns:           3", "insns:           three");
    assert!(error(&subject, &wrong).starts_with("line 22: "), "{}", error(&subject, &wrong));
    assert!(error(&subject, &FUNCTIONS.replace("cnt: 999", "cnt: x")).contains("no number of cnt"));
    let nothing = "  - name:            _start\n    fid:             2\n    exec:            0\n    nblocks:         3\n";
    assert!(error(&subject, nothing).contains("it counts nothing"));
    let other = subject.read(b"---\nname: value\n").unwrap_err().to_string();
    assert!(other.contains("no profile of BOLT"), "{other}");
}

#[test]
fn calls_of_other_entries_are_counted() {
    let subject = Subject::new(Link::Pie);
    let inside = FUNCTIONS.replace("mis: 4 } ]", "mis: 4 }, { off: 0x0, fid: 3, disc: 1, cnt: 250 } ]");
    assert_ne!(inside, FUNCTIONS);
    let reading = subject.read(format!("{HEADER}{inside}").as_bytes()).unwrap();
    assert_eq!(text(&reading), EXPECTED);
    assert_eq!(reading.notes.len(), 1, "{:?}", reading.notes);
    assert!(
        reading.notes[0].starts_with("250 calls, 20.0 % of them, of other places"),
        "{:?}",
        reading.notes
    );
}

/// A short file is one thing, the start of a longer one another, wherever it was cut.
#[test]
fn what_was_cut_off_is_told() {
    let subject = Subject::new(Link::Pie);
    let whole = format!("{HEADER}{FUNCTIONS}");
    assert!(subject.read(whole.as_bytes()).unwrap().notes.is_empty());
    let first = whole.find("  - name:            'work/1'").unwrap();
    let short = format!("{}...\n", &whole[..first]);
    assert!(subject.read(short.as_bytes()).unwrap().notes.is_empty());
    for end in first..whole.len() - 2 {
        match subject.read(&whole.as_bytes()[..end]) {
            Ok(reading) => {
                assert!(
                    reading.notes.iter().any(|note| note.contains("may be cut off")),
                    "{end}: {:?}",
                    reading.notes
                );
            }
            Err(error) => assert!(error.next.as_ref().unwrap().contains("may be cut off"), "{end}: {error}"),
        }
    }
}

/// A hash says where a block is up to 64 KiB only.
#[test]
fn large_functions_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("large.s");
    let code = ".globl _start\n.type _start, @function\n_start: call small\n.skip 70000, 0x90\nret\n.size _start, . - _start\n\
        .type small, @function\nsmall: test %eax, %eax\nje 1f\nnop\n1: ret\n.size small, . - small\n";
    std::fs::write(&source, code).unwrap();
    let path = folder.path().join("large");
    let mut gcc = Command::new("gcc");
    gcc.args(["-nostdlib", "-static", "-Wl,-q", "-o"]).arg(&path).arg(&source);
    assert!(gcc.status().unwrap().success());
    let bytes = std::fs::read(&path).unwrap();
    let image = afterlink_image::Image::parse(&bytes).unwrap();
    let program = afterlink_ingest::Program::new(&image, &path).unwrap();
    let yaml = format!(
        "{HEADER}  - name: _start\n    fid: 1\n    exec: 8\n    blocks:\n      - bid: 0\n        insns: 1\n        hash: 0x0\n        \
         calls: [ {{ off: 0, fid: 2, cnt: 8 }} ]\n  - name: 'small/1'\n    fid: 2\n    exec: 8\n    blocks:\n      - bid: 0\n        insns: 2\n        \
         hash: 0xA0000\n        succ: [ {{ bid: 2, cnt: 8 }} ]\n      - bid: 2\n        insns: 1\n        hash: 0x5\n"
    );
    let reading = afterlink_ingest::read_of(yaml.as_bytes().into(), Some(&program)).unwrap();
    assert!(text(&reading).contains("1 small/1 2 1 small/1 5 0 8\n"), "{}", text(&reading));
    assert_eq!(
        reading.notes,
        [
            "1 functions, with 50.0 % of the counts, of more than 64 KiB are left out: where their blocks are is not told",
            "the last line is not \"...\": the file may be cut off, and what is there of it is used"
        ]
    );
}

/// Samples come back out of what llvm-bolt makes of them.
#[test]
fn llvm_bolt_writes_executions_for_samples() {
    if !is_installed("llvm-bolt-22") {
        return;
    }
    let subject = Subject::new(Link::Fixed);
    let samples = "no_lbr cycles:u\n1 _start 5 40\n1 _start a 30\n1 _start c 20\n1 work/1 0 16\n1 work/1 3 14\n1 work/1 7 5\n";
    std::fs::write(subject.folder.path().join("s.fdata"), samples).unwrap();
    let arguments = [subject.name(), "-data", "s.fdata", "-w", "s.yaml", "-o", "/dev/null"];
    run(subject.folder.path(), "llvm-bolt-22", &arguments);
    let profile = subject.fdata(&std::fs::read(subject.folder.path().join("s.yaml")).unwrap());
    let expected = "no_lbr cycles:u\n1 _start 5 30\n1 _start a 30\n1 _start c 30\n1 work/1 0 15\n1 work/1 3 15\n1 work/1 7 5\n";
    assert_eq!(profile, expected);
}

/// perf2bolt's YAML says what its fdata says.
#[test]
fn perf2bolt_writes_the_same_in_both_formats() {
    if !is_installed("perf2bolt-22") {
        return;
    }
    for link in [Link::Fixed, Link::Pie] {
        let subject = Subject::new(link);
        let bias = if link == Link::Fixed { 0 } else { 0x5555_0000_0000 };
        let (s, w) = (subject.start - bias, subject.work - bias);
        let seen = format!(
            "T {:x} {w:x} {:x} 500\nT {:x} {w:x} {:x} 500\nT {:x} {:x} {:x} 500\nT {:x} {:x} {:x} 990\n",
            s + 5,
            w + 3,
            s + 5,
            w + 7,
            w + 3,
            w + 7,
            w + 7,
            s + 12,
            s + 5,
            s + 5
        );
        std::fs::write(subject.folder.path().join("r.data"), &seen).unwrap();
        let name = subject.name();
        for (format, output) in [("fdata", "b.fdata"), ("yaml", "b.yaml")] {
            let format = format!("--profile-format={format}");
            let arguments = ["--pa", "-p", "r.data", "-o", output, &format, name];
            run(subject.folder.path(), "perf2bolt-22", &arguments);
        }
        let read = |file: &str| std::fs::read(subject.folder.path().join(file)).unwrap();
        let jumps = |text: String| {
            let is_told = |line: &String| !line.starts_with("0 ") && !line.ends_with(" 0");
            lines(&text).into_iter().filter(is_told).collect::<Vec<_>>()
        };
        let theirs = jumps(String::from_utf8(read("b.fdata")).unwrap());
        assert!(theirs.len() > 3, "{theirs:?}");
        assert_eq!(jumps(subject.fdata(&read("b.yaml"))), theirs, "{link:?}");
    }
}

static SUBJECT: LazyLock<Subject> = LazyLock::new(|| Subject::new(Link::Pie));

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn changed_bytes_never_panic(changes in proptest::collection::vec((any::<u16>(), 0usize..12), 1..6)) {
        const PARTS: [&str; 12] = ["[", "]", "{", "}", "\n", " ", "'", ": ", "-", "0x", "9999999999", ","];
        let mut yaml = format!("{HEADER}{FUNCTIONS}");
        for (at, part) in changes {
            yaml.insert_str(usize::from(at) % yaml.len(), PARTS[part]);
        }
        if let Err(error) = SUBJECT.read(yaml.as_bytes()) {
            prop_assert!(error.next.is_some(), "{error}");
        }
    }
}
