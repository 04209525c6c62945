//! `afterlink info`.

use crate::{commands, files};
use afterlink_core::Result;
use std::path::PathBuf;
use std::process::ExitCode;

/// Says what can be optimized in a program, what is missing, and which flag to add.
#[derive(clap::Args)]
pub struct Info {
    /// The program, as the linker made it.
    binary: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Info {
    pub fn run(self) -> Result<ExitCode> {
        let input = files::map(&self.binary)?;
        let survey = afterlink_pipeline::survey(&input).map_err(|e| e.in_file(self.binary.display()))?;
        commands::print(&survey, self.json)?;
        Ok(if survey.obstacle.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}
