//! Programs that a tool changed after linking are rewritten as they are: GNU's strip and objcopy, patchelf (0.14 is installed by `test.sh`).

use afterlink_testkit::sandbox::Sandbox;
use std::fs;

const SOURCE: &[u8] = b"#include <stdio.h>
static __attribute__((noinline)) int twice(int n) { return n > 3 ? n * 2 : n - 1; }
int main(int argc, char **argv) { printf(\"%s %d\\n\", argv[argc - 1], twice(argc)); return 0; }
";
const FIXED: &str = "-no-pie -fno-pie";

/// A folder with the program, as `in`.
fn sandbox(flags: &str) -> Sandbox {
    let sandbox = Sandbox::default();
    sandbox.put("in.c", SOURCE);
    sandbox.say(&format!("gcc -O2 {flags} -Wl,--emit-relocs in.c -o in"));
    sandbox
}

/// Whatever order it is put into, it is proven and says the same; and so it does when it is counted.
#[track_caller]
fn assert_rewritten(sandbox: &Sandbox) {
    let expected = sandbox.say("./in ran");
    for seed in ["1", "2", "3"] {
        let order =
            "--scope all --order-blocks random --order-functions random --split random --trap-old-code";
        let words: Vec<&str> =
            ["optimize", "in", "-o", "out", "--seed", seed].into_iter().chain(order.split(' ')).collect();
        let done = sandbox.afterlink(&words);
        assert_eq!(done.exit, 0, "{}", done.stderr());
        assert_eq!(sandbox.say("./out ran"), expected);
        let proven = sandbox.afterlink(&["verify", "in", "out"]);
        assert_eq!(proven.exit, 0, "{}{}", proven.stdout(), proven.stderr());
    }
    let done = sandbox.afterlink(&["instrument", "in", "-o", "counted", "--counters", "counters"]);
    assert_eq!(done.exit, 0, "{}", done.stderr());
    assert_eq!(sandbox.say("./counted ran"), expected);
}

/// Start and size in the file of the header of properties.
fn property_header(program: &[u8]) -> (usize, usize) {
    let word = |at: usize| u64::from_le_bytes(program[at..at + 8].try_into().unwrap()) as usize;
    let rows = (0..usize::from(program[56])).map(|row| 64 + row * 56);
    let row = rows.into_iter().find(|&row| program[row..row + 4] == 0x6474_e553u32.to_le_bytes());
    let row = row.expect("a header of properties");
    (word(row + 8), word(row + 32))
}

/// patchelf 0.14 moves the note of properties and leaves its header behind, inside the table of program headers.
#[test]
fn header_of_properties_that_was_left_behind() {
    for flags in ["-fcf-protection", FIXED] {
        let sandbox = sandbox(flags);
        let before = property_header(&fs::read(sandbox.path("in")).unwrap());
        sandbox
            .say(&format!("patchelf --set-rpath /{} in", "x".repeat(if flags == FIXED { 3000 } else { 1 })));
        let program = fs::read(sandbox.path("in")).unwrap();
        let (start, size) = property_header(&program);
        // At fixed addresses a page is put in front.
        assert_eq!((start % 4096, size), before, "this patchelf moves the header");
        assert_rewritten(&sandbox);
        let written = fs::read(sandbox.path("out")).unwrap();
        assert_eq!(property_header(&written), (start, size));
        // Where it leads, an output with such a note is another program: one that may ask for a shadow stack.
        let mut noted = written;
        noted[start..start + 16].copy_from_slice(b"\x04\0\0\0\x10\0\0\0\x05\0\0\0GNU\0");
        sandbox.put("noted", &noted);
        let judged = sandbox.afterlink(&["verify", "in", "noted"]);
        assert_eq!(judged.exit, 1);
        let said = judged.stdout() + &judged.stderr();
        // In the table of program headers it would be the end of others, too.
        assert!(flags != FIXED || said.contains("led to no note of properties"), "{said}");
        // And an input that has one there, but no section, was damaged otherwise.
        let mut noted = program;
        noted[start..start + 16].copy_from_slice(b"\x04\0\0\0\x10\0\0\0\x05\0\0\0GNU\0");
        sandbox.put("noted", &noted);
        assert_eq!(sandbox.afterlink(&["optimize", "noted", "-o", "none"]).exit, 1);
    }
}

/// A long run path at fixed addresses: the names reach from the segment that patchelf adds in front into the program's first.
#[test]
fn names_across_two_segments() {
    let sandbox = sandbox(&format!("{FIXED} -Wl,-z,noseparate-code -fcf-protection=none"));
    sandbox.say(&format!("patchelf --set-rpath /{} in", "x".repeat(3000)));
    assert_rewritten(&sandbox);
}

/// Later patchelfs fill what they leave between the sections with letters.
#[test]
fn letters_between_what_gives_way() {
    let sandbox = sandbox(FIXED);
    let mut program = fs::read(sandbox.path("in")).unwrap();
    let interpreter = b"/lib64/ld-linux-x86-64.so.2\0";
    let at = program.windows(interpreter.len()).position(|w| w == interpreter).unwrap() + interpreter.len();
    let note = at.next_multiple_of(8);
    assert!(note > at && program[at..note].iter().all(|&byte| byte == 0), "no gap");
    program[at..note].fill(b'X');
    fs::write(sandbox.path("in"), program).unwrap();
    assert_rewritten(&sandbox);
}

/// Address and number of the section of `name`, as `readelf` prints one of the tables of symbols.
fn symbol(sandbox: &Sandbox, table: &str, file: &str, name: &str) -> (String, String) {
    let rows = sandbox.say(&format!("readelf -W {table} {file}"));
    let rows = rows.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
    // `--symbols` prints both tables.
    let row = rows.rev().find(|row| row.last() == Some(&name));
    let row = row.unwrap_or_else(|| panic!("no {name} in {file}"));
    (row[1].to_owned(), row[6].to_owned())
}

/// GNU's strip and objcopy leave the numbers of sections in `.dynsym` as they were, which the dynamic linker does not mind: where the symbol's
/// address is says which section it lies in.
#[test]
fn stale_numbers_of_sections_in_the_dynamic_symbols() {
    let sandbox = Sandbox::default();
    sandbox.put("library.c", b"extern int host(int); int is_host(int (*f)(int)) { return f == host; }\n");
    sandbox.put(
        "main.c",
        b"#include <stdio.h>\nextern int is_host(int (*)(int));\n\
          int host(int x) { if (x > 3) return x * 5; puts(\"host\"); return x ^ 1; }\n\
          int main(void) { printf(\"%d %d\\n\", is_host(host), host(4)); return 0; }\n",
    );
    sandbox.say("gcc -shared -fPIC -O2 library.c -o ./liblibrary.so");
    for tool in ["strip -g in", "objcopy -R .comment in"] {
        sandbox.say("clang-22 -fuse-ld=lld -O2 -rdynamic -Wl,-q main.c ./liblibrary.so -o in");
        sandbox.say(tool);
        let stale = symbol(&sandbox, "--dyn-syms", "in", "host");
        assert_ne!(stale, symbol(&sandbox, "--symbols", "in", "host"), "{tool} leaves nothing behind");
        let optimized = sandbox.afterlink(&["optimize", "in", "-o", "out", "--scope", "all"]);
        assert_eq!(optimized.exit, 0, "{tool}: {}", optimized.stderr());
        let moved = symbol(&sandbox, "--dyn-syms", "out", "host");
        assert_ne!(moved.0, stale.0, "{tool}");
        assert_eq!(sandbox.say("./out"), "1 20\n", "{tool}");
        let named = sandbox.say("readelf -W -S out");
        let text = format!("[{:>2}] .text ", moved.1);
        assert!(named.contains(&text), "{tool}: section {} is not .text: {named}", moved.1);
    }
}
