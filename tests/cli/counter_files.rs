//! What stands at the path of the counter file, and on what disk: a counting program does what the original does, says in one
//! line why it does not count, and does no harm to what is not its own.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use afterlink_testkit::counting::{self, compile, instrument};
use afterlink_testkit::execute::Outcome;
use afterlink_testkit::mount::Mount;
use afterlink_testkit::sandbox::{Sandbox, assert_clear_error};
use afterlink_testkit::tool::afterlink;

/// Somebody who is not this user.
const NOBODY: u32 = 65534;

/// Of the counting program, which `plain` would end with, too.
const EXIT: i32 = 3;
const PRINTED: &str = "499500\n";

/// A program is run directly, or where the disk can't reserve room and no file may be cut short.
const WAYS: [&[&str]; 2] = [&[], &["./without_fallocate"]];

/// A sandbox with `plain`, its twin `counting`, and `without_fallocate`.
fn sandbox() -> Sandbox {
    let sandbox = counting::twins("endings.c", &[]);
    compile(&sandbox, "without_fallocate.c", "without_fallocate", &[]);
    sandbox
}

/// Runs a command that ends with `counting`, which counts into `file`.
fn run(sandbox: &Sandbox, command: &[&str], file: &Path) -> Outcome {
    let mut words = command.iter().copied().chain(["./counting"]);
    let mut command = Command::new(sandbox.path(words.next().expect("at least one")));
    sandbox.run(command.args(words).env("AFTERLINK_COUNTERS", file))
}

/// Runs the same behind a line of shell.
fn run_behind(sandbox: &Sandbox, shell: &str, command: &[&str], file: &Path) -> Outcome {
    let line = format!("{shell}; exec {} ./counting", command.join(" "));
    sandbox.run(Command::new("/bin/sh").args(["-c", &line]).env("AFTERLINK_COUNTERS", file))
}

#[track_caller]
fn assert_counted(outcome: &Outcome) {
    assert_eq!((outcome.exit, outcome.stdout(), outcome.stderr()), (EXIT, PRINTED.into(), String::new()));
}

#[track_caller]
fn assert_uncounted(outcome: &Outcome, reason: &str) {
    let said = outcome.stderr();
    assert_eq!((outcome.exit, outcome.stdout()), (EXIT, PRINTED.into()), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains(reason) && said.contains("uncounted"), "not for `{reason}`: {said}");
}

fn steps(sandbox: &Sandbox, file: &Path) -> u64 {
    counting::steps(sandbox, file.to_str().expect("plain names"))
}

fn blocks(file: &Path) -> u64 {
    fs::metadata(file).unwrap().blocks()
}

/// A counter file as a run leaves it, but with every count zero; and what stands before the counters.
fn ready_file(sandbox: &Sandbox) -> (Vec<u8>, Vec<u8>) {
    let file = sandbox.path("ready");
    assert_counted(&run(sandbox, &[], &file));
    assert_eq!(sandbox.afterlink(&["profile", "reset", "ready"]).exit, 0);
    assert_eq!(steps(sandbox, &file), 0);
    let bytes = fs::read(&file).unwrap();
    let counters = usize::try_from(u64::from_le_bytes(bytes[32..40].try_into().unwrap())).unwrap();
    let before = bytes[..counters].to_vec();
    (bytes, before)
}

/// Puts a file of `size` bytes that starts with `bytes` and has a hole behind them.
fn put_sparse(file: &Path, bytes: &[u8], size: usize) {
    fs::write(file, bytes).unwrap();
    fs::File::options().write(true).open(file).unwrap().set_len(size as u64).unwrap();
}

#[test]
fn holes_are_filled_before_anything_is_counted() {
    let sandbox = sandbox();
    let (ready, before) = ready_file(&sandbox);
    for way in WAYS {
        let file = sandbox.path("sparse");
        put_sparse(&file, &before, ready.len());
        let hole = blocks(&file);
        for runs in 1..=2 {
            assert_counted(&run(&sandbox, way, &file));
            assert_eq!(steps(&sandbox, &file), runs * 1000, "{way:?}");
        }
        assert!(blocks(&file) >= ready.len() as u64 / 512, "{way:?}: {hole} blocks, then {}", blocks(&file));
        fs::remove_file(&file).unwrap();
        assert_counted(&run(&sandbox, way, &file));
        assert_eq!((fs::read(&file).unwrap().len(), steps(&sandbox, &file)), (ready.len(), 1000), "{way:?}");
    }
}

/// Whatever room there is, for a new file or one with a hole, a program is counted or says that it is not.
#[test]
fn a_full_disk_ends_no_program() {
    let sandbox = sandbox();
    let (ready, before) = ready_file(&sandbox);
    let pages = ready.len() / 4096;
    let Some(disk) = Mount::new(sandbox.path("disk"), pages + 1) else { return };
    let (file, filler) = (disk.0.join("counters"), disk.0.join("filler"));
    for way in WAYS {
        for room in 0..=pages {
            fs::write(&filler, vec![1; (pages + 1 - room) * 4096]).unwrap();
            let outcome = run(&sandbox, way, &file);
            if room == pages {
                assert_counted(&outcome);
            } else {
                assert_uncounted(&outcome, &file.display().to_string());
                fs::remove_file(&filler).unwrap();
                assert_counted(&run(&sandbox, way, &file));
            }
            assert_eq!(steps(&sandbox, &file), 1000, "{way:?}, room for {room} pages of {pages}");
            let _ = fs::remove_file(&filler);
            put_sparse(&file, &before, ready.len());
            let left = pages + 1 - before.len() / 4096;
            fs::write(&filler, vec![1; left * 4096]).unwrap();
            assert_uncounted(&run(&sandbox, way, &file), "no room");
            fs::remove_file(&filler).unwrap();
            assert_counted(&run(&sandbox, way, &file));
            fs::remove_file(&file).unwrap();
        }
    }
}

#[test]
fn a_limit_on_file_sizes_ends_no_program() {
    let sandbox = sandbox();
    let (ready, before) = ready_file(&sandbox);
    let limit = format!("ulimit -f {}", ready.len() / 512 - 1);
    let enough = format!("ulimit -f {}", ready.len() / 512);
    let file = sandbox.path("limited");
    let states: [Option<(&[u8], usize)>; 5] = [
        None,
        Some((b"", 0)),
        Some((b"", ready.len())),
        Some((&before, ready.len())),
        Some((&ready, ready.len())),
    ];
    for (way, state) in WAYS.iter().flat_map(|way| states.iter().map(move |state| (way, state))) {
        let _ = fs::remove_file(&file);
        if let Some((bytes, size)) = state {
            put_sparse(&file, bytes, *size);
        }
        let found = fs::read(&file).unwrap_or_default();
        assert_uncounted(&run_behind(&sandbox, &limit, way, &file), "ulimit");
        assert!(fs::read(&file).unwrap() == found, "{way:?}: changed");
        assert_counted(&run_behind(&sandbox, &enough, way, &file));
        assert_eq!(steps(&sandbox, &file), 1000, "{way:?}");
    }
}

#[test]
fn only_an_own_file_with_one_name_is_written() {
    let sandbox = sandbox();
    let victim = sandbox.put("victim", b"");
    symlink(&victim, sandbox.path("link")).unwrap();
    symlink(sandbox.path("absent"), sandbox.path("leads-nowhere")).unwrap();
    for link in ["link", "leads-nowhere"] {
        assert_uncounted(&run(&sandbox, &[], &sandbox.path(link)), "symbolic link");
    }
    fs::hard_link(&victim, sandbox.path("second")).unwrap();
    assert_uncounted(&run(&sandbox, &[], &sandbox.path("second")), "second name");
    assert_eq!(sandbox.run(Command::new("mkfifo").arg("pipe")).exit, 0);
    assert_uncounted(&run(&sandbox, &[], &sandbox.path("pipe")), "not a regular file");
    assert_eq!(fs::read(&victim).unwrap(), b"");
    assert!(!sandbox.path("absent").exists());
    fs::remove_file(sandbox.path("second")).unwrap();
    assert_counted(&run(&sandbox, &[], &victim));
}

#[test]
fn nobody_else_may_read_or_cut_it() {
    let sandbox = sandbox();
    let file = sandbox.path("private");
    assert_counted(&run_behind(&sandbox, "umask 0", &[], &file));
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
}

/// `setpriv` and the words behind which a command runs as another user; `None` if it can't.
fn as_nobody(sandbox: &Sandbox) -> Option<PathBuf> {
    let mode = |name: &str, mode| {
        fs::set_permissions(sandbox.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(".", 0o755);
    sandbox.put(
        "as_nobody",
        format!("#!/bin/sh\nexec setpriv --reuid {NOBODY} --clear-groups \"$@\"\n").as_bytes(),
    );
    mode("as_nobody", 0o755);
    let path = sandbox.path("as_nobody");
    if sandbox.run(Command::new(&path).arg("./plain")).exit == EXIT {
        return Some(path);
    }
    eprintln!("not tried: this user can't become another");
    None
}

#[test]
fn anothers_file_is_not_written() {
    let sandbox = sandbox();
    let Some(nobody) = as_nobody(&sandbox) else { return };
    let nobody = [nobody.to_str().unwrap()];
    let file = sandbox.put("file", b"");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    // Root may do anything anyhow: `tune` makes such a file.
    assert_counted(&run(&sandbox, &nobody, &file));
    let theirs = sandbox.put("theirs", b"");
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o666)).unwrap();
    chown(&theirs, Some(NOBODY), None).unwrap();
    assert_uncounted(&run(&sandbox, &[], &theirs), "another user");
    assert_eq!(fs::read(&theirs).unwrap(), b"");
    assert_counted(&run(&sandbox, &nobody, &theirs));
    fs::write(&theirs, b"").unwrap();
    chown(&theirs, Some(1), None).unwrap();
    assert_uncounted(&run(&sandbox, &nobody, &theirs), "another user");
    assert_eq!(fs::read(&theirs).unwrap(), b"");
}

/// A set-user-id program opens nothing, whatever stands at the path and whoever put it there.
#[test]
fn with_raised_rights_nothing_is_opened() {
    let sandbox = sandbox();
    let Some(nobody) = as_nobody(&sandbox) else { return };
    fs::copy("/usr/bin/id", sandbox.path("id")).unwrap();
    compile(&sandbox, "endings.c", "static", &["-static"]);
    instrument(&sandbox, "static", "counting-static", &[]);
    for program in ["id", "counting", "counting-static"] {
        fs::set_permissions(sandbox.path(program), fs::Permissions::from_mode(0o4755)).unwrap();
    }
    let raised = sandbox.run(Command::new(&nobody).args(["./id", "-u"]));
    if raised.stdout() != "0\n" {
        eprintln!("not tried: rights can't be raised here: {}{}", raised.stdout(), raised.stderr());
        return;
    }
    let victim = sandbox.put("victim", b"");
    symlink(&victim, sandbox.path("link")).unwrap();
    // The dynamic linker takes some of these out of the environment.
    let removed = ["LD_PRELOAD", "LD_LIBRARY_PATH", "TMPDIR"];
    for (program, count) in ["./counting", "./counting-static"].iter().flat_map(|p| [(p, 0), (p, 1), (p, 3)])
    {
        let run = |file: Option<&str>| {
            let named = file.map(|file| format!("AFTERLINK_COUNTERS={}", sandbox.path(file).display()));
            let others = removed[..count].iter().map(|name| format!("{name}=/nowhere"));
            let mut command = Command::new(&nobody);
            command.args(["/usr/bin/env", "-i"]).args(others).args(named).arg(program);
            sandbox.run(&mut command)
        };
        for file in [None, Some("victim"), Some("absent"), Some("link")] {
            assert_uncounted(&run(file), "more rights than its user");
        }
        symlink(&victim, sandbox.path("counters")).unwrap();
        assert_uncounted(&run(None), "more rights than its user");
        fs::remove_file(sandbox.path("counters")).unwrap();
    }
    assert_eq!(fs::read(&victim).unwrap(), b"");
    assert!(!sandbox.path("counters").exists() && !sandbox.path("absent").exists());
}

/// The same of a counted object in a plain program; with the user's own rights it counts.
#[test]
fn an_object_in_a_program_with_raised_rights_opens_nothing() {
    let sandbox = sandbox();
    let Some(nobody) = as_nobody(&sandbox) else { return };
    compile(&sandbox, "shared/object.c", "object.so", &["-shared", "-fPIC"]);
    instrument(&sandbox, "object.so", "libcounting.so", &[]);
    let folder = sandbox.path(".");
    let [library, found] = ["-L", "-Wl,-rpath,"].map(|option| format!("{option}{}", folder.display()));
    compile(&sandbox, "shared/main.c", "loader", &["-Wl,--no-as-needed", &library, &found, "-lcounting"]);
    let counters = sandbox.path("counters");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let run = || sandbox.run(Command::new(&nobody).arg("./loader"));
    let plain = run();
    assert_eq!((plain.exit, plain.stderr()), (0, String::new()));
    assert!(fs::metadata(&counters).unwrap().len() > 0);
    fs::remove_file(&counters).unwrap();
    fs::set_permissions(sandbox.path("loader"), fs::Permissions::from_mode(0o4755)).unwrap();
    let raised = run();
    assert_eq!((raised.exit, raised.stdout()), (0, plain.stdout()));
    if raised.stderr().is_empty() {
        eprintln!("not tried: rights can't be raised here");
        return;
    }
    assert!(raised.stderr().contains("more rights than its user") && !counters.exists());
}

#[test]
fn a_program_without_a_counter() {
    let sandbox = sandbox();
    instrument(&sandbox, "plain", "counting", &["--skip-functions", "."]);
    for way in WAYS {
        assert_counted(&run(&sandbox, way, &sandbox.path("none")));
    }
}

/// Counters are set to zero under a running program, which goes on counting.
#[test]
fn reset_cuts_nothing_short() {
    use std::io::{BufRead, BufReader};
    let sandbox = sandbox();
    let file = sandbox.path("counters");
    let mut running = Command::new(sandbox.path("counting"))
        .arg("wait")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(running.stdout.take().unwrap()).lines();
    assert_eq!(said.next().unwrap().unwrap(), "walked");
    let size = fs::metadata(&file).unwrap().len();
    let reset = sandbox.afterlink(&["profile", "reset", "counters"]);
    assert_eq!((reset.exit, reset.stderr()), (0, String::new()));
    assert!(reset.stdout().contains("1 file set to zero"), "{}", reset.stdout());
    assert_eq!((fs::metadata(&file).unwrap().len(), steps(&sandbox, &file)), (size, 0));
    assert_counted(&run(&sandbox, &[], &file));
    drop(running.stdin.take());
    assert_eq!(running.wait().unwrap().code(), Some(EXIT));
    assert_eq!(steps(&sandbox, &file), 1000);
    // What is no counter file stays as it is, and so does what stands beside it.
    sandbox.put("other", b"something else");
    let mut command = Command::new(afterlink());
    let refused = sandbox.run(command.args(["profile", "reset", "counters", "other"]));
    assert_clear_error(&refused, &["other", "not a counter file"]);
    assert_eq!(fs::read(sandbox.path("other")).unwrap(), b"something else");
    assert_eq!(steps(&sandbox, &file), 1000);
}
