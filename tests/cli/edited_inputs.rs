//! Programs that a tool changed after they were linked, or that were linked without what others have.

use std::process::Command;

use afterlink_testkit::sandbox::Sandbox;

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
