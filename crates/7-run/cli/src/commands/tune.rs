//! `afterlink tune`: the whole job.

use crate::commands::instrument::{absolute, note};
use crate::commands::layout_options::LayoutArgs;
use crate::progress::Terminal;
use crate::{commands, files, interrupt};
use afterlink_core::{Error, Result};
use afterlink_pipeline::{InstrumentOptions, Progress, Report};
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

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
    /// How often to time old and new, in turns.
    #[arg(long, default_value_t = 5, value_name = "N")]
    pairs: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// How to run the program; `{}` stands for it, as does the variable AFTERLINK_BINARY.
    #[arg(last = true, required = true)]
    workload: Vec<String>,
}

/// What to do about a workload that counted nothing.
const NOT_RUN: &str = "check that the workload runs {} and not another copy of the program";

/// What `tune` found.
#[derive(serde::Serialize)]
struct Tuned {
    #[serde(flatten)]
    report: Report,
    timing: Option<Timing>,
}

/// Wall times of the workload, in seconds.
#[derive(serde::Serialize)]
struct Timing {
    old: Vec<f64>,
    new: Vec<f64>,
    /// Median of new against old within each pair.
    ratio: f64,
}

impl Tune {
    pub fn run(self) -> Result<ExitCode> {
        let options = self.layout.options()?;
        let target = files::Target::check(&self.output, &self.binary)?;
        let input = files::read(&self.binary)?;
        let progress = Terminal::new(self.json);
        let scratch = Scratch::beside(&self.binary)?;
        let in_file = |e: Error| e.in_file(self.binary.display());

        progress.step("instrumenting");
        let counters = scratch.counters.clone().into_os_string().into_vec();
        let instrument = InstrumentOptions { counter_file: counters, skip_functions: None, note: note() };
        let instrumented = afterlink_pipeline::instrument(&input, &instrument, &afterlink_pipeline::Silent)
            .map_err(in_file)?;
        scratch.write_program(&instrumented.bytes, &self.binary)?;
        progress.step("running the workload, counting");
        self.run_workload(&scratch.program)?;
        let profile = files::read_profile(&scratch.counters).map_err(|e| {
            Error::new(format!("the workload left no counts ({})", e.what))
                .in_file(self.binary.display())
                .next(NOT_RUN)
        })?;
        if profile.is_empty() {
            return Err(in_file(Error::new("the workload did not run the program at all").next(NOT_RUN)));
        }

        let optimized =
            afterlink_pipeline::optimize(&input, vec![profile], &options, &progress).map_err(in_file)?;
        scratch.write_program(&optimized.bytes, &self.binary)?;
        let timing = self.time(&scratch, &progress)?;
        target.write_program(&optimized.bytes)?;
        progress.done();
        commands::print(&Tuned { report: optimized.report, timing }, self.json)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Runs the workload on `program` and returns its wall time in seconds.
    fn run_workload(&self, program: &Path) -> Result<f64> {
        let path = program.to_string_lossy();
        let words: Vec<String> = self.workload.iter().map(|w| w.replace("{}", &path)).collect();
        let started = Instant::now();
        let output = Command::new(&words[0])
            .args(&words[1..])
            .env("AFTERLINK_BINARY", program)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| {
                Error::new(format!("the workload cannot be started: {e}"))
                    .at(&words[0])
                    .next("check its path")
            })?;
        let seconds = started.elapsed().as_secs_f64();
        if output.status.success() {
            return Ok(seconds);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().map(|l| format!(", its last words: {l}")).unwrap_or_default();
        Err(Error::new(format!("the workload failed ({}){last}", output.status))
            .at(words.join(" "))
            .next("make it succeed with the original program first"))
    }

    fn time(&self, scratch: &Scratch, progress: &Terminal) -> Result<Option<Timing>> {
        if self.pairs == 0 {
            return Ok(None);
        }
        let original = absolute(&self.binary)?;
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for pair in 0..self.pairs {
            progress.step(&format!("timing, pair {} of {}", pair + 1, self.pairs));
            // In turns, so that neither side always goes first.
            if pair % 2 == 0 {
                old.push(self.run_workload(&original)?);
                new.push(self.run_workload(&scratch.program)?);
            } else {
                new.push(self.run_workload(&scratch.program)?);
                old.push(self.run_workload(&original)?);
            }
        }
        let mut ratios: Vec<f64> = old.iter().zip(&new).map(|(old, new)| new / old).collect();
        ratios.sort_by(f64::total_cmp);
        let middle = ratios.len() / 2;
        let ratio =
            if ratios.len() % 2 == 1 { ratios[middle] } else { (ratios[middle - 1] + ratios[middle]) / 2.0 };
        Ok(Some(Timing { old, new, ratio }))
    }
}

impl fmt::Display for Tuned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.report)?;
        let Some(timing) = &self.timing else { return Ok(()) };
        let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
        writeln!(f)?;
        writeln!(
            f,
            "timing       old {:.3} s, new {:.3} s on average",
            mean(&timing.old),
            mean(&timing.new)
        )?;
        writeln!(
            f,
            "             new takes {:+.1} % (median of {} pairs)",
            100.0 * (timing.ratio - 1.0),
            timing.old.len()
        )?;
        write!(f, "             a first impression; `afterlink compare` gives a sound verdict")
    }
}

/// The files that stand beside the program while it is tuned. They go when this goes, or on Ctrl-C.
struct Scratch {
    program: PathBuf,
    counters: PathBuf,
}

impl Scratch {
    fn beside(binary: &Path) -> Result<Self> {
        let binary = absolute(binary)?;
        let name = binary.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let directory = binary.parent().unwrap_or(Path::new("/")).to_owned();
        let program = directory.join(format!("{name}.afterlink-{}", std::process::id()));
        let counters = program.with_extension(format!("afterlink-{}.counters", std::process::id()));
        let scratch = Self { program, counters };
        interrupt::remove_on_signal(&scratch.program);
        interrupt::remove_on_signal(&scratch.counters);
        // The workload may run the program as another user.
        std::fs::File::create(&scratch.counters)
            .and_then(|f| f.set_permissions(std::fs::Permissions::from_mode(0o666)))
            .map_err(|e| {
                Error::new(format!("no file can be made beside the program: {e}"))
                    .in_file(binary.display())
                    .next("copy it to a directory that you may write to")
            })?;
        Ok(scratch)
    }

    fn write_program(&self, bytes: &[u8], binary: &Path) -> Result<()> {
        files::Target::check(&self.program, binary)?.write_program(bytes)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for path in [&self.program, &self.counters] {
            let _ = std::fs::remove_file(path);
        }
    }
}
