//! Debug information of the output tells of each place in moved code what the input's told of it, in all the forms that compilers and
//! linkers write.

use afterlink_testkit::sandbox::{Sandbox, built};
use std::fs;
use std::process::Command;

const MOVE: &str = "--scope all --order-functions reverse --order-blocks random --split random --seed 3";

/// What is led.
const SECTIONS: [&str; 7] = [
    ".debug_info",
    ".debug_abbrev",
    ".debug_line",
    ".debug_aranges",
    ".debug_rnglists",
    ".debug_loclists",
    ".debug_addr",
];

/// Writes `out`, and gives the report.
#[track_caller]
fn optimize(sandbox: &Sandbox, input: &str, output: &str) -> String {
    let command = format!("optimize {input} -o {output} {MOVE}");
    let words: Vec<&str> = command.split_whitespace().collect();
    let outcome = sandbox.afterlink(&words);
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    outcome.stdout().to_owned()
}

/// The bytes of a section, empty if there is none.
fn section(sandbox: &Sandbox, file: &str, name: &str) -> Vec<u8> {
    let to = sandbox.path("section");
    fs::remove_file(&to).ok();
    let mut copy = Command::new("llvm-objcopy-22");
    copy.args([&format!("--dump-section={name}=section"), file, "/dev/null"]);
    sandbox.run(&mut copy);
    fs::read(to).unwrap_or_default()
}

/// Compressed in any way, the sections hold what they hold when they are not.
#[test]
fn compressed_sections() {
    let sandbox = Sandbox::default();
    sandbox.build_debugged("gcc-12 -O2 -g");
    let said = optimize(&sandbox, "in", "plain-out");
    assert!(said.contains("follows the code"), "{said}");
    for (tool, how) in [("objcopy", "zlib"), ("objcopy", "zlib-gnu"), ("llvm-objcopy-22", "zstd")] {
        sandbox.say(&format!("{tool} --compress-debug-sections={how} in {how}"));
        let said = optimize(&sandbox, how, &format!("{how}-out"));
        assert!(said.contains("follows the code"), "{how}: {said}");
        let kinds = |file: &str| {
            let headers = sandbox.say(&format!("readelf -SW {file}"));
            headers
                .lines()
                .filter(|l| l.contains("debug_") && !l.contains(".rela"))
                .map(|l| l.contains(" C "))
                .collect::<Vec<_>>()
        };
        let is_marked = how != "zlib-gnu";
        assert_eq!(kinds(&format!("{how}-out")), kinds(how), "{how}");
        assert_eq!(kinds(how).contains(&true), is_marked, "{how}");
        let old = section(&sandbox, &format!("{how}-out"), ".zdebug_info");
        assert_eq!(old.starts_with(b"ZLIB"), !is_marked, "{how}");
        sandbox.say(&format!("objcopy --decompress-debug-sections {how}-out {how}-again"));
        for name in SECTIONS {
            let whole = section(&sandbox, "plain-out", name);
            assert_eq!(section(&sandbox, &format!("{how}-again"), name), whole, "{how} {name}");
        }
    }
    assert_ne!(section(&sandbox, "plain-out", ".debug_line"), section(&sandbox, "in", ".debug_line"));
}

/// Builds whose debug information has forms of their own, with what makes it from the program `in`.
const BUILDS: [(&str, &str); 9] = [
    ("gcc-12 -O2 -gdwarf-2 -gstrict-dwarf", ""),
    ("gcc-12 -O2 -gdwarf-4", ""),
    ("gcc-12 -O2 -g -gdwarf64", ""),
    ("clang-22 -O2 -gdwarf-4 -gdwarf64", ""),
    ("gcc-12 -O2 -g -fdebug-types-section", ""),
    ("gcc-12 -O2 -g -flto", ""),
    ("gcc-12 -O2 -g", "dwz in -o in"),
    ("clang-22 -O2 -g -flto -fuse-ld=lld", ""),
    ("clang-22 -O2 -g -ggnu-pubnames -fuse-ld=lld -Wl,--gdb-index", ""),
];

/// What a debugger says where the program stops, without addresses.
fn stops(sandbox: &Sandbox, program: &str) -> String {
    let mut gdb = Command::new("gdb");
    gdb.args(["-q", "-nx", "-batch", "-ex", "set debuginfod enabled off"]);
    for command in ["break choose", "run", "info args", "backtrace", "break work", "continue"] {
        gdb.args(["-ex", command]);
    }
    for command in ["backtrace", "info args", "finish", "next", "info locals"] {
        gdb.args(["-ex", command]);
    }
    let outcome = sandbox.run(gdb.arg(program));
    let said = outcome.stdout();
    assert!(said.contains("Breakpoint 2, "), "{program}: {said}{}", outcome.stderr());
    said.split(' ').map(|word| if word.contains("0x") { "0x" } else { word }).collect::<Vec<_>>().join(" ")
}

/// What is said of the first byte of each function.
fn entries(sandbox: &Sandbox, program: &str) -> Vec<String> {
    let symbols = sandbox.say(&format!("nm {program}"));
    // Compilers that see the whole program inline some functions, or give them longer names.
    let names = ["choose", "work", "report", "main"].map(|name| format!(" {name}"));
    let functions: Vec<&str> = names
        .iter()
        .filter_map(|name| symbols.lines().find(|row| row.ends_with(name))?.split(' ').next())
        .collect();
    assert!(functions.len() >= 2, "{symbols}");
    let tools = ["addr2line -fie ", "llvm-symbolizer-22 --obj="];
    let tell =
        |tool: &str| functions.iter().map(|at| sandbox.say(&format!("{tool}{program} 0x{at}"))).collect();
    tools.map(|tool| -> Vec<String> { tell(tool) }).concat()
}

#[test]
fn forms_of_compilers_and_linkers() {
    for (with, then) in BUILDS {
        let sandbox = Sandbox::default();
        sandbox.build_debugged(with);
        if !then.is_empty() {
            sandbox.say(then);
        }
        let said = optimize(&sandbox, "in", "out");
        assert!(
            said.contains("follows the code") && !said.contains("stays as it was"),
            "{with} {then}: {said}"
        );
        assert_eq!(stops(&sandbox, "./in"), stops(&sandbox, "./out"), "{with} {then}");
        assert_eq!(entries(&sandbox, "./in"), entries(&sandbox, "./out"), "{with} {then}");
    }
}

/// In DWARF64 the two ends of a run leave no room for a list where the start is a number: of such an entry that was cut nothing is said, and all
/// else follows.
#[test]
fn ends_without_room() {
    let sandbox = Sandbox::default();
    sandbox.build_debugged("clang-22 -O2 -fuse-ld=lld -gdwarf64 -gdwarf-5");
    let said = optimize(&sandbox, "in", "out");
    assert!(said.contains("follows the code") && !said.contains("fault"), "{said}");
}

/// Where a call comes back is right behind it, and not behind the jump that was added there.
#[test]
fn places_behind_calls() {
    let sandbox = Sandbox::default();
    let program = afterlink_testkit::tests_folder().join("cli/programs/calls_at_ends.c");
    fs::copy(program, sandbox.path("main.c")).unwrap();
    sandbox.say("clang-22 -O2 -g -fno-builtin -Wl,-q main.c -o in");
    let said = optimize(&sandbox, "in", "out");
    assert!(said.contains("follows the code") && said.contains("plt-calls 5 changes"), "{said}");
    let entries = sandbox.say("llvm-dwarfdump-22 --debug-info out");
    let places = entries.split("DW_AT_call_return_pc\t(").skip(1).map(|rest| {
        let digits = rest.split(')').next().unwrap_or_default().trim_start_matches("0x");
        u64::from_str_radix(digits, 16).unwrap()
    });
    let places: Vec<u64> = places.collect();
    assert_eq!(places.len(), entries.matches("DW_TAG_call_site\n").count());
    assert_eq!(places.len(), 6);
    // Of each instruction where it stands, and what it is.
    let code = sandbox.say("llvm-objdump-22 -d --no-show-raw-insn out");
    let code: Vec<(u64, &str)> = code
        .lines()
        .filter_map(|row| {
            let (at, text) = row.trim().split_once(':')?;
            Some((u64::from_str_radix(at, 16).ok()?, text.trim()))
        })
        .collect();
    let around: Vec<_> = code.windows(2).filter(|pair| places.contains(&pair[1].0)).collect();
    assert_eq!(around.len(), places.len());
    assert!(around.iter().all(|pair| pair[0].1.starts_with("call")), "{around:?}");
    assert!(around.iter().any(|pair| pair[1].1.starts_with("jmp")), "{around:?}");
}

/// Rows that name no file cannot stand behind others that do, so a sequence ends between a call's row and those of the code in its place.
#[test]
fn code_of_a_table_s_first_function_in_place_of_a_call() {
    let sandbox = Sandbox::default();
    let source = afterlink_testkit::tests_folder().join("cli/programs/first_of_table.c");
    let flags = "-O2 -g -fno-toplevel-reorder -fno-ipa-icf -fno-ipa-ra -fno-inline -Wl,-q";
    sandbox.say(&format!("gcc-12 {flags} {} -o in", source.display()));
    let outcome = sandbox.afterlink(&["optimize", "in", "-o", "out", "--scope", "all", "--pass", "inlining"]);
    let said = outcome.stdout().to_owned() + &outcome.stderr();
    assert!(said.contains("inlining 2 changes"), "{said}");
    assert!(said.contains("follows the code") && !said.contains("fault"), "{said}");
    let stops = |file| {
        let symbols = sandbox.say(&format!("nm {file}"));
        let main = symbols.lines().find(|line| line.ends_with(" work")).expect("the function").to_owned();
        let address = main.split(' ').next().unwrap().to_owned();
        sandbox.say(&format!("addr2line -fi -e {file} 0x{address}"))
    };
    let (before, now) = (stops("in"), stops("out"));
    let first = now.strip_suffix(&before).expect("the caller's frame is as before");
    assert!(first.starts_with("first\n") && first.ends_with("first_of_table.c:4\n"), "{now}");
}

/// gcc lets labels stand at the end of a function's hot part, where only padding is: they follow the code in front of them.
#[test]
fn a_label_at_the_end_of_a_function() {
    let sandbox = Sandbox::default();
    let source = afterlink_testkit::tests_folder().join("cli/programs/label_at_end.c");
    sandbox.say(&format!("gcc-12 -O2 -g -dA -S {} -o in.s", source.display()));
    let text = fs::read_to_string(sandbox.path("in.s")).unwrap();
    let text = text.replacen("\tret\n", "\tret\n.Lend:\n", 1);
    let is_label = |line: &str| line.contains(".LDL") && line.ends_with("DW_AT_low_pc");
    assert_eq!(text.lines().filter(|line| is_label(line)).count(), 1, "{text}");
    let lines = text.lines().map(|line| if is_label(line) { "\t.quad\t.Lend" } else { line });
    sandbox.put("in.s", lines.map(|line| format!("{line}\n")).collect::<String>().as_bytes());
    sandbox.say("gcc-12 -Wl,-q in.s -o in");
    let said = optimize(&sandbox, "in", "out");
    assert!(said.contains("follows the code") && !said.contains("fault"), "{said}");
    let label = |file| {
        let said = sandbox.say(&format!("llvm-dwarfdump-22 --name=failed {file}"));
        said.split("DW_AT_low_pc").nth(1).expect("its place").lines().next().unwrap().to_owned()
    };
    assert_ne!(label("in"), label("out"));
}

/// What two symbolizers say of an address, each in one text.
fn told(sandbox: &Sandbox, program: &str, at: &str) -> [String; 2] {
    ["addr2line -fie ", "llvm-symbolizer-22 --obj="]
        .map(|tool| sandbox.say(&format!("{tool}{program} {at}")).trim().to_owned())
}

/// Functions and lines of what a symbolizer says, without columns and discriminators.
fn frames(said: &str) -> Vec<String> {
    let plain = |(i, row): (usize, &str)| match (i % 2, row.split(' ').next().unwrap_or(row)) {
        (0, _) => row.to_owned(),
        (_, place) => place.split(':').take(2).collect::<Vec<_>>().join(":"),
    };
    said.lines().enumerate().map(plain).collect()
}

/// Code that stands in place of a call is its function's, called where the call was, or has the line of the call, in the function that made it; a function that
/// became one with another keeps its name as a symbol, and what is told of the place is told of the other.
#[test]
fn code_in_place_of_a_call_and_functions_that_became_one() {
    let sandbox = Sandbox::default();
    fs::copy(built("same_functions", "gcc -O2 -g"), sandbox.path("in")).unwrap();
    let command = "optimize in -o out --scope all --pass inlining --pass identical-functions";
    let outcome = sandbox.afterlink(&command.split(' ').collect::<Vec<_>>());
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    assert!(outcome.stdout().contains("follows the code"), "{}", outcome.stdout());
    let code = sandbox.say("llvm-objdump-22 -d --no-show-raw-insn -j .text -j .text.cold out");
    let asked = code.lines().filter_map(|row| {
        let (at, _) = row.trim().split_once(':')?;
        at.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| format!("0x{at}"))
    });
    let asked: Vec<String> = asked.collect();
    let words: Vec<&str> = ["where", "out"].into_iter().chain(asked.iter().map(String::as_str)).collect();
    let answers = sandbox.afterlink(&words).stdout();
    let (mut inlined, mut untold) = (0, 0);
    for answer in answers.lines().filter(|answer| answer.contains(" inlined ")) {
        let words: Vec<&str> = answer.split(' ').collect();
        let (place, was, call) = (words[0], words[2], words[words.len() - 1]);
        let (own, caller) = (told(&sandbox, "in", was), told(&sandbox, "in", call));
        for (said, (own, caller)) in told(&sandbox, "out", place).iter().zip(own.iter().zip(&caller)) {
            if said == caller {
                untold += 1;
                continue;
            }
            assert_eq!(frames(said), [frames(own), frames(caller)].concat(), "{answer}");
            inlined += 1;
        }
    }
    assert!(inlined >= 8 && inlined > untold, "{inlined} and {untold}: {answers}");
    let places = ["in", "out"].map(|file| {
        let symbols = sandbox.say(&format!("nm {file}"));
        ["called", "called_too", "compared", "compared_too"].map(|name| {
            let row = symbols.lines().find_map(|row| row.strip_suffix(&format!(" t {name}")));
            format!("0x{}", row.unwrap_or_else(|| panic!("{name} has no symbol in {file}: {symbols}")))
        })
    });
    assert!(places[0][0] != places[0][1] && places[1][0] == places[1][1], "{places:?}");
    let one = told(&sandbox, "out", &places[1][0]);
    assert!(places[0].iter().any(|place| told(&sandbox, "in", place) == one), "{places:?}: {one:?}");
}

/// The index that a linker made leads to the units of moved code: every function's new entry is in a run of it.
#[test]
fn an_index_of_addresses() {
    let sandbox = Sandbox::default();
    sandbox.build_debugged("clang-22 -O2 -g -ggnu-pubnames -fuse-ld=lld -Wl,--gdb-index");
    optimize(&sandbox, "in", "out");
    let runs = |program: &str| {
        let said = sandbox.say(&format!("llvm-dwarfdump-22 --gdb-index {program}"));
        let number = |text: &str| u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).unwrap();
        let rows = said.lines().filter(|l| l.contains("Low/High address = ["));
        let inside = rows.map(|l| (l.split_once('[').unwrap().1.split_once(')').unwrap().0, l));
        inside
            .map(|(run, row)| {
                let (low, high) = run.split_once(", ").unwrap();
                (number(low)..number(high), row.rsplit(' ').next().unwrap().to_owned())
            })
            .collect::<Vec<_>>()
    };
    for program in ["in", "out"] {
        let (symbols, runs) = (sandbox.say(&format!("nm {program}")), runs(program));
        for (name, unit) in [("choose", "0"), ("main", "0"), ("work", "1"), ("report", "1")] {
            let row = symbols.lines().find(|row| row.ends_with(&format!(" {name}"))).unwrap();
            let at = u64::from_str_radix(row.split(' ').next().unwrap(), 16).unwrap();
            let units: Vec<_> =
                runs.iter().filter(|(run, _)| run.contains(&at)).map(|(_, unit)| unit).collect();
            assert_eq!(units, [unit], "{program} {name}: {runs:?}");
        }
    }
}

/// A unit that is not understood tells of where the code was, and the report says why; the others follow.
#[test]
fn odd_units_are_counted_by_kind() {
    let sandbox = Sandbox::default();
    sandbox.build_debugged("clang-22 -O2 -gdwarf-5");
    let units = section(&sandbox, "in", ".debug_info");
    let second = 4 + u32::from_le_bytes(*units.first_chunk().unwrap()) as usize;
    let bytes = fs::read(sandbox.path("in")).unwrap();
    let start = bytes.windows(units.len()).position(|w| w == units).unwrap();
    for (field, value, kind) in
        [(4, 9, "unknown version"), (6, 0x90, "unknown kind"), (7, 4, "another size"), (8, 0xff, "damaged")]
    {
        let mut odd = bytes.clone();
        odd[start + second + field] = value;
        sandbox.put("odd", &odd);
        let said = optimize(&sandbox, "odd", "odd-out");
        let counted = said.lines().find(|l| l.contains("but for")).unwrap_or_default();
        assert!(
            counted.contains(" 1 ") && counted.contains(kind) && counted.contains("of 2 units"),
            "{said}"
        );
        assert!(said.contains("follows the code") && !said.contains("fault"), "{said}");
        let report = optimize_json(&sandbox, "odd");
        assert_eq!(report.matches("\"units\": 2").count(), 1, "{report}");
        let info = section(&sandbox, "odd-out", ".debug_info");
        let was = section(&sandbox, "odd", ".debug_info");
        assert_ne!(info[..second], was[..second], "{kind}");
        // But for where its rows are now.
        let differ = info[second..].iter().zip(&was[second..]).filter(|(a, b)| a != b).count();
        assert!(info.len() == was.len() && differ <= 4, "{kind}: {differ} bytes differ");
    }
}

/// The report of a program as JSON.
fn optimize_json(sandbox: &Sandbox, input: &str) -> String {
    let command = format!("optimize {input} -o json-out --scope all --no-verify --report report");
    let words: Vec<&str> = command.split_whitespace().collect();
    assert_eq!(sandbox.afterlink(&words).exit, 0);
    fs::read_to_string(sandbox.path("report")).unwrap()
}
