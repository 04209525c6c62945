//! Runs the user's command with a program under test: `{}` in the command stands for the program's path, which the
//! variable `AFTERLINK_BINARY` holds too.

use crate::interrupt;
use afterlink_core::{Error, Result};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// The variable that holds the path of the program under test.
pub const BINARY_VARIABLE: &str = "AFTERLINK_BINARY";

/// A command line with places for a program.
#[derive(Clone, Debug)]
pub struct Workload {
    words: Vec<OsString>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug)]
pub enum Ended {
    Exit(ExitStatus),
    /// It was still running when its time was up, and was killed with all that it had started.
    TimedOut,
}

impl Ended {
    pub fn is_success(self) -> bool {
        matches!(self, Self::Exit(status) if status.success())
    }
}

impl Workload {
    /// # Errors
    /// If there is no command.
    pub fn new(words: Vec<OsString>) -> Result<Self> {
        if words.is_empty() {
            return Err(Error::new("no command is given").next("add it behind `--`, with {} for the program"));
        }
        Ok(Self { words: in_words(words) })
    }

    /// Runs the command with `binary` and more variables to its end, and keeps what it prints.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn capture(&self, binary: &Path, variables: &[(&str, &OsStr)]) -> Result<Output> {
        self.run_group(binary, variables, Stdio::piped, Child::wait_with_output)
    }

    /// Runs the command with `binary`, for at most `limit`, and discards what it prints.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn run(&self, binary: &Path, limit: Option<Duration>) -> Result<Ended> {
        self.run_group(binary, &[], Stdio::null, |mut child| wait(&mut child, limit))
    }

    /// The command as it is run with `binary`, to show.
    pub fn line(&self, binary: &Path) -> String {
        let words: Vec<_> = self.filled(binary).iter().map(|w| w.to_string_lossy().into_owned()).collect();
        words.join(" ")
    }

    fn filled(&self, binary: &Path) -> Vec<OsString> {
        self.words.iter().map(|w| fill_in(w, binary.as_os_str())).collect()
    }

    /// Starts the command in a process group of its own, so that all of it can be ended, and hands it to `finish`.
    fn run_group<T>(
        &self,
        binary: &Path,
        variables: &[(&str, &OsStr)],
        stream: fn() -> Stdio,
        finish: impl FnOnce(Child) -> std::io::Result<T>,
    ) -> Result<T> {
        let words = self.filled(binary);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env(BINARY_VARIABLE, binary).envs(variables.iter().copied());
        command.stdin(Stdio::null()).stdout(stream()).stderr(stream()).process_group(0);
        let failed = |e: std::io::Error| {
            Error::new(format!("the command {} cannot be run: {e}", words[0].display()))
                .next("check its path")
        };
        let child = command.spawn().map_err(failed)?;
        interrupt::set_group(child.id());
        let finished = finish(child);
        interrupt::set_group(0);
        finished.map_err(failed)
    }
}

fn wait(child: &mut Child, limit: Option<Duration>) -> std::io::Result<Ended> {
    let Some(limit) = limit else { return Ok(Ended::Exit(child.wait()?)) };
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended::Exit(status));
        }
        if start.elapsed() >= limit {
            interrupt::end_group(child.id());
            child.wait()?;
            return Ok(Ended::TimedOut);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// A whole command line in one word, `'./x.sh {}'`, is the shell's; the name of a file with spaces in it is not.
pub fn in_words(words: Vec<OsString>) -> Vec<OsString> {
    match &words[..] {
        [line] if line.as_bytes().contains(&b' ') && !Path::new(line).exists() => {
            vec!["/bin/sh".into(), "-c".into(), line.clone()]
        }
        _ => words,
    }
}

/// `word` with each `{}` replaced.
fn fill_in(word: &OsStr, binary: &OsStr) -> OsString {
    let mut out = Vec::new();
    let mut rest = word.as_bytes();
    while let Some(at) = rest.windows(2).position(|w| w == b"{}") {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(binary.as_bytes());
        rest = &rest[at + 2..];
    }
    out.extend_from_slice(rest);
    OsString::from_vec(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Option<Duration>) -> Ended {
        let words = ["/bin/sh", "-c", script].map(OsString::from).to_vec();
        Workload::new(words).unwrap().run(Path::new("/tmp/a program"), limit).unwrap()
    }

    #[test]
    fn the_program_is_filled_in_wherever_it_is_named() {
        let filled = |word: &str| fill_in(OsStr::new(word), OsStr::new("/p q"));
        assert_eq!(filled("{}"), "/p q");
        assert_eq!(filled("a{}b{}"), "a/p qb/p q");
        assert_eq!(filled("{ }"), "{ }");
        assert!(shell("test '{}' = '/tmp/a program'", None).is_success());
        assert!(shell("test \"$AFTERLINK_BINARY\" = '/tmp/a program'", None).is_success());
    }

    #[test]
    fn a_command_line_in_one_word_is_the_shells() {
        let words = |words: &[&str]| in_words(words.iter().map(OsString::from).collect());
        assert_eq!(words(&["./x.sh {} 3"]), ["/bin/sh", "-c", "./x.sh {} 3"]);
        assert_eq!(words(&["./x.sh", "a b"]), ["./x.sh", "a b"]);
        assert_eq!(words(&["{}"]), ["{}"]);
    }

    #[test]
    fn failure_a_signal_and_too_long_are_no_success() {
        assert!(!shell("exit 1", None).is_success());
        assert!(!shell("kill -SEGV $$", None).is_success());
        // What the shell waits for is ended too: otherwise this would take a minute.
        let start = Instant::now();
        assert!(matches!(shell("sleep 60; true", Some(Duration::from_millis(100))), Ended::TimedOut));
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_command_that_is_not_there() {
        assert!(Workload::new(Vec::new()).is_err());
        let error =
            Workload::new(vec!["/no/such/command".into()]).unwrap().run(Path::new("x"), None).unwrap_err();
        assert!(error.to_string().contains("/no/such/command"), "{error}");
    }
}
