//! `optimize --huge-pages`: the program asks the kernel, and does what it did whether it is granted or refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use afterlink_testkit::sandbox::Sandbox;

fn compile(sandbox: &Sandbox, name: &str, flags: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/programs").join(format!("{name}.c"));
    let mut command = Command::new("gcc");
    command.args(["-O2", "-Wl,--emit-relocs", "-o", name]).arg(source).args(flags);
    let outcome = sandbox.run(&mut command);
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
}

fn optimize(sandbox: &Sandbox, name: &str, flags: &[&str]) -> String {
    let output = format!("{name}.out");
    let mut arguments = vec!["optimize", name, "--scope", "all", "-o", &output];
    arguments.extend(flags);
    let outcome = sandbox.afterlink(&arguments);
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    assert_eq!(fs::metadata(sandbox.path(&output)).unwrap().permissions().mode() & 0o111, 0o111);
    outcome.stdout()
}

/// What a program that prints its own maps says of the pages of hot code.
fn hot_pages(sandbox: &Sandbox, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(arguments[0]);
    let outcome = sandbox.run(command.args(&arguments[1..]));
    (outcome.exit, outcome.stdout())
}

#[test]
fn the_program_asks_and_runs_on() {
    let sandbox = Sandbox::default();
    compile(&sandbox, "huge", &[]);
    let plain = hot_pages(&sandbox, &["./huge"]);
    assert_eq!(plain, (3, "sum 4950, advised 0\n".to_owned()));

    // Too little code for it.
    let said = optimize(&sandbox, "huge", &["--huge-pages"]);
    assert!(said.contains("huge pages   none"), "{said}");
    assert_eq!(hot_pages(&sandbox, &["./huge.out"]), plain);

    let said = optimize(&sandbox, "huge", &["--huge-pages=0"]);
    assert!(said.contains("huge pages   hot code has its own"), "{said}");
    let verified = sandbox.afterlink(&["verify", "huge", "huge.out"]);
    assert_eq!(verified.exit, 0, "{}", verified.stdout());
    // Without huge pages in the kernel, nobody could take the advice.
    let has_them = Path::new("/sys/kernel/mm/transparent_hugepage/enabled").exists();
    let expected = format!("sum 4950, advised {}\n", u8::from(has_them));
    assert_eq!(hot_pages(&sandbox, &["./huge.out"]), (3, expected));
}

#[test]
fn a_refusal_changes_nothing() {
    let sandbox = Sandbox::default();
    compile(&sandbox, "huge", &[]);
    optimize(&sandbox, "huge", &["--huge-pages=0"]);
    // Forbids the system call, then runs what it is told to.
    compile(&sandbox, "refusing", &[]);
    let refused = hot_pages(&sandbox, &["./refusing", "./huge.out"]);
    assert_eq!(refused, (3, "sum 4950, advised 0\n".to_owned()));
}

#[test]
fn registers_are_as_the_kernel_left_them() {
    let sandbox = Sandbox::default();
    compile(&sandbox, "registers", &["-static", "-nostdlib"]);
    assert_eq!(hot_pages(&sandbox, &["./registers"]).0, 0);
    optimize(&sandbox, "registers", &["--huge-pages=0"]);
    assert_eq!(hot_pages(&sandbox, &["./registers.out"]).0, 0);
}

#[test]
fn a_shared_object_asks_when_it_is_loaded() {
    let sandbox = Sandbox::default();
    compile(&sandbox, "huge", &["-shared", "-fPIC", "-DOBJECT"]);
    optimize(&sandbox, "huge", &["--huge-pages=0"]);
    fs::rename(sandbox.path("huge.out"), sandbox.path("libhuge.so")).unwrap();
    compile(&sandbox, "huge_user", &["-L.", "-lhuge", "-Wl,-rpath,$ORIGIN"]);
    let has_them = Path::new("/sys/kernel/mm/transparent_hugepage/enabled").exists();
    let expected = format!("sum 4950, advised {}\n", u8::from(has_them));
    assert_eq!(hot_pages(&sandbox, &["./huge_user"]), (3, expected));
}
