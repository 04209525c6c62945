//! The programs that are broken: built from two sources in several ways, rewritten at random, or instrumented.

use afterlink_pipeline::{
    BlockOrder, Check, FunctionOrder, InstrumentOptions, LayoutOptions, OptimizeOptions, Scope, Silent, Split,
};
use std::path::Path;
use std::process::Command;

/// A program and its rewritten form.
pub struct Pair {
    pub name: String,
    pub input: Vec<u8>,
    pub output: Vec<u8>,
}

const BUILDS: [(&str, &str, &[&str]); 6] = [
    ("machine", "gcc", &["-O2", "-rdynamic"]),
    ("machine", "gcc", &["-O2", "-fno-pie", "-no-pie"]),
    ("machine", "clang-22", &["-O2", "-fPIE", "-pie", "-fuse-ld=lld-22", "-Wl,-z,pack-relative-relocs"]),
    ("words", "gcc", &["-O3", "-Wl,-z,pack-relative-relocs"]),
    ("words", "gcc", &["-O2", "-fcf-protection=full", "-fno-pie", "-no-pie", "-rdynamic"]),
    ("words", "clang-22", &["-O2", "-fPIE", "-pie"]),
];

/// Builds all programs and instruments them.
#[allow(dead_code, reason = "not every test that has this module needs both kinds")]
pub fn build_instrumented() -> Vec<Pair> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let build = |(source, compiler, flags): &(&str, &str, &[&str])| {
        let input = compile(folder.path(), source, compiler, flags);
        let options = InstrumentOptions {
            counter_file: b"/where/counters/go".to_vec(),
            check: Check::Skip,
            ..InstrumentOptions::default()
        };
        let output =
            afterlink_pipeline::instrument(&input, &options, &Silent).expect("an instrumented program");
        Pair {
            name: format!("instrumented {source}, {compiler} {}", flags.join(" ")),
            input,
            output: output.bytes,
        }
    };
    BUILDS.iter().map(build).collect()
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
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/mutation/programs/{source}.c"));
    let program = folder.join("program");
    let mut command = Command::new(compiler);
    command.args(flags).args(["-g0", "-Wl,--emit-relocs", "-o"]).arg(&program).arg(&source);
    let done = command.output().unwrap_or_else(|e| panic!("{compiler} does not run: {e}"));
    assert!(done.status.success(), "{compiler}: {}", String::from_utf8_lossy(&done.stderr));
    std::fs::read(&program).expect("the compiled program")
}

fn rewrite(input: &[u8], seed: u64) -> Vec<u8> {
    let layout = LayoutOptions {
        scope: Scope::All,
        order_blocks: BlockOrder::Random,
        order_functions: FunctionOrder::Random,
        split: Split::Random,
        seed,
        ..LayoutOptions::default()
    };
    let options = OptimizeOptions { layout, check: Check::Skip, ..OptimizeOptions::default() };
    afterlink_pipeline::optimize(input, Vec::new(), &options, &Silent).expect("a rewritten program").bytes
}
