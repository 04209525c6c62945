//! The outputs that are broken: `program.c` by two compilers and two linkers, in every kind of executable, rewritten in random
//! orders, with and without the passes that change code, by a profile, or instrumented.

use afterlink_testkit::modes::CODE_PASSES;
use afterlink_testkit::tool::run_afterlink;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program and what afterlink made of it.
pub struct Subject {
    pub name: &'static str,
    pub input: Vec<u8>,
    pub output: Vec<u8>,
    /// Where an instrumented program counts.
    pub counters: PathBuf,
}

/// How the output is made.
#[derive(Clone, Copy)]
enum Mode {
    /// In random order, split at random, with that seed; old code kept or trapped.
    Random(u32, bool),
    Reverse,
    /// As [`Mode::Random`], with the passes that change code.
    Passes(u32, bool),
    Counting,
    Profile,
}

const KINDS: [(&str, &str, &str, Mode); 15] = [
    ("pie", "gcc-12", "-O2 -rdynamic", Mode::Random(1, true)),
    ("fixed", "gcc-12", "-O2 -fno-pie -no-pie", Mode::Random(2, false)),
    ("static", "gcc-12", "-O2 -static -DSTATIC", Mode::Random(3, true)),
    ("static-pie", "clang-22", "-O2 -fPIE -static-pie -DSTATIC -fuse-ld=lld-22", Mode::Random(4, false)),
    ("relr", "clang-22", "-O2 -fPIE -pie -fuse-ld=lld-22 -Wl,-z,pack-relative-relocs", Mode::Random(5, true)),
    ("clang-fixed", "clang-22", "-O2 -fno-pie -no-pie -rdynamic", Mode::Reverse),
    ("cet", "gcc-12", "-O3 -fcf-protection=full -Wl,-z,pack-relative-relocs", Mode::Random(6, false)),
    ("counting", "gcc-12", "-O2", Mode::Counting),
    ("counting-static", "gcc-12", "-O2 -static -DSTATIC", Mode::Counting),
    ("profile", "gcc-12", "-O2", Mode::Profile),
    ("passes", "gcc-12", "-O2 -fno-ipa-icf -rdynamic", Mode::Passes(7, true)),
    ("passes-fixed", "gcc-12", "-O2 -fno-ipa-icf -fno-pie -no-pie -Wl,-z,lazy", Mode::Passes(8, false)),
    ("passes-cet", "gcc-12", "-O2 -fno-ipa-icf -fcf-protection=full", Mode::Passes(11, false)),
    ("passes-static", "gcc-12", "-O2 -fno-ipa-icf -static -DSTATIC", Mode::Passes(9, true)),
    (
        "passes-relr",
        "clang-22",
        "-O2 -fPIE -pie -fuse-ld=lld-22 -Wl,-z,pack-relative-relocs",
        Mode::Passes(10, true),
    ),
];

/// Builds and rewrites all of them in `folder`.
pub fn build(folder: &Path) -> Vec<Subject> {
    KINDS.iter().map(|kind| build_one(&folder.join(kind.0), kind)).collect()
}

fn build_one(folder: &Path, &(name, compiler, flags, mode): &(&'static str, &str, &str, Mode)) -> Subject {
    std::fs::create_dir_all(folder).expect("the work folder can be written");
    let (original, output) = (folder.join("original"), folder.join("output"));
    // Where `nobody` can write, too.
    let counters = std::env::temp_dir().join(format!("afterlink-mutants-{}-{name}", std::process::id()));
    compile(compiler, flags, &original);
    match mode {
        Mode::Counting => instrument(&original, &output, &counters, folder),
        Mode::Profile => {
            instrument(&original, &output, &counters, folder);
            let _ = std::fs::remove_file(&counters);
            let status = Command::new(&output).output().expect("the instrumented program runs");
            assert!(status.status.code().is_some(), "{name}: the instrumented program fails");
            let profile = folder.join("profile.fdata");
            run(&["profile", "convert"], &[&counters, Path::new("-o"), &profile], folder);
            let _ = std::fs::remove_file(&counters);
            run(&["optimize"], &[&original, "--profile".as_ref(), &profile, "-o".as_ref(), &output], folder);
        }
        Mode::Reverse => order(folder, &original, &output, &["reverse", "none", "1"], &[]),
        Mode::Random(seed, trap) | Mode::Passes(seed, trap) => {
            let mut more = Vec::new();
            more.extend(trap.then_some("--trap-old-code"));
            if matches!(mode, Mode::Passes(..)) {
                // What else a prefetch asks for does no harm, so a broken one may be proven.
                for pass in CODE_PASSES.into_iter().filter(|pass| *pass != "code-prefetch") {
                    more.extend(["--pass", pass]);
                }
            }
            order(folder, &original, &output, &["random", "random", &seed.to_string()], &more);
        }
    }
    let read = |path: &Path| std::fs::read(path).expect("just written");
    Subject { name, input: read(&original), output: read(&output), counters }
}

fn order(folder: &Path, original: &Path, output: &Path, &[order, split, seed]: &[&str; 3], more: &[&str]) {
    let mut words = vec!["optimize", "--scope", "all", "--order-blocks", order, "--order-functions", order];
    words.extend(["--split", split, "--seed", seed]);
    words.extend(more);
    run(&words, &[original, "-o".as_ref(), output], folder);
}

fn instrument(original: &Path, output: &Path, counters: &Path, folder: &Path) {
    run(&["instrument"], &[original, "--counters".as_ref(), counters, "-o".as_ref(), output], folder);
}

fn run(words: &[&str], paths: &[&Path], folder: &Path) {
    let mut arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
    arguments.extend(paths.iter().map(OsString::from));
    let outcome = run_afterlink(&arguments, folder);
    assert!(outcome.exit == 0, "{words:?}: {}\n{}", outcome.exit_text(), outcome.stderr());
}

fn compile(compiler: &str, flags: &str, program: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("program.c");
    let mut command = Command::new(compiler);
    command.args(flags.split(' ')).args(["-g0", "-fexceptions", "-w", "-Wl,--emit-relocs", "-o"]);
    let done = command.arg(program).arg(source).output().unwrap_or_else(|e| panic!("{compiler}: {e}"));
    assert!(done.status.success(), "{compiler} {flags}: {}", String::from_utf8_lossy(&done.stderr));
}
