//! `afterlink bisect`.

use crate::commands::layout_options::{LayoutArgs, OutputArgs};
use crate::progress::Terminal;
use crate::workload::Workload;
use crate::{commands, files, interrupt};
use afterlink_core::{Error, Result};
use afterlink_pipeline::OptimizeOptions;
use afterlink_pipeline::bisect::bisect;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Finds the fewest functions whose rewriting makes a command fail, and the pass
///
/// The command must pass (exit code 0) with the original program and fail with the optimized one. In the command, {}
/// stands for the program under test; the variable AFTERLINK_BINARY holds its path too. It is run some twenty times for
/// one culprit among a thousand functions; what it prints is discarded.
///
/// Example:
///     afterlink bisect ./server -p server.fdata -- ./test.sh {}
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Bisect {
    /// The program, as the linker made it.
    binary: PathBuf,
    /// The profiles that it was optimized with.
    #[arg(long = "profile", short = 'p', value_name = "FILE")]
    profiles: Vec<PathBuf>,
    /// Use the profile even if less than half of it, by names or by counts, is about functions of this program: then it is most
    /// likely another program's, which is an error. A profile of another build or version passes without this.
    #[arg(long)]
    any_profile: bool,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    writing: OutputArgs,
    /// A program counts as failing if one of that many runs fails.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Seconds after which a run counts as failed; by default ten times what the original took, and ten more.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Bisect {
    pub fn run(self) -> Result<ExitCode> {
        let options = OptimizeOptions {
            any_profile: self.any_profile,
            ..self.writing.added_to(self.layout.options()?)
        };
        let input = files::map(&self.binary)?;
        let profiles = files::read_profiles(&self.profiles, files::Ran::new(&self.binary, &input))?;
        let workload = Workload::new(self.command)?;
        let limit = self.timeout.map(Duration::try_from_secs_f64).transpose().map_err(|_| {
            Error::new("no time that a run may take").at("--timeout").next("give seconds, such as 2.5")
        })?;
        let scratch = Scratch::new(&self.binary)?;
        let mut runner = Runner { workload, scratch, runs: self.runs, limit };
        let progress = Terminal::new(self.json);
        let culprits =
            bisect(&input, &profiles, &options, &mut |program: &[u8]| runner.passes(program), &progress)
                .map_err(|e| e.in_file(self.binary.display()));
        progress.done();
        commands::print(&culprits?, self.json)?;
        Ok(ExitCode::SUCCESS)
    }
}

struct Runner {
    workload: Workload,
    scratch: Scratch,
    runs: u32,
    /// Set by the first run, the original's, unless the user has set it.
    limit: Option<Duration>,
}

impl Runner {
    fn passes(&mut self, program: &[u8]) -> Result<bool> {
        self.scratch.put(program)?;
        for _ in 0..self.runs {
            let start = Instant::now();
            let ended = self.workload.run(&self.scratch.program, self.limit)?;
            self.limit.get_or_insert(start.elapsed() * 10 + Duration::from_secs(10));
            if !ended.is_success() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A folder for the program under test, which has its own name there; removed in the end.
struct Scratch {
    folder: tempfile::TempDir,
    program: PathBuf,
    mode: u32,
}

impl Scratch {
    fn new(binary: &Path) -> Result<Self> {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::Builder::new().prefix("afterlink-bisect-").tempdir().map_err(|e| {
            Error::new(format!("a folder for the programs under test cannot be made: {e}"))
                .next("set TMPDIR to a directory that you may write to")
        })?;
        interrupt::remove_on_signal(folder.path());
        let program = folder.path().join(binary.file_name().unwrap_or(binary.as_os_str()));
        let mode = std::fs::metadata(binary).map_or(0o755, |m| m.permissions().mode() & 0o777);
        Ok(Self { folder, program, mode: mode | 0o500 })
    }

    /// Puts a program there; the last one may still be running.
    fn put(&self, program: &[u8]) -> Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let new = self.folder.path().join(".new");
        std::fs::write(&new, program)
            .and_then(|()| std::fs::set_permissions(&new, std::fs::Permissions::from_mode(self.mode)))
            .and_then(|()| std::fs::rename(&new, &self.program))
            .map_err(|e| {
                Error::new(format!("cannot be written: {e}"))
                    .in_file(self.program.display())
                    .next("free some space")
            })
    }
}
