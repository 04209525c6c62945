//! The command `afterlink`: found, built when it must be, and run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::execute::{Outcome, run};

/// Path of the command: `$AFTERLINK`, or the one of this workspace, which is brought up to date first.
pub fn afterlink() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        if let Some(path) = std::env::var_os("AFTERLINK") {
            return std::path::absolute(path).expect("AFTERLINK is a path");
        }
        let exe = std::env::current_exe().expect("the test binary has a path");
        let profile_folder = exe.ancestors().nth(2).expect("the test binary is in target/<profile>/deps");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "--package", "afterlink-cli", "--bin", "afterlink"]);
        build.arg("--manifest-path").arg(crate::tests_folder().with_file_name("Cargo.toml"));
        if profile_folder.ends_with("release") {
            build.arg("--release");
        }
        build.arg("--target-dir").arg(profile_folder.parent().expect("target/<profile>"));
        assert!(
            build.status().expect("cargo can be started").success(),
            "the command afterlink can't be built"
        );
        profile_folder.join("afterlink")
    })
}

/// What the command says on stderr of a function that it could not prove. It leaves that function alone and succeeds;
/// no test may let that pass.
pub fn own_faults(outcome: &Outcome) -> Vec<String> {
    outcome.stderr().lines().filter(|line| line.contains("fault of afterlink")).map(str::to_owned).collect()
}

/// Runs the command with its streams kept in `folder`.
pub fn run_afterlink<A: AsRef<std::ffi::OsStr>>(arguments: &[A], folder: &Path) -> Outcome {
    run(Command::new(afterlink()).args(arguments), "", folder, Duration::from_secs(120))
}
