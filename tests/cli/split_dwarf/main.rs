//! Debug information whose entries stand in other files than the program (`-gsplit-dwarf`): the output has files of its own, by which
//! debuggers say of it what they said of the program, and the input's files are never taken for them.

mod meaning;

use afterlink_testkit::sandbox::Sandbox;
use afterlink_testkit::symbolizers::{SYMBOL, Symbolizer, places, sample};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};
use std::fs;
use std::path::{Path, PathBuf};
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
    differences_of(&sandbox.path("in"), &sandbox.path("out"))
}

fn differences_of(input: &Path, output: &Path) -> Vec<String> {
    let places = sample(&places(input, output).unwrap(), 5_000);
    assert!(places.len() >= 50 && places.iter().any(|p| p.is_apart));
    let questions = tempfile::tempdir().unwrap();
    let mut found = Symbolizer::Llvm.differences(input, output, &places, questions.path()).unwrap();
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

/// Where a call that never comes back ends a part of a function, the place behind it is one that a table of addresses may name. Where a unit of DWARF 4
/// names no base for lists, as clang's with no function in several runs, its entries have lists all the same.
#[test]
fn a_function_that_ends_in_a_call_and_is_cut() {
    let source = afterlink_testkit::tests_folder().join("cli/programs/label_at_end.c");
    for with in BUILDS {
        let sandbox = Sandbox::default();
        sandbox.say(&format!("{with} -Wl,-q {} -o in", source.display()));
        optimize(&sandbox);
        let symbols = sandbox.say("nm out");
        let symbol = symbols.lines().find(|row| row.ends_with(" t work.cold")).expect("it was cut");
        let place = symbol.split(' ').next().unwrap();
        let said = sandbox.say(&format!("llvm-symbolizer-22 --functions=short -e out 0x{place}"));
        assert!(said.starts_with("work") && said.contains("label_at_end.c:"), "{with}: {said}");
    }
}

#[test]
fn cpp() {
    for compiler in ["g++-12 -gdwarf-4", "g++-12 -gdwarf-5", "clang++-22 -gdwarf-4", "clang++-22 -gdwarf-5"] {
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

/// What gdb knows of macros where the program stops.
fn macros(sandbox: &Sandbox, program: &str) -> String {
    let mut gdb = Command::new("gdb");
    gdb.args(["-q", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "break work", "-ex", "run"]);
    let outcome = sandbox.run(gdb.args(["-ex", "info macro BUFSIZ", "-ex", "info macros", program]));
    let said = outcome.stdout();
    assert!(said.contains("Breakpoint 1, "), "{program}: {said}{}", outcome.stderr());
    // Of arguments more may be said: gdb 13 does not read all lists.
    let lines = said.lines().filter(|line| !line.starts_with("Breakpoint 1"));
    lines.collect::<Vec<_>>().join("\n")
}

/// All sections of macros, one behind the other, and the size of each.
fn sections_of_macros(path: &Path) -> (Vec<u8>, Vec<u64>) {
    let bytes = fs::read(path).unwrap();
    let file = ElfFile64::<LittleEndian>::parse(&*bytes).unwrap();
    let of_macros = |name: &str| matches!(name, ".debug_macro.dwo" | ".debug_macinfo.dwo");
    let own: Vec<_> = file.sections().filter(|section| of_macros(section.name().unwrap())).collect();
    (own.iter().flat_map(|s| s.data().unwrap()).copied().collect(), own.iter().map(|s| s.size()).collect())
}

/// The same, with a byte changed in the middle of the first such section.
fn with_other_macros(path: &Path) -> Vec<u8> {
    let mut bytes = fs::read(path).unwrap();
    let file = ElfFile64::<LittleEndian>::parse(&*bytes).unwrap();
    let section = file.sections().find(|s| s.name().unwrap().starts_with(".debug_mac")).unwrap();
    let (start, size) = section.file_range().unwrap();
    bytes[(start + size / 2) as usize] ^= 1;
    bytes
}

/// gcc makes a section of macros for each header; debuggers see one of them, and the output's files have the same.
#[test]
fn macros_in_files() {
    for with in BUILDS {
        let sandbox = Sandbox::default();
        sandbox.build_debugged(&format!(
            "{with} -g3 {}",
            if with.starts_with("clang") { "-fdebug-macro" } else { "" }
        ));
        let said = optimize(&sandbox);
        assert!(!said.contains("without the entries"), "{with}: {said}");
        let (was, is) = (macros(&sandbox, "./in"), macros(&sandbox, "./out"));
        let other = was.lines().zip(is.lines()).find(|(a, b)| a != b);
        assert!(other.is_none() && was.lines().count() == is.lines().count(), "{with}: {other:?}");
        assert_eq!(was.contains("#define BUFSIZ 8192"), with.starts_with("clang"), "{with}");
        let mut old = ["in-main.dwo", "in-work.dwo"].map(|name| sections_of_macros(&sandbox.path(name)));
        let mut new: Vec<_> = files(&sandbox).iter().map(|path| sections_of_macros(path)).collect();
        old.sort();
        new.sort();
        assert_eq!(old.as_slice(), new, "{with}");
        for path in files(&sandbox) {
            let good = fs::read(&path).unwrap();
            fs::write(&path, with_other_macros(&path)).unwrap();
            assert_eq!(sandbox.afterlink(&["verify", "in", "out"]).exit, 1, "{with}");
            fs::write(&path, good).unwrap();
        }
    }
}

/// Of the two tools that make packages, LLVM's leaves out `.debug_macinfo.dwo`, and what binutils' writes for DWARF 5 nobody can read.
#[test]
fn macros_in_packages() {
    let packaged = [
        (BUILDS[0], "llvm-dwp-22", "macro"),
        (BUILDS[0], "dwp", "macro"),
        (BUILDS[1], "llvm-dwp-22", "macro"),
        (BUILDS[2], "dwp", "macinfo"),
        (BUILDS[3], "llvm-dwp-22", "macro"),
    ];
    for (with, tool, section) in packaged {
        let sandbox = Sandbox::default();
        sandbox.build_debugged(&format!(
            "{with} -g3 {}",
            if with.starts_with("clang") { "-fdebug-macro" } else { "" }
        ));
        sandbox.say(&format!("{tool} in-main.dwo in-work.dwo -o in.dwp"));
        let said = optimize(&sandbox);
        assert!(!said.contains("without the entries"), "{with} {tool}: {said}");
        let (mut was, mut is) =
            (sections_of_macros(&sandbox.path("in.dwp")).0, sections_of_macros(&sandbox.path("out.dwp")).0);
        // Units come in another order, and LLVM's tool has bytes in there that belong to none.
        was.sort_unstable();
        is.sort_unstable();
        assert!(!is.is_empty() && (tool != "dwp" || was == is), "{with} {tool}");
        assert!(
            sandbox.say("readelf -SW out.dwp").contains(&format!(".debug_{section}.dwo")),
            "{with} {tool}"
        );
        if with.contains("-gdwarf-4") {
            assert!(macros(&sandbox, "./in") == macros(&sandbox, "./out"), "{with} {tool}");
        }
        fs::write(sandbox.path("out.dwp"), with_other_macros(&sandbox.path("out.dwp"))).unwrap();
        assert_eq!(sandbox.afterlink(&["verify", "in", "out"]).exit, 1, "{with} {tool}");
    }
}

/// Debuggers that find a package look nowhere else: one of an earlier output goes with it.
#[test]
fn a_package_of_an_earlier_output() {
    for with in BUILDS {
        let sandbox = Sandbox::default();
        sandbox.build_debugged(with);
        sandbox.say("llvm-dwp-22 in-main.dwo in-work.dwo -o in.dwp");
        optimize(&sandbox);
        assert!(sandbox.path("out.dwp").exists(), "{with}");
        fs::remove_file(sandbox.path("in.dwp")).unwrap();
        let command = format!("optimize in -o out {MOVE}");
        let outcome = sandbox.afterlink(&command.split_whitespace().collect::<Vec<_>>());
        assert!(outcome.stderr().contains("out.dwp was an earlier output's"), "{with}: {}", outcome.stderr());
        assert!(!sandbox.path("out.dwp").exists(), "{with}");
        assert_eq!(differences(&sandbox), Vec::<String>::new(), "{with}");
        // Something else of that name is nobody's package.
        fs::write(sandbox.path("out.dwp"), "notes").unwrap();
        optimize(&sandbox);
        assert_eq!(fs::read(sandbox.path("out.dwp")).unwrap(), b"notes", "{with}");
    }
}

/// Files of one unit each stay where they are: an earlier output that was kept under another name finds its own, and so does the new one.
#[test]
fn files_of_an_earlier_output() {
    for with in BUILDS {
        let sandbox = Sandbox::default();
        sandbox.build_debugged(with);
        optimize(&sandbox);
        let first = files(&sandbox);
        fs::rename(sandbox.path("out"), sandbox.path("kept")).unwrap();
        let command = format!("optimize in -o out {MOVE}7");
        assert_eq!(sandbox.afterlink(&command.split_whitespace().collect::<Vec<_>>()).exit, 0, "{with}");
        let both = files(&sandbox);
        assert!(first.iter().all(|file| both.contains(file)) && both.len() == 4, "{with}: {both:?}");
        assert_eq!(differences(&sandbox), Vec::<String>::new(), "{with}");
        fs::rename(sandbox.path("kept"), sandbox.path("out")).unwrap();
        assert_eq!(differences(&sandbox), Vec::<String>::new(), "{with}");
    }
}

/// A program that is to go elsewhere takes a package with it, which LLVM's tool makes of the output's files.
#[test]
fn a_program_that_goes_elsewhere() {
    for with in BUILDS {
        let sandbox = Sandbox::default();
        sandbox.build_debugged(with);
        optimize(&sandbox);
        sandbox.say("llvm-dwp-22 -e out -o out.dwp");
        fs::create_dir(sandbox.path("elsewhere")).unwrap();
        for name in ["out", "out.dwp"] {
            fs::rename(sandbox.path(name), sandbox.path("elsewhere").join(name)).unwrap();
        }
        fs::remove_dir_all(sandbox.path("out.dwo")).unwrap();
        let (input, output) = (sandbox.path("in"), sandbox.path("elsewhere/out"));
        assert_eq!(differences_of(&input, &output), Vec::<String>::new(), "{with}");
        if with.contains("-gdwarf-4") {
            assert_eq!(stops(&sandbox, "./in"), stops(&sandbox, "./elsewhere/out"), "{with}");
        }
    }
}

/// Anything of lists that is wrong is noticed: one bit is changed at many places of each section of lists. A change that is not noticed says the same
/// of each instruction: an end of a run lies in padding or behind another jump that was added, or nobody names the list.
#[test]
fn entries_that_were_broken() {
    for with in BUILDS {
        let sandbox = Sandbox::default();
        sandbox.build_debugged(with);
        optimize(&sandbox);
        let output = sandbox.path("out");
        let instructions = instructions(&sandbox);
        let (mut broken, mut survived) = (0, 0);
        for path in files(&sandbox) {
            let good = fs::read(&path).unwrap();
            let said = meaning::said(&output, &good, &instructions).unwrap();
            assert!(said.len() > 10, "{with}: {said:#?}");
            let file = ElfFile64::<LittleEndian>::parse(&*good).unwrap();
            let lists = |name: &str| name.starts_with(".debug_loc") || name.starts_with(".debug_rnglists");
            for section in file.sections().filter(|section| lists(section.name().unwrap())) {
                let (start, size) = section.file_range().unwrap();
                let step = (size / PLACES).max(1);
                for (number, at) in (start..start + size).step_by(step as usize).enumerate() {
                    let mut bad = good.clone();
                    bad[at as usize] ^= 1 << (number % 8);
                    fs::write(&path, &bad).unwrap();
                    broken += 1;
                    if sandbox.afterlink(&["verify", "in", "out"]).exit != 0 {
                        continue;
                    }
                    survived += 1;
                    let now = meaning::said(&output, &bad, &instructions);
                    let name = section.name().unwrap();
                    let other = now.map(|now| (now.len(), now.into_iter().zip(&said).find(|(a, b)| a != *b)));
                    let same = (said.len(), None);
                    assert_eq!(other, Ok(same), "{with}: {name} {at:#x}, bit {}", number % 8);
                }
            }
            fs::write(&path, good).unwrap();
        }
        println!("{with}: {survived} of {broken} changes say the same");
        assert!(broken as u64 >= PLACES && survived * 5 <= broken, "{with}: {survived} of {broken}");
        assert_eq!(sandbox.afterlink(&["verify", "in", "out"]).exit, 0);
    }
}

/// No number of an address comes to mean something else, whether anything names it or not. gcc 12's lists in DWARF 4 say the same of some code twice, in runs
/// that overlap: where one of these starts at another place the lists say what they said.
#[test]
fn addresses_that_were_broken() {
    for with in BUILDS {
        let sandbox = Sandbox::default();
        sandbox.build_debugged(with);
        optimize(&sandbox);
        let good = fs::read(sandbox.path("out")).unwrap();
        let file = ElfFile64::<LittleEndian>::parse(&*good).unwrap();
        let (start, size) = file.section_by_name(".debug_addr").unwrap().file_range().unwrap();
        assert!(size >= 20 * 8, "{with}: {size}");
        let (instructions, files) = (instructions(&sandbox), files(&sandbox));
        let all_said = || -> Vec<_> {
            let files = files.iter().map(|path| fs::read(path).unwrap());
            files.map(|file| meaning::said(&sandbox.path("out"), &file, &instructions)).collect()
        };
        let (said, mut survived) = (all_said(), 0);
        for at in (start..start + size).step_by(8) {
            let mut bad = good.clone();
            bad[at as usize] ^= 4;
            fs::write(sandbox.path("out"), &bad).unwrap();
            if sandbox.afterlink(&["verify", "in", "out"]).exit == 0 {
                survived += 1;
                assert!(all_said() == said, "{with}: {:#x}", at - start);
            }
        }
        println!("{with}: {survived} of {} changes say the same", size / 8);
        assert!(survived * 5 <= size / 8, "{with}: {survived}");
    }
}

/// Where the output has instructions that moved, ascending.
fn instructions(sandbox: &Sandbox) -> Vec<u64> {
    let places = places(&sandbox.path("in"), &sandbox.path("out")).unwrap();
    let mut instructions: Vec<u64> = places.iter().map(|place| place.output).collect();
    instructions.sort_unstable();
    instructions
}

/// Bits that are changed in each section, about.
const PLACES: u64 = 60;
