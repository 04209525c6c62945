//! Debug information whose entries stand in other files than the program (`-gsplit-dwarf`): the output has files of its own, by which
//! debuggers say of it what they said of the program, and the input's files are never taken for them.

use afterlink_testkit::sandbox::Sandbox;
use afterlink_testkit::symbolizers::{SYMBOL, Symbolizer, places, sample};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const MOVE: &str = "--scope all --order-functions random --order-blocks random --split random --seed 5";

const BUILDS: [&str; 4] = [
    "gcc-12 -O2 -gdwarf-4 -gsplit-dwarf",
    "gcc-12 -O2 -gdwarf-5 -gsplit-dwarf",
    "clang-22 -O2 -gdwarf-4 -gsplit-dwarf",
    "clang-22 -O2 -gdwarf-5 -gsplit-dwarf",
];

/// Writes `out`, proven, and gives the report.
#[track_caller]
fn optimize(sandbox: &Sandbox) -> String {
    let command = format!("optimize in -o out {MOVE}");
    let outcome = sandbox.afterlink(&command.split_whitespace().collect::<Vec<_>>());
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    let said = outcome.stdout().to_owned();
    assert!(said.contains("follows the code") && !said.contains("fault"), "{said}");
    assert_eq!(sandbox.afterlink(&["verify", "in", "out"]).exit, 0);
    said
}

/// The output's files with entries.
fn files(sandbox: &Sandbox) -> Vec<PathBuf> {
    let Ok(folder) = fs::read_dir(sandbox.path("out.dwo")) else { return Vec::new() };
    let mut files: Vec<PathBuf> = folder.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// Where LLVM's symbolizer says something else of the same instruction.
fn differences(sandbox: &Sandbox) -> Vec<String> {
    let (input, output) = (sandbox.path("in"), sandbox.path("out"));
    let places = sample(&places(&input, &output).unwrap(), 5_000);
    assert!(places.len() >= 50 && places.iter().any(|p| p.is_apart));
    let questions = tempfile::tempdir().unwrap();
    let mut found = Symbolizer::Llvm.differences(&input, &output, &places, questions.path()).unwrap();
    found.retain(|difference| difference.kind() != SYMBOL);
    found.iter().map(|difference| format!("{difference:#?}")).collect()
}

/// What gdb says where the program stops, without addresses.
fn stops(sandbox: &Sandbox, program: &str) -> String {
    let mut gdb = Command::new("gdb");
    gdb.args(["-q", "-nx", "-batch", "-ex", "set debuginfod enabled off"]);
    for command in ["break choose", "run", "info args", "backtrace", "break work", "continue", "backtrace"] {
        gdb.args(["-ex", command]);
    }
    for command in ["info args", "info line", "finish", "next", "info locals"] {
        gdb.args(["-ex", command]);
    }
    let outcome = sandbox.run(gdb.arg(program));
    let said = outcome.stdout();
    assert!(said.contains("Breakpoint 2, "), "{program}: {said}{}", outcome.stderr());
    said.split(' ').map(|word| if word.contains("0x") { "0x" } else { word }).collect::<Vec<_>>().join(" ")
}

#[test]
fn debuggers_say_the_same() {
    for with in BUILDS {
        let sandbox = Sandbox::default();
        sandbox.build_debugged(with);
        let said = optimize(&sandbox);
        assert!(!said.contains("without the entries"), "{with}: {said}");
        assert_eq!(files(&sandbox).len(), 2, "{with}");
        assert_eq!(differences(&sandbox), Vec::<String>::new(), "{with}");
        // gdb 13 does not read the lists of clang's DWARF 5 in the input's files.
        if with != "clang-22 -O2 -gdwarf-5 -gsplit-dwarf" {
            assert_eq!(stops(&sandbox, "./in"), stops(&sandbox, "./out"), "{with}");
        }
    }
}

#[test]
fn cpp() {
    for compiler in ["g++-12 -gdwarf-4", "clang++-22 -gdwarf-4", "clang++-22 -gdwarf-5"] {
        for more in ["", " -fdebug-types-section"] {
            let sandbox = Sandbox::default();
            let tests = afterlink_testkit::tests_folder();
            let source = tests.join("cases/exceptions/main.cc");
            let flags =
                format!("-O2 -gsplit-dwarf -Wl,-q -std=c++14 -I{}{more}", tests.join("cases").display());
            sandbox.say(&format!("{compiler} {flags} {} -o in", source.display()));
            let said = optimize(&sandbox);
            assert!(!said.contains("without the entries"), "{compiler}{more}: {said}");
            assert_eq!(files(&sandbox).len(), 1, "{compiler}{more}");
            assert_eq!(differences(&sandbox), Vec::<String>::new(), "{compiler}{more}");
        }
    }
}

/// What is said of entries that are not there, or not the program's, is said no more; the rest follows.
#[test]
fn a_file_that_is_missing_and_one_of_another_build() {
    for with in BUILDS {
        let sandbox = Sandbox::default();
        sandbox.build_debugged(with);
        let whole = fs::read(sandbox.path("in-work.dwo")).unwrap();
        fs::remove_file(sandbox.path("in-work.dwo")).unwrap();
        let said = optimize(&sandbox);
        assert!(said.contains("1 units whose .dwo files are not there"), "{with}: {said}");
        assert_eq!(files(&sandbox).len(), 1, "{with}");
        fs::remove_dir_all(sandbox.path("out.dwo")).unwrap();
        fs::copy(sandbox.path("in-main.dwo"), sandbox.path("in-work.dwo")).unwrap();
        let said = optimize(&sandbox);
        assert!(said.contains("1 units whose .dwo files are of another build"), "{with}: {said}");
        assert_eq!(files(&sandbox).len(), 1, "{with}");
        // The file of the input that comes back is not taken for the output's.
        fs::write(sandbox.path("in-work.dwo"), whole).unwrap();
        let told = sandbox.say("llvm-symbolizer-22 --inlines -e out work");
        assert!(told.contains("work.c:") && !told.contains("main.c:"), "{with}: {told}");
    }
}

/// A program that came with one file for all units gets one.
#[test]
fn a_package() {
    for with in BUILDS {
        let sandbox = Sandbox::default();
        sandbox.build_debugged(with);
        sandbox.say("llvm-dwp-22 in-main.dwo in-work.dwo -o in.dwp");
        for name in ["in-main.dwo", "in-work.dwo"] {
            fs::remove_file(sandbox.path(name)).unwrap();
        }
        optimize(&sandbox);
        assert!(files(&sandbox).is_empty() && sandbox.path("out.dwp").exists(), "{with}");
        assert_eq!(differences(&sandbox), Vec::<String>::new(), "{with}");
        // gdb 13 ends where it reads any package of DWARF 5, the linker's program's too.
        if with.contains("-gdwarf-4") {
            assert_eq!(stops(&sandbox, "./in"), stops(&sandbox, "./out"), "{with}");
        }
        // Of gcc's packages, the input's too, this does not come to an end. Of a package of DWARF 5 it knows no address, so that all
        // runs that a list of numbers names seem to start at 0.
        if with == "clang-22 -O2 -gdwarf-4 -gsplit-dwarf" {
            let verdict = sandbox.say("llvm-dwarfdump-22 --verify out.dwp");
            assert!(verdict.contains("No errors."), "{with}: {verdict}");
        }
    }
}

/// Anything of entries that is wrong is noticed: a byte of each kind of section is changed, at many places.
#[test]
fn entries_that_were_broken() {
    for with in BUILDS {
        let sandbox = Sandbox::default();
        sandbox.build_debugged(with);
        optimize(&sandbox);
        let (mut broken, mut survived) = (0, Vec::new());
        for path in files(&sandbox) {
            let good = fs::read(&path).unwrap();
            let name = path.display();
            let sections = sandbox.say(&format!("readelf -SW {name}"));
            let rows = sections.lines().filter(|row| row.contains("loc") || row.contains("rnglists"));
            for row in rows.filter(|row| row.contains(".dwo")) {
                let words: Vec<&str> = row.split(']').nth(1).unwrap().split_whitespace().collect();
                let number = |word: &str| usize::from_str_radix(word, 16).unwrap();
                let (start, size) = (number(words[3]), number(words[4]));
                for at in (0..8).map(|part| start + size * (2 * part + 1) / 16) {
                    let mut bad = good.clone();
                    bad[at] ^= 1;
                    fs::write(&path, bad).unwrap();
                    let outcome = sandbox.afterlink(&["verify", "in", "out"]);
                    broken += 1;
                    if outcome.exit == 0 {
                        survived.push(format!("{row} {at:#x}"));
                    }
                }
            }
            fs::write(&path, good).unwrap();
        }
        assert!(broken >= 16, "{with}: {broken}");
        // Ends of runs that lie in padding say the same.
        assert!(survived.len() * 10 <= broken, "{with}: {survived:#?}");
        assert_eq!(sandbox.afterlink(&["verify", "in", "out"]).exit, 0);
    }
}
