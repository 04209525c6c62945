//! Code that afterlink wrote in place of other code (`--pass inlining`, `--pass identical-functions`), as debuggers and symbolizers tell
//! of it.

use afterlink_core::address_map::{self, Reason};
use afterlink_core::{AddressMap, BlockMap};
use afterlink_testkit::sandbox::Sandbox;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

const COMPILERS: [&str; 4] = [
    "gcc-12 -O2 -fno-ipa-icf -gdwarf-5",
    "gcc-12 -O2 -fno-ipa-icf -gdwarf-4",
    "clang-22 -O2 -gdwarf-5",
    "clang-22 -O2 -gdwarf-4",
];

/// With entries in files of their own.
const SPLIT: [&str; 3] = [
    "gcc-12 -O2 -fno-ipa-icf -gdwarf-5 -gsplit-dwarf",
    "clang-22 -O2 -gdwarf-5 -gsplit-dwarf",
    "clang-22 -O2 -gdwarf-4 -gsplit-dwarf",
];

/// The program as `in`, and its output `out`, in which a pass wrote all that it can.
#[track_caller]
fn rewritten(with: &str, pass: &str) -> Sandbox {
    let sandbox = Sandbox::default();
    let folder = afterlink_testkit::tests_folder().join("cli/programs/replaced");
    for name in ["main.c", "other.c", "other.h"] {
        fs::copy(folder.join(name), sandbox.path(name)).unwrap();
    }
    sandbox.say(&format!("{with} -Wl,-q -no-pie main.c other.c -o in"));
    let command = format!("optimize in -o out --scope all --pass {pass}");
    let outcome = sandbox.afterlink(&command.split_whitespace().collect::<Vec<_>>());
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    assert!(outcome.stdout().contains("follows the code"), "{with}: {}", outcome.stdout());
    assert_eq!(sandbox.say("./in"), sandbox.say("./out"), "{with}");
    sandbox
}

/// Where a function's symbol is in `out`, and its size.
fn symbol(sandbox: &Sandbox, name: &str) -> (u64, u64) {
    let symbols = sandbox.say("nm -S out");
    let row = symbols.lines().find(|row| row.ends_with(&format!(" {name}"))).expect("its symbol");
    let mut numbers = row.split(' ').map(|word| u64::from_str_radix(word, 16).unwrap_or_default());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// What gdb says of `out`.
fn gdb(sandbox: &Sandbox, commands: &[&str]) -> String {
    let mut gdb = Command::new("timeout");
    gdb.args(["60", "gdb", "-q", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "set width 0"]);
    for command in commands {
        gdb.args(["-ex", command]);
    }
    sandbox.run(gdb.arg("out")).stdout().to_owned()
}

/// A breakpoint at a folded function by its name stops where its calls run, and nowhere else; of the code there it is said whose it is.
#[test]
fn folded_functions() {
    for with in COMPILERS.into_iter().chain(SPLIT) {
        let sandbox = rewritten(with, "identical-functions");
        let [(kept, size), (folded, _)] = ["first_sum", "second_sum"].map(|name| symbol(&sandbox, name));
        assert_eq!(kept, folded, "{with}: nothing was folded");
        let said = gdb(&sandbox, &["break second_sum", "run", "bt", "continue", "bt", "continue"]);
        assert!(said.contains(&format!("Breakpoint 1 at {kept:#x}: file main.c, line ")), "{with}: {said}");
        // Both functions' calls come by.
        let stops = said.lines().filter(|line| line.starts_with("#0  first_sum (n=")).count();
        assert_eq!(stops, 2, "{with}: {said}");
        assert!(said.contains("exited normally"), "{with}: {said}");
        // From its first instruction to its last.
        for address in (kept..kept + size).step_by(3) {
            let plain = sandbox.say(&format!("addr2line -f -e out {address:#x}"));
            let (function, line) = plain.trim().split_once('\n').unwrap();
            let line: u32 = line.rsplit_once(':').unwrap().1.split(' ').next().unwrap().parse().unwrap();
            assert_eq!((function, (19..=24).contains(&line)), ("first_sum", true), "{with}: {plain}");
            let llvm = sandbox
                .say(&format!("llvm-symbolizer-22 --functions=short --no-inlines -e out {address:#x}"));
            assert!(llvm.starts_with("first_sum\n"), "{with}: {llvm}");
            let elfutils = sandbox.say(&format!("eu-addr2line -f -e out {address:#x}"));
            assert!(elfutils.starts_with("first_sum"), "{with}: {elfutils}");
        }
    }
}

/// gdb takes the name of a folded function from its symbol: by names of members, and of functions in namespaces, it stops as ever, and by that of a function
/// template at all instances; an instance of that it finds by its symbol's own name.
#[test]
fn folded_functions_in_cpp() {
    let sandbox = Sandbox::default();
    let source = afterlink_testkit::tests_folder().join("cli/programs/replaced/instances.cc");
    fs::copy(source, sandbox.path("instances.cc")).unwrap();
    sandbox.say("g++-12 -O2 -g -fno-ipa-icf -Wl,-q -no-pie instances.cc -o in");
    let command = "optimize in -o out --scope all --pass identical-functions";
    let outcome = sandbox.afterlink(&command.split(' ').collect::<Vec<_>>());
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    for (kept, folded, names) in [
        (
            "_ZNK3BoxIlE3sumEl",
            "_ZNK3BoxIxE3sumEx",
            &["Box<long long>::sum", "Box<long>::sum", "Box::sum"][..],
        ),
        ("_ZN5namesL3oneEl", "_ZN5namesL3twoEl", &["names::two", "two", "names::one"]),
        ("_Z5twiceIlET_S0_", "_Z5twiceIxET_S0_", &["twice", "_Z5twiceIxET_S0_", "twice<long>"]),
    ] {
        let (place, _) = symbol(&sandbox, kept);
        assert_eq!(place, symbol(&sandbox, folded).0, "{folded}: nothing was folded");
        for name in names {
            let said = gdb(&sandbox, &[&format!("break {name}"), "run", "continue", "continue"]);
            assert!(
                said.contains(&format!("Breakpoint 1 at {place:#x}: file instances.cc, line ")),
                "{said}"
            );
            // For the calls of both.
            assert_eq!(said.matches("\nBreakpoint 1, ").count(), 2, "{name}: {said}");
        }
    }
}

/// What `llvm-dwarfdump-22` complains of, without the numbers in it. It does not come to an end with entries of calls below blocks, as gcc writes them.
fn complaints(sandbox: &Sandbox, program: &str) -> Vec<String> {
    let said = sandbox.run(Command::new("timeout").args(["60", "llvm-dwarfdump-22", "--verify", program]));
    let text = said.stdout();
    assert!(text.contains("Verifying .debug_info Unit Header Chain"), "{text}");
    let complaints = text.lines().filter(|line| line.contains("error:"));
    complaints.map(|line| line.replace(|c: char| c.is_ascii_hexdigit(), "")).collect()
}

/// Blocks and lines of a folded function tell of nothing, as its entry does: no line of it is said to have code.
#[test]
fn blocks_and_lines_of_folded_functions() {
    for with in COMPILERS {
        let sandbox = rewritten(with, "identical-functions");
        if with.starts_with("clang") {
            assert_eq!(complaints(&sandbox, "out"), complaints(&sandbox, "in"), "{with}");
        }
        let rows = |program: &str| {
            let said = sandbox.say(&format!("llvm-dwarfdump-22 --debug-line {program}"));
            let lines = said.lines().filter(|line| line.starts_with("0x") && !line.contains("end_sequence"));
            lines.map(|row| row.split_whitespace().nth(1).unwrap().parse().unwrap()).collect::<Vec<u32>>()
        };
        let of_folded = |rows: Vec<u32>| rows.into_iter().filter(|line| (26..=31).contains(line)).count();
        assert!(of_folded(rows("in")) > 3 && of_folded(rows("out")) == 0, "{with}");
    }
}

/// Addresses of `work` in `out` where code stands in place of a call.
fn inlined_code(sandbox: &Sandbox) -> Vec<u64> {
    let (start, size) = symbol(sandbox, "work");
    let is_inlined = |address: &u64| {
        let said = sandbox.afterlink(&["where".to_owned(), "out".to_owned(), format!("{address:#x}")]);
        said.stdout().contains(" inlined ")
    };
    (start..start + size).filter(is_inlined).collect()
}

/// What a symbolizer says: functions, from the innermost outwards, with the names of their files and their lines.
fn frames(sandbox: &Sandbox, command: &str, address: u64) -> Vec<(String, String, u32)> {
    let said = sandbox.say(&format!("{command} {address:#x}"));
    let lines: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
    let frame = |two: &[&str]| {
        let place = two[1].split(' ').next().unwrap();
        let mut parts = place.rsplit('/').next().unwrap().split(':');
        let (file, line) = (parts.next().unwrap(), parts.next().unwrap());
        (two[0].to_owned(), file.to_owned(), line.parse().unwrap())
    };
    lines.chunks(2).map(frame).collect()
}

/// Code of a callee is the callee's, called where the call was, also if the callee is of another unit. Where the call's entry has no room, or stands beside a
/// block that holds the call, it is told that the caller's line of the call has it.
#[test]
fn inlined_calls() {
    let by_gcc: &[_] = &[("scaled", 37), ("scaled", 43), ("mixed", 39)];
    let expected: [(&[_], &[u32]); 4] =
        [(by_gcc, &[]), (&by_gcc[..2], &[39, 43]), (&by_gcc[1..2], &[37, 39]), (&[], &[37, 39, 43])];
    for (with, (told, untold)) in COMPILERS.into_iter().zip(expected) {
        let sandbox = rewritten(with, "inlining");
        let code = inlined_code(&sandbox);
        for command in ["addr2line -fie out", "llvm-symbolizer-22 --functions=short --inlines -e out"] {
            let (mut own, mut others) = (BTreeSet::new(), BTreeSet::new());
            for &address in &code {
                let frames = frames(&sandbox, command, address);
                let frames: Vec<(&str, &str, u32)> = frames.iter().map(|f| (&*f.0, &*f.1, f.2)).collect();
                match frames[..] {
                    [("scaled", "main.c", 13..=17), ("work", "main.c", line)] => own.insert(("scaled", line)),
                    [("mixed", "other.c", 3..=6), ("work", "main.c", line)] => own.insert(("mixed", line)),
                    [("work", "main.c", line)] => others.insert(line),
                    _ => panic!("{with}: {command}: {frames:?}"),
                };
            }
            assert_eq!(own, told.iter().copied().collect(), "{with}: {command}");
            assert_eq!(others, untold.iter().copied().collect(), "{with}: {command}");
        }
    }
}

/// gdb stops at inlined calls by their functions' names, and shows the caller's frame.
#[test]
fn stops_in_inlined_calls() {
    let sandbox = rewritten(COMPILERS[0], "inlining");
    let commands =
        ["break scaled", "break mixed", "run", "bt", "info frame", "continue", "bt", "continue", "up"];
    let said = gdb(&sandbox, &commands);
    let parts: Vec<&str> = said.split("\nBreakpoint ").collect();
    let [_, _, first, second, third] = parts[..] else { panic!("{said}") };
    assert!(first.contains("\n#0  scaled (x=0") && first.contains("\n#1  work (n=n@entry=10) at main.c:37"));
    assert!(first.contains("inlined into frame 1"), "{first}");
    assert!(second.contains("\n#0  mixed () at ") && second.contains("/other.c:5\n#1  work ("), "{second}");
    assert!(third.contains("\n#1  work (n=n@entry=10) at main.c:37\n37\t"), "{third}");
}

/// Which calls are taken is drawn, where nothing was counted.
const IN_PLACE: &str = "hot-inlining --order-functions random --order-blocks random --split random --seed";

/// A callee's blocks in place of a call (`--pass hot-inlining`) are told of as they are where the callee stands, and what leads into them and out of them is the
/// caller's, at the line of the call.
#[test]
fn hot_parts_in_place_of_calls() {
    let (mut of_callees, mut of_callers) = (0, 0);
    for (with, seed) in COMPILERS.into_iter().cycle().zip(1..=8) {
        let sandbox = rewritten(with, &format!("{IN_PLACE} {seed}"));
        for (output, size, input, call) in in_place(&sandbox) {
            // Jumps at its end may be others.
            for offset in (0..size.saturating_sub(11).max(1)).step_by(3) {
                for command in ["addr2line -fi", "llvm-symbolizer-22 --functions=short --inlines"] {
                    let said = |file, place| sandbox.say(&format!("{command} -e {file} {place:#x}"));
                    let is = said("out", output + offset);
                    if is == said("in", input + offset) {
                        of_callees += 1;
                    } else {
                        assert_eq!(is, said("in", call), "{with}: {command} {output:#x}+{offset}");
                        of_callers += 1;
                    }
                }
            }
        }
    }
    assert!(of_callees > 20 && of_callers > 20, "{of_callees} and {of_callers}");
}

/// Of padding, which a copy of a block leaves out, nothing is said there, whatever was added in its place; and a block that begins with a call that nothing leads into the code in
/// place of begins behind that code.
#[test]
fn padding_and_blocks_at_calls() {
    for name in ["padded_loops.c", "block_at_call.c", "runs_for_ever.c"] {
        let sandbox = Sandbox::default();
        let source = afterlink_testkit::tests_folder().join("cli/programs/replaced").join(name);
        fs::copy(source, sandbox.path(name)).unwrap();
        sandbox.say(&format!("gcc-12 -O2 -g -Wl,-q {name} -o in"));
        for seed in 1..=8 {
            let command = format!("optimize in -o out --scope all --pass {IN_PLACE} {seed}");
            let outcome = sandbox.afterlink(&command.split(' ').collect::<Vec<_>>());
            let said = outcome.stdout();
            assert_eq!(outcome.exit, 0, "{name} {seed}: {}", outcome.stderr());
            assert!(said.contains("follows the code") && !said.contains("fault"), "{name} {seed}: {said}");
        }
    }
}

/// Prints the names of all frames, wherever they change, of a program that is followed by single instructions up to where it prints. What leads out of code
/// in place of a call is passed over: some of it is the caller's by name, in the callee's frame.
const FOLLOW: &str = r#"
import gdb
passed = [[int(word) for word in line.split()] for line in open('passed')]
own = {'main', 'work', 'twice', 'scaled', 'mixed', 'first_sum', 'second_sum', 'other_sum'}
gdb.execute('break main')
gdb.execute('run > /dev/null')
last = None
while True:
    names, frame = [], gdb.newest_frame()
    while frame is not None and (not names or names[-1] != 'main'):
        name = frame.name() or '?'
        names.append(name)
        frame = frame.older()
    if names[0] not in own:
        break
    pc = gdb.selected_frame().pc()
    if not any(start <= pc < end for start, end in passed):
        if names != last:
            print('STACK', ' < '.join(names))
        last = names
    gdb.execute('stepi', to_string=True)
"#;

/// At each instruction of `out` gdb finds the frames that it finds in `in`.
#[track_caller]
fn assert_same_stacks(sandbox: &Sandbox, what: &str) {
    sandbox.put("follow.py", FOLLOW.as_bytes());
    let stacks = |file: &str, passed: &str| {
        sandbox.put("passed", passed.as_bytes());
        let said = sandbox.say(&format!("timeout 100 gdb -q -nx -batch -x follow.py {file}"));
        said.lines().filter(|line| line.starts_with("STACK")).map(str::to_owned).collect::<Vec<_>>()
    };
    let expected = stacks("in", "");
    assert!(expected.len() > 20, "{expected:?}");
    assert_eq!(stacks("out", &ways_out(sandbox)), expected, "{what}");
}

/// The same in place of calls through pointers, which one function is called by or another one.
#[test]
fn frames_of_hot_parts_in_place_of_indirect_calls() {
    let mut changed = 0;
    for (with, seed) in COMPILERS.into_iter().cycle().zip(1..=12) {
        let sandbox = Sandbox::default();
        let source = afterlink_testkit::tests_folder().join("cli/programs/pointers.c");
        fs::copy(source, sandbox.path("pointers.c")).unwrap();
        sandbox.say(&format!("{with} -Wl,-q -no-pie pointers.c -o in"));
        let orders = "--order-blocks random --order-functions random --split random --pass call-promotion";
        let command = format!("optimize in -o out --scope all {orders} --seed {seed}");
        let outcome = sandbox.afterlink(&command.split(' ').collect::<Vec<_>>());
        assert_eq!(outcome.exit, 0, "{with}: {}", outcome.stderr());
        assert!(outcome.stdout().contains("follows the code"), "{with}: {}", outcome.stdout());
        changed += usize::from(!outcome.stdout().contains("call-promotion 0 changes"));
        assert_same_stacks(&sandbox, &format!("{with}, seed {seed}"));
    }
    assert!(changed >= 4, "{changed}");
}

/// At each instruction gdb finds the frames that it finds in the original: of what was called, though nothing was; and `finish` and `next` come to where the call would have come
/// back.
#[test]
fn frames_of_hot_parts_in_place_of_calls() {
    for (with, seed) in COMPILERS.into_iter().cycle().zip(1..=8) {
        let sandbox = rewritten(with, &format!("{IN_PLACE} {seed}"));
        assert_same_stacks(&sandbox, &format!("{with}, seed {seed}"));
        let part = in_place(&sandbox).into_iter().find(|(_, size, ..)| *size > 5);
        if let Some((place, ..)) = part {
            let said = gdb(&sandbox, &[&format!("break *{place:#x}"), "run", "finish", "bt 1"]);
            // It runs no further than to the caller's next instruction.
            let comes_back = said.contains("\nValue returned is $1 = ") && said.contains("\n#0  ");
            assert!(said.contains("exited normally") || comes_back, "{with}: {said}");
        }
    }
}

/// gdb 13 dies of a call of a function in three runs or more, so calls of such a function name another entry: it reads all, and finds the arguments that it finds in the original by
/// the calls. Where there is no room for another entry the calls name none.
#[test]
fn calls_of_functions_in_many_runs() {
    let mut named = 0;
    for with in COMPILERS.into_iter().chain(SPLIT[..2].iter().copied()).chain(["gcc-12 -O2 -gdwarf-3"]) {
        let sandbox = Sandbox::default();
        let source = afterlink_testkit::tests_folder().join("cli/programs/replaced/scattered.c");
        fs::copy(source, sandbox.path("scattered.c")).unwrap();
        sandbox.say(&format!("{with} -Wl,-q -no-pie scattered.c -o in"));
        let command = format!("optimize in -o out --scope all --pass {IN_PLACE} 7");
        let outcome = sandbox.afterlink(&command.split(' ').collect::<Vec<_>>());
        assert_eq!(outcome.exit, 0, "{with}: {}", outcome.stderr());
        assert!(outcome.stdout().contains("follows the code"), "{with}: {}", outcome.stdout());
        let said = sandbox.say("timeout 60 gdb -readnow -q -nx -batch -ex pwd out");
        assert!(said.contains("Working directory"), "{with}: {said}");
        let said = gdb(&sandbox, &["break stop", "run", "bt"]);
        assert!(
            said.contains(" in work (n=") && said.contains(" in main () at scattered.c:"),
            "{with}: {said}"
        );
        named += usize::from(said.contains(" in work (n=n@entry=10) at "));
    }
    assert!(named >= 2, "{named}");
}

/// Many tools take an address for that of the last symbol in front of it, and know nothing if that one has ended: by it all code has its function's name, also
/// behind a callee's in place of a call.
#[test]
fn the_last_symbol_in_front_of_a_place_names_it() {
    let mut behind = 0;
    for (with, seed) in COMPILERS.into_iter().cycle().zip(1..=8) {
        let sandbox = rewritten(with, &format!("{IN_PLACE} {seed}"));
        let [old, new] = ["in", "out"].map(|file| functions(&sandbox, file));
        let named = |all: &[(u64, u64, String)], place: u64| {
            let (start, size, name) = &all[all.partition_point(|row| row.0 <= place).checked_sub(1)?];
            (place < start + size).then(|| name.split('.').next().unwrap_or_default().to_owned())
        };
        for (_, [output, size, input]) in pieces(&sandbox, "copied") {
            let Some(name) = named(&old, input) else { continue };
            assert_eq!(named(&new, output).as_ref(), Some(&name), "{with}, seed {seed}: {output:#x}");
            assert_eq!(named(&new, output + size.max(1) - 1), Some(name), "{with}, seed {seed}: {output:#x}");
        }
        behind += new.iter().filter(|row| row.2.contains(".rest")).count();
    }
    assert!(behind > 8, "{behind}");
}

/// The symbols of functions, ascending; of two at one address the longer one: address, bytes and name.
fn functions(sandbox: &Sandbox, file: &str) -> Vec<(u64, u64, String)> {
    let said = sandbox.say(&format!("nm -S --defined-only {file}"));
    let number = |word: Option<&str>| u64::from_str_radix(word?, 16).ok();
    let rows = said.lines().filter_map(|row| {
        let mut words = row.split(' ');
        let (start, size) = (number(words.next())?, number(words.next())?);
        matches!(words.next(), Some("t" | "T")).then(|| (start, size, words.next().unwrap().to_owned()))
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort();
    rows.reverse();
    rows.dedup_by_key(|row| row.0);
    rows.reverse();
    rows
}

/// Where pieces of `out` stand that lead out of code in place of calls, a line each.
fn ways_out(sandbox: &Sandbox) -> String {
    let section = address_map::SECTION;
    sandbox.say(&format!("objcopy -O binary --set-section-flags {section}=alloc -j {section} out map"));
    let map = AddressMap::decode(&fs::read(sandbox.path("map")).unwrap()).unwrap();
    let fragments = map.functions.iter().flat_map(|function| &function.fragments);
    let ways = fragments.flat_map(|fragment| {
        let ends = fragment.blocks.iter().skip(1).map(|block| u64::from(block.output_offset));
        let blocks = fragment.blocks.iter().zip(ends.chain([fragment.size]));
        let is_way = |block: &BlockMap| matches!(block.reason, Reason::Inlined(_)) && block.input_size == 0;
        let start = fragment.output.get();
        blocks
            .filter(move |(block, _)| is_way(block))
            .map(move |(block, end)| (start + u64::from(block.output_offset), start + end))
    });
    ways.map(|(start, end)| format!("{start} {end}\n")).collect()
}

/// Pieces in place of calls: where, of how many bytes, where they were, and the call.
fn in_place(sandbox: &Sandbox) -> Vec<(u64, u64, u64, u64)> {
    let row = |(piece, [output, size, input]): (serde_json::Value, [u64; 3])| {
        (output, size, input, piece["calls"][0].as_u64().unwrap())
    };
    pieces(sandbox, "inlined").map(row).collect()
}

/// A block that stands twice (`--pass tail-duplication`) is told of at both places as it was at its one.
#[test]
fn blocks_that_stand_twice() {
    for with in COMPILERS {
        let sandbox = Sandbox::default();
        let source = afterlink_testkit::tests_folder()
            .join("../crates/5-check/verify/tests/mutation/programs/tails.c");
        fs::copy(source, sandbox.path("tails.c")).unwrap();
        sandbox.say(&format!("{with} -Wl,-q -no-pie tails.c -o in"));
        let command = "optimize in -o out --scope all --pass tail-duplication --order-functions random --order-blocks random \
             --split random --seed 3";
        let outcome = sandbox.afterlink(&command.split_whitespace().collect::<Vec<_>>());
        assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
        let duplicates = duplicates(&sandbox);
        assert!(duplicates.len() > 2, "{with}: {duplicates:x?}");
        for &(output, size, input) in &duplicates {
            // The jump at its end may have another size, and starts where it did.
            for offset in (0..size.saturating_sub(4).max(1)).step_by(6) {
                for command in ["addr2line -fi", "llvm-symbolizer-22 --functions=short --inlines"] {
                    let [was, is] = [("in", input), ("out", output)].map(|(file, place)| {
                        sandbox.say(&format!("{command} -e {file} {:#x}", place + offset))
                    });
                    assert_eq!(is, was, "{with}: {command} {output:#x}+{offset}");
                    assert!(is.contains("tails.c:"), "{with}: {is}");
                }
            }
        }
        let breaks: Vec<String> =
            duplicates.iter().map(|(output, ..)| format!("break *{output:#x}")).collect();
        let mut commands: Vec<&str> = breaks.iter().map(String::as_str).collect();
        commands.extend(["run", "bt", "finish"]);
        let said = gdb(&sandbox, &commands);
        let (_, stop) = said.split_once("\nBreakpoint ").unwrap_or_else(|| panic!("{with}: no stop: {said}"));
        assert!(stop.contains("\n#1  ") && stop.contains(" in main () at tails.c:"), "{with}: {said}");
        // Back in the caller, by the unwind rows of the place.
        assert!(stop.contains("\nValue returned is $1 = "), "{with}: {said}");
    }
}

/// Blocks that stand twice: where, of how many bytes, and where they were.
fn duplicates(sandbox: &Sandbox) -> Vec<(u64, u64, u64)> {
    pieces(sandbox, "duplicated").map(|(_, place)| place.into()).collect()
}

/// Pieces of `out` for that reason, as `where` tells of them: where, of how many bytes, and where they were.
fn pieces(sandbox: &Sandbox, reason: &str) -> impl Iterator<Item = (serde_json::Value, [u64; 3])> {
    let said = sandbox.afterlink(&["where", "out", "--json"]);
    let pieces: Vec<serde_json::Value> = serde_json::from_str(&said.stdout()).unwrap();
    let pieces = pieces.into_iter().filter(move |piece| piece["reason"] == reason);
    pieces.map(|piece| {
        let place = ["output", "size", "input"].map(|key| piece[key].as_u64().unwrap());
        (piece, place)
    })
}

/// In a program without a search table, of which nobody finds the unwind entries, those of code in place of calls stay unfound, too.
#[test]
fn code_in_place_of_calls_where_nobody_finds_unwind_entries() {
    let source = r#"
static long sys(long n, long a, long b, long c) {
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return r;
}
__attribute__((noinline)) void put(char *s, int n) { sys(1, 1, (long)s, n); }
__attribute__((noinline)) int once(int x) { if (x & 1) put("odd\n", 4); return x * 3; }
__attribute__((noinline)) int twice(int x) {
    int s = x;
    if (x & 2) { put("two\n", 4); s += once(x); put("2\n", 2); }
    return s * 7;
}
__attribute__((noinline)) int often(int x, int y) {
    int s = once(x + y) + y;
    while (s > 100) { put("less\n", 5); s -= twice(y) + 50; }
    return s;
}
__attribute__((noinline)) int all(int x) {
    int s = 0;
    for (int i = 0; i < x; i++) s += once(i) ^ twice(i) ^ often(i, s & 3);
    return s;
}
void _start(void) { sys(60, all(9) == 0, 0, 0); }
"#;
    let sandbox = Sandbox::default();
    sandbox.put("main.c", source.as_bytes());
    let flags = "-O2 -static -nostdlib -no-pie -fcf-protection=none -fno-stack-protector -Wl,-q";
    sandbox.say(&format!("gcc-12 {flags} main.c -o in"));
    assert!(!sandbox.say("readelf -lW in").contains("GNU_EH_FRAME"));
    let mut changed = 0;
    for seed in 1..=24 {
        let orders = "--order-blocks random --order-functions random --split random --pass hot-inlining";
        let command = format!("optimize in -o out --scope all {orders} --seed {seed}");
        let outcome = sandbox.afterlink(&command.split(' ').collect::<Vec<_>>());
        assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
        assert!(!outcome.stderr().contains("fault of afterlink"), "seed {seed}: {}", outcome.stderr());
        changed += usize::from(!outcome.stdout().contains("hot-inlining 0 changes"));
        assert_eq!(sandbox.say("./in"), sandbox.say("./out"), "seed {seed}");
    }
    assert!(changed > 0);
}
