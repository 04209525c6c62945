//! `where` leads an address of an output back to the program, and forth: to the same instruction.

use afterlink_testkit::sandbox::{Sandbox, assert_clear_error, built};
use afterlink_testkit::symbolizers::places;
use object::{Object, ObjectSection};
use std::collections::HashMap;

const MOVE: &str =
    "optimize in -o out --scope all --order-functions random --order-blocks random --split random --seed 5";

fn sandbox_with_output() -> Sandbox {
    let sandbox = Sandbox::default();
    sandbox.put("in", &std::fs::read(built("jump_table", "gcc -O2")).unwrap());
    let outcome = sandbox.afterlink(&MOVE.split_whitespace().collect::<Vec<_>>());
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    sandbox
}

fn said(sandbox: &Sandbox, options: &[&str]) -> String {
    let outcome = sandbox.afterlink(&[&["where", "out"], options].concat());
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    outcome.stdout()
}

/// The test kit finds out by decoding both files which instructions are the same: each is led to its counterpart, both ways.
#[test]
fn there_and_back() {
    let sandbox = sandbox_with_output();
    let same = places(&sandbox.path("in"), &sandbox.path("out")).unwrap();
    assert!(same.len() > 40, "{} places", same.len());
    for (options, from_output) in [(vec![], true), (vec!["--of-input"], false)] {
        let asked = same.iter().map(|p| format!("{:#x}", if from_output { p.output } else { p.input }));
        let asked: Vec<String> = asked.collect();
        let words: Vec<&str> = options.into_iter().chain(asked.iter().map(String::as_str)).collect();
        let answers = said(&sandbox, &words);
        assert_eq!(answers.lines().count(), same.len(), "{answers}");
        for (place, line) in same.iter().zip(answers.lines()) {
            let mut parts = line.split(' ');
            assert_eq!(parts.next(), Some(&*format!("{:#x}", place.output)), "{line}");
            assert_eq!(parts.nth(1), Some(&*format!("{:#x}", place.input)), "{line}");
            assert_eq!(parts.next(), Some("copied"), "{line}");
        }
    }
}

/// Without addresses all of the map is told, in order and without overlap; as JSON, too.
#[test]
fn all_of_it() {
    let sandbox = sandbox_with_output();
    let text = said(&sandbox, &[]);
    let json: Vec<HashMap<String, serde_json::Value>> =
        serde_json::from_str(&said(&sandbox, &["--json"])).unwrap();
    assert_eq!(json.len(), text.lines().count());
    assert!(json.len() > 10, "{text}");
    let number = |piece: &HashMap<String, serde_json::Value>, name: &str| piece[name].as_u64().unwrap();
    for pair in json.windows(2) {
        assert!(number(&pair[0], "output") + number(&pair[0], "size") <= number(&pair[1], "output"));
    }
}

/// A jump that was added behind copied code stands for nothing of the program.
#[test]
fn what_was_added() {
    let sandbox = sandbox_with_output();
    let last = |line: &str| {
        let mut parts = line.split(' ');
        let start = u64::from_str_radix(parts.next()?.trim_start_matches("0x"), 16).ok()?;
        Some(format!("{:#x}", start + parts.next()?.parse::<u64>().ok()? - 1))
    };
    let asked: Vec<String> = said(&sandbox, &[]).lines().map(|line| last(line).unwrap()).collect();
    let answers = said(&sandbox, &asked.iter().map(String::as_str).collect::<Vec<_>>());
    let added = answers.lines().filter(|line| line.contains(" - inserted ")).count();
    assert!(added > 0, "in random order jumps are added");
}

#[test]
fn what_it_cannot_say() {
    let sandbox = sandbox_with_output();
    // The file's header, and no address at all.
    assert_eq!(said(&sandbox, &["0x10"]), "0x10 0 - nowhere\n");
    assert_eq!(said(&sandbox, &["--of-input", "0xffffffffffff"]), "0xffffffffffff 0 - nowhere\n");
    let program = std::fs::read(sandbox.path("in")).unwrap();
    let init = object::File::parse(&*program).unwrap().section_by_name(".init").unwrap().address();
    assert_eq!(said(&sandbox, &[&format!("{init:#x}")]), format!("{init:#x} 0 {init:#x} stayed\n"));
    assert_clear_error(&sandbox.afterlink(&["where", "in"]), &["no address map", "afterlink optimize"]);
    assert_eq!(sandbox.afterlink(&["where", "out", "main"]).exit, 64);
}
