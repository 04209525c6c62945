//! Functions without a symbol (`-Wl,--discard-all`, `strip --strip-unneeded`): counts of them are known again.

use afterlink_testkit::sandbox::Sandbox;
use std::fs;

const SOURCE: &[u8] = b"#include <stdio.h>
static volatile int sum;
#define WORK(name, by) \\
    static __attribute__((noinline, noclone)) void name(int n) { while (n--) if (n % by) sum += n; else sum ^= by; }
WORK(first, 3) WORK(second, 4) WORK(third, 5) WORK(fourth, 6)
int main(void) { first(30); second(400); third(50); fourth(60); printf(\"%d\\n\", sum); return 0; }
";

/// A program whose local functions have no names.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::default();
    sandbox.put("in.c", SOURCE);
    sandbox.say("gcc -O2 -Wl,--emit-relocs,--discard-all in.c -o in");
    assert!(!sandbox.say("nm in").contains("second"), "the names are still there");
    sandbox
}

#[track_caller]
fn optimize(sandbox: &Sandbox, profile: &str) -> String {
    let done = sandbox.afterlink(&["optimize", "in", "--profile", profile, "-o", "out"]);
    assert_eq!(done.exit, 0, "{}", done.stderr());
    done.stdout() + &done.stderr()
}

/// Counts a run, in `counters`, and gives the profile that they make, which is in `P.fdata`.
#[track_caller]
fn counted(sandbox: &Sandbox) -> String {
    let instrument = sandbox.afterlink(&["instrument", "in", "-o", "counted", "--counters", "counters"]);
    assert_eq!(instrument.exit, 0, "{}", instrument.stderr());
    sandbox.say("./counted");
    let convert = sandbox.afterlink(&["profile", "convert", "counters", "-o", "P.fdata"]);
    assert_eq!(convert.exit, 0, "{}", convert.stderr());
    fs::read_to_string(sandbox.path("P.fdata")).unwrap()
}

/// The name with the most counts.
fn hottest(profile: &str) -> String {
    let counts = profile.lines().filter(|line| line.starts_with("1 __BOLT_FDE_FUNCat"));
    let of = |line: &&str| line.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok());
    let line = counts.max_by_key(of).expect("a function without a symbol");
    line.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn its_own_counters_fit() {
    let sandbox = sandbox();
    let profile = counted(&sandbox);
    let said = optimize(&sandbox, "counters");
    assert!(!said.contains("WARNING"), "{said}");
    let said = optimize(&sandbox, "P.fdata");
    let line = said.lines().find(|l| l.starts_with("profile")).expect("a line about the profile");
    let names: Vec<&str> = line.split_whitespace().skip(1).take(3).collect();
    assert!(names[0] == names[2] && line.contains("100.0 % of the counts fit"), "{line}");
    // A name for an address is no name of what stands elsewhere, or has a name.
    let hottest = hottest(&profile);
    let main = sandbox.say("nm in").lines().find(|l| l.ends_with(" T main")).unwrap().to_owned();
    let main = main.split(' ').next().unwrap().trim_start_matches('0').to_owned();
    let mut text = format!("1 main 0 1 {hottest} 0 0 100\n");
    text += &format!("1 main 0 1 {hottest}0 0 0 1\n1 main 0 1 __BOLT_FDE_FUNCat{main} 0 0 1\n");
    sandbox.put("odd.fdata", text.as_bytes());
    let said = optimize(&sandbox, "odd.fdata");
    assert!(said.contains("2 of 4 names known"), "{said}");
}

/// What was seen at an address is told by the same names.
#[test]
fn addresses_get_the_same_names() {
    let sandbox = sandbox();
    let profile = counted(&sandbox);
    let hottest = hottest(&profile);
    let address = u64::from_str_radix(hottest.strip_prefix("__BOLT_FDE_FUNCat").unwrap(), 16).unwrap();
    sandbox.put("seen", format!("E cycles\nS {:x} 7\n", address + 4).as_bytes());
    let convert = sandbox.afterlink(&["profile", "convert", "seen", "--binary", "in", "-o", "seen.fdata"]);
    assert_eq!(convert.exit, 0, "{}", convert.stderr());
    let seen = fs::read_to_string(sandbox.path("seen.fdata")).unwrap();
    assert!(seen.contains(&format!("1 {hottest} 4 7")), "{hottest}: {seen}");
    assert!(optimize(&sandbox, "seen.fdata").contains("1 of 1 names known, 100.0 % of the counts fit"));
}
