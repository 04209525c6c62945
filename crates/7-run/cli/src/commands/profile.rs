//! `afterlink profile convert|merge|show`.

use crate::{commands, files};
use afterlink_core::Result;
use afterlink_profile::{Profile as Counts, Summary, fdata};
use std::path::PathBuf;
use std::process::ExitCode;

/// Converts, sums and shows profiles.
#[derive(clap::Subcommand)]
pub enum Profile {
    /// Turns profiles of any kind into one fdata file (BOLT reads it too); their counts are summed.
    Convert(Convert),
    /// Sums profiles; the same as convert.
    Merge(Convert),
    /// Shows what a profile holds.
    Show(Show),
}

#[derive(clap::Args)]
pub struct Convert {
    /// Counter files of instrumented programs (of a running one, too), or fdata.
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    /// Where the fdata goes.
    #[arg(long, short)]
    output: PathBuf,
    /// The program that was profiled, for kinds of profiles that hold addresses only.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct Show {
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    /// How many functions to list.
    #[arg(long, default_value_t = 20, value_name = "N")]
    top: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Profile {
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Self::Convert(convert) | Self::Merge(convert) => convert.run(),
            Self::Show(show) => show.run(),
        }
    }
}

fn read_all(inputs: &[PathBuf]) -> Result<Counts> {
    let profiles = inputs.iter().map(|p| files::read_profile(p)).collect::<Result<Vec<_>>>()?;
    afterlink_profile::merge(profiles)
}

impl Convert {
    fn run(self) -> Result<ExitCode> {
        let target = files::Target::check(&self.output, &self.inputs[0])?;
        let profile = read_all(&self.inputs)?;
        let mut text = Vec::new();
        fdata::write(&profile, &mut text).map_err(|e| e.in_file(self.output.display()))?;
        target.write(&text)?;
        commands::print(&Summary::new(&profile, 0), self.json)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Show {
    fn run(self) -> Result<ExitCode> {
        let summary = Summary::new(&read_all(&self.inputs)?, self.top);
        commands::print(&summary, self.json)?;
        Ok(ExitCode::SUCCESS)
    }
}
