//! llvm-bolt reads what we write, and takes the same from it as from its own text.

use crate::toolbox::{TOOLS, build_program, installed, instrumented_profile, run};
use afterlink_profile::{Kind, fdata};
use std::path::Path;

/// What llvm-bolt says of a profile: the block counts of every function, and the lines about the profile.
fn use_profile(folder: &Path, text: &[u8]) -> (Vec<String>, Vec<String>) {
    std::fs::write(folder.join("used.fdata"), text).unwrap();
    let output = run(folder, "llvm-bolt-22", &["p", "-data", "used.fdata", "--print-cfg", "-o", "ignored"]);
    let pick = |marks: &[&str]| -> Vec<String> {
        output.lines().filter(|l| marks.iter().any(|m| l.contains(m))).map(str::to_owned).collect()
    };
    // The numbers of its labels depend on the order in which its threads work.
    let unnumbered = |line: String| -> String {
        let labels = line.split(' ').filter(|word| !word.starts_with(".L"));
        labels.collect::<Vec<_>>().join(" ")
    };
    let counts = pick(&["Binary Function \"", "Exec Count", "Successors:"]).into_iter().map(unnumbered);
    (counts.collect(), pick(&["profile", "sampl", "WARNING"]))
}

fn written(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    fdata::write(&fdata::read(text.as_bytes()).unwrap(), &mut out).unwrap();
    out
}

#[test]
fn branches() {
    if installed(&TOOLS) {
        let folder = tempfile::tempdir().unwrap();
        build_program(folder.path(), "p", &[]);
        let text = instrumented_profile(folder.path(), "p", "100");
        let (counts, said) = use_profile(folder.path(), text.as_bytes());
        assert!(
            counts.iter().any(|line| line.contains("Exec Count") && line.ends_with(": 200")),
            "{counts:#?}"
        );
        let rewritten = written(&text);
        assert_ne!(rewritten, text.as_bytes(), "ours is sorted");
        assert_eq!((counts, said), use_profile(folder.path(), &rewritten));
    }
}

#[test]
fn samples_and_memory_records() {
    if installed(&TOOLS) {
        let folder = tempfile::tempdir().unwrap();
        build_program(folder.path(), "p", &[]);
        // The order of merge-fdata and perf2bolt, which llvm-bolt itself refuses.
        let text = "boltedcollection\nno_lbr cycles\n4 main 13 4 table/1 0 5\n1 work/1 0 40\n1 main 0 10\n";
        assert_eq!(fdata::read(text.as_bytes()).unwrap().kind(), Kind::Samples);
        let (_, said) = use_profile(folder.path(), &written(text));
        for expected in ["already processed by BOLT", "normalizing samples by instruction count", "2 out of "]
        {
            assert!(said.iter().any(|line| line.contains(expected)), "{expected}: {said:#?}");
        }
        assert!(!said.iter().any(|line| line.contains("invalid profile data")), "{said:#?}");
    }
}
