//! Runs a program to its end, or ends it when its time is up, and tells what could be seen of it from outside.
//!
//! Time is the processor's: on a busy machine a program that runs is slow, and no fault of its own.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What can be seen of a run from outside.
#[derive(Clone, PartialEq, Eq)]
pub struct Outcome {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// The exit code, or the signal's number made negative; [`TIMED_OUT`] when it had to be ended.
    pub exit: i32,
}

/// No signal has this number.
pub const TIMED_OUT: i32 = -1000;

/// A program that waits for what never comes uses no processor time. It is ended when its limit has passed so many times.
const WAITING: u32 = 10;

impl Outcome {
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// The exit in words.
    pub fn exit_text(&self) -> String {
        match self.exit {
            TIMED_OUT => "did not end".to_owned(),
            signal if signal < 0 => format!("died of signal {}", -signal),
            code => format!("exit code {code}"),
        }
    }
}

/// Starts a command. A program that was just written may still be open for writing in a child that another thread has started and that does
/// not yet execute a program of its own; it soon does.
///
/// # Errors
/// If it cannot be started.
pub fn start(command: &mut Command) -> std::io::Result<Child> {
    const TRIES: usize = 500;
    for _ in 0..TRIES {
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
    command.spawn()
}

/// Runs `command` with `stdin`, its streams kept in files in `folder`, for at most `limit` of processor time.
pub fn run(command: &mut Command, stdin: &str, folder: &Path, limit: Duration) -> Outcome {
    let paths = ["stdin", "stdout", "stderr"].map(|name| folder.join(name));
    fs::write(&paths[0], stdin).expect("the work folder can be written");
    let create = |path: &Path| File::create(path).expect("the work folder can be written");
    close_inherited_descriptors(command);
    command
        .stdin(File::open(&paths[0]).expect("just written"))
        .stdout(Stdio::from(create(&paths[1])))
        .stderr(Stdio::from(create(&paths[2])));
    let mut child =
        start(command).unwrap_or_else(|e| panic!("{:?} can't be started: {e}", command.get_program()));
    let start = Instant::now();
    let mut pause = Duration::from_micros(300);
    let exit = loop {
        if let Some(status) = child.try_wait().expect("the child is ours") {
            break status.code().unwrap_or_else(|| -status.signal().expect("neither code nor signal"));
        }
        if start.elapsed() > limit && is_over(child.id(), limit, start.elapsed()) {
            child.kill().expect("the child is ours");
            child.wait().expect("the child is ours");
            break TIMED_OUT;
        }
        std::thread::sleep(pause);
        pause = (pause * 3 / 2).min(Duration::from_millis(10));
    };
    let read = |path: &Path| fs::read(path).expect("just written");
    Outcome { stdout: read(&paths[1]), stderr: read(&paths[2]), exit }
}

/// Whether the process `pid`, started so long ago, has used its limit of processor time, or only waits.
fn is_over(pid: u32, limit: Duration, elapsed: Duration) -> bool {
    // See proc(5): behind the name in parentheses stand the state and, as the 12th to 15th field from there, the ticks that
    // the process and its ended children have used.
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let fields: Vec<&str> = status.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields.iter().skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    // SAFETY: the call touches no memory of ours.
    let second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    let waits = fields.first().is_none_or(|&state| state != "R");
    ticks as f64 / second >= limit.as_secs_f64() || elapsed > limit * WAITING && waits
}

/// What the test's own parent left open is not for the program to see.
fn close_inherited_descriptors(command: &mut Command) {
    // SAFETY: between fork and exec the closure makes one system call and touches no memory.
    unsafe {
        command.pre_exec(|| {
            libc::close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as i32);
            Ok(())
        });
    }
}

/// Runs a case's program in `folder`, always under the same name, with the same environment.
pub fn run_program(program: &Path, arguments: &[String], stdin: &str, folder: &Path) -> Outcome {
    run_hosted(None, program, arguments, stdin, folder)
}

/// The same of a program that is a shared object, and runs in `host`.
pub fn run_hosted(
    host: Option<&Path>,
    program: &Path,
    arguments: &[String],
    stdin: &str,
    folder: &Path,
) -> Outcome {
    let mut command = Command::new(host.unwrap_or(program));
    command
        .arg0("./program")
        .args(host.map(|_| program))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("CASE_VARIABLE", "set by the test");
    run(&mut command, stdin, folder, Duration::from_secs(20))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Outcome {
        let folder = tempfile::tempdir().unwrap();
        run(Command::new("/bin/sh").args(["-c", script]), "one\ntwo\n", folder.path(), limit)
    }

    #[test]
    fn streams_and_exit_code_are_told_apart() {
        let outcome = shell("cat; echo wrong >&2; exit 3", Duration::from_secs(10));
        assert_eq!(
            (outcome.stdout(), outcome.stderr(), outcome.exit),
            ("one\ntwo\n".into(), "wrong\n".into(), 3)
        );
    }

    #[test]
    fn a_signal_is_no_exit_code() {
        assert_eq!(shell("kill -9 $$", Duration::from_secs(10)).exit, -9);
    }

    #[test]
    fn what_does_not_end_is_ended() {
        assert_eq!(shell("exec sleep 30", Duration::from_millis(50)).exit, TIMED_OUT);
        assert_eq!(shell("while :; do :; done", Duration::from_millis(50)).exit, TIMED_OUT);
    }

    #[test]
    fn who_gets_no_processor_has_time() {
        assert_eq!(shell("sleep 0.4; exit 3", Duration::from_millis(100)).exit, 3);
    }
}
