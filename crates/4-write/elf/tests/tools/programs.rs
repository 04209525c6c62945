//! Builds the test program with both linkers in every link kind, and runs programs and tools.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

pub const GNU: &[&str] = &["gcc"];
pub const LLD: &[&str] = &["clang-22", "--ld-path=/usr/bin/ld.lld-22", "-Wl,--build-id"];

/// Name, compiler and linker options, whether there is an interpreter.
const KINDS: &[(&str, &[&str], bool)] = &[
    ("pie", &["-fPIE", "-pie"], true),
    ("fixed", &["-fno-pie", "-no-pie"], true),
    ("static", &["-fno-pie", "-static"], false),
    ("static-pie", &["-fPIE", "-static-pie"], false),
    ("no-build-id", &["-fPIE", "-pie", "-Wl,--build-id=none"], true),
    ("old-layout", &["-fno-pie", "-no-pie", "-Wl,-z,noseparate-code"], true),
    ("relr", &["-fPIE", "-pie", "-Wl,-z,pack-relative-relocs"], true),
    ("no-notes", &["-fPIE", "-pie", "-Wl,--build-id=none", "-nostartfiles", "-DOWN_START"], true),
    ("exported", &["-fPIE", "-pie", "-rdynamic", "-DEXPORTED"], true),
    ("exported-both", &["-fno-pie", "-no-pie", "-rdynamic", "-DEXPORTED", "-Wl,--hash-style=both"], true),
    ("exported-sysv", &["-fPIE", "-pie", "-rdynamic", "-DEXPORTED", "-Wl,--hash-style=sysv"], true),
    (
        "exported-no-notes",
        &["-fPIE", "-pie", "-rdynamic", "-DEXPORTED", "-Wl,--build-id=none", "-nostartfiles", "-DOWN_START"],
        true,
    ),
    ("large-pages", &["-fPIE", "-pie", "-Wl,-z,max-page-size=0x200000"], true),
];

pub struct Case {
    pub name: String,
    pub program: PathBuf,
    pub folder: TempDir,
    pub is_dynamic: bool,
}

/// The test program in every link kind, linked by GNU ld.
pub fn gnu_cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(|| cases(GNU))
}

/// The same, linked by lld.
pub fn lld_cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(|| cases(LLD))
}

fn cases(compiler: &[&str]) -> Vec<Case> {
    KINDS.iter().map(|(kind, options, is_dynamic)| build(compiler, kind, options, *is_dynamic)).collect()
}

fn build(compiler: &[&str], kind: &str, options: &[&str], is_dynamic: bool) -> Case {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("{}-{kind}", compiler[0]);
    let program = folder.path().join("program.in");
    compile(compiler, options, "program.c", &program);
    Case { name, program, folder, is_dynamic }
}

/// Builds one of the sources beside this file.
pub fn compile(compiler: &[&str], options: &[&str], source: &str, program: &Path) {
    let source = format!("{}/tests/tools/{source}", env!("CARGO_MANIFEST_DIR"));
    let mut words = compiler.to_vec();
    words.extend(["-O1", "-g", "-Wl,--emit-relocs", "-Wno-unused-command-line-argument"]);
    words.extend(options);
    words.extend([&source, "-o", program.to_str().unwrap()]);
    tool(&words);
}

pub fn write_program(path: &Path, bytes: &[u8]) -> PathBuf {
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_path_buf()
}

/// Standard output, standard error and exit code.
pub fn run(words: &[&str]) -> (String, String, Option<i32>) {
    let output = loop {
        match Command::new(words[0]).args(&words[1..]).output() {
            // A child that another test has just started still holds the file open that was written here.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                thread::sleep(Duration::from_millis(5))
            }
            other => break other,
        }
    };
    let output = output.unwrap_or_else(|e| panic!("these tests need the tool {}: {e}", words[0]));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// Runs a tool that must succeed and say nothing on standard error; what it says otherwise.
pub fn try_tool(words: &[&str]) -> Result<(), String> {
    let (_, err, code) = run(words);
    if err.is_empty() && code == Some(0) { Ok(()) } else { Err(format!("{words:?}: {code:?} {err}")) }
}

/// Runs a tool that this test cannot do without.
pub fn tool(words: &[&str]) {
    try_tool(words).unwrap();
}

/// Output and exit code of a program.
pub fn run_program(program: &Path) -> (String, Option<i32>) {
    let (out, _, code) = run(&[program.to_str().unwrap(), "arg"]);
    (out, code)
}
