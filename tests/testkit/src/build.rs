//! Compiles a variant of a case, once: the result is kept under a name that depends on everything that went into it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha1::{Digest, Sha1};

use crate::plan::{Case, Variant};

/// Where Debian's lld lies, as a name that `-fuse-ld=lld` of gcc understands.
const LLD_FOLDER: &str = "/usr/lib/llvm-22/bin";

/// The compiler of cases that are one `main.rs`.
const RUST: &str = "rustc";

/// A built variant.
#[derive(Clone, Debug)]
pub struct Build {
    /// Folder of its own, for outputs too.
    pub folder: PathBuf,
    /// The linked program, with its relocations.
    pub program: PathBuf,
    /// The object files of the case's own sources.
    pub objects: Vec<PathBuf>,
    /// The library made of `plugin.so.c`, where there is one.
    pub plugin: Option<PathBuf>,
    /// What calls `main` of a variant that is a shared object.
    pub host: Option<PathBuf>,
}

impl Build {
    /// The plan's arguments, with the plugin's path filled in.
    pub fn arguments(&self, case: &Case) -> Vec<String> {
        let plugin = self.plugin.as_ref().map(|p| p.display().to_string()).unwrap_or_default();
        case.plan.arguments.iter().map(|a| a.replace("{plugin}", &plugin)).collect()
    }
}

/// The compiler's command for the case's language: the version that the plans are written for.
fn command(compiler: &str, sources: &[PathBuf]) -> &'static str {
    let has_cpp = sources.iter().any(|s| s.extension().is_some_and(|e| e == "cc"));
    match (compiler, has_cpp) {
        ("gcc", false) => "gcc-12",
        ("gcc", true) => "g++-12",
        ("clang", false) => "clang-22",
        ("clang", true) => "clang++-22",
        (other, _) => panic!("no compiler is known as {other}"),
    }
}

fn flags(case: &Case, variant: &Variant) -> Vec<String> {
    let mut flags = case.plan.flags.clone();
    flags.extend(variant.flags.iter().cloned());
    let folder = case.folder.display().to_string();
    flags.iter_mut().for_each(|flag| *flag = flag.replace("{folder}", &folder));
    if variant.compiler == RUST {
        return flags;
    }
    if variant.compiler == "gcc" && flags.iter().any(|f| f == "-fuse-ld=lld") {
        flags.push(format!("-B{LLD_FOLDER}"));
    }
    if variant.compiler == "clang" {
        flags.push("-Wno-unused-command-line-argument".to_owned());
    }
    flags.push(format!("-I{}", crate::tests_folder().join("cases").display()));
    flags
}

fn run(command: &mut Command) -> Result<(), String> {
    let output =
        command.output().map_err(|e| format!("{:?} can't be started: {e}", command.get_program()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr)))
}

/// The case's files with one of these extensions.
fn files(case: &Case, extensions: &[&str]) -> Vec<PathBuf> {
    let entries = fs::read_dir(&case.folder).expect("a case is a folder");
    let mut all: Vec<_> = entries.map(|e| e.expect("a readable entry").path()).collect();
    all.retain(|p| p.extension().is_some_and(|e| extensions.iter().any(|known| e == *known)));
    all.sort();
    all
}

fn is_plugin(source: &Path) -> bool {
    source.to_string_lossy().ends_with(".so.c")
}

/// A name for the build that changes with every source, flag, and with the shared header.
fn fingerprint(case: &Case, sources: &[PathBuf], flags: &[String]) -> String {
    let mut hash = Sha1::new();
    let scripts = files(case, &["map"]);
    for path in sources.iter().chain(&scripts).chain([&crate::tests_folder().join("cases/case.h")]) {
        hash.update(path.file_name().expect("a source has a name").as_encoded_bytes());
        hash.update(fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())));
    }
    for flag in flags {
        hash.update(flag);
        hash.update([0]);
    }
    hash.update(&case.name);
    hash.finalize().iter().take(6).map(|b| format!("{b:02x}")).collect()
}

/// Builds the variant, or finds it built. `Err` has the compiler's words.
pub fn build(case: &Case, variant: &Variant) -> Result<Build, String> {
    let (sources, flags) = (files(case, &["c", "cc", "rs", "S"]), flags(case, variant));
    let key = fingerprint(case, &sources, &flags);
    let folder = crate::work_folder().join(&case.name).join(format!("{}-{key}", variant.name()));
    let objects = sources
        .iter()
        .filter(|s| !is_plugin(s))
        .map(|s| folder.join(s.file_name().expect("a source has a name")).with_extension("o"))
        .collect();
    let plugin = sources.iter().any(|s| is_plugin(s)).then(|| folder.join("plugin.so"));
    let host = variant.is_shared().then(|| folder.join("host"));
    let build = Build { program: folder.join("original"), objects, plugin, host, folder };
    if build.program.exists() {
        return Ok(build);
    }
    let say = |e: std::io::Error| format!("{}: {e}", build.folder.display());
    fs::create_dir_all(&build.folder).map_err(say)?;
    // Several tests, in several processes, may want the same program; the first one builds it.
    let lock = fs::File::create(build.folder.join("lock")).map_err(say)?;
    lock.lock().map_err(say)?;
    if build.program.exists() {
        return Ok(build);
    }
    // Linked under another name first: a build that was broken off leaves nothing that looks finished.
    let unfinished = build.folder.join("unfinished");
    if variant.compiler == RUST {
        build_rust(&build, &sources, &flags, &unfinished)?;
    } else {
        build_c(&build, variant, &sources, &flags, &unfinished)?;
    }
    fs::rename(&unfinished, &build.program).map_err(|e| format!("{}: {e}", build.program.display()))?;
    Ok(build)
}

/// Compiles C, C++ and assembly, the plugin and the host too, and links the program as `output`.
fn build_c(
    build: &Build,
    variant: &Variant,
    sources: &[PathBuf],
    flags: &[String],
    output: &Path,
) -> Result<(), String> {
    let compiler = command(&variant.compiler, sources);
    for source in sources {
        let mut command = Command::new(compiler);
        command.args(["-g0", "-Wall"]).args(flags).arg(source).arg("-o");
        if is_plugin(source) {
            run(command.arg(build.folder.join("plugin.so")).args(["-shared", "-fPIC"]))?;
        } else {
            let object =
                build.folder.join(source.file_name().expect("a source has a name")).with_extension("o");
            run(command.arg(object).arg("-c"))?;
        }
    }
    if let Some(host) = &build.host {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/host.c");
        run(Command::new("gcc-12").args(["-O1", "-Wall", source, "-o"]).arg(host))?;
    }
    run(Command::new(compiler)
        .args(&build.objects)
        .args(flags)
        .arg("-Wl,--emit-relocs")
        .arg("-o")
        .arg(output))
}

/// Compiles and links `main.rs` as `output`; the one object is kept, which tells the case's own functions.
fn build_rust(build: &Build, sources: &[PathBuf], flags: &[String], output: &Path) -> Result<(), String> {
    let [source] = sources else { return Err("a case in Rust has one source".into()) };
    let object = build.objects[0].display();
    // Invariant: two compilers at work share no folder, as intermediate objects are written to the current one.
    run(Command::new(RUST)
        .current_dir(&build.folder)
        .args(["--edition", "2024", "-C", "codegen-units=1", "-C", "strip=none"])
        .args(["-C", "link-arg=-Wl,--emit-relocs"])
        .args(flags)
        .arg(source)
        .arg(format!("--emit=obj={object},link={}", output.display())))
}

/// A program of nothing but this assembly, linked by `command` with its relocations kept.
///
/// # Panics
/// If it does not build.
pub fn link_assembly(source: &str, command: &str, flags: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder for scratch files");
    let (file, program) = (folder.path().join("program.S"), folder.path().join("program"));
    fs::write(&file, source).expect("the folder was just made");
    let mut linker = Command::new(command);
    let status =
        linker.args(["-nostdlib", "-Wl,--emit-relocs", "-o"]).args([&program, &file]).args(flags).status();
    assert!(status.unwrap_or_else(|e| panic!("{command}: {e}")).success(), "{command} {flags:?}");
    fs::read(program).expect("the program was just linked")
}
