//! LLVM's map of basic blocks (`.llvm_bb_addr_map`) follows the code: asked by LLVM's own tools, each block of an output is where the code of
//! the input's block went.

use afterlink_testkit::sandbox::Sandbox;
use afterlink_testkit::symbolizers::places;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const MOVE: &str = "--scope all --order-functions random --order-blocks random --split random --seed 4";
const MAP: &str = "-O2 -w -fbasic-block-address-map -fuse-ld=lld";

/// A block as LLVM's tool tells it.
#[derive(Clone, Debug)]
struct Block {
    function: String,
    id: u64,
    start: u64,
    size: u64,
    calls: Vec<u64>,
    /// What is told of it beside its place: its end's fall into the next one apart.
    rest: Vec<Value>,
    falls_through: bool,
}

/// The blocks, and the number of ranges of each function.
fn blocks(sandbox: &Sandbox, file: &str) -> (Vec<Block>, BTreeMap<String, usize>) {
    let said = sandbox.say(&format!("llvm-readobj-22 --elf-output-style=JSON --bb-addr-map {file}"));
    let said: Value = serde_json::from_str(&said).unwrap();
    let (mut blocks, mut ranges) = (Vec::new(), BTreeMap::new());
    for function in said[0]["BBAddrMap"].as_array().unwrap() {
        let function = &function["Function"];
        let name = function["Name"].as_str().unwrap();
        let own = function["BB Ranges"].as_array().unwrap();
        assert_eq!(function["At"], own[0]["Base Address"], "{name}");
        assert!(ranges.insert(name.to_owned(), own.len()).is_none(), "{name} is told of twice");
        let profile = function["PGO analyses"]["PGO BB entries"].as_array();
        let mut profile = profile.into_iter().flatten();
        for range in own {
            let (base, mut behind) = (range["Base Address"].as_u64().unwrap(), 0);
            for block in range["BB Entries"].as_array().unwrap() {
                let number = |name: &str| block[name].as_u64().unwrap();
                assert!(number("Offset") >= behind, "{name}: blocks overlap");
                behind = number("Offset") + number("Size");
                let start = base + number("Offset");
                let calls = block["Callsite End Offsets"].as_array().into_iter().flatten();
                let flags = ["HasReturn", "HasTailCall", "IsEHPad", "HasIndirectBranch", "Hash"];
                let mut rest: Vec<Value> = flags.map(|flag| block[flag].clone()).into();
                rest.extend(profile.next().cloned());
                rest.push(function["PGO analyses"]["FuncEntryCount"].clone());
                blocks.push(Block {
                    function: name.to_owned(),
                    id: number("ID"),
                    start,
                    size: number("Size"),
                    calls: calls.map(|call| start + call.as_u64().unwrap()).collect(),
                    rest,
                    falls_through: block["CanFallThrough"].as_bool().unwrap(),
                });
            }
        }
    }
    (blocks, ranges)
}

/// Each instruction of a file: where it is, and its name.
fn instructions(sandbox: &Sandbox, file: &str) -> BTreeMap<u64, String> {
    let said = sandbox.say(&format!("llvm-objdump-22 -d --no-show-raw-insn {file}"));
    let rows = said.lines().filter_map(|row| {
        let (at, text) = row.trim().split_once(':')?;
        let name = text.split_whitespace().next()?;
        Some((u64::from_str_radix(at, 16).ok()?, name.to_owned()))
    });
    rows.collect()
}

/// Builds `in` of sources and writes `out`, which is proven; gives the report.
#[track_caller]
fn rewrite(sandbox: &Sandbox, compiler: &str, sources: &[&str], options: &str) -> String {
    for source in sources {
        let path = afterlink_testkit::tests_folder().join(source);
        fs::copy(&path, sandbox.path(path.file_name().unwrap().to_str().unwrap())).unwrap();
    }
    let names = sources.iter().filter(|source| !source.ends_with(".h"));
    let names: Vec<&str> = names.map(|source| source.rsplit('/').next().unwrap()).collect();
    sandbox.say(&format!("{compiler} {MAP} -Wl,-q {} -o in", names.join(" ")));
    let command = format!("optimize in -o out {MOVE} {options}");
    let outcome = sandbox.afterlink(&command.split_whitespace().collect::<Vec<_>>());
    assert_eq!(outcome.exit, 0, "{compiler}: {}", outcome.stderr());
    assert_eq!(sandbox.say("./in"), sandbox.say("./out"), "{compiler}");
    outcome.stdout().to_owned()
}

/// Holds each block of `out` against that of `in`; gives how many blocks `out` has.
#[track_caller]
fn hold(sandbox: &Sandbox, what: &str) -> usize {
    let ((old, _), (new, ranges)) = (blocks(sandbox, "in"), blocks(sandbox, "out"));
    assert!(ranges.values().any(|ranges| *ranges > 1), "{what}: no function was split");
    let key = |block: &Block| (block.function.clone(), block.id);
    let new: BTreeMap<_, &Block> = new.iter().map(|block| (key(block), block)).collect();
    let pairs = old.iter().filter_map(|block| Some((block, *new.get(&key(block))?)));
    let pairs: Vec<(&Block, &Block)> = pairs.collect();
    assert_eq!(pairs.len(), new.len(), "{what}");
    let code = instructions(sandbox, "out");
    let (mut moved, mut calls) = (0, 0);
    let places = places(&sandbox.path("in"), &sandbox.path("out")).unwrap();
    for (old, new) in &pairs {
        assert_eq!(old.rest, new.rest, "{what}: {old:?} became {new:?}");
        // An instruction is in the block that it was in, and nowhere else.
        for place in &places {
            let is = |block: &Block, at: u64| (block.start..block.start + block.size).contains(&at);
            assert!(is(old, place.input) || !is(new, place.output), "{what}: {place:?} {new:?}");
            if place.input == old.start && old.size > 0 {
                assert_eq!(place.output, new.start, "{what}: {old:?} became {new:?}");
                moved += 1;
            }
        }
        assert!(new.calls.len() <= old.calls.len(), "{what}: {old:?} became {new:?}");
        calls += new.calls.len();
        for call in &new.calls {
            let before = code.range(..call).next_back().unwrap().1;
            assert!(before.starts_with("call") || before.starts_with('j'), "{what}: {new:?} ends {before}");
        }
        let last = code.range(..new.start + new.size).next_back().unwrap().1;
        if new.size > 0 && ["jmp", "ret"].iter().any(|end| last.starts_with(end)) {
            assert!(!new.falls_through, "{what}: {new:?} ends with {last}");
        } else if new.size > 0 && last.starts_with('j') {
            assert!(new.falls_through, "{what}: {new:?} ends with {last}");
        }
    }
    assert!(moved * 3 >= new.len() * 2, "{what}: {moved} of {} blocks moved", new.len());
    assert!(calls > 3, "{what}: {calls} calls");
    new.len()
}

/// What `llvm-objdump` writes over blocks is what the map says.
fn hold_labels(sandbox: &Sandbox) {
    let said = sandbox.say("llvm-objdump-22 -d --no-show-raw-insn --symbolize-operands out");
    let (mut labels, mut label) = (BTreeSet::new(), None);
    for row in said.lines() {
        if let Some(id) = row.trim().strip_prefix("<BB").and_then(|row| row.split_once('>')?.0.parse().ok()) {
            label = Some(id);
        } else if let (Some(id), Some((at, _))) = (label, row.trim().split_once(':')) {
            labels.insert((u64::from_str_radix(at, 16).unwrap(), id));
            label = None;
        }
    }
    assert!(labels.len() > 15, "{said}");
    let told: BTreeSet<(u64, u64)> = blocks(sandbox, "out").0.iter().map(|b| (b.start, b.id)).collect();
    let strange: Vec<_> = labels.difference(&told).collect();
    assert!(strange.is_empty(), "{strange:x?}");
    assert!(labels.len() * 10 >= told.len() * 9, "{} labels of {} blocks", labels.len(), told.len());
}

const DEBUGGED: [&str; 2] = ["cli/programs/debugged/main.c", "cli/programs/debugged/work.c"];
const THROWING: [&str; 2] = ["cases/exceptions/main.cc", "cases/case.h"];

/// What compilers tell in such a map.
const FEATURES: [&str; 5] = [
    "",
    "-mllvm -emit-bb-hash",
    "-mllvm -pgo-analysis-map=all",
    "-fbasic-block-sections=all",
    "-ffunction-sections -Wl,--symbol-ordering-file=/dev/null",
];

#[test]
fn blocks_are_where_their_code_went() {
    for features in FEATURES {
        let sandbox = Sandbox::default();
        let said = rewrite(&sandbox, &format!("clang-22 {features}"), &DEBUGGED, "");
        assert!(!said.contains("bb_addr_map"), "{features}: {said}");
        let all = blocks(&sandbox, "in").0.len();
        assert_eq!(hold(&sandbox, features), all, "{features}");
        hold_labels(&sandbox);
    }
}

#[test]
fn landing_pads_are_blocks_too() {
    for features in &FEATURES[..3] {
        let sandbox = Sandbox::default();
        let said = rewrite(&sandbox, &format!("clang++-22 -std=c++14 {features}"), &THROWING, "");
        assert!(!said.contains("bb_addr_map"), "{features}: {said}");
        let all = blocks(&sandbox, "in").0.len();
        assert_eq!(hold(&sandbox, features), all, "{features}");
    }
}

/// What stands behind a call is its block's also where the call is another one now, and a jump where padding was.
#[test]
fn padding_behind_a_call_through_the_plt() {
    let sandbox = Sandbox::default();
    let said = rewrite(&sandbox, "clang-22", &["cli/programs/library_loops.c"], "");
    assert!(said.contains("plt-calls") && !said.contains("could not be proven"), "{said}");
    let all = blocks(&sandbox, "in").0.len();
    assert_eq!(hold(&sandbox, "library_loops"), all);
}

/// Control that only went on, and is led around a jump now, says nothing of whether the call in front of it comes back.
#[test]
fn a_call_that_does_not_come_back_falls_nowhere() {
    let sandbox = Sandbox::default();
    rewrite(&sandbox, "clang++-22 -std=c++14", &["cli/programs/texts.cc"], "");
    let run = |words: &[&str]| {
        let outcome = sandbox.afterlink(words);
        assert_eq!(outcome.exit, 0, "{words:?}: {}", outcome.stderr());
        outcome.stdout()
    };
    run(&["instrument", "in", "-o", "counting", "--counters", "counters"]);
    let text = sandbox.say("./counting");
    // Its last jumps stay, also where they could be left out: to the map they are calls.
    let said = run(&["optimize", "in", "-p", "counters", "-o", "out", "--pass", "adjacent-functions"]);
    assert!(!said.contains("could not be proven"), "{said}");
    assert_eq!(sandbox.say("./out"), text);
    let ends = |file: &str| -> BTreeMap<(String, u64), bool> {
        blocks(&sandbox, file).0.into_iter().map(|b| ((b.function, b.id), b.falls_through)).collect()
    };
    let (old, new) = (ends("in"), ends("out"));
    assert!(new.len() == old.len() && new.iter().any(|(block, falls)| old[block] != *falls));
    // Bytes are left free in front of functions all the same, of which the map need not tell.
    run(&["optimize", "in", "-p", "counters", "-o", "packed", "--skip-pass", "function-alignment"]);
    let starts = |file: &str| blocks(&sandbox, file).0.iter().map(|block| block.start).collect::<Vec<_>>();
    assert_ne!(starts("out"), starts("packed"));
}

/// Of functions that became one with another nothing is told, and the report says so; code in place of a call is no call.
#[test]
fn functions_that_became_one() {
    let sandbox = Sandbox::default();
    let sources = [
        "cases/same_functions/main.c",
        "cases/same_functions/functions.S",
        "cases/assembly.h",
        "cases/case.h",
    ];
    let passes = "--pass identical-functions --pass inlining";
    let said = rewrite(&sandbox, "clang-22", &sources, passes);
    let (old, new) = (blocks(&sandbox, "in").1, blocks(&sandbox, "out").1);
    let lost = old.len() - new.len();
    let told = format!(
        "kept         .llvm_bb_addr_map: but for {lost} of its {} functions: {lost} became one",
        old.len()
    );
    assert!(lost > 0 && said.contains(&told), "{lost}: {said}");
    let calls = |file: &str| blocks(&sandbox, file).0.iter().map(|block| block.calls.len()).sum::<usize>();
    assert!(calls("out") < calls("in"), "{} of {}", calls("out"), calls("in"));
    hold(&sandbox, passes);
}

/// Of a version that is not known, nothing can be told: where its entries end is not known either.
#[test]
fn other_versions_are_left_out() {
    let sandbox = Sandbox::default();
    rewrite(&sandbox, "clang-22", &DEBUGGED, "");
    sandbox.say("llvm-objcopy-22 --dump-section=.llvm_bb_addr_map=map in /dev/null");
    let mut map = fs::read(sandbox.path("map")).unwrap();
    assert_eq!(map[0], 5);
    map[0] = 6;
    sandbox.put("map", &map);
    sandbox.say("llvm-objcopy-22 --update-section=.llvm_bb_addr_map=map in later");
    let command = format!("optimize later -o out {MOVE}");
    let outcome = sandbox.afterlink(&command.split_whitespace().collect::<Vec<_>>());
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    assert!(outcome.stdout().contains("left out     .llvm_bb_addr_map: "), "{}", outcome.stdout());
    assert!(!sandbox.say("readelf -SW out").contains("bb_addr_map"));
    // Put back, it is refused.
    sandbox.say("llvm-objcopy-22 --add-section=.llvm_bb_addr_map=map --set-section-type=.llvm_bb_addr_map=0x6fff4c0a out back");
    let outcome = sandbox.afterlink(&["verify", "later", "back"]);
    assert!(outcome.exit != 0 && outcome.stdout().contains(".llvm_bb_addr_map"), "{}", outcome.stdout());
}

/// With counters among its blocks a program does without.
#[test]
fn programs_that_count_do_without() {
    let sandbox = Sandbox::default();
    rewrite(&sandbox, "clang-22", &DEBUGGED, "");
    let outcome = sandbox.afterlink(&["instrument", "in", "-o", "counting"]);
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    assert!(!sandbox.say("readelf -SW counting").contains("bb_addr_map"));
}
