//! The programs: of gcc and clang, in C and C++, with DWARF 4 and 5, in random orders of all blocks and functions.

use afterlink_pipeline::{
    BlockOrder, Check, FunctionOrder, LayoutOptions, OptimizeOptions, PASSES, Scope, Silent, Split,
};
use std::path::Path;
use std::process::Command;

/// A program and its rewritten form.
pub struct Pair {
    pub name: String,
    pub input: Vec<u8>,
    pub output: Vec<u8>,
}

/// Sources, compiler, flags, and whether all passes are on.
type Build = (&'static str, &'static str, &'static [&'static str], bool);

const BUILDS: [Build; 15] = [
    ("calls.c", "gcc", &["-gdwarf-5"], true),
    ("calls.c", "clang-22", &["-gdwarf-5", "-fPIE", "-pie"], true),
    ("calls.c apart.c", "gcc", &["-gdwarf-5", "-DAPART"], true),
    ("twins.c", "gcc", &["-gdwarf-5", "-fno-ipa-icf"], true),
    ("twins.c", "gcc", &["-gdwarf-4", "-fno-ipa-icf"], true),
    ("twins.c", "clang-22", &["-gdwarf-5"], true),
    ("twins.c", "clang-22", &["-gdwarf-4"], true),
    ("tails.c", "gcc", &["-gdwarf-5"], true),
    ("tails.c", "clang-22", &["-gdwarf-4"], true),
    ("machine.c", "gcc", &["-gdwarf-4"], false),
    ("machine.c", "clang-22", &["-gdwarf-4", "-fPIE", "-pie"], false),
    ("throws.cc", "g++", &["-gdwarf-5", "-std=c++14"], false),
    ("throws.cc", "g++", &["-gdwarf-4", "-std=c++14", "-fdebug-types-section"], false),
    ("throws.cc", "clang++-22", &["-gdwarf-5", "-std=c++14", "-fPIE", "-pie"], false),
    ("throws.cc", "clang++-22", &["-gdwarf-4", "-std=c++14", "-fPIE", "-pie"], false),
];

/// A function in many runs: most of what says where these end says the same of every instruction.
const SCATTERED: [Build; 2] = [
    ("scattered.c", "gcc", &["-gdwarf-5", "-DFEW"], true),
    ("scattered.c", "clang-22", &["-gdwarf-5", "-DFEW"], true),
];

pub fn build() -> Vec<Pair> {
    built(&BUILDS, &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mutation/programs"))
}

pub fn build_scattered() -> Vec<Pair> {
    built(&SCATTERED, &afterlink_testkit::tests_folder().join("cli/programs/replaced"))
}

fn built(builds: &[Build], place: &Path) -> Vec<Pair> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let build = |(seed, (sources, compiler, flags, passes)): (usize, &Build)| {
        let program = folder.path().join("program");
        let mut command = Command::new(compiler);
        command.args(["-O2", "-w"]).args(*flags).args(["-Wl,--emit-relocs", "-o"]).arg(&program);
        command.args(sources.split(' ').map(|source| place.join(source)));
        let done = command.output().unwrap_or_else(|e| panic!("{compiler} does not run: {e}"));
        assert!(done.status.success(), "{compiler}: {}", String::from_utf8_lossy(&done.stderr));
        let input = std::fs::read(&program).expect("the compiled program");
        let name = format!("{sources}, {compiler} {}", flags.join(" "));
        let output = rewrite(&input, seed as u64 + 1, *passes);
        Pair { name, input, output }
    };
    builds.iter().enumerate().map(build).collect()
}

fn rewrite(input: &[u8], seed: u64, passes: bool) -> Vec<u8> {
    let mut layout = LayoutOptions {
        scope: Scope::All,
        order_blocks: BlockOrder::Random,
        order_functions: FunctionOrder::Random,
        split: Split::Random,
        seed,
        ..LayoutOptions::default()
    };
    if passes {
        PASSES.into_iter().for_each(|pass| layout.switches.turn(pass, true));
    }
    let options = OptimizeOptions { layout, check: Check::Skip, ..OptimizeOptions::default() };
    afterlink_pipeline::optimize(input, Vec::new(), &options, &Silent).expect("a rewritten program").bytes
}
