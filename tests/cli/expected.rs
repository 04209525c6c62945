//! What `optimize --report` expects of a layout, held against what the program and its output are seen to do, step by step, in the run that
//! the profile is of.

use afterlink_isa::{Arch, Flow};
use afterlink_testkit::counting::compile;
use afterlink_testkit::sandbox::Sandbox;
use afterlink_testkit::stepping;
use object::{Object, ObjectSection, ObjectSymbol};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;

/// The program's code, and the output's, lies below this address.
const LIMIT: u64 = 0x1000_0000;

fn run(sandbox: &Sandbox, words: &[&str]) -> String {
    let done = sandbox.afterlink(words);
    assert_eq!(done.exit, 0, "{words:?}: {}", done.stderr());
    done.stdout()
}

/// What functions did.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    taken: u64,
    bytes: usize,
    lines: usize,
    pages: usize,
}

/// The code of functions: one range, or several, of each.
struct Code {
    file: Vec<u8>,
    functions: Vec<Vec<Range<u64>>>,
}

impl Code {
    fn function(&self, address: u64) -> Option<usize> {
        self.functions.iter().position(|ranges| ranges.iter().any(|range| range.contains(&address)))
    }

    fn instruction(&self, address: u64) -> afterlink_isa::Inst {
        let file = object::File::parse(&*self.file).unwrap();
        let holds = |section: &object::Section| {
            (section.address()..section.address() + section.size()).contains(&address)
        };
        let section = file.sections().find(holds).expect("code is in a section");
        let bytes = &section.data().unwrap()[(address - section.address()) as usize..];
        Arch::X86_64.decode(bytes).expect("what ran is code")
    }

    /// One past the jump that a branch at `address` has behind it: the other half of what ends its block, if nobody went that way.
    fn behind_branch(&self, address: u64) -> Option<u64> {
        let branch = self.instruction(address);
        if !matches!(branch.flow, Flow::Branch(..) | Flow::ShortBranch(_)) {
            return None;
        }
        let behind = address + u64::from(branch.len);
        let jump = self.instruction(behind);
        matches!(jump.flow, Flow::Jump(_)).then_some(behind + u64::from(jump.len))
    }

    /// What these functions did, by all branches that were taken, and all runs of code between them.
    fn seen(&self, text: &str, has_two_jumps: bool) -> Seen {
        let (mut taken, mut ran) = (0, BTreeSet::new());
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let place = |text: &str| u64::from_str_radix(text, 16).ok();
            match (words[0], place(words[1]), place(words[2])) {
                ("B", Some(from), Some(to)) => {
                    let is_inside = self.function(from).is_some() && self.function(from) == self.function(to);
                    let flow = self.instruction(from).flow;
                    let is_jump = matches!(flow, Flow::Jump(_) | Flow::Branch(..) | Flow::ShortBranch(_));
                    taken += if is_inside && is_jump { words[3].parse::<u64>().unwrap() } else { 0 };
                }
                ("F", Some(start), Some(end)) if self.function(start).is_some() => {
                    let both = self.behind_branch(end).filter(|_| has_two_jumps);
                    ran.extend(start..both.unwrap_or(end + u64::from(self.instruction(end).len)));
                }
                _ => {}
            }
        }
        let pieces = |size: u64| ran.iter().map(|byte| byte / size).collect::<BTreeSet<u64>>().len();
        Seen { taken, bytes: ran.len(), lines: pieces(64), pages: pieces(4096) }
    }
}

/// What the report says that all functions together do.
fn expected(report: &Value, side: &str) -> Seen {
    let of = |name: &str| report["expected"][side][name].as_u64().unwrap();
    let size = |name: &str| of(name) as usize;
    Seen { taken: of("taken_branches"), bytes: size("bytes"), lines: size("lines"), pages: size("pages") }
}

/// A program and its output: code and branches of each, and what the report says.
struct Both {
    input: (Code, String),
    output: (Code, String),
    report: Value,
}

/// Optimizes a program by all that it does, and holds the report against that and against all that the output does.
#[track_caller]
fn assert_expected(flags: &[&str], options: &[&str]) -> Value {
    let Both { input, output, report } = both(flags, options);
    assert_eq!(expected(&report, "before"), input.0.seen(&input.1, false), "{options:?}");
    assert_eq!(expected(&report, "after"), output.0.seen(&output.1, true), "{options:?}");
    report
}

#[track_caller]
fn both(flags: &[&str], options: &[&str]) -> Both {
    let sandbox = Sandbox::default();
    let all = [&["-no-pie", "-static", "-nostdlib", "-Wl,--build-id"], flags].concat();
    compile(&sandbox, "led_back.c", "in", &all);
    let seen = |program: &str| stepping::branches(&sandbox.path(program), LIMIT);
    let before = seen("in");
    sandbox.put("in.seen", before.as_bytes());
    run(&sandbox, &["profile", "convert", "in.seen", "--binary", "in", "-o", "in.fdata"]);
    let words = ["optimize", "in", "-p", "in.fdata", "-o", "out", "--report", "report.json"];
    run(&sandbox, &[&words, options].concat());
    let report: Value = serde_json::from_slice(&fs::read(sandbox.path("report.json")).unwrap()).unwrap();
    let hottest = report["hottest"].as_array().unwrap();
    assert!(hottest.len() > 4, "{hottest:?}");

    let file = fs::read(sandbox.path("in")).unwrap();
    let names: Vec<&str> = hottest.iter().map(|function| function["name"].as_str().unwrap()).collect();
    let parsed = object::File::parse(&*file).unwrap();
    let of_name = |name: &&str| {
        let of_function =
            |symbol: &object::Symbol| symbol.name().is_ok_and(|n| n.split('.').next() == Some(name));
        let range = |symbol: object::Symbol| symbol.address()..symbol.address() + symbol.size();
        parsed.symbols().filter(of_function).map(range).collect()
    };
    let functions = names.iter().map(of_name).collect();
    let input = Code { functions, file: file.clone() };

    let fragment = |fragment: &Value| {
        let start = fragment["address"].as_u64().unwrap();
        start..start + fragment["bytes"].as_u64().unwrap()
    };
    let fragments =
        |function: &Value| function["fragments"].as_array().unwrap().iter().map(fragment).collect();
    let output = Code {
        functions: hottest.iter().map(fragments).collect(),
        file: fs::read(sandbox.path("out")).unwrap(),
    };
    let after = seen("out");
    Both { input: (input, before), output: (output, after), report }
}

fn taken(report: &Value, side: &str) -> u64 {
    report["expected"][side]["taken_branches"].as_u64().unwrap()
}

#[test]
fn what_is_expected_is_what_happens() {
    assert_expected(&[], &[]);
    // What a compiler that does not care brings is more than what one does that does.
    let report = assert_expected(&["-O1", "-fno-reorder-blocks", "-fno-guess-branch-probability"], &[]);
    assert!(taken(&report, "after") < taken(&report, "before"), "{}", report["expected"]);
    let score = |side: &str| report["expected"][side]["ext_tsp"].as_f64().unwrap();
    assert!(score("after") > score("before"), "{}", report["expected"]);
}

#[test]
fn of_orders_that_bring_nothing() {
    for order in ["reverse", "random", "input"] {
        assert_expected(&[], &["--order-blocks", order, "--split", "none"]);
    }
    // Blocks that follow each other wherever they stand are jumped to from everywhere.
    let report = assert_expected(&[], &["--order-blocks", "reverse", "--split", "random"]);
    assert!(taken(&report, "after") > taken(&report, "before"), "{}", report["expected"]);
}

#[test]
fn of_other_code() {
    assert_expected(&["-O1"], &[]);
    assert_expected(&["-O0"], &[]);
    assert_expected(&["-Os"], &["--pass", "inlining"]);
    assert_expected(&[], &["--pass", "hot-inlining"]);
    assert_expected(&[], &["--pass", "identical-functions"]);
}

impl Code {
    /// Who calls `callee` most: how often, and how many bytes lie between the call that is made most often and the entry.
    fn most_calls(&self, text: &str, callee: usize) -> Option<(u64, u64)> {
        let entry = self.functions[callee][0].start;
        let mut by_caller: BTreeMap<usize, (u64, u64, u64)> = BTreeMap::new();
        for line in text.lines().filter(|line| line.starts_with("B ")) {
            let words: Vec<&str> = line.split(' ').collect();
            let place = |text: &str| u64::from_str_radix(text, 16).ok();
            let (Some(from), Some(to)) = (place(words[1]), place(words[2])) else { continue };
            let Some(caller) = self.function(from).filter(|caller| to == entry && *caller != callee) else {
                continue;
            };
            let count: u64 = words[3].parse().unwrap();
            let (calls, most, distance) = by_caller.entry(caller).or_default();
            *calls += count;
            if count > *most {
                (*most, *distance) = (count, from.abs_diff(entry));
            }
        }
        by_caller.into_values().max().map(|(calls, _, distance)| (calls, distance))
    }
}

/// Whom a function stands beside is what its address says, and who calls it is what is seen.
#[test]
fn positions_are_those_of_the_files() {
    // Of calls that are gone nothing is told.
    let Both { input, output, report } = both(&["-O1"], &["--skip-pass", "hot-inlining"]);
    let hottest = report["hottest"].as_array().unwrap();
    let name = |function: &Value| function["name"].as_str().unwrap().to_owned();
    let mut pieces = Vec::new();
    for function in hottest {
        for fragment in function["fragments"].as_array().unwrap().iter().filter(|f| f["section"] == ".text") {
            pieces.push((fragment["address"].as_u64().unwrap(), name(function)));
        }
    }
    pieces.sort();
    let mut called = 0;
    for (index, function) in hottest.iter().enumerate() {
        let position = &function["position"];
        let rank = position["after"]["rank"].as_u64().unwrap() as usize;
        assert_eq!(pieces[rank - 1].1, name(function), "{pieces:?}");
        let beside = |key: &str| position["after"][key]["name"].as_str().map(|n| n.trim_end_matches(".warm"));
        let at = |rank: Option<usize>| rank.and_then(|rank| pieces.get(rank)).map(|(_, name)| name.as_str());
        assert_eq!((beside("in_front"), beside("behind")), (at(rank.checked_sub(2)), at(Some(rank))));

        let told = &position["called_by"];
        let of = |key: &str| told[key].as_u64();
        let seen = input.0.most_calls(&input.1, index);
        assert_eq!(of("calls").zip(of("bytes_before")), seen, "{function}");
        let seen = output.0.most_calls(&output.1, index);
        assert_eq!(of("calls").zip(of("bytes_after")), seen, "{function}");
        called += usize::from(seen.is_some());
    }
    assert!(called > 3, "{report}");
}
