//! Real programs of both linkers and all link kinds, rewritten with new code in the new segment, then run as they
//! are and after each tool that people let loose on finished programs.
//!
//! Needs these tools, and fails without them: gcc, ld (GNU), clang-22, ld.lld-22, strip, objcopy, readelf (GNU
//! binutils), llvm-strip-22, llvm-readelf-22, eu-strip, eu-elflint (elfutils), patchelf. On Debian 12 with
//! the LLVM 22 packages: `apt-get install gcc binutils elfutils patchelf clang-22 lld-22 llvm-22`.

mod damage;
mod programs;
mod rewrite;
mod structure;
mod tiny;

use afterlink_image::Image;
use programs::{Case, gnu_cases, lld_cases, run, run_program, try_tool};
use rewrite::{Counting, plan_new_code};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What is done to a finished program; `FILE` stands for it.
const TREATMENTS: &[(&str, &[&[&str]])] = &[
    ("strip", &[&["strip", "FILE"]]),
    ("strip-debug", &[&["strip", "--strip-debug", "FILE"]]),
    ("strip-unneeded", &[&["strip", "--strip-unneeded", "FILE"]]),
    ("objcopy", &[&["objcopy", "FILE"]]),
    ("objcopy-strip-debug", &[&["objcopy", "--strip-debug", "FILE"]]),
    ("llvm-strip", &[&["llvm-strip-22", "FILE"]]),
    ("llvm-strip-debug", &[&["llvm-strip-22", "--strip-debug", "FILE"]]),
    ("eu-strip", &[&["eu-strip", "FILE"]]),
    ("strip-twice", &[&["strip", "--strip-debug", "FILE"], &["strip", "FILE"]]),
    ("llvm-strip-strip", &[&["llvm-strip-22", "--strip-debug", "FILE"], &["strip", "FILE"]]),
    ("eu-strip-strip", &[&["eu-strip", "FILE"], &["strip", "FILE"]]),
];

const RPATH: &[&str] = &["patchelf", "--set-rpath", "/x/y", "FILE"];

/// The same for programs with a dynamic section and an interpreter, which patchelf needs.
const DYNAMIC_TREATMENTS: &[(&str, &[&[&str]])] = &[
    ("patchelf", &[RPATH]),
    ("patchelf-twice", &[RPATH, &["patchelf", "--set-rpath", "/a/longer/path/than/before", "FILE"]]),
    ("strip-patchelf", &[&["strip", "FILE"], RPATH]),
    ("llvm-strip-patchelf", &[&["llvm-strip-22", "FILE"], RPATH]),
    ("eu-strip-patchelf", &[&["eu-strip", "FILE"], RPATH]),
    ("patchelf-strip", &[RPATH, &["strip", "FILE"]]),
    ("patchelf-llvm-strip", &[RPATH, &["llvm-strip-22", "FILE"]]),
    ("patchelf-eu-strip", &[RPATH, &["eu-strip", "FILE"]]),
];

/// The rewritten program, in a file that other tests don't use.
fn rewritten(case: &Case, counting: Counting) -> PathBuf {
    let bytes = fs::read(&case.program).unwrap();
    let image = Image::parse(&bytes).unwrap();
    let output = afterlink_elf::write(plan_new_code(&image, counting)).unwrap();
    let name = format!("{}.{:?}", case.name, std::thread::current().id());
    programs::write_program(&case.folder.path().join(name), &output)
}

/// Lets the steps loose on a copy of the program and says what is wrong afterwards.
fn treat(program: &Path, steps: &[&[&str]], expected: &str) -> Option<String> {
    let copy = program.with_extension("treated");
    fs::copy(program, &copy).unwrap();
    let file = copy.to_str().unwrap();
    for step in steps {
        let words: Vec<&str> = step.iter().map(|&word| if word == "FILE" { file } else { word }).collect();
        if let Err(complaint) = try_tool(&words) {
            return Some(complaint);
        }
    }
    differs(&copy, expected)
}

fn differs(program: &Path, expected: &str) -> Option<String> {
    let result = run_program(program);
    (result != (expected.into(), Some(5))).then(|| format!("{result:?}"))
}

/// What went wrong with one program, over all treatments.
fn failures(case: &Case) -> Vec<String> {
    let mut found = Vec::new();
    let mut report = |what: String, failure: Option<String>| {
        found.extend(failure.map(|failure| format!("{} {what}: {failure}", case.name)));
    };
    report("as linked".into(), differs(&case.program, "7 7 three 3 1 arg\n"));
    let mut treatments = TREATMENTS.to_vec();
    if case.is_dynamic {
        treatments.extend_from_slice(DYNAMIC_TREATMENTS);
    }
    for (counting, text) in
        [(Counting::No, "42 42 three 3 1 arg\n"), (Counting::Yes, "41 42 three 3 1 arg\n")]
    {
        let output = rewritten(case, counting);
        report(format!("{counting:?}"), differs(&output, text));
        for (name, steps) in &treatments {
            report(format!("{counting:?} after {name}"), treat(&output, steps, text));
        }
    }
    found
}

#[test]
fn programs_of_gnu_ld_run_after_every_tool() {
    let found: Vec<_> = gnu_cases().iter().flat_map(failures).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn programs_of_lld_run_after_every_tool() {
    let found: Vec<_> = lld_cases().iter().flat_map(failures).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn programs_that_patchelf_has_changed_run_after_every_tool() {
    let mut found = Vec::new();
    for case in [&gnu_cases()[0], &gnu_cases()[1], &lld_cases()[0], &lld_cases()[1]] {
        let patched = Case {
            name: format!("patched-{}", case.name),
            program: case.program.with_extension("patched"),
            folder: tempfile::tempdir().unwrap(),
            is_dynamic: true,
        };
        fs::copy(&case.program, &patched.program).unwrap();
        programs::tool(&["patchelf", "--set-rpath", "/x/y", patched.program.to_str().unwrap()]);
        found.extend(failures(&patched));
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Lines that a checking tool complains with, without the file's name and the numbers of sections and symbols.
fn complaints(words: &[&str], program: &Path, counts: fn(&str) -> bool) -> BTreeSet<String> {
    let mut words = words.to_vec();
    words.push(program.to_str().unwrap());
    let (out, err, _) = run(&words);
    let unnumbered = |line: &str| -> String {
        let line = line.replace(program.to_str().unwrap(), "FILE").replace("[ ", "[");
        line.chars().filter(|c| !c.is_ascii_digit()).collect()
    };
    out.lines().chain(err.lines()).filter(|line| counts(line)).map(unnumbered).collect()
}

/// eu-elflint knows no notes but those of a few makers, and wants a symbol table for start-up relocations without
/// symbols (lld's static programs have none either, and llvm-strip refuses GNU ld's); llvm-readelf knows no frame
/// header without a search table, which the test gives to programs that had none.
fn is_expected(line: &str) -> bool {
    line.contains("'.note.afterlink': unknown object file note type")
        || line.contains("'.rela.plt': relocation : invalid symbol index")
        || line.contains("unexpected encoding fde_count_enc")
}

#[test]
fn checking_tools_find_nothing_new() {
    let warns = |line: &str| ["arning:", "rror:"].iter().any(|word| line.contains(word));
    let mut found = Vec::new();
    for case in gnu_cases().iter().chain(lld_cases()) {
        let output = rewritten(case, Counting::Yes);
        for (tool, counts) in [
            (&["readelf", "-aW"][..], warns as fn(&str) -> bool),
            (&["llvm-readelf-22", "-aW"], warns),
            (&["eu-elflint", "--gnu-ld"], |line| line != "No errors"),
        ] {
            let before = complaints(tool, &case.program, counts);
            let after = complaints(tool, &output, counts);
            let new = after.difference(&before).filter(|line| !is_expected(line));
            found.extend(new.map(|line| format!("{} {tool:?}: {line}", case.name)));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn output_grows_by_little_more_than_what_is_added() {
    for case in gnu_cases().iter().chain(lld_cases()) {
        let output = rewritten(case, Counting::Yes);
        let grown =
            fs::metadata(&output).unwrap().len() as i64 - fs::metadata(&case.program).unwrap().len() as i64;
        assert!(grown < 0x2000, "{}: {grown} bytes more", case.name);
    }
}
