//! `afterlink tune`: the whole job.

use crate::commands::instrument::{absolute, note};
use crate::commands::layout_options::LayoutArgs;
use crate::progress::Terminal;
use crate::workload::Workload;
use crate::{commands, files, interrupt};
use afterlink_bench::stats::estimate::median;
use afterlink_core::{Error, Result};
use afterlink_pipeline::{InstrumentOptions, Progress, Report};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
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
    workload: Vec<OsString>,
}

/// What to do about a workload that counted nothing.
const NOT_RUN: &str = "check that the workload runs {} and not another copy of the program";

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

/// Wall times of the workload, in seconds; the runs of one index followed each other.
#[derive(serde::Serialize)]
struct Timing {
    old: Vec<f64>,
    new: Vec<f64>,
    /// New against old: the median of the pairs, and the pairs at both ends.
    ratio: f64,
    smallest_ratio: f64,
    largest_ratio: f64,
    printed: Printed,
}

/// What the workload wrote to its standard output.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
enum Printed {
    Same,
    /// It differs already from run to run of the old program.
    Varying,
    Different,
}

/// One run of the workload.
struct Run {
    seconds: f64,
    stdout: Vec<u8>,
}

impl Tune {
    pub fn run(self) -> Result<ExitCode> {
        let options = self.layout.options()?;
        let workload = Workload::new(self.workload.clone())?;
        let target = files::Target::check(&self.output, &self.binary)?;
        let input = files::read(&self.binary)?;
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
        scratch.write_program(&instrumented.bytes, &self.binary)?;
        progress.step("running the workload, counting");
        run_workload(&workload, &scratch.program)?;
        let profile = files::read_profile(&scratch.counters).map_err(|e| {
            in_file(Error::new(format!("the workload left no counts ({})", e.what)).next(NOT_RUN))
        })?;
        if profile.is_empty() {
            return Err(in_file(Error::new("the workload did not run the program at all").next(NOT_RUN)));
        }

        let optimized =
            afterlink_pipeline::optimize(&input, vec![profile], &options, &progress).map_err(in_file)?;
        scratch.write_program(&optimized.bytes, &self.binary)?;
        let timing = self.time(&workload, &scratch, &progress)?;
        target.write_program(&optimized.bytes)?;
        progress.done();
        let tuned = Tuned { report: optimized.report, timing, next: self.next_steps() };
        commands::print(&tuned, self.json)?;
        Ok(ExitCode::SUCCESS)
    }

    fn time(&self, workload: &Workload, scratch: &Scratch, progress: &Terminal) -> Result<Option<Timing>> {
        if self.pairs == 0 {
            return Ok(None);
        }
        let original = absolute(&self.binary)?;
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for pair in 0..self.pairs {
            progress.step(&format!("timing old and new in turns, pair {} of {}", pair + 1, self.pairs));
            // In turns, so that neither side always goes first.
            if pair % 2 == 0 {
                old.push(run_workload(workload, &original)?);
                new.push(run_workload(workload, &scratch.program)?);
            } else {
                new.push(run_workload(workload, &scratch.program)?);
                old.push(run_workload(workload, &original)?);
            }
        }
        Ok(Some(Timing::of(&old, &new)))
    }

    fn next_steps(&self) -> Vec<Next> {
        let (old, new) = (self.binary.display(), self.output.display());
        let workload = self.workload.join(OsStr::new(" ")).to_string_lossy().into_owned();
        let next = |command, purpose| Next { command, purpose };
        vec![
            next(
                format!("afterlink compare --layout as-is {old} {new} -- {workload}"),
                "times them until the gain is sure",
            ),
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
    Err(Error::new(format!("the workload failed ({}){last}", output.status))
        .at(workload.line(program))
        .next("make it succeed with the original program first"))
}

impl Timing {
    fn of(old: &[Run], new: &[Run]) -> Self {
        let mut ratios: Vec<f64> = old.iter().zip(new).map(|(old, new)| new.seconds / old.seconds).collect();
        ratios.sort_by(f64::total_cmp);
        let printed = match &old[0].stdout {
            first if old.iter().any(|run| run.stdout != *first) => Printed::Varying,
            first if new.iter().any(|run| run.stdout != *first) => Printed::Different,
            _ => Printed::Same,
        };
        let seconds = |runs: &[Run]| runs.iter().map(|run| run.seconds).collect();
        Self {
            old: seconds(old),
            new: seconds(new),
            ratio: median(&ratios),
            smallest_ratio: ratios[0],
            largest_ratio: ratios[ratios.len() - 1],
            printed,
        }
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let less = |ratio: f64| 100.0 * (1.0 - ratio);
        let (old, new) = (median(&self.old), median(&self.new));
        writeln!(
            f,
            "timing       old {old:.3} s, new {new:.3} s (medians of {} runs, in turns)",
            self.old.len()
        )?;
        let (gain, least, most) = (less(self.ratio), less(self.largest_ratio), less(self.smallest_ratio));
        let range = format!("(median of the pairs; they lie between {least:.1} and {most:.1} %)");
        if gain > 0.0 {
            writeln!(f, "GAIN         {gain:.1} % less time {range}")?;
        } else {
            writeln!(f, "no gain      {:.1} % more time {range}", -gain)?;
        }
        match self.printed {
            Printed::Same => writeln!(f, "output       the workload prints the same with both"),
            Printed::Varying => {
                writeln!(f, "output       the workload prints something else in each run; not compared")
            }
            Printed::Different => {
                writeln!(
                    f,
                    "WARNING      the workload prints something else with the new program: compare it by hand"
                )
            }
        }
    }
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
