//! Builds the small programs of `tests/cases` as their plans say, rewrites each in every mode, and holds what the
//! rewritten program does against what the original does. It knows afterlink only as a command.
//!
//! ```text
//! plan.toml ─► Plan ─► Build (compiled once, kept under target/testkit) ─► modes ─► execute, judge ─► Faults
//! ```

pub mod assembly;
pub mod build;
pub mod counting;
pub mod effects;
pub mod execute;
pub mod judge;
pub mod modes;
pub mod mount;
pub mod plan;
pub mod report;
pub mod sandbox;
pub mod stepping;
pub mod symbolizers;
pub mod symbols;
pub mod tool;

use std::path::{Path, PathBuf};

/// Everything that was wrong with one variant, in the order found; empty when all is well.
pub type Faults = Vec<String>;

/// The repository's `tests` folder.
pub fn tests_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate stands in tests/").to_owned()
}

/// Where built programs and outputs are kept: a folder inside cargo's target folder.
pub fn work_folder() -> PathBuf {
    // A test binary is target/<profile>/deps/<name>.
    let exe = std::env::current_exe().expect("the test binary has a path");
    let target = exe.ancestors().nth(3).expect("the test binary is in target/<profile>/deps");
    target.join("testkit")
}
