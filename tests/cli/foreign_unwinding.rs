//! Unwind entries that nobody knows how to read: the functions that they are for stay, with these entries, and all others move.
//! And those that nobody finds, for want of a search table.

use std::fs;
use std::process::Command;

use afterlink_testkit::sandbox::Sandbox;

/// Builds `in` of C++ and a file of assembly.
fn build(sandbox: &Sandbox, assembly: &str, flags: &str) {
    let folder = afterlink_testkit::tests_folder().join("cli/programs/foreign_unwinding");
    for name in ["main.cc", assembly] {
        fs::copy(folder.join(name), sandbox.path(name)).unwrap();
    }
    sandbox.say(&format!("g++ -O2 {flags} -Wl,-q main.cc {assembly} -o in"));
}

fn words(command: &str) -> Vec<&str> {
    command.split_whitespace().collect()
}

/// Asserts that `input` is optimized and instrumented with all its functions but `through`, and that exceptions go where they went.
#[track_caller]
fn assert_moves_the_rest(sandbox: &Sandbox, input: &str, arguments: &str) {
    let expected = sandbox.say(&format!("./{input} {arguments}"));
    let optimized = sandbox.afterlink(&words(&format!("optimize {input} -o out --scope all --json")));
    assert_eq!(optimized.exit, 0, "{input}: {}", optimized.stderr());
    let said = optimized.stdout();
    let stays = said.split("\"unwind\"").nth(1).unwrap_or_default();
    assert!(stays.contains("\"through\"") && !stays.contains("\"main\""), "{input}: {said}");
    assert_eq!(sandbox.say(&format!("./out {arguments}")), expected);
    let verified = sandbox.afterlink(&["verify", input, "out"]);
    assert_eq!(verified.exit, 0, "{input}: {}", verified.stdout());
    let at = |file: &str, name: &str| {
        let symbols = sandbox.say(&format!("nm {file}"));
        symbols.lines().find_map(|row| row.strip_suffix(&format!(" T {name}")).map(str::to_owned)).unwrap()
    };
    assert_eq!(at(input, "through"), at("out", "through"));
    assert_ne!(at(input, "main"), at("out", "main"));
    let counted = words("-o counting --counters counters");
    let counting = sandbox.afterlink(&[&["instrument", input][..], &counted].concat());
    assert_eq!(counting.exit, 0, "{input}: {}", counting.stderr());
    assert_eq!(sandbox.say(&format!("./counting {arguments}")), expected);
}

/// Where the augmentation stands of the common entry that is `through`'s alone.
fn augmentation(bytes: &[u8]) -> usize {
    let places: Vec<usize> =
        bytes.windows(4).enumerate().filter(|(_, b)| b == b"zRS\0").map(|(at, _)| at).collect();
    assert_eq!(places.len(), 1, "{places:?}");
    places[0]
}

/// Entries that a search table names. Behind an unknown letter exceptions still pass, as libgcc skips what it belongs to.
#[test]
fn a_common_entry_of_another_kind() {
    let sandbox = Sandbox::default();
    build(&sandbox, "own_entry.s", "");
    let bytes = fs::read(sandbox.path("in")).unwrap();
    let at = augmentation(&bytes);
    for (name, offset, value, arguments) in [
        ("letter", 2, b'Q', "and-through"),
        ("augmentation", 0, b'Q', ""),
        ("version-2", -1, 2, ""),
        ("version-7", -1, 7, ""),
    ] {
        let mut changed = bytes.clone();
        changed[at.wrapping_add_signed(offset)] = value;
        fs::copy(sandbox.path("in"), sandbox.path(name)).unwrap();
        fs::write(sandbox.path(name), &changed).unwrap();
        assert_moves_the_rest(&sandbox, name, arguments);
    }
}

/// Linkers make no search table of such entries: libgcc goes through all of them.
#[test]
fn entries_without_a_search_table() {
    let sandbox = Sandbox::default();
    for flags in ["-no-pie", "-static"] {
        build(&sandbox, "own_table.s", flags);
        assert_moves_the_rest(&sandbox, "in", "");
    }
}

/// Such an entry is where it was, as it was: a change there, or in what leads there, is found.
#[test]
fn what_was_changed_is_found() {
    let sandbox = Sandbox::default();
    build(&sandbox, "own_entry.s", "");
    let mut bytes = fs::read(sandbox.path("in")).unwrap();
    let at = augmentation(&bytes);
    bytes[at + 2] = b'Q';
    fs::write(sandbox.path("in"), &bytes).unwrap();
    let optimized = sandbox.afterlink(&words("optimize in -o out --scope all"));
    assert_eq!(optimized.exit, 0, "{}", optimized.stderr());
    let output = fs::read(sandbox.path("out")).unwrap();
    let places = output.windows(4).enumerate().filter(|(_, b)| b == b"zRQ\0").map(|(at, _)| at);
    assert_eq!(places.collect::<Vec<_>>(), [at], "it stands once, where it stood");
    for (place, value) in [(at + 2, b'S'), (at + 4, 9)] {
        let mut changed = output.clone();
        changed[place] = value;
        fs::write(sandbox.path("out"), changed).unwrap();
        assert_ne!(sandbox.afterlink(&["verify", "in", "out"]).exit, 0);
    }
}

/// Where no search table leads to the unwind entries and nothing registers them, an exception ends the program, and so it stays.
#[test]
fn no_search_table_of_unwind_entries() {
    let sandbox = Sandbox::default();
    sandbox.put(
        "main.cc",
        b"#include <cstdio>\nint work(int x) { if (x > 3) throw x; return x; }\n\
          int main(int argc, char **) { try { return work(argc + 3); } catch (int x) { std::printf(\"%d\\n\", x); } return 0; }\n",
    );
    for (flags, ends) in
        [("", false), ("-Wl,--no-eh-frame-hdr", true), ("-static -Wl,--no-eh-frame-hdr", false)]
    {
        sandbox.say(&format!("g++ -O2 {flags} -Wl,-q main.cc -o in"));
        let expected = sandbox.run(&mut Command::new("./in"));
        assert_eq!(expected.exit != 0, ends, "{flags}: {}", expected.stderr());
        let optimized = sandbox.afterlink(&["optimize", "in", "-o", "out", "--scope", "all"]);
        assert_eq!(optimized.exit, 0, "{flags}: {}", optimized.stderr());
        let found = sandbox.run(&mut Command::new("./out"));
        assert_eq!((found.exit, found.stdout()), (expected.exit, expected.stdout()), "{flags}");
    }
}
