//! Outputs survive what distributions do to programs after the last build step: each tool that strips or edits ELF files is let
//! loose on rewritten programs of every kind, which must still do what the original does.

use std::fs;
use std::path::Path;
use std::process::Command;

use afterlink_testkit::Faults;
use afterlink_testkit::modes::{Bench, ORDERS};
use afterlink_testkit::plan::{Variant, read_case};
use libtest_mimic::{Arguments, Failed, Trial};

/// A tool and its arguments, before the file's name.
const TOOLS: [&[&str]; 12] = [
    &["strip"],
    &["strip", "--strip-debug"],
    &["strip", "--strip-unneeded"],
    &["llvm-strip-22"],
    &["llvm-strip-22", "--strip-debug"],
    &["llvm-strip-22", "--strip-sections"],
    &["eu-strip"],
    &["eu-strip", "--strip-debug"],
    &["objcopy", "--strip-debug"],
    &["llvm-objcopy-22", "--strip-all"],
    &["patchelf", "--set-rpath", "/a/run/path/that/is/longer/than/what/was/there/before"],
    &["patchelf", "--add-needed", "libm.so.6"],
];

/// Between them: both linkers, the four kinds of executable, packed relocations, thread-local storage, IFUNCs, constructors,
/// a dynamic symbol table, unwinding, split functions, and the smallest programs.
const SUBJECTS: [(&str, &str); 16] = [
    ("tiny", "gcc -O2"),
    ("tiny", "gcc -O2 -fno-pie -no-pie"),
    ("tiny", "clang -O2 -fuse-ld=lld"),
    ("tiny", "gcc -O2 -Wl,-z,noseparate-code"),
    ("no_library", "gcc -O2 -static"),
    ("no_library", "clang -O2 -static-pie -fuse-ld=lld"),
    ("many_relocations", "gcc -O2 -Wl,-z,pack-relative-relocs"),
    ("many_relocations", "clang -O2 -fuse-ld=lld -Wl,-z,pack-relative-relocs"),
    ("plugin", "gcc -O2"),
    ("backtrace", "gcc -O2"),
    ("backtrace", "clang -O2 -fuse-ld=lld"),
    ("thread_local", "gcc -O2 -static"),
    ("ifunc", "gcc -O2 -static-pie"),
    ("constructors", "clang -O2 -fno-pie -static -fuse-ld=lld"),
    ("large_bss", "gcc -O2 -fno-pie -no-pie"),
    ("endbr", "gcc -O2 -fcf-protection=full"),
];

fn run_tool(tool: &[&str], program: &Path) -> Result<(), String> {
    let output = Command::new(tool[0])
        .args(&tool[1..])
        .arg(program)
        .output()
        .map_err(|e| format!("{}: {e}", tool[0]))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{}: {said}", tool.join(" "))) }
}

/// Lets a tool loose on a copy of `program` and runs what it made.
fn edit(bench: &Bench, what: &str, program: &Path, tool: &[&str]) -> Faults {
    let edited = program.with_extension("edited");
    let what = format!("{what}, then {}", tool.join(" "));
    let copied = fs::copy(program, &edited).map_err(|e| format!("{}: {e}", program.display())).map(|_| ());
    let faults = match copied.and_then(|()| run_tool(tool, &edited)) {
        Ok(()) => bench.hold_against_original(&what, &edited),
        Err(e) => vec![format!("{what}: {e}")],
    };
    let _ = fs::remove_file(&edited);
    faults
}

fn check_subject(case: &str, variant: &str) -> Result<(), Failed> {
    let case = read_case(&afterlink_testkit::tests_folder().join("cases").join(case));
    let bench = Bench::new(&case, &Variant::parse(variant)).map_err(|f| Failed::from(f.join("\n")))?;
    let reversed = bench.reorder_as(ORDERS[1], &bench.output("for-strippers"), &["--trap-old-code"]);
    let counters = bench.output("strippers-counters");
    // An earlier run's counts are of another build's counters, perhaps.
    let _ = fs::remove_file(&counters);
    let counted = bench.instrument(&bench.output("instrumented-for-strippers"), &counters, &[]);
    let mut faults = Faults::new();
    let mut tried = 0;
    // What a tool can't do to the original (patchelf to a static program) it need not do to ours.
    for tool in TOOLS.iter().filter(|t| edit(&bench, "original", &bench.build().program, t).is_empty()) {
        tried += 1;
        for (what, output) in
            [("reversed", reversed.as_ref().map(|r| &r.0)), ("instrumented", counted.as_ref())]
        {
            match output {
                Ok(output) => faults.extend(edit(&bench, what, output, tool)),
                Err(more) => faults.extend(more.iter().filter(|_| tried == 1).cloned()),
            }
        }
    }
    if tried < 5 {
        faults.push(format!("only {tried} tools could be tried"));
    }
    if faults.is_empty() { Ok(()) } else { Err(Failed::from(faults.join("\n"))) }
}

fn main() {
    let trial = |(case, variant): (&'static str, &'static str)| {
        Trial::test(format!("{case}/{}", Variant::parse(variant).name()), move || {
            check_subject(case, variant)
        })
    };
    libtest_mimic::run(&Arguments::from_args(), SUBJECTS.into_iter().map(trial).collect()).exit();
}
