//! `afterlink tune`: the whole job.

mod timing;

use crate::commands::instrument::{absolute, note};
use crate::commands::layout_options::{LayoutArgs, OutputArgs};
use crate::layouts::{Movable, Subject};
use crate::progress::Terminal;
use crate::workload::Workload;
use crate::{commands, files, interrupt};
use afterlink_core::{Error, Result};
use afterlink_pipeline::{InstrumentOptions, LaidOut, Progress, Report};
use afterlink_profile::{Profile, fdata};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use timing::{Timing, time};

/// Makes a program faster: instruments it, runs the workload, lays it out anew, proves it, and times old against new.
///
/// The program under test stands beside the original while the workload runs, so that it finds what it looks for
/// relative to itself.
#[derive(clap::Args)]
pub struct Tune {
    /// The program, as the linker made it (linked with -Wl,--emit-relocs, not stripped).
    binary: PathBuf,
    /// Where the faster program goes.
    #[arg(long, short)]
    output: PathBuf,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    writing: OutputArgs,
    /// How often to time old and new, in turns.
    #[arg(long, default_value_t = 5, value_name = "N")]
    pairs: u32,
    /// Also write the profile, for `optimize` and `compare`.
    #[arg(long, value_name = "FILE.fdata")]
    keep_profile: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// How to run the program; `{}` stands for it, as does the variable AFTERLINK_BINARY.
    #[arg(last = true, required = true)]
    workload: Vec<OsString>,
}

/// What to do about a workload that counted nothing.
const NOT_RUN: &str = "check that the workload runs {} and not another copy of the program";

/// What to do about a workload that fails whatever it is given.
const ORIGINAL_FIRST: &str = "make it succeed with the original program first";

/// What `tune` found.
#[derive(serde::Serialize)]
struct Tuned {
    #[serde(flatten)]
    report: Report,
    timing: Option<Timing>,
    /// Commands to go on with.
    next: Vec<Next>,
}

/// A command and what it is for.
#[derive(serde::Serialize)]
struct Next {
    command: String,
    purpose: &'static str,
}

/// One run of the workload.
struct Run {
    seconds: f64,
    stdout: Vec<u8>,
}

impl Tune {
    pub fn run(self) -> Result<ExitCode> {
        let options = self.writing.added_to(self.layout.options()?);
        let workload = Workload::new(self.workload.clone())?;
        let target = files::Target::check(&self.output, &self.binary)?;
        let kept = self
            .keep_profile
            .as_deref()
            .map(|path| files::Target::check(path, &self.binary)?.differs_from([&self.output]));
        let kept = kept.transpose()?;
        let input = files::map(&self.binary)?;
        let progress = Terminal::new(self.json);
        let scratch = Scratch::beside(&self.binary)?;
        let in_file = |e: Error| e.in_file(self.binary.display());

        progress.step("instrumenting");
        let counters = scratch.counters.clone().into_os_string().into_vec();
        let instrument = InstrumentOptions {
            counter_file: counters,
            skip_functions: options.skip_functions.clone(),
            check: options.check,
            note: note(),
        };
        let instrumented = afterlink_pipeline::instrument(&input, &instrument, &afterlink_pipeline::Silent)
            .map_err(in_file)?;
        commands::complain_of_faults(&instrumented.report.unproven_functions);
        scratch.write_program(&instrumented.bytes, &self.binary)?;
        progress.step("running the workload, counting");
        run_workload(&workload, &scratch.new).map_err(|e| e.next(ORIGINAL_FIRST))?;
        let profile = self.read_counts(&scratch)?;

        let mut profile_text = Vec::new();
        if kept.is_some() {
            fdata::write(&profile, &mut profile_text)?;
        }

        let (laid_out, optimized) =
            LaidOut::proven(&input, vec![profile], &options, &progress).map_err(in_file)?;
        commands::complain_of_faults(&optimized.report.unproven_functions);
        scratch.write_program(&optimized.bytes, &self.binary)?;
        let timing = match self.pairs {
            0 => None,
            pairs => {
                let subjects = self.subjects(&input, laid_out).map_err(in_file)?;
                Some(time(pairs, &workload, subjects, &scratch, &progress)?)
            }
        };
        if let Some(kept) = kept {
            kept.write(&profile_text)?;
        }
        target.write_program(&optimized.bytes)?;
        progress.done();
        target.note_lost_rights();
        let tuned = Tuned { report: optimized.report, timing, next: self.next_steps() };
        commands::print(&tuned, self.json)?;
        Ok(ExitCode::SUCCESS)
    }

    fn read_counts(&self, scratch: &Scratch) -> Result<Profile> {
        let in_file = |e: Error| e.in_file(self.binary.display());
        let profile = files::read_profile(&scratch.counters).map_err(|e| {
            in_file(Error::new(format!("the workload left no counts ({})", e.what)).next(NOT_RUN))
        })?;
        if profile.is_empty() {
            return Err(in_file(Error::new("the workload did not run the program at all").next(NOT_RUN)));
        }
        Ok(profile)
    }

    /// The program as it was linked, and as it is laid out now.
    fn subjects<'a>(&'a self, bytes: &'a [u8], laid_out: LaidOut<'a>) -> Result<[Subject<'a>; 2]> {
        let subject = |shipped: &Path, program| Subject {
            path: &self.binary,
            bytes,
            shipped: shipped.to_owned(),
            program,
        };
        let old = Movable::new(bytes, Vec::new(), false)?;
        Ok([subject(&self.binary, old), subject(&self.output, Movable::ByProfile(Box::new(laid_out)))])
    }

    fn next_steps(&self) -> Vec<Next> {
        let (old, new) = (self.binary.display(), self.output.display());
        let workload = self.workload.join(OsStr::new(" ")).to_string_lossy().into_owned();
        let next = |command, purpose| Next { command, purpose };
        let compare = match &self.keep_profile {
            Some(profile) => format!("afterlink compare {old} --profile-b {}", profile.display()),
            None => format!("afterlink compare --layout as-is {old} {new}"),
        };
        vec![
            next(format!("{compare} -- {workload}"), "times them until the gain is sure"),
            next(format!("afterlink verify {old} {new}"), "proves once more that they are the same program"),
            next(format!("strip {new}"), "if you ship it without symbols"),
        ]
    }
}

/// Runs the workload on `program`.
fn run_workload(workload: &Workload, program: &Path) -> Result<Run> {
    let started = Instant::now();
    let output = workload.capture(program)?;
    let seconds = started.elapsed().as_secs_f64();
    if output.status.success() {
        return Ok(Run { seconds, stdout: output.stdout });
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().map(|l| format!(", its last words: {l}")).unwrap_or_default();
    Err(Error::new(format!("the workload failed ({}){last}", output.status)).at(workload.line(program)))
}

impl fmt::Display for Tuned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.report)?;
        if let Some(timing) = &self.timing {
            write!(f, "{timing}")?;
        }
        for (number, next) in self.next.iter().enumerate() {
            let label = if number == 0 { "next" } else { "" };
            let end = if number + 1 == self.next.len() { "" } else { "\n" };
            write!(f, "{label:<12} {}\n                 {}{end}", next.command, next.purpose)?;
        }
        Ok(())
    }
}

/// The files that stand beside the program while it is tuned. They go when this goes, or on Ctrl-C.
struct Scratch {
    old: PathBuf,
    new: PathBuf,
    counters: PathBuf,
}

impl Scratch {
    fn beside(binary: &Path) -> Result<Self> {
        let binary = absolute(binary)?;
        let name = binary.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let directory = binary.parent().unwrap_or(Path::new("/")).to_owned();
        let path = |what: &str| directory.join(format!("{name}.afterlink-{}-{what}", std::process::id()));
        // Names of one length: a path's length moves the stack.
        let scratch = Self { old: path("old"), new: path("new"), counters: path("counters") };
        scratch.files().for_each(|file| interrupt::remove_on_signal(file));
        // What an ended command with this number may have left goes by its name: cut short, it would end a program that
        // counts into it.
        let _ = std::fs::remove_file(&scratch.counters);
        std::fs::File::create_new(&scratch.counters)
            .and_then(|f| f.set_permissions(std::fs::Permissions::from_mode(counters_mode())))
            .map_err(|e| {
                Error::new(format!("no file can be made beside the program: {e}"))
                    .in_file(binary.display())
                    .next("copy it to a directory that you may write to")
            })?;
        Ok(scratch)
    }

    fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.old, &self.new, &self.counters].into_iter()
    }

    /// Writes the program under test.
    fn write_program(&self, bytes: &[u8], binary: &Path) -> Result<()> {
        files::Target::check(&self.new, binary)?.write_program(bytes)
    }

    fn remove_programs(&self) {
        for path in [&self.old, &self.new] {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The workload of root may run the program as another user, whom root's files are good enough for.
fn counters_mode() -> u32 {
    if rustix::process::geteuid().is_root() { 0o666 } else { 0o600 }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.files().for_each(|path| drop(std::fs::remove_file(path)));
    }
}
