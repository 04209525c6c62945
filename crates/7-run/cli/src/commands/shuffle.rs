//! `afterlink shuffle`.

use crate::layouts::Movable;
use crate::progress::Terminal;
use crate::{commands, files, interrupt};
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
        let layouts = Layouts::new(&self.output, (0..self.count).map(|number| self.name(number)).collect());
        let layouts = layouts.checked(&self.binary)?;
        for (number, name) in layouts.names.iter().enumerate() {
            progress.step(&format!("layout {} of {}", number + 1, self.count));
            // Layouts of different seeds have nothing in common.
            let seed = (u64::from(self.seed) << 32) | number as u64;
            let bytes = program.proven_layout(&input, mode, None, seed).map_err(named)?;
            files::Target::check(&layouts.scratch.join(name), &self.binary)?.write_program(&bytes)?;
        }
        let written = layouts.publish()?;
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

    fn name(&self, number: u32) -> String {
        let name = self.binary.file_name().unwrap_or_default().to_string_lossy();
        format!("{name}.{number:04}")
    }
}

/// Files that appear together: until then they are in a folder of their own, which goes if there are not all of them.
struct Layouts {
    output: PathBuf,
    scratch: PathBuf,
    names: Vec<String>,
}

impl Layouts {
    /// Files with these names in `output`, which need not be there yet.
    fn new(output: &Path, names: Vec<String>) -> Self {
        // On the same file system as far as can be seen, so that they only change their names.
        let near = output.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
        let name = files::file_name(output);
        let scratch = near.join(format!(".{name}.{}.afterlink", std::process::id()));
        Self { output: output.to_owned(), scratch, names }
    }

    /// Makes the folder.
    ///
    /// # Errors
    /// If it can't be made, or a file can't appear.
    fn checked(self, input: &Path) -> Result<Self> {
        interrupt::create_scratch_folder(&self.scratch).map_err(|e| self.no_folder(&e))?;
        if self.output.is_dir() {
            self.outputs().try_for_each(|path| files::Target::check(&path, input).map(drop))?;
        }
        Ok(self)
    }

    fn outputs(&self) -> impl Iterator<Item = PathBuf> {
        self.names.iter().map(|name| self.output.join(name))
    }

    /// Puts all files at their places, and says where these are.
    fn publish(&self) -> Result<Vec<String>> {
        interrupt::uninterrupted(|| {
            std::fs::create_dir_all(&self.output).map_err(|e| self.no_folder(&e))?;
            for (name, path) in self.names.iter().zip(self.outputs()) {
                std::fs::rename(self.scratch.join(name), &path).map_err(|e| files::failed(&path, &e))?;
            }
            Ok(self.outputs().map(|path| path.display().to_string()).collect())
        })
    }

    fn no_folder(&self, error: &std::io::Error) -> Error {
        Error::new(format!("the directory cannot be made: {}", files::reason(error)))
            .in_file(self.output.display())
            .next("choose a directory that you may write to")
    }
}

impl Drop for Layouts {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}
