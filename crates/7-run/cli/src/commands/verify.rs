//! `afterlink verify`.

use crate::{commands, files};
use afterlink_core::{DebugFiles, Error, Result};
use afterlink_image::{Image, NOTE_SECTION};
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
        let files = [&self.binary, &self.output].map(|path| files::BesideProgram::new(path, path));
        let [before, after] = files.each_ref().map(|files| files as &dyn DebugFiles);
        let verdict =
            afterlink_pipeline::verify_with(input.viewed(), output.viewed(), [before, after], &options)
                .map_err(|e| e.in_file(format!("{} or {}", self.binary.display(), self.output.display())))?;
        if !verdict.is_proven()
            && !self.json
            && let Some(why) = unrelated(&input, &output)
        {
            let findings = verdict.findings.len() + verdict.findings_omitted;
            return Err(Error::new(format!("this was not made of {}: {why} ({findings} findings)", self.binary.display()))
                .in_file(self.output.display())
                .next("give the program as it was linked and then what afterlink made of it; --json lists the findings"));
        }
        commands::print(&verdict, self.json)?;
        Ok(if verdict.is_proven() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Why two files have nothing to do with each other, if they have not: then findings one by one would tell nobody anything.
fn unrelated(input: &[u8], output: &[u8]) -> Option<&'static str> {
    let (input, output) = (Image::parse(input).ok()?, Image::parse(output).ok()?);
    if output.section_named(NOTE_SECTION).is_none() {
        return Some("afterlink did not write it, as it has no .note.afterlink");
    }
    (input.build_id != output.build_id).then_some("its build-id is another")
}
