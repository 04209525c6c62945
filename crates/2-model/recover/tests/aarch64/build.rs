//! Compiles the programs of these tests as a whole and keeps what the compilers wrote on the way: their assembly, in which
//! jump tables are lists of labels, and those labels as symbols of the linked program.

use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Compiler {
    Gcc,
    Clang,
}

/// How a program is built.
pub struct Recipe {
    pub name: &'static str,
    pub compiler: Compiler,
    pub flags: &'static [&'static str],
    pub is_pie: bool,
    /// With the function that takes long to compile.
    pub has_large: bool,
}

pub const RECIPES: [Recipe; 9] = [
    Recipe { name: "gcc", compiler: Compiler::Gcc, flags: &["-O2"], is_pie: true, has_large: true },
    Recipe { name: "gcc-fixed", compiler: Compiler::Gcc, flags: &["-O2"], is_pie: false, has_large: false },
    Recipe { name: "gcc-small", compiler: Compiler::Gcc, flags: &["-Os"], is_pie: true, has_large: false },
    Recipe {
        name: "gcc-protected",
        compiler: Compiler::Gcc,
        flags: &["-O2", "-mbranch-protection=standard"],
        is_pie: true,
        has_large: false,
    },
    Recipe { name: "clang", compiler: Compiler::Clang, flags: &["-O2"], is_pie: true, has_large: false },
    Recipe {
        name: "clang-fixed",
        compiler: Compiler::Clang,
        flags: &["-O2"],
        is_pie: false,
        has_large: false,
    },
    Recipe {
        name: "clang-small",
        compiler: Compiler::Clang,
        flags: &["-Os"],
        is_pie: true,
        has_large: false,
    },
    Recipe {
        name: "clang-protected",
        compiler: Compiler::Clang,
        flags: &["-O2", "-mbranch-protection=standard"],
        is_pie: true,
        has_large: false,
    },
    Recipe {
        name: "clang-wide",
        compiler: Compiler::Clang,
        flags: &["-O2", "-mllvm", "-aarch64-enable-compress-jump-tables=false"],
        is_pie: true,
        has_large: false,
    },
];

const SOURCES: [&str; 4] = ["switches.c", "calls.c", "pool.s", "large.c"];

/// A linked program.
pub struct Built {
    /// Linked with kept relocations, and without.
    pub kept: PathBuf,
    pub plain: PathBuf,
    /// What the compiler wrote: each source, and its text.
    pub assembly: Vec<(&'static str, String)>,
    _folder: tempfile::TempDir,
}

/// Builds the program of `recipe`.
pub fn build(recipe: &Recipe) -> Built {
    let folder = tempfile::tempdir().unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/aarch64/programs");
    let mut objects = Vec::new();
    let mut assembly = Vec::new();
    for source in SOURCES.into_iter().filter(|&source| recipe.has_large || source != "large.c") {
        let listing = folder.path().join(source).with_extension("s");
        if source.ends_with(".s") {
            std::fs::copy(sources.join(source), &listing).unwrap();
        } else {
            let position = if recipe.is_pie { "-fPIE" } else { "-fno-pie" };
            let large = recipe.has_large.then_some("-DLARGE");
            run(compiler(recipe).args(recipe.flags).arg(position).args(large).args(["-S", "-o"]), |c| {
                c.arg(&listing).arg(sources.join(source))
            });
        }
        assembly.push((source, std::fs::read_to_string(&listing).unwrap()));
        let object = listing.with_extension("o");
        // The assembler keeps local labels.
        run(compiler(recipe).args(["-c", "-Wa,-L", "-o"]).arg(&object), |c| c.arg(&listing));
        objects.push(object);
    }
    let link = |name: &str, more: &[&str]| {
        let output = folder.path().join(name);
        let position = if recipe.is_pie { "-pie" } else { "-no-pie" };
        let lld = (recipe.compiler == Compiler::Clang).then_some("-fuse-ld=lld-22");
        run(compiler(recipe).args(lld).args([position, "-Wl,--discard-none"]).args(more), |c| {
            c.arg("-o").arg(&output).args(&objects)
        });
        output
    };
    let (kept, plain) = (link("kept", &["-Wl,--emit-relocs"]), link("plain", &[]));
    Built { kept, plain, assembly, _folder: folder }
}

fn compiler(recipe: &Recipe) -> Command {
    match recipe.compiler {
        Compiler::Gcc => Command::new("aarch64-linux-gnu-gcc"),
        Compiler::Clang => {
            let mut command = Command::new("clang-22");
            command.arg("--target=aarch64-linux-gnu");
            command
        }
    }
}

fn run(command: &mut Command, more: impl FnOnce(&mut Command) -> &mut Command) {
    let command = more(command);
    let output = command.output().expect("install gcc-aarch64-linux-gnu and clang-22, or run ./test.sh");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What a tool prints of a program.
pub fn print(tool: &str, arguments: &[&str], program: &Path) -> String {
    let output = Command::new(tool).args(arguments).arg(program).output().expect("install binutils");
    assert!(output.status.success(), "{tool} {arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}
