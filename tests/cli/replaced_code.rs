//! Code that afterlink wrote in place of other code (`--pass inlining`, `--pass identical-functions`), as debuggers and symbolizers tell
//! of it.

use afterlink_testkit::sandbox::Sandbox;
use std::fs;
use std::process::Command;

const COMPILERS: [&str; 4] = [
    "gcc-12 -O2 -fno-ipa-icf -gdwarf-5",
    "gcc-12 -O2 -fno-ipa-icf -gdwarf-4",
    "clang-22 -O2 -gdwarf-5",
    "clang-22 -O2 -gdwarf-4",
];

/// The program as `in`, and its output `out`, in which a pass wrote all that it can.
#[track_caller]
fn rewritten(with: &str, pass: &str) -> Sandbox {
    let sandbox = Sandbox::default();
    let folder = afterlink_testkit::tests_folder().join("cli/programs/replaced");
    for name in ["main.c", "other.c", "other.h"] {
        fs::copy(folder.join(name), sandbox.path(name)).unwrap();
    }
    sandbox.say(&format!("{with} -Wl,-q -no-pie main.c other.c -o in"));
    let command = format!("optimize in -o out --scope all --pass {pass}");
    let outcome = sandbox.afterlink(&command.split_whitespace().collect::<Vec<_>>());
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    assert!(outcome.stdout().contains("follows the code"), "{with}: {}", outcome.stdout());
    assert_eq!(sandbox.say("./in"), sandbox.say("./out"), "{with}");
    sandbox
}

/// Where a function's symbol is in `out`, and its size.
fn symbol(sandbox: &Sandbox, name: &str) -> (u64, u64) {
    let symbols = sandbox.say("nm -S out");
    let row = symbols.lines().find(|row| row.ends_with(&format!(" {name}"))).expect("its symbol");
    let mut numbers = row.split(' ').map(|word| u64::from_str_radix(word, 16).unwrap_or_default());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// What gdb says of `out`.
fn gdb(sandbox: &Sandbox, commands: &[&str]) -> String {
    let mut gdb = Command::new("timeout");
    gdb.args(["60", "gdb", "-q", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "set width 0"]);
    for command in commands {
        gdb.args(["-ex", command]);
    }
    sandbox.run(gdb.arg("out")).stdout().to_owned()
}

/// A breakpoint at a folded function by its name stops where its calls run, and nowhere else; of the code there it is said whose it is.
#[test]
fn folded_functions() {
    for with in COMPILERS {
        let sandbox = rewritten(with, "identical-functions");
        let [(kept, size), (folded, _)] = ["first_sum", "second_sum"].map(|name| symbol(&sandbox, name));
        assert_eq!(kept, folded, "{with}: nothing was folded");
        let said = gdb(&sandbox, &["break second_sum", "run", "bt", "continue", "bt", "continue"]);
        assert!(said.contains(&format!("Breakpoint 1 at {kept:#x}: file main.c, line ")), "{with}: {said}");
        // Both functions' calls come by.
        let stops = said.lines().filter(|line| line.starts_with("#0  first_sum (n=")).count();
        assert_eq!(stops, 2, "{with}: {said}");
        assert!(said.contains("exited normally"), "{with}: {said}");
        // From its first instruction to its last.
        for address in (kept..kept + size).step_by(3) {
            let plain = sandbox.say(&format!("addr2line -f -e out {address:#x}"));
            let (function, line) = plain.trim().split_once('\n').unwrap();
            let line: u32 = line.rsplit_once(':').unwrap().1.split(' ').next().unwrap().parse().unwrap();
            assert_eq!((function, (19..=24).contains(&line)), ("first_sum", true), "{with}: {plain}");
            let llvm = sandbox
                .say(&format!("llvm-symbolizer-22 --functions=short --no-inlines -e out {address:#x}"));
            assert!(llvm.starts_with("first_sum\n"), "{with}: {llvm}");
            let elfutils = sandbox.say(&format!("eu-addr2line -f -e out {address:#x}"));
            assert!(elfutils.starts_with("first_sum"), "{with}: {elfutils}");
        }
    }
}
