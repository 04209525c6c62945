//! `afterlink shuffle`.

use crate::layouts::Movable;
use crate::progress::Terminal;
use crate::{commands, files};
use afterlink_bench::record::LayoutMode;
use afterlink_core::{Error, Result};
use afterlink_pipeline::Progress;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Writes a program in many random layouts, for use in any benchmark harness.
///
/// Each output is proven to be the program rearranged before it is written; a function with which it could not be is left
/// alone in all that follow, and named on stderr. The same seed gives the same files.
#[derive(clap::Args)]
pub struct Shuffle {
    /// The program, as the linker made it (with -Wl,--emit-relocs).
    binary: PathBuf,
    /// How many layouts.
    #[arg(short = 'n', long = "count", default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// The directory for the layouts, which are called like the program with a number behind it; created if missing.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Seed of the random orders.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u32,
    /// Keep the order of the functions, vary only the gaps between them.
    #[arg(long)]
    jitter: bool,
    /// Lay the program out by this profile, with other gaps each time: for judging that layout.
    #[arg(long, short, value_name = "FILE", requires = "jitter")]
    profile: Option<PathBuf>,
    /// Use the profile even if less than half of it, by names or by counts, is about functions of this program: then it is most
    /// likely another program's, which is an error. A profile of another build or version passes without this.
    #[arg(long)]
    any_profile: bool,
    /// Print the names as JSON.
    #[arg(long)]
    json: bool,
}

impl Shuffle {
    pub fn run(self) -> Result<ExitCode> {
        files::refuse_standard_output(&self.output)?;
        let input = files::map(&self.binary)?;
        let profiles = files::read_profiles(self.profile.as_slice(), files::Ran::new(&self.binary, &input))?;
        let named = |e: Error| e.in_file(self.binary.display());
        let progress = Terminal::new(self.json);
        progress.step("recovering the program");
        let mut program = Movable::new(&input, profiles, self.any_profile).map_err(named)?;
        let mode = if self.jitter { LayoutMode::Jitter } else { LayoutMode::Shuffle };
        std::fs::create_dir_all(&self.output).map_err(|e| {
            let reason = e.to_string().split(" (os error").next().unwrap_or_default().to_lowercase();
            Error::new(format!("the directory cannot be made: {reason}"))
                .in_file(self.output.display())
                .next("choose a directory that you may write to")
        })?;
        let mut written = Vec::new();
        for number in 0..self.count {
            let path = self.path(number);
            progress.step(&format!("layout {} of {}", number + 1, self.count));
            let target = files::Target::check(&path, &self.binary)?;
            // Layouts of different seeds have nothing in common.
            let seed = (u64::from(self.seed) << 32) | u64::from(number);
            let bytes = program.proven_layout(&input, mode, None, seed).map_err(named)?;
            target.write_program(&bytes)?;
            written.push(path.display().to_string());
        }
        progress.done();
        if self.json {
            commands::print_json(&written)?;
        } else {
            let (functions, directory) = (program.functions(), self.output.display());
            let what = format!("{} layouts of {functions} functions in {directory}, all proven", self.count);
            commands::print_text(&what)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn path(&self, number: u32) -> PathBuf {
        let name = self.binary.file_name().unwrap_or_default().to_string_lossy();
        Path::new(&self.output).join(format!("{name}.{number:04}"))
    }
}
