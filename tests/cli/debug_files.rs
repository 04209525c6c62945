//! Debug information in a file of its own: the pair that afterlink makes of a stripped program and its debug file answers as the
//! program did before it was stripped, and what does not belong together is refused.

use afterlink_testkit::sandbox::{Sandbox, assert_clear_error};
use afterlink_testkit::symbolizers::{Place, SYMBOL, Symbolizer, places, sample};
use std::fs;
use std::process::Command;

const MOVE: &str = "--scope all --order-functions random --order-blocks random --split random --seed 4";

/// What makes `bin` and `bin.debug` of `in`.
const SPLITTERS: [&[&str]; 4] = [
    &["objcopy --only-keep-debug in bin.debug", "objcopy --strip-debug --add-gnu-debuglink=bin.debug in bin"],
    &[
        "llvm-objcopy-22 --only-keep-debug in bin.debug",
        "llvm-objcopy-22 --strip-debug --add-gnu-debuglink=bin.debug in bin",
    ],
    &["eu-strip -g -f bin.debug -o bin in"],
    &[
        "objcopy --only-keep-debug --compress-debug-sections=zlib in bin.debug",
        "cp in bin",
        "strip --strip-debug bin",
    ],
];

const COMPILERS: [&str; 4] = [
    "gcc-12 -O2 -g",
    "gcc-12 -O2 -gdwarf-4 -fno-pie -no-pie",
    "clang-22 -O2 -g -fuse-ld=lld -Wl,--build-id=sha1",
    "gcc-12 -O2 -g -Wl,--build-id=none",
];

#[track_caller]
fn afterlink(sandbox: &Sandbox, command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    let outcome = sandbox.afterlink(&words);
    assert_eq!(outcome.exit, 0, "{command}: {}{}", outcome.stdout(), outcome.stderr());
    outcome.stdout().to_owned()
}

fn split(sandbox: &Sandbox, splitter: &[&str]) {
    splitter.iter().for_each(|command| drop(sandbox.say(command)));
}

/// A program and its debug file, and what became of them: `in`, `bin`, `bin.debug`, `out`, `out.debug`.
fn pair(with: &str, splitter: &[&str]) -> Sandbox {
    let sandbox = Sandbox::default();
    sandbox.build_debugged(with);
    split(&sandbox, splitter);
    let said = afterlink(&sandbox, &format!("optimize bin -o out --debug-file bin.debug {MOVE}"));
    assert!(said.contains("follows the code, in out.debug"), "{with}: {said}");
    sandbox
}

fn moved(sandbox: &Sandbox) -> Vec<Place> {
    let places = sample(&places(&sandbox.path("in"), &sandbox.path("out")).unwrap(), 5_000);
    assert!(places.len() >= 40 && places.iter().any(|place| place.is_apart));
    places
}

/// What symbolizers say of moved instructions in `output` is what they say of `in`.
#[track_caller]
fn assert_same_answers(sandbox: &Sandbox, places: &[Place], output: &str, what: &str) {
    assert_answers_of(sandbox, places, "in", output, what);
}

/// The same of another program than `in`.
#[track_caller]
fn assert_answers_of(sandbox: &Sandbox, places: &[Place], input: &str, output: &str, what: &str) {
    for symbolizer in [Symbolizer::Addr2line, Symbolizer::Llvm, Symbolizer::Elfutils] {
        let questions = tempfile::tempdir().unwrap();
        let (input, output) = (sandbox.path(input), sandbox.path(output));
        let mut found = symbolizer.differences(&input, &output, places, questions.path()).unwrap();
        found.retain(|difference| difference.kind() != SYMBOL);
        assert!(found.is_empty(), "{what}: {symbolizer:?}: {found:#?}");
    }
}

/// What a debugger says where the program stops, without addresses.
#[track_caller]
fn stops(sandbox: &Sandbox, program: &str) -> String {
    let mut gdb = Command::new("gdb");
    gdb.args(["-q", "-nx", "-batch", "-ex", "set debuginfod enabled off"]);
    for command in
        ["break choose", "run", "info args", "backtrace", "break work", "continue", "backtrace", "info args"]
    {
        gdb.args(["-ex", command]);
    }
    let outcome = sandbox.run(gdb.arg(program));
    let said = outcome.stdout();
    assert!(said.contains("Breakpoint 2, "), "{program}: {said}{}", outcome.stderr());
    // Neither says what the other does of the files themselves.
    let all = format!("{said}{}", outcome.stderr());
    assert!(!all.contains("mismatch") && !all.contains("does not match"), "{program}: {all}");
    let words = said.split(' ').map(|word| if word.contains("0x") { "0x" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

fn build_id(sandbox: &Sandbox, file: &str) -> String {
    let said = sandbox.say(&format!("readelf -nW {file}"));
    said.lines().find(|line| line.contains("Build ID")).unwrap_or_default().to_owned()
}

#[test]
fn a_pair_answers_as_the_program_did() {
    for with in COMPILERS {
        for splitter in SPLITTERS {
            let is_named = splitter.iter().any(|command| command.contains("link") || command.contains("eu-"));
            if with.contains("build-id=none") && !is_named {
                continue;
            }
            let what = format!("{with}, {}", splitter.join(", "));
            let sandbox = pair(with, splitter);
            let proof = afterlink(&sandbox, "verify bin out --debug-file bin.debug --debug-output out.debug");
            assert!(proof.contains("proven"), "{what}: {proof}");
            assert_eq!(build_id(&sandbox, "out"), build_id(&sandbox, "out.debug"), "{what}");
            if !with.contains("build-id=none") {
                assert_ne!(build_id(&sandbox, "out"), build_id(&sandbox, "bin"), "{what}");
            }
            assert_same_answers(&sandbox, &moved(&sandbox), "out", &what);
            assert_eq!(stops(&sandbox, "./in"), stops(&sandbox, "./out"), "{what}");
            assert_eq!(sandbox.say("./in"), sandbox.say("./out"), "{what}");
            // Both files make one program again, which has nothing else in it.
            sandbox.say("eu-unstrip -o whole out out.debug");
            assert_same_answers(&sandbox, &moved(&sandbox), "whole", &what);
        }
    }
}

/// Where no name and no checksum leads to the debug file, the build-id does.
#[test]
fn a_folder_of_build_ids() {
    let sandbox = pair(COMPILERS[0], SPLITTERS[0]);
    let id = build_id(&sandbox, "out").split_whitespace().last().unwrap().to_owned();
    let folder = sandbox.path("root/.build-id").join(&id[..2]);
    fs::create_dir_all(&folder).unwrap();
    fs::rename(sandbox.path("out.debug"), folder.join(format!("{}.debug", &id[2..]))).unwrap();
    let root = sandbox.path("root");
    let mut gdb = Command::new("gdb");
    gdb.args(["-q", "-nx", "-batch", "-ex"]).arg(format!("set debug-file-directory {}", root.display()));
    let outcome = sandbox.run(gdb.args(["-ex", "file out", "-ex", "info line work"]));
    assert!(outcome.stdout().contains("of \"work.c\" starts at address"), "{}", outcome.stdout());
}

/// A debug file that may go to any place, and one that is a folder's.
#[test]
fn a_debug_file_elsewhere() {
    let sandbox = pair(COMPILERS[0], SPLITTERS[0]);
    fs::create_dir(sandbox.path(".debug")).unwrap();
    fs::remove_file(sandbox.path("out.debug")).unwrap();
    let command = format!("optimize bin -o out --debug-file bin.debug --debug-output .debug/new {MOVE}");
    assert!(afterlink(&sandbox, &command).contains(", in new"));
    afterlink(&sandbox, "verify bin out --debug-file bin.debug --debug-output .debug/new");
    assert_same_answers(&sandbox, &moved(&sandbox), "out", ".debug");
}

#[test]
fn what_does_not_belong_together() {
    let sandbox = pair(COMPILERS[0], SPLITTERS[0]);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let refuse = |command: &str, says: &[&str]| assert_clear_error(&sandbox.afterlink(&words(command)), says);
    sandbox.say("gcc-12 -O1 -g -Wl,-q main.c work.c -o other");
    let optimize = |rest: &str| format!("optimize {rest} -o out --scope all");
    refuse(&optimize("bin --debug-file other"), &["bin", "build-ids differ"]);
    refuse(&optimize("in --debug-file bin.debug"), &["in", ".debug_info", "--debug-file"]);
    refuse(&optimize("bin --debug-file bin"), &["no debug information", "only-keep-debug"]);
    refuse(&optimize("bin --debug-file main.c"), &["ELF"]);
    refuse(&optimize("bin --debug-file bin.debug --debug-output out"), &["out", "another name"]);
    refuse(&optimize("bin --debug-file bin.debug --debug-output bin.debug"), &["the output is the input"]);
    refuse("verify bin out", &["out.debug", "--debug-output"]);
    // Without a build-id, the checksum tells.
    let sandbox = Sandbox::default();
    sandbox.build_debugged(COMPILERS[3]);
    split(&sandbox, SPLITTERS[0]);
    let mut bytes = fs::read(sandbox.path("bin.debug")).unwrap();
    bytes.push(0);
    sandbox.put("longer.debug", &bytes);
    let refuse = |command: &str, says: &[&str]| assert_clear_error(&sandbox.afterlink(&words(command)), says);
    refuse(&optimize("bin --debug-file longer.debug"), &["its CRC is"]);
    sandbox.say("objcopy --remove-section=.gnu_debuglink bin nameless");
    refuse(&optimize("nameless --debug-file bin.debug"), &["no build-id", "--add-gnu-debuglink"]);
}

/// A program whose debug file was not given: the report says what to add, and nothing leads to the old one.
#[test]
fn a_debug_file_that_was_not_given() {
    let sandbox = pair(COMPILERS[0], SPLITTERS[0]);
    let said = afterlink(&sandbox, &format!("optimize bin -o alone {MOVE} --report report.json"));
    assert!(said.contains("add --debug-file with the path of bin.debug"), "{said}");
    let report = fs::read_to_string(sandbox.path("report.json")).unwrap();
    assert!(report.contains("\"debug_file_not_given\": \"bin.debug\""), "{report}");
    assert!(!sandbox.say("readelf -SW alone").contains("gnu_debuglink"));
    afterlink(&sandbox, "verify bin alone");
    let said = afterlink(&sandbox, &format!("optimize bin -o kept --keep-debug-info {MOVE}"));
    assert!(!said.contains("--debug-file"), "{said}");
    assert!(sandbox.say("readelf -p .gnu_debuglink kept").contains("bin.debug"));
    afterlink(&sandbox, "verify bin kept");
    let said = afterlink(&sandbox, &format!("optimize in -o whole {MOVE}"));
    assert!(!said.contains("--debug-file"), "{said}");
}

/// What is kept tells of where the code was, and is proven like that.
#[test]
fn a_debug_file_that_is_kept() {
    let sandbox = pair(COMPILERS[0], SPLITTERS[0]);
    let keep = format!("optimize bin -o kept --debug-file bin.debug --keep-debug-info {MOVE}");
    assert!(afterlink(&sandbox, &keep).contains("with the addresses that the code had"));
    afterlink(&sandbox, "verify bin kept --debug-file bin.debug --debug-output kept.debug");
    let info = |file: &str| {
        sandbox.say(&format!("llvm-objcopy-22 --dump-section=.debug_info=info {file} /dev/null"));
        fs::read(sandbox.path("info")).unwrap()
    };
    assert_eq!(info("kept.debug"), info("bin.debug"));
    assert_ne!(info("out.debug"), info("bin.debug"));
    assert_eq!(build_id(&sandbox, "kept"), build_id(&sandbox, "kept.debug"));
}

/// The CRC-32 of a file, bit by bit.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

/// Offset and size of a section in a file.
fn place(sandbox: &Sandbox, file: &str, section: &str) -> (usize, usize) {
    let said = sandbox.say(&format!("llvm-readelf-22 -S {file}"));
    let row = said.lines().find(|row| row.contains(&format!("] {section} "))).unwrap();
    let words: Vec<&str> = row.split(']').nth(1).unwrap().split_whitespace().collect();
    let number = |word: &str| usize::from_str_radix(word, 16).unwrap();
    (number(words[3]), number(words[4]))
}

/// A byte that is changed in the debug file is noticed, although the program names the changed file by its checksum.
#[test]
fn what_was_broken_is_refused() {
    let sandbox = pair("gcc-12 -O2 -g -fno-asynchronous-unwind-tables", SPLITTERS[0]);
    let (program, good) =
        (fs::read(sandbox.path("out")).unwrap(), fs::read(sandbox.path("out.debug")).unwrap());
    let (link, size) = place(&sandbox, "out", ".gnu_debuglink");
    let old_frames = place(&sandbox, "bin.debug", ".debug_frame").1;
    let mut places = Vec::new();
    for section in [".symtab", ".note.gnu.build-id", ".debug_str", ".debug_frame", ".debug_abbrev"] {
        let (at, size) = place(&sandbox, "out.debug", section);
        // The input's entries, too, and in front of the last instructions, which padding follows.
        let range = if section == ".debug_frame" { 0..old_frames + 16 } else { 0..size.min(600) };
        places.extend(range.step_by(13).map(|offset| (section, at + offset)));
    }
    // A section's address and size.
    let table = u64::from_le_bytes(*good[40..].first_chunk().unwrap()) as usize;
    places.extend(
        (1..10).flat_map(|row| [("header", table + row * 64 + 16), ("header", table + row * 64 + 32)]),
    );
    assert!(places.len() > 100);
    let (mut caught, mut survived) = (0, Vec::new());
    for (section, at) in places {
        let mut broken = good.clone();
        broken[at] ^= 4;
        let mut named = program.clone();
        named[link + size - 4..link + size].copy_from_slice(&checksum(&broken).to_le_bytes());
        sandbox.put("broken", &named);
        fs::create_dir_all(sandbox.path("with")).unwrap();
        sandbox.put("with/out.debug", &broken);
        let command = "verify bin broken --debug-file bin.debug --debug-output with/out.debug";
        let outcome = sandbox.afterlink(&command.split_whitespace().collect::<Vec<_>>());
        match outcome.exit {
            0 => survived.push((section, at)),
            _ => caught += 1,
        }
    }
    // Abbreviations that no entry has say nothing.
    survived.retain(|(section, _)| *section != ".debug_abbrev");
    assert!(survived.is_empty() && caught > 80, "{caught} caught, survived: {survived:x?}");
    // The unchanged pair, put together the same way, is right.
    let mut named = program.clone();
    named[link + size - 4..link + size].copy_from_slice(&checksum(&good).to_le_bytes());
    assert_eq!(named, program);
}

/// What is done to an output whose debug information follows: the commands, by which it becomes `edited`.
const TOOLS: [&[&str]; 9] = [
    &[
        "cp out edited",
        "objcopy --only-keep-debug edited e.debug",
        "objcopy --strip-debug --add-gnu-debuglink=e.debug edited",
    ],
    &[
        "cp out edited",
        "objcopy --only-keep-debug edited e.debug",
        "objcopy --strip-all --add-gnu-debuglink=e.debug edited",
    ],
    &["cp out edited", "eu-strip -f e.debug edited"],
    &["cp out edited", "eu-strip -g -f e.debug edited"],
    &[
        "cp out edited",
        "llvm-objcopy-22 --only-keep-debug edited e.debug",
        "llvm-objcopy-22 --strip-debug --add-gnu-debuglink=e.debug edited",
    ],
    &["cp out edited", "dwz edited"],
    &["cp out edited", "gdb-add-index edited"],
    // As a distribution does it: dwz, then a compressed debug file in a folder of build-ids, then the rest is stripped.
    &[
        "cp out edited",
        "dwz edited",
        "objcopy --only-keep-debug --compress-debug-sections edited e.debug",
        "chmod 0644 e.debug",
        "strip --remove-section=.comment --remove-section=.note edited",
        "objcopy --add-gnu-debuglink e.debug edited",
    ],
    &["cp out edited", "objcopy --compress-debug-sections=zlib edited"],
];

#[test]
fn tools_work_on_outputs() {
    // dwz 0.15 does not read version 5 of clang.
    for with in [COMPILERS[0], "clang-22 -O2 -gdwarf-4 -fuse-ld=lld -Wl,--build-id=sha1"] {
        let sandbox = Sandbox::default();
        sandbox.build_debugged(with);
        afterlink(&sandbox, &format!("optimize in -o out {MOVE}"));
        let places = moved(&sandbox);
        for tool in TOOLS {
            let what = format!("{with}, {}", tool.join(", "));
            tool.iter().for_each(|command| drop(sandbox.say(command)));
            // What tools do to the program itself: of what dwz wrote, addr2line 2.40 finds fewer inlined calls.
            for command in tool {
                let words = command.replace("out ", "in ").replace("edited", "reference");
                sandbox.say(&words.replace("e.debug", "r.debug"));
            }
            assert_answers_of(&sandbox, &places, "reference", "edited", &what);
            assert_eq!(stops(&sandbox, "./in"), stops(&sandbox, "./edited"), "{what}");
            assert_eq!(sandbox.say("./in"), sandbox.say("./edited"), "{what}");
            assert_eq!(build_id(&sandbox, "edited"), build_id(&sandbox, "out"), "{what}");
            if sandbox.path("e.debug").exists() {
                assert_eq!(build_id(&sandbox, "e.debug"), build_id(&sandbox, "out"), "{what}");
                fs::remove_file(sandbox.path("e.debug")).unwrap();
            }
        }
    }
}
