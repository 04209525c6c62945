//! gdb tells of an output what it tells of the program: where it stops, whom it finds there, and what they hold. All blocks are moved,
//! and functions split.

use afterlink_testkit::sandbox::{Sandbox, built};
use afterlink_testkit::symbolizers::{Place, places};
use std::fs;
use std::process::Command;

const MOVE: &str = "--scope all --order-functions random --order-blocks random --split random --seed 7";
/// Parts stand apart, in their order: of random orders gdb's own limits are known (docs/debug-info.md).
const SPLIT: &str = "--scope all --order-functions random --order-blocks input --split random --seed 7";

/// Linked to a place, so that one can stop at an address.
const FLAGS: &str = "gcc -O2 -g -fno-pie -no-pie";

/// A case's program as `in`, and its output `out`.
#[track_caller]
fn rewritten(case: &str, variant: &str, how: &str) -> Sandbox {
    let sandbox = Sandbox::default();
    fs::copy(built(case, variant), sandbox.path("in")).unwrap();
    let command = format!("optimize in -o out {how}");
    let outcome = sandbox.afterlink(&command.split_whitespace().collect::<Vec<_>>());
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    assert!(outcome.stdout().contains("follows the code"), "{}", outcome.stdout());
    sandbox
}

/// Reads that go astray, of what nobody freed and of what somebody did: by a function that moves, and by one that stays.
const ASTRAY: &str = r#"#include <stdlib.h>
#define F __attribute__((noipa))
F int moves(volatile int *p, int n) {
    int sum = 0;
    for (int i = 0; i <= n; i++) sum += p[i];
    return sum;
}
F int stays(volatile int *p) {
    free((void *)p);
    return *p;
}
int main(void) {
    int *p = calloc(4, sizeof *p);
    int sum = moves(p, 4);
    return sum + stays(p) > 1000;
}
"#;

/// valgrind tells lines of the section `.text` alone. In an output that is the code that moved.
#[test]
fn valgrind_tells_lines_of_moved_code() {
    let sandbox = Sandbox::default();
    sandbox.put("astray.c", ASTRAY.as_bytes());
    sandbox.say("gcc-12 -O2 -g -Wl,--emit-relocs astray.c -o in");
    let command = "optimize in -o out --scope all --skip-functions ^stays$ --order-functions reverse";
    let outcome = sandbox.afterlink(&command.split(' ').collect::<Vec<_>>());
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    let frames = |program: &str| {
        let said = sandbox.say(&format!("valgrind --quiet --log-fd=1 ./{program}"));
        let frames = said.lines().filter_map(|line| Some(line.split_once(": ")?.1.to_owned()));
        let is_own =
            |frame: &String| ["moves ", "stays ", "main "].iter().any(|name| frame.starts_with(name));
        frames.filter(is_own).collect::<Vec<_>>()
    };
    let (old, new) = (frames("in"), frames("out"));
    assert_eq!(old.len(), new.len(), "{old:?} {new:?}");
    for name in ["moves (astray.c:5)", "main (astray.c:13)", "stays (astray.c:9)", "stays (astray.c:10)"] {
        assert!(old.iter().any(|frame| frame == name), "{name}: {old:?}");
    }
    for (old, new) in old.iter().zip(&new) {
        match old.starts_with("stays") {
            true => assert!(new.starts_with("stays (in /"), "{old}: {new}"),
            false => assert_eq!(old, new),
        }
    }
}

/// What gdb says to commands, without addresses and numbers of processes.
fn said(sandbox: &Sandbox, program: &str, commands: &[&str]) -> Vec<String> {
    let mut gdb = Command::new("gdb");
    gdb.args(["-q", "-nx", "-batch"]);
    for command in ["set debuginfod enabled off", "set width 0", "set print frame-arguments all"] {
        gdb.args(["-ex", command]);
    }
    for command in commands {
        gdb.args(["-ex", command]);
    }
    let outcome = sandbox.run(gdb.arg(program));
    // One local is not initialized: below it the stack holds return addresses.
    let untold = ["[Inferior ", "[Thread debugging", "        room = {"];
    let is_told = |line: &&str| !untold.iter().any(|start| line.starts_with(start));
    let bare = |word: &str| match word.find("0x") {
        // With the name of a symbol that may have another part in front.
        Some(at) => format!("{}0x", &word[..at]),
        None => word.to_owned(),
    };
    let text = outcome.stdout();
    let lines = text.lines().filter(is_told);
    lines.map(|line| line.split(' ').map(bare).collect::<Vec<_>>().join(" ")).collect()
}

/// Both programs say the same; gives what.
#[track_caller]
fn same(sandbox: &Sandbox, commands: &[&str]) -> String {
    let [old, new] = ["./in", "./out"].map(|program| said(sandbox, program, commands));
    for (number, (old, new)) in old.iter().zip(&new).enumerate() {
        assert_eq!(old, new, "line {number} of what gdb says");
    }
    assert_eq!(old.len(), new.len());
    old.join("\n")
}

/// The places of instructions that a function has, in both files.
fn places_of(sandbox: &Sandbox, function: &str) -> Vec<Place> {
    let symbols = sandbox.say("nm -S in");
    let row = symbols.lines().find(|row| row.ends_with(&format!(" {function}"))).expect("its symbol");
    let mut numbers = row.split(' ').map(|word| u64::from_str_radix(word, 16).unwrap_or_default());
    let (start, size) = (numbers.next().unwrap(), numbers.next().unwrap());
    let mut places = places(&sandbox.path("in"), &sandbox.path("out")).unwrap();
    places.retain(|place| (start..start + size).contains(&place.input));
    places.sort_unstable_by_key(|place| place.input);
    places
}

#[test]
fn functions_and_their_frames() {
    let sandbox = rewritten("jump_table", FLAGS, MOVE);
    let mut commands = vec!["break step", "run"];
    commands.extend(["bt full", "info args", "finish", "continue"].repeat(4));
    let said = same(&sandbox, &commands);
    assert_eq!(said.matches("Value returned is").count(), 4, "{said}");
    assert!(said.contains("each = {") && said.contains("#1  "), "{said}");
}

#[test]
fn lines() {
    let sandbox = rewritten("jump_table", FLAGS, MOVE);
    let lines = ["8", "10", "13", "16", "28", "31"].map(|line| format!("tbreak main.c:{line}"));
    let mut commands: Vec<&str> = lines.iter().map(String::as_str).collect();
    commands.push("run");
    commands.extend(["bt full", "continue"].repeat(lines.len()));
    let said = same(&sandbox, &commands);
    assert_eq!(said.matches("Temporary breakpoint ").count(), 2 * lines.len(), "{said}");
}

/// Stops at corresponding instructions, before and behind cuts.
#[test]
fn instructions() {
    for (case, variant, functions) in
        [("jump_table", FLAGS, ["main", "step"]), ("exceptions", FLAGS, ["_Z7by_typej", "_Z6throwsj"])]
    {
        let sandbox = rewritten(case, variant, MOVE);
        let places: Vec<Place> = functions.iter().flat_map(|name| places_of(&sandbox, name)).collect();
        assert!(places.iter().any(|place| place.is_apart), "{case}: nothing is cut off");
        let stops: Vec<&Place> = places.iter().step_by(1 + places.len() / 60).collect();
        let script = |program: &str, at: fn(&Place) -> u64| {
            let breaks: Vec<String> = stops.iter().map(|place| format!("tbreak *{:#x}", at(place))).collect();
            let mut commands: Vec<&str> = breaks.iter().map(String::as_str).collect();
            commands.push("run");
            commands.extend(["bt full", "continue"].repeat(stops.len()));
            said(&sandbox, program, &commands)
        };
        let [old, new] = [script("./in", |place| place.input), script("./out", |place| place.output)];
        for (number, (old, new)) in old.iter().zip(&new).enumerate() {
            assert_eq!(old, new, "{case}: line {number} of what gdb says");
        }
        assert_eq!(old.len(), new.len());
        let stopped = old.iter().filter(|line| line.starts_with("#0 ")).count();
        assert!(stopped >= 20, "{case}: {stopped} stops");
    }
}

#[test]
fn steps_through_a_split_function() {
    let sandbox = rewritten("jump_table", "gcc -O1 -g -fno-inline -fno-pie -no-pie", SPLIT);
    assert!(places_of(&sandbox, "main").iter().any(|place| place.is_apart));
    let mut commands = vec!["break main", "run"];
    commands.extend(["step"; 40]);
    let said = same(&sandbox, &commands);
    assert!(said.lines().filter(|line| line.contains("step (op=")).count() >= 2, "{said}");
}

#[test]
fn watchpoints() {
    let sandbox = rewritten("jump_table", "gcc -O1 -g -fno-inline -fno-pie -no-pie", SPLIT);
    let mut commands = vec!["break step", "run", "up", "watch -location each[3]", "delete 1"];
    commands.extend(["continue", "bt"].repeat(12));
    let said = same(&sandbox, &commands);
    assert!(said.matches("New value = ").count() >= 12, "{said}");
}

#[test]
fn exceptions_that_are_thrown() {
    let sandbox = rewritten("exceptions", FLAGS, SPLIT);
    let mut commands = vec!["catch throw", "run"];
    commands.extend(["bt", "up", "info locals", "continue"].repeat(12));
    let said = same(&sandbox, &commands);
    assert!(said.matches("exception thrown").count() >= 12, "{said}");
}
