//! Sections beside code and debug information that name places in code: they follow, or the output does without them and the report
//! says so.

use afterlink_testkit::sandbox::Sandbox;
use std::fs;
use std::process::Command;

const MOVE: &str = "--scope all --order-functions random --order-blocks random --split random --seed 4";

/// Builds `in` and writes `out`, which is proven; gives the report.
#[track_caller]
fn optimize(sandbox: &Sandbox, with: &str) -> String {
    let folder = afterlink_testkit::tests_folder().join("cli/programs/debugged");
    for name in ["main.c", "work.c"] {
        fs::copy(folder.join(name), sandbox.path(name)).unwrap();
    }
    sandbox.say(&format!("{with} -Wl,-q main.c work.c -o in"));
    let command = format!("optimize in -o out {MOVE}");
    let outcome = sandbox.afterlink(&command.split_whitespace().collect::<Vec<_>>());
    assert_eq!(outcome.exit, 0, "{with}: {}", outcome.stderr());
    assert_eq!(sandbox.say("./in"), sandbox.say("./out"), "{with}");
    let moved = outcome.stdout().lines().next().unwrap_or_default().to_owned();
    assert!(!moved.contains(" 1 of") && !moved.contains(" 0 of"), "{with}: {moved}");
    outcome.stdout().to_owned()
}

fn has(sandbox: &Sandbox, section: &str) -> [bool; 2] {
    ["in", "out"].map(|file| sandbox.say(&format!("readelf -SW {file}")).contains(section))
}

#[test]
fn sizes_of_frames_follow() {
    let sandbox = Sandbox::default();
    let said = optimize(&sandbox, "clang-22 -O2 -fstack-size-section -fuse-ld=lld");
    assert!(!said.contains(".stack_sizes"), "{said}");
    // The tool names the functions by their symbols.
    let sizes = |file: &str| {
        let said = sandbox.say(&format!("llvm-readelf-22 --stack-sizes {file}"));
        let mut rows: Vec<String> = said.lines().map(|row| row.trim().to_owned()).collect();
        rows.retain(|row| row.starts_with(|c: char| c.is_ascii_digit()));
        rows
    };
    assert!(sizes("in").len() >= 4, "{:?}", sizes("in"));
    assert_eq!(sizes("in"), sizes("out"));
    // One that names another place is refused.
    let mut bytes = fs::read(sandbox.path("out")).unwrap();
    let section = sandbox.say("llvm-readelf-22 -S out");
    let row = section.lines().find(|row| row.contains(".stack_sizes")).unwrap();
    let offset = row.split(']').nth(1).unwrap().split_whitespace().nth(3).unwrap();
    bytes[usize::from_str_radix(offset, 16).unwrap()] ^= 1;
    sandbox.put("broken", &bytes);
    let outcome = sandbox.afterlink(&["verify", "in", "broken"]);
    assert!(outcome.exit != 0 && outcome.stdout().contains(".stack_sizes"), "{}", outcome.stdout());
}

#[test]
fn what_is_not_understood_is_left_out() {
    for (with, section) in [
        ("clang-22 -O2 -fpseudo-probe-for-profiling -fuse-ld=lld", ".pseudo_probe"),
        ("clang-22 -O2 -fexperimental-call-graph-section -fuse-ld=lld", ".llvm.callgraph"),
        ("gcc-12 -O2 -gstabs -w", ".stab"),
    ] {
        let sandbox = Sandbox::default();
        let said = optimize(&sandbox, with);
        assert!(said.contains(&format!("left out     {section}: ")), "{with}: {said}");
        assert_eq!(has(&sandbox, &format!(" {section} ")), [true, false], "{with}");
        // Put back, it is refused.
        sandbox.say(&format!("llvm-objcopy-22 --dump-section={section}=bytes in /dev/null"));
        sandbox.say(&format!("llvm-objcopy-22 --add-section={section}=bytes out back"));
        assert_ne!(sandbox.afterlink(&["verify", "in", "back"]).exit, 0, "{with}");
    }
}

/// Symbols that the report of a crash reads, compressed, as Fedora puts them into programs.
#[test]
fn symbols_in_a_file_of_their_own() {
    let sandbox = Sandbox::default();
    optimize(&sandbox, "gcc-12 -O2");
    sandbox.put("mini", b"\xfd7zXZ");
    sandbox.say("objcopy --add-section .gnu_debugdata=mini in with");
    let outcome = sandbox.afterlink(&["optimize", "with", "-o", "without", "--scope", "all"]);
    assert!(
        outcome.stdout().contains("left out     .gnu_debugdata: "),
        "{}{}",
        outcome.stdout(),
        outcome.stderr()
    );
    assert!(!sandbox.say("readelf -SW without").contains("gnu_debugdata"));
}

/// LLVM's stack maps name places by their distance from a function's start: such a function stays.
#[test]
fn stack_maps() {
    let sandbox = Sandbox::default();
    let code = "declare void @llvm.experimental.stackmap(i64, i32, ...)\n\
        define i32 @mapped(i32 %x) noinline {\n %y = add i32 %x, 3\n\
        call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0, i32 %y)\n ret i32 %y\n}\n\
        define i32 @main() {\n %r = call i32 @mapped(i32 -3)\n ret i32 %r\n}\n";
    sandbox.put("code.ll", code.as_bytes());
    sandbox.say("clang-22 -O2 -w -Wl,-q code.ll -o in");
    let command = format!("optimize in -o out {MOVE} --json");
    let outcome = sandbox.afterlink(&command.split_whitespace().collect::<Vec<_>>());
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    sandbox.say("./out");
    let said = outcome.stdout();
    let refused = said.split("patched-code").nth(1).unwrap_or_default();
    assert!(refused.contains("\"mapped\""), "{}", outcome.stdout());
    let symbols = ["in", "out"].map(|file| sandbox.say(&format!("nm {file}")));
    let at = |symbols: &str, name: &str| {
        symbols.lines().find(|row| row.ends_with(&format!(" T {name}"))).unwrap().to_owned()
    };
    assert_eq!(at(&symbols[0], "mapped"), at(&symbols[1], "mapped"));
    assert_ne!(at(&symbols[0], "main"), at(&symbols[1], "main"));
}

/// Its entries tell of code that is still there; the program moves nevertheless. GNU ld merges these tables and leaves their
/// relocations where they were: by -O0, one of them behind the section's end.
#[test]
fn stack_traces_by_sframe() {
    for with in ["gcc-12 -O2 -Wa,--gsframe", "gcc-12 -O0 -Wa,--gsframe"] {
        let sandbox = Sandbox::default();
        let said = optimize(&sandbox, with);
        assert!(said.contains("kept         .sframe: "), "{with}: {said}");
        let frames = |file: &str| sandbox.say(&format!("readelf --sframe {file}"));
        assert_eq!(frames("in").lines().count(), frames("out").lines().count(), "{with}");
        assert_eq!(has(&sandbox, ".sframe "), [true, true], "{with}");
    }
}

/// Code that only `.debug_frame` says how to unwind: a debugger finds the callers of what moved.
#[test]
fn unwind_entries_for_debuggers() {
    for with in ["gcc-12 -O2 -g", "gcc-12 -O2 -gdwarf-4", "clang-22 -O2 -g -fno-unwind-tables"] {
        let sandbox = Sandbox::default();
        let said = optimize(&sandbox, &format!("{with} -fno-asynchronous-unwind-tables"));
        assert!(said.contains("follows the code") && !said.contains("unwind entries"), "{with}: {said}");
        let trace = |program: &str| {
            let mut gdb = Command::new("gdb");
            gdb.args(["-q", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "break printf"]);
            gdb.args([
                "-ex",
                "run",
                "-ex",
                "backtrace",
                "-ex",
                "up",
                "-ex",
                "info registers rbx rbp r12 r13",
            ]);
            let outcome = sandbox.run(gdb.arg(program));
            let said = outcome.stdout();
            let frames: Vec<&str> = said.lines().filter(|line| line.starts_with('#')).collect();
            let names = frames.iter().map(|frame| {
                let words: Vec<&str> =
                    frame.split_whitespace().filter(|word| !word.starts_with("0x")).collect();
                words
                    .iter()
                    .find(|word| !word.starts_with('#') && **word != "in")
                    .copied()
                    .unwrap_or_default()
            });
            names.map(str::to_owned).collect::<Vec<_>>()
        };
        let was = trace("./in");
        assert!(was.iter().any(|name| name == "main"), "{with}: {was:?}");
        assert_eq!(was, trace("./out"), "{with}");
    }
}
