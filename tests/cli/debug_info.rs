//! Debug information of the output tells of each place in moved code what the input's told of it, in all the forms that compilers and
//! linkers write.

use afterlink_testkit::sandbox::Sandbox;
use std::fs;
use std::process::Command;

const MOVE: &str = "--scope all --order-functions reverse --order-blocks random --split random --seed 3";

/// What is led.
const SECTIONS: [&str; 7] = [
    ".debug_info",
    ".debug_abbrev",
    ".debug_line",
    ".debug_aranges",
    ".debug_rnglists",
    ".debug_loclists",
    ".debug_addr",
];

/// Runs a command in the sandbox, and gives what it says.
#[track_caller]
fn say(sandbox: &Sandbox, command: &str) -> String {
    let mut words = command.split_whitespace();
    let outcome = sandbox.run(Command::new(words.next().unwrap()).args(words));
    assert_eq!(outcome.exit, 0, "{command}: {}", outcome.stderr());
    outcome.stdout().to_owned()
}

/// Builds the program as `in`.
#[track_caller]
fn build(sandbox: &Sandbox, with: &str) {
    let folder = afterlink_testkit::tests_folder().join("cli/programs/debugged");
    for name in ["main.c", "work.c"] {
        fs::copy(folder.join(name), sandbox.path(name)).unwrap();
    }
    say(sandbox, &format!("{with} -Wl,-q main.c work.c -o in"));
}

/// Writes `out`, and gives the report.
#[track_caller]
fn optimize(sandbox: &Sandbox, input: &str, output: &str) -> String {
    let command = format!("optimize {input} -o {output} {MOVE}");
    let words: Vec<&str> = command.split_whitespace().collect();
    let outcome = sandbox.afterlink(&words);
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    outcome.stdout().to_owned()
}

/// The bytes of a section, empty if there is none.
fn section(sandbox: &Sandbox, file: &str, name: &str) -> Vec<u8> {
    let to = sandbox.path("section");
    fs::remove_file(&to).ok();
    let mut copy = Command::new("llvm-objcopy-22");
    copy.args([&format!("--dump-section={name}=section"), file, "/dev/null"]);
    sandbox.run(&mut copy);
    fs::read(to).unwrap_or_default()
}

/// Compressed in any way, the sections hold what they hold when they are not.
#[test]
fn compressed_sections() {
    let sandbox = Sandbox::default();
    build(&sandbox, "gcc-12 -O2 -g");
    let said = optimize(&sandbox, "in", "plain-out");
    assert!(said.contains("follows the code"), "{said}");
    for (tool, how) in [("objcopy", "zlib"), ("objcopy", "zlib-gnu"), ("llvm-objcopy-22", "zstd")] {
        say(&sandbox, &format!("{tool} --compress-debug-sections={how} in {how}"));
        let said = optimize(&sandbox, how, &format!("{how}-out"));
        assert!(said.contains("follows the code"), "{how}: {said}");
        let kinds = |file: &str| {
            let headers = say(&sandbox, &format!("readelf -SW {file}"));
            headers
                .lines()
                .filter(|l| l.contains("debug_") && !l.contains(".rela"))
                .map(|l| l.contains(" C "))
                .collect::<Vec<_>>()
        };
        let is_marked = how != "zlib-gnu";
        assert_eq!(kinds(&format!("{how}-out")), kinds(how), "{how}");
        assert_eq!(kinds(how).contains(&true), is_marked, "{how}");
        let old = section(&sandbox, &format!("{how}-out"), ".zdebug_info");
        assert_eq!(old.starts_with(b"ZLIB"), !is_marked, "{how}");
        say(&sandbox, &format!("objcopy --decompress-debug-sections {how}-out {how}-again"));
        for name in SECTIONS {
            let whole = section(&sandbox, "plain-out", name);
            assert_eq!(section(&sandbox, &format!("{how}-again"), name), whole, "{how} {name}");
        }
    }
    assert_ne!(section(&sandbox, "plain-out", ".debug_line"), section(&sandbox, "in", ".debug_line"));
}
