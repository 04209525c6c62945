//! The programs that are broken: built from two sources in several ways, rewritten at random, or instrumented.

use afterlink_pipeline::{
    BlockOrder, Check, Counting, FunctionOrder, InstrumentOptions, LayoutOptions, OptimizeOptions, PASSES,
    Scope, Silent, Split,
};
use std::path::Path;
use std::process::Command;

/// A program and its rewritten form.
pub struct Pair {
    pub name: String,
    pub input: Vec<u8>,
    pub output: Vec<u8>,
}

const BUILDS: [(&str, &str, &[&str]); 10] = [
    ("machine", "gcc", &["-O2", "-rdynamic"]),
    ("machine", "gcc", &["-O2", "-fno-pie", "-no-pie"]),
    ("machine", "clang-22", &["-O2", "-fPIE", "-pie", "-fuse-ld=lld-22", "-Wl,-z,pack-relative-relocs"]),
    ("words", "gcc", &["-O3", "-Wl,-z,pack-relative-relocs"]),
    ("words", "gcc", &["-O2", "-fcf-protection=full", "-fno-pie", "-no-pie", "-rdynamic"]),
    ("machine", "gcc", &["-O2", "-shared", "-fPIC"]),
    ("words", "clang-22", &["-O2", "-fPIE", "-pie"]),
    ("throws", "g++", &["-O2", "-std=c++14", "-w"]),
    ("throws", "g++", &["-O1", "-std=c++14", "-w", "-fno-pie", "-no-pie"]),
    ("throws", "clang++-22", &["-O2", "-std=c++14", "-w", "-fPIE", "-pie", "-fuse-ld=lld-22"]),
];

/// Those with code that is no copy.
const CALLS: [(&str, &[&str]); 6] = [
    ("gcc", &["-O2", "-rdynamic"]),
    ("gcc", &["-O2", "-fno-pie", "-no-pie", "-Wl,-z,lazy"]),
    ("gcc", &["-O2", "-fcf-protection=full", "-Wl,-z,ibtplt"]),
    ("clang-22", &["-O2", "-fPIE", "-pie", "-rdynamic", "-Wl,-z,now"]),
    ("clang-22", &["-O2", "-fPIE", "-pie", "-fuse-ld=lld-22", "-Wl,-z,pack-relative-relocs"]),
    // Functions that another unit might take the address of have marks.
    ("gcc", &["-O2", "-fcf-protection=full", "-Dstatic="]),
];

/// Builds programs and rewrites them with all passes on, in random orders.
#[allow(dead_code, reason = "not every test that has this module needs all kinds")]
pub fn build_with_passes() -> Vec<Pair> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let build = |(seed, (compiler, flags)): (usize, &(&str, &[&str]))| {
        let input = compile(folder.path(), "calls", compiler, flags);
        let mut options = random_options(seed as u64 + 1);
        // Code in place of calls has programs of its own, and what is broken of prefetches is all tried in `code_prefetch.rs`.
        for pass in PASSES.into_iter().filter(|pass| ![IN_PLACE, ASKED, PREFETCH].contains(&pass.name)) {
            options.layout.switches.turn(pass, true);
        }
        options.trap_old_code = true;
        let output = afterlink_pipeline::optimize(&input, Vec::new(), &options, &Silent)
            .expect("a rewritten program")
            .bytes;
        Pair { name: format!("all passes, {compiler} {}", flags.join(" ")), input, output }
    };
    CALLS.iter().enumerate().map(build).collect()
}

/// The pass that puts several blocks in place of a call.
const IN_PLACE: &str = "hot-inlining";

/// The same of an indirect call.
const ASKED: &str = "call-promotion";

/// The pass that puts instructions in that only ask for code.
const PREFETCH: &str = "code-prefetch";

/// The pass that has blocks stand twice.
const TWICE: &str = "tail-duplication";

/// Those with callees of all sorts.
const FRAMES: [(&str, &[&str]); 6] = [
    ("gcc", &["-O2"]),
    ("gcc", &["-O2", "-fno-pie", "-no-pie"]),
    ("gcc", &["-O2", "-fcf-protection=full"]),
    ("gcc", &["-O2", "-fno-omit-frame-pointer"]),
    ("clang-22", &["-O2", "-fno-pie", "-no-pie", "-fno-omit-frame-pointer"]),
    ("clang-22", &["-O2", "-fPIE", "-pie", "-fuse-ld=lld-22"]),
];

/// Those with calls through pointers.
const POINTERS: [(&str, &[&str]); 4] = [
    ("gcc", &["-O2"]),
    ("gcc", &["-O1", "-fno-pie", "-no-pie"]),
    ("gcc", &["-O2", "-fcf-protection=full"]),
    ("clang-22", &["-O2", "-fPIE", "-pie", "-fuse-ld=lld-22"]),
];

/// Those with blocks that may stand twice.
const TAILS: [(&str, &[&str]); 4] = [
    ("gcc", &["-O2"]),
    ("gcc", &["-O2", "-fno-pie", "-no-pie", "-fno-reorder-blocks"]),
    ("gcc", &["-Os", "-fcf-protection=full"]),
    ("clang-22", &["-O1", "-fPIE", "-pie", "-fuse-ld=lld-22"]),
];

/// Builds programs and rewrites them in random orders, with callees' blocks in place of calls.
#[allow(dead_code, reason = "not every test that has this module needs all kinds")]
pub fn build_in_place() -> Vec<Pair> {
    build_with(IN_PLACE, "frames", &FRAMES)
}

/// Builds programs and rewrites them in random orders, with callees' blocks in place of indirect calls.
#[allow(dead_code, reason = "not every test that has this module needs all kinds")]
pub fn build_asked() -> Vec<Pair> {
    build_with(ASKED, "pointers", &POINTERS)
}

/// Builds programs and rewrites them in random orders, with blocks that stand twice.
#[allow(dead_code, reason = "not every test that has this module needs all kinds")]
pub fn build_twice() -> Vec<Pair> {
    build_with(TWICE, "tails", &TAILS)
}

fn build_with(name: &str, source: &str, builds: &[(&str, &[&str])]) -> Vec<Pair> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let build = |(seed, (compiler, flags)): (usize, &(&str, &[&str]))| {
        let input = compile(folder.path(), source, compiler, flags);
        let mut options = random_options(seed as u64 + 1);
        for pass in PASSES.into_iter().filter(|pass| pass.name == name) {
            options.layout.switches.turn(pass, true);
        }
        let output = afterlink_pipeline::optimize(&input, Vec::new(), &options, &Silent)
            .expect("a rewritten program")
            .bytes;
        Pair { name: format!("{name}, {compiler} {}", flags.join(" ")), input, output }
    };
    builds.iter().enumerate().map(build).collect()
}

/// Builds all programs and instruments them.
#[allow(dead_code, reason = "not every test that has this module needs both kinds")]
pub fn build_instrumented() -> Vec<Pair> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let build = |(counting, (source, compiler, flags)): (Counting, &(&str, &str, &[&str]))| {
        let input = compile(folder.path(), source, compiler, flags);
        let options = InstrumentOptions {
            counter_file: b"/where/counters/go".to_vec(),
            counting,
            count_targets: true,
            check: Check::Skip,
            ..InstrumentOptions::default()
        };
        let output =
            afterlink_pipeline::instrument(&input, &options, &Silent).expect("an instrumented program");
        Pair {
            name: format!("instrumented {source}, {counting:?}, {compiler} {}", flags.join(" ")),
            input,
            output: output.bytes,
        }
    };
    let fast = BUILDS.iter().map(|program| (Counting::Fast, program));
    fast.chain(BUILDS.iter().take(3).map(|program| (Counting::Exact, program))).map(build).collect()
}

/// Builds a program and a shared object that ask for huge pages.
#[allow(dead_code, reason = "not every test that has this module needs all kinds")]
pub fn build_on_huge_pages() -> Vec<Pair> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let build = |(source, compiler, flags): &(&str, &str, &[&str])| {
        let input = compile(folder.path(), source, compiler, flags);
        let options = OptimizeOptions { huge_pages: Some(0), ..random_options(7) };
        let output = afterlink_pipeline::optimize(&input, Vec::new(), &options, &Silent)
            .expect("a rewritten program")
            .bytes;
        Pair { name: format!("huge pages, {source}, {compiler} {}", flags.join(" ")), input, output }
    };
    BUILDS[..3].iter().step_by(2).chain(&BUILDS[5..6]).map(build).collect()
}

/// Builds and rewrites all programs.
pub fn build() -> Vec<Pair> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let build = |(seed, (source, compiler, flags)): (usize, &(&str, &str, &[&str]))| {
        let input = compile(folder.path(), source, compiler, flags);
        let output = rewrite(&input, seed as u64 + 1);
        Pair { name: format!("{source}, {compiler} {}", flags.join(" ")), input, output }
    };
    BUILDS.iter().enumerate().map(build).collect()
}

fn compile(folder: &Path, source: &str, compiler: &str, flags: &[&str]) -> Vec<u8> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/mutation/programs/{source}"));
    let extension = if compiler.contains("++") { "cc" } else { "c" };
    let source = source.with_extension(extension);
    let program = folder.join("program");
    let mut command = Command::new(compiler);
    command.args(flags).args(["-g0", "-Wl,--emit-relocs", "-o"]).arg(&program).arg(&source);
    let done = command.output().unwrap_or_else(|e| panic!("{compiler} does not run: {e}"));
    assert!(done.status.success(), "{compiler}: {}", String::from_utf8_lossy(&done.stderr));
    std::fs::read(&program).expect("the compiled program")
}

fn rewrite(input: &[u8], seed: u64) -> Vec<u8> {
    let options = random_options(seed);
    afterlink_pipeline::optimize(input, Vec::new(), &options, &Silent).expect("a rewritten program").bytes
}

fn random_options(seed: u64) -> OptimizeOptions {
    let layout = LayoutOptions {
        scope: Scope::All,
        order_blocks: BlockOrder::Random,
        order_functions: FunctionOrder::Random,
        split: Split::Random,
        seed,
        ..LayoutOptions::default()
    };
    OptimizeOptions { layout, check: Check::Skip, ..OptimizeOptions::default() }
}
