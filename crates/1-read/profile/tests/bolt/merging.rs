//! Sums are those of merge-fdata.

use crate::toolbox::{TOOLS, build_program, installed, instrumented_profile, run, try_run};
use afterlink_profile::{fdata, merge};

fn our_merge(texts: &[String]) -> String {
    let profiles = texts.iter().map(|text| fdata::read(text.as_bytes()).unwrap()).collect();
    let mut out = Vec::new();
    fdata::write(&merge(profiles).unwrap(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// merge-fdata writes in the order of its hash table; its output as a sorted set of lines, headers left as they are.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    let headers = lines.iter().take_while(|l| !l.starts_with(|c: char| c.is_ascii_digit())).count();
    lines[headers..].sort();
    lines
}

fn tool_merge(texts: &[String]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..texts.len()).map(|i| format!("{i}.fdata")).collect();
    for (name, text) in names.iter().zip(texts) {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let mut arguments: Vec<&str> = vec!["-o", "sum.fdata"];
    arguments.extend(names.iter().map(String::as_str));
    run(folder.path(), "merge-fdata-22", &arguments);
    std::fs::read_to_string(folder.path().join("sum.fdata")).unwrap()
}

/// Made by `printf '1 a\\\\ b 0 1 b 1f 3 7\n1 a\\\\ b 0 1 c 0 0 2\n0 [unknown] 0 1 main 0 0 1\n4 main 13 4 table/1 0 5\n' >1;
/// printf '1 a\\\\ b 0 1 b 1f 1 9\n1 main 13 1 main 74 0 1\n4 main 13 4 table/1 0 6\n' >2; merge-fdata-22 1 2 | sort`, version 22.1.8.
#[test]
fn a_sum_that_merge_fdata_wrote() {
    let texts = [
        "1 a\\ b 0 1 b 1f 3 7\n1 a\\ b 0 1 c 0 0 2\n0 [unknown] 0 1 main 0 0 1\n4 main 13 4 table/1 0 5\n",
        "1 a\\ b 0 1 b 1f 1 9\n1 main 13 1 main 74 0 1\n4 main 13 4 table/1 0 6\n",
    ]
    .map(str::to_owned);
    let expected = "\
0 [unknown] 0 1 main 0 0 1
1 a\\ b 0 1 b 1f 4 16
1 a\\ b 0 1 c 0 0 2
1 main 13 1 main 74 0 1
4 main 13 4 table/1 0 11
";
    assert_eq!(our_merge(&texts), expected);
    if installed(&["merge-fdata-22"]) {
        assert_eq!(sorted(&tool_merge(&texts)), expected.lines().collect::<Vec<_>>());
    }
}

#[test]
fn samples_are_summed_as_by_merge_fdata() {
    if installed(&["merge-fdata-22"]) {
        // The tool reads `boltedcollection` before `no_lbr` only, and drops the events.
        for header in ["no_lbr\n", "boltedcollection\nno_lbr\n"] {
            let texts =
                [format!("{header}1 main 3 7\n1 f 0 1\n"), format!("{header}1 main 3 9\n1 main 4 1\n")];
            let (ours, theirs) = (our_merge(&texts), tool_merge(&texts));
            assert_eq!(fdata::read(ours.as_bytes()).unwrap(), fdata::read(theirs.as_bytes()).unwrap());
            assert_eq!(ours.lines().last(), Some("1 main 4 1"));
        }
    }
}

#[test]
fn real_profiles_are_summed_as_by_merge_fdata() {
    if installed(&TOOLS) {
        let folder = tempfile::tempdir().unwrap();
        build_program(folder.path(), "p", &[]);
        let texts = ["30", "101", "7"].map(|n| instrumented_profile(folder.path(), "p", n));
        let (ours, theirs) = (our_merge(&texts), tool_merge(&texts));
        assert!(ours.lines().count() > 30, "{ours}");
        assert_eq!(sorted(&ours), sorted(&theirs));
        // And what we wrote can be merged by it again.
        assert_eq!(
            sorted(&tool_merge(&[ours.clone(), texts[0].clone()])),
            sorted(&our_merge(&[ours, texts[0].clone()]))
        );
    }
}

#[test]
fn what_merge_fdata_refuses_to_mix_is_refused() {
    let texts = ["1 a 0 1 b 0 0 1\n", "no_lbr\n1 a 0 1\n", "boltedcollection\n1 a 0 1 b 0 0 1\n"];
    let folder = tempfile::tempdir().unwrap();
    for (i, text) in texts.iter().enumerate() {
        std::fs::write(folder.path().join(i.to_string()), text).unwrap();
    }
    for (i, j) in [(0, 1), (1, 2), (0, 2), (2, 0), (1, 0)] {
        let profiles = [i, j].map(|k: usize| fdata::read(texts[k].as_bytes()).unwrap());
        assert!(merge(profiles.into()).is_err(), "{i} {j}");
        if installed(&["merge-fdata-22"]) {
            assert!(
                !try_run(folder.path(), "merge-fdata-22", &[&i.to_string(), &j.to_string()]).0,
                "{i} {j}"
            );
        }
    }
}
