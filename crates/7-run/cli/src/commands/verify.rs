//! `afterlink verify`.

use crate::{commands, files};
use afterlink_core::Result;
use afterlink_verify::Options;
use std::path::PathBuf;
use std::process::ExitCode;

/// Proves that a program which afterlink wrote is its input rearranged.
///
/// Reads both files afresh and compares them instruction by instruction, pointer by pointer and unwind row by unwind
/// row. Exit code 0 only if everything is proven.
#[derive(clap::Args)]
pub struct Verify {
    /// The program, as the linker made it.
    binary: PathBuf,
    /// What afterlink made of it.
    output: PathBuf,
    /// How many findings to show.
    #[arg(long, default_value_t = 20, value_name = "N")]
    findings: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub fn run(self) -> Result<ExitCode> {
        let (input, output) = (files::map(&self.binary)?, files::map(&self.output)?);
        let options = Options { max_findings: self.findings };
        let verdict = afterlink_pipeline::verify(input.viewed(), output.viewed(), &options)
            .map_err(|e| e.in_file(format!("{} or {}", self.binary.display(), self.output.display())))?;
        commands::print(&verdict, self.json)?;
        Ok(if verdict.is_proven() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
