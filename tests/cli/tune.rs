//! `tune` of shared objects and of whole processes, as their users run them: linked and found by soname, opened by name or by path.

use afterlink_testkit::execute::Outcome;
use afterlink_testkit::sandbox::{Sandbox, assert_clear_error};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

const KEPT: &str = "-Wl,--emit-relocs";

/// A folder with `lib/libfirst.so` (soname `libfirst.so.1`, which `program` is linked with) and `lib/libsecond.so`, which
/// it opens.
fn process() -> Sandbox {
    let sandbox = Sandbox::default();
    fs::create_dir(sandbox.path("lib")).unwrap();
    object(&sandbox, "lib/libfirst.so", &["-DNAME=first", "-Wl,-soname,libfirst.so.1", KEPT]);
    object(&sandbox, "lib/libsecond.so", &["-DNAME=second", "-Wl,-soname,libsecond.so", KEPT]);
    std::os::unix::fs::symlink("libfirst.so", sandbox.path("lib/libfirst.so.1")).unwrap();
    program(&sandbox, "-Wl,--enable-new-dtags,-rpath,$ORIGIN/lib");
    sandbox
}

fn compile(sandbox: &Sandbox, source: &str, output: &str, more: &[&str]) {
    let source = afterlink_testkit::tests_folder().join("cli/programs/process").join(source);
    let mut gcc = Command::new("gcc");
    let outcome = sandbox.run(gcc.arg("-O2").arg(source).args(["-o", output]).args(more));
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
}

fn object(sandbox: &Sandbox, output: &str, flags: &[&str]) {
    compile(sandbox, "object.c", output, &[&["-shared", "-fPIC"], flags].concat());
}

fn program(sandbox: &Sandbox, rpath: &str) {
    compile(sandbox, "main.c", "program", &["-Llib", "-lfirst", rpath, KEPT]);
}

fn shell(script: &str) -> [&str; 3] {
    ["/bin/sh", "-c", script]
}

/// `tune` of `files` with two pairs.
fn tune(sandbox: &Sandbox, files: &[&str], output: &str, workload: &[&str]) -> Outcome {
    let options = ["--pairs", "2", "-o", output, "--"];
    sandbox.afterlink(&[&["tune"], files, &options, workload].concat())
}

fn names(sandbox: &Sandbox, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(sandbox.path(folder)).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// What the program prints with the libraries of `folder`.
fn printed(sandbox: &Sandbox, program: &str, folder: &str) -> String {
    let mut command = Command::new(sandbox.path(program));
    let outcome = sandbox.run(command.arg("libsecond.so").env("LD_LIBRARY_PATH", folder));
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    outcome.stdout()
}

fn assert_tuned(sandbox: &Sandbox, outcome: &Outcome, input: &str, output: &str) {
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    let text = outcome.stdout();
    assert!(["GAIN ", "LOSS ", "undecided "].iter().any(|verdict| text.contains(verdict)), "{text}");
    assert!(text.contains("the workload prints the same with both"), "{text}");
    let verified = sandbox.afterlink(&["verify", input, output]);
    assert_eq!(verified.exit, 0, "{}", verified.stderr());
    assert_ne!(fs::read(sandbox.path(input)).unwrap(), fs::read(sandbox.path(output)).unwrap());
}

#[test]
fn an_object_is_found_by_its_soname_before_the_runpath() {
    let sandbox = process();
    let before = names(&sandbox, ".");
    // Under either of its file's names, and by a path from elsewhere.
    for input in ["lib/libfirst.so", "lib/libfirst.so.1", "lib/../lib/libfirst.so"] {
        let outcome = tune(&sandbox, &[input], "fast.so", &["./program"]);
        assert_tuned(&sandbox, &outcome, input, "fast.so");
        // The command to go on with takes an object, too.
        let text = outcome.stdout();
        let next =
            text.lines().find_map(|line| line.split_once("afterlink compare ")).expect("the next step").1;
        let few = ["compare", "--no-probe", "--blocks", "2", "--runs", "1", "--ignore-output"];
        let compared = sandbox.afterlink(&few.into_iter().chain(next.split(' ')).collect::<Vec<_>>());
        assert_eq!(compared.exit, 2, "two blocks decide nothing: {}", compared.stderr());
        fs::create_dir(sandbox.path("fast")).unwrap();
        fs::rename(sandbox.path("fast.so"), sandbox.path("fast/libfirst.so.1")).unwrap();
        let expected = printed(&sandbox, "program", "lib");
        assert_eq!(printed(&sandbox, "program", "fast:lib"), expected);
        fs::remove_dir_all(sandbox.path("fast")).unwrap();
        assert_eq!(names(&sandbox, "."), before);
    }
    assert_eq!(names(&sandbox, "lib"), ["libfirst.so", "libfirst.so.1", "libsecond.so"]);
}

#[test]
fn an_object_that_is_opened_is_found_by_name_or_handed_to_the_workload() {
    let sandbox = process();
    fs::create_dir(sandbox.path("plugins")).unwrap();
    let put = "cp {} plugins/libsecond.so && ./program plugins/libsecond.so";
    for workload in [
        &["./program", "libsecond.so"][..],
        &["./program", "{}"],
        &shell("./program $AFTERLINK_BINARY"),
        &shell("./program $AFTERLINK_LIBRARIES/libsecond.so"),
        &shell("LD_LIBRARY_PATH=lib:$LD_LIBRARY_PATH ./program $AFTERLINK_LIBRARIES/libsecond.so"),
        &shell(put),
    ] {
        // A shell reads the script, in which the output's name stands as it is.
        let script = workload.last().filter(|_| workload.len() == 3);
        let (output, word) =
            if script.is_some() { ("fast.so", "fast.so") } else { ("fast it.so", "'fast it.so'") };
        let outcome = tune(&sandbox, &["lib/libsecond.so"], output, workload);
        assert_tuned(&sandbox, &outcome, "lib/libsecond.so", output);
        // What it tells to go on with is one command in any case.
        let said = outcome.stdout();
        let next = said.lines().find(|line| line.contains("afterlink compare ")).unwrap();
        let line = script.map_or_else(|| workload.join(" "), |script| format!("/bin/sh -c '{script}'"));
        assert!(next.ends_with(&format!(" {word} -- {line}")), "{next}");
    }
}

/// One line says why that may be and what to do, and nothing is written.
#[test]
fn an_object_that_was_not_loaded() {
    let sandbox = process();
    let path = sandbox.path("lib/libsecond.so");
    let assert_not_loaded = |input: &str, workload: &[&str], said: &str| {
        let before = names(&sandbox, ".");
        let outcome = tune(&sandbox, &[input], "fast.so", workload);
        assert_clear_error(&outcome, &[input, said, "LD_LIBRARY_PATH", "RPATH", "{}", "set-user-id"]);
        assert_eq!(names(&sandbox, "."), before);
    };
    let said = "loaded no copy of it that counts";
    assert_not_loaded("lib/libsecond.so", &["./program", path.to_str().unwrap()], said);
    assert_not_loaded("lib/libsecond.so", &["./program"], said);
    assert_not_loaded("lib/libfirst.so", &shell("LD_LIBRARY_PATH=$PWD/lib ./program"), said);
    program(&sandbox, "-Wl,--disable-new-dtags,-rpath,$ORIGIN/lib");
    assert_not_loaded("lib/libfirst.so", &["./program"], said);
    // All that were not loaded are told at once.
    let files = ["program", "lib/libfirst.so", "lib/libsecond.so"];
    let outcome = tune(&sandbox, &files, "fast", &["{}"]);
    assert_clear_error(&outcome, &["lib/libfirst.so: ", "nor of lib/libsecond.so"]);
    assert!(!sandbox.path("fast").exists());
}

/// Opens the object that it is given, and calls nothing of it, or its `second`.
fn opener(sandbox: &Sandbox) {
    let source = b"#include <dlfcn.h>\n#include <stdio.h>\nint main(int c, char **v) {\n\
        void *o = dlopen(v[1], RTLD_NOW); int (*f)(int) = o ? (int (*)(int))dlsym(o, \"second\") : 0;\n\
        if (f && c == 2) printf(\"%d\\n\", f(20000));\n\
        return !f; }";
    let source = sandbox.put("opener.c", source);
    let mut gcc = Command::new("gcc");
    let outcome = sandbox.run(gcc.args(["-O2", KEPT]).arg(source).args(["-o", "opener"]));
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
}

#[test]
fn an_object_of_which_nothing_ran() {
    let sandbox = process();
    opener(&sandbox);
    let before = names(&sandbox, ".");
    let idle = ["./opener", "{}", "only"];
    let outcome = tune(&sandbox, &["lib/libsecond.so"], "fast.so", &idle);
    assert_clear_error(&outcome, &["lib/libsecond.so", "nothing of it ran", "a workload that uses it"]);
    assert_eq!(names(&sandbox, "."), before);
    // Among others it is left out, which is said.
    let files = ["opener", "lib/libsecond.so"];
    let outcome = tune(&sandbox, &files, "fast", &shell("{} libsecond.so only"));
    assert_tuned(&sandbox, &outcome, "opener", "fast/opener");
    let text = outcome.stdout();
    assert!(text.contains("lib/libsecond.so left out") && text.contains("strip fast/opener\n"), "{text}");
    assert_eq!(names(&sandbox, "fast"), ["opener"]);
}

/// What an object looks for relative to itself, it finds from where it stands under test, too.
#[test]
fn what_an_object_needs_from_its_own_folder() {
    let sandbox = process();
    let needs = ["-DNAME=second", "-DNEEDS=first", KEPT, "-Llib", "-lfirst", "-Wl,-rpath,${ORIGIN}"];
    object(&sandbox, "lib/libsecond.so", &needs);
    opener(&sandbox);
    let outcome = tune(&sandbox, &["lib/libsecond.so"], "fast.so", &["./opener", "{}"]);
    assert_tuned(&sandbox, &outcome, "lib/libsecond.so", "fast.so");
}

#[test]
fn a_whole_process_goes_into_a_folder_when_all_of_it_is_proven() {
    let sandbox = process();
    let before = names(&sandbox, ".");
    let files = ["program", "lib/libfirst.so", "lib/libsecond.so"];
    let options = ["--pairs", "2", "-o", "fast", "--keep-profile", "profiles", "--json", "--"];
    let outcome = sandbox.afterlink(&[&["tune"], &files[..], &options, &["{}", "libsecond.so"]].concat());
    assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
    let said: serde_json::Value = serde_json::from_str(&outcome.stdout()).unwrap();
    assert_eq!(said["binaries"].as_array().unwrap().len(), 3, "{said}");
    for (binary, name) in
        said["binaries"].as_array().unwrap().iter().zip(["program", "libfirst.so", "libsecond.so"])
    {
        assert_eq!(binary["output"], format!("fast/{name}"));
        assert!(binary["moved_functions"].as_u64().unwrap() > 0, "{binary}");
        assert_eq!(binary["proven_functions"], binary["functions"], "{binary}");
        let profile = fs::read_to_string(sandbox.path(&format!("profiles/{name}.fdata"))).unwrap();
        let ran = if name == "program" { "own" } else { "step" };
        assert!(profile.contains(ran), "{name}: {profile}");
    }
    assert_eq!(said["timing"]["old"].as_array().unwrap().len(), 2, "{said}");
    assert_eq!(said["timing"]["printed"], "same", "{said}");
    let added: Vec<_> = names(&sandbox, ".").into_iter().filter(|name| !before.contains(name)).collect();
    assert_eq!(added, ["fast", "profiles"]);
    // The folder is complete: the soname is there, too.
    assert_eq!(names(&sandbox, "fast"), ["libfirst.so", "libfirst.so.1", "libsecond.so", "program"]);
    let expected = printed(&sandbox, "program", "lib");
    assert_eq!(printed(&sandbox, "fast/program", "fast"), expected);

    // Again, over what is there; as text.
    let outcome = tune(&sandbox, &files, "fast", &["{}", "libsecond.so"]);
    assert_tuned(&sandbox, &outcome, "lib/libsecond.so", "fast/libsecond.so");
    assert!(outcome.stdout().contains("lib/libfirst.so → fast/libfirst.so"), "{}", outcome.stdout());
    assert_eq!(printed(&sandbox, "fast/program", "fast"), expected);
}

/// Objects alone, without the program that loads them.
#[test]
fn several_objects_of_a_program_that_stays() {
    let sandbox = process();
    let files = ["lib/libfirst.so", "lib/libsecond.so"];
    let outcome = tune(&sandbox, &files, "fast", &["./program", "libsecond.so"]);
    assert_tuned(&sandbox, &outcome, "lib/libfirst.so", "fast/libfirst.so");
    assert_eq!(printed(&sandbox, "program", "fast"), printed(&sandbox, "program", "lib"));
}

#[test]
fn files_that_can_not_be_tuned_together() {
    let sandbox = process();
    object(&sandbox, "lib/libplain.so", &["-DNAME=second"]);
    fs::create_dir(sandbox.path("other")).unwrap();
    object(&sandbox, "other/libsecond.so", &["-DNAME=second", KEPT]);
    sandbox.put("file", b"here already");
    let before = names(&sandbox, ".");
    for (files, output, words) in [
        (
            &["program", "lib/libplain.so"][..],
            "fast",
            &["lib/libplain.so", "--emit-relocs", "leave it out"][..],
        ),
        (&["lib/libfirst.so", "lib/libfirst.so.1"], "fast", &["the same file", "name it once"]),
        (&["lib/libsecond.so", "other/libsecond.so"], "fast", &["the same name", "other/libsecond.so"]),
        (&["program", "lib/libfirst.so"], "file", &["one file", "folder"]),
        (&["program", "lib/libfirst.so"], "absent/fast", &["not there"]),
        (&["program", "lib/libfirst.so"], ".", &["the output is the input"]),
        (&["program", "lib/absent.so"], "fast", &["lib/absent.so"]),
        (&["lib/libfirst.so"], "lib", &["directory"]),
    ] {
        assert_clear_error(&tune(&sandbox, files, output, &["{}"]), words);
        assert_eq!(names(&sandbox, "."), before, "{files:?}");
    }
    assert_eq!(fs::read(sandbox.path("file")).unwrap(), b"here already");
    // An error of the new files leaves nothing either: the second run is their first.
    let fails_later = shell("{} && if [ -e ran ]; then exit 7; else touch ran; fi");
    let outcome = tune(&sandbox, &["program", "lib/libfirst.so"], "fast", &fails_later);
    assert_clear_error(&outcome, &["status: 7", "afterlink bisect"]);
    assert!(!sandbox.path("fast").exists());
}

/// Ctrl-C while the workload runs: the folders and files under test go, wherever they are.
#[test]
fn an_interrupted_run_leaves_nothing() {
    let sandbox = process();
    let before = [names(&sandbox, "."), names(&sandbox, "lib")];
    let mut command = Command::new(afterlink_testkit::tool::afterlink());
    command
        .args(["tune", "program", "lib/libfirst.so", "-o", "fast", "--"])
        .args(shell("touch started; sleep 60"));
    let quiet = command.current_dir(sandbox.path(".")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = quiet.spawn().unwrap();
    while !sandbox.path("started").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before the workload ran");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(names(&sandbox, ".").len() > before[0].len() + 4, "{:?}", names(&sandbox, "."));
    // SAFETY: the child has not been waited for, so that the number is still its own.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    assert_eq!(child.wait().unwrap().code(), Some(130));
    fs::remove_file(sandbox.path("started")).unwrap();
    assert_eq!([names(&sandbox, "."), names(&sandbox, "lib")], before);
}
