//! A folder in which one test of the command works, and what such tests ask: did the command fail in one clear line, and did it
//! leave anything behind?

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::build::build;
use crate::execute::{Outcome, run};
use crate::plan::{Variant, read_case};
use crate::tool::{afterlink, own_faults};

/// A scratch folder, removed when dropped.
pub struct Sandbox {
    folder: tempfile::TempDir,
    /// For the streams of the commands, so that they don't show among the files.
    streams: tempfile::TempDir,
}

/// Path of a program built of `case` with these words of a variant: `gcc -O2`.
pub fn built(case: &str, variant: &str) -> PathBuf {
    let case = read_case(&crate::tests_folder().join("cases").join(case));
    build(&case, &Variant::parse(variant)).unwrap_or_else(|e| panic!("{e}")).program
}

impl Default for Sandbox {
    fn default() -> Self {
        let new = || tempfile::tempdir().expect("a temporary folder can be made");
        Self { folder: new(), streams: new() }
    }
}

impl Sandbox {
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts a file into the folder.
    pub fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).expect("the sandbox can be written");
        path
    }

    /// Runs the command in the folder.
    ///
    /// # Panics
    /// If it says that it made a mistake of its own.
    #[track_caller]
    pub fn afterlink<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Outcome {
        let outcome = self.run(Command::new(afterlink()).args(arguments));
        assert_eq!(own_faults(&outcome), [""; 0]);
        outcome
    }

    /// Runs a command of words in the folder, which must end well, and gives what it says.
    #[track_caller]
    pub fn say(&self, command: &str) -> String {
        let mut words = command.split_whitespace();
        let program = words.next().expect("a command names its program");
        let outcome = self.run(Command::new(program).args(words));
        assert_eq!(outcome.exit, 0, "{command}: {}", outcome.stderr());
        outcome.stdout().to_owned()
    }

    /// Builds the program of two units that debug information is tried with, as `in`, by a compiler and its flags.
    #[track_caller]
    pub fn build_debugged(&self, with: &str) {
        let folder = crate::tests_folder().join("cli/programs/debugged");
        for name in ["main.c", "work.c"] {
            fs::copy(folder.join(name), self.path(name)).expect("the sandbox can be written");
        }
        self.say(&format!("{with} -Wl,-q main.c work.c -o in"));
    }

    /// Runs any command in the folder.
    pub fn run(&self, command: &mut Command) -> Outcome {
        run(command.current_dir(self.folder.path()), "", self.streams.path(), Duration::from_secs(60))
    }

    /// Every file in the folder with its contents.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(self.folder.path()).expect("the sandbox can be read");
        let paths = entries.map(|e| e.expect("a readable entry").path());
        let name = |p: &Path| p.file_name().expect("entries have names").to_string_lossy().into_owned();
        paths.filter(|p| p.is_file()).map(|p| (name(&p), fs::read(&p).expect("a readable file"))).collect()
    }
}

/// Asserts that the command failed in one line on stderr that has all of `words`, and names a next step.
#[track_caller]
pub fn assert_clear_error(outcome: &Outcome, words: &[&str]) {
    let said = outcome.stderr();
    assert_eq!(outcome.exit, 1, "the exit code is not that of an error; stderr: {said}");
    assert_eq!(outcome.stdout(), "", "an error belongs on stderr");
    assert_eq!(said.lines().count(), 1, "not one line: {said}");
    assert!(said.starts_with("afterlink: error: "), "{said}");
    assert!(said.contains("; "), "no next step: {said}");
    for word in words {
        assert!(said.to_lowercase().contains(&word.to_lowercase()), "`{word}` is missing: {said}");
    }
}
