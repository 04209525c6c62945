//! Real programs, compiled and linked by the tests.

mod damage;
mod elf;
mod oracle;
mod rewriting;

use std::path::{Path, PathBuf};
use std::process::Command;

/// gcc and g++ are always there; clang is one more witness where it is.
pub fn compilers() -> Vec<(&'static str, &'static str)> {
    let clang = Command::new("clang-22").arg("--version").output().is_ok_and(|o| o.status.success());
    let mut compilers = vec![("gcc", "g++")];
    compilers.extend(clang.then_some(("clang-22", "clang++-22")));
    compilers
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

pub fn compile(compiler: &str, flags: &[&str], name: &str, folder: &Path) -> PathBuf {
    let out = folder.join("program");
    let status = Command::new(compiler).args(flags).arg(source(name)).arg("-o").arg(&out).status();
    assert!(status.expect("the compiler runs").success(), "{compiler} {flags:?} {name}");
    out
}
