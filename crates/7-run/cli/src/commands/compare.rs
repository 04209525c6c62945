//! `afterlink compare`.

mod against;
mod kept;
mod resumed;

use crate::commands::measure_options::MeasureArgs;
use crate::{commands, files};
use afterlink_bench::{ExperimentRecord, SuiteAnalysis, analyse_suite};
use afterlink_core::Result;
use resumed::Earlier;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Makes a file's text of what was measured.
type Writer = fn(&[ExperimentRecord], &SuiteAnalysis) -> String;

/// Exit code of an error: 1 to 3 are verdicts.
const FAILED: u8 = 64;

/// Says whether B is faster than A, or whether it is only the layout
///
/// Both programs run in many random layouts, in turns; the verdict is about the code and
/// not about where it happens to lie. The workload comes behind --, with {} for the program:
///     afterlink compare old/server new/server -- ./bench.sh {}
/// With a profile it judges the layout that the profile makes:
///     afterlink compare server --profile-b server.fdata -- ./bench.sh {}
/// Two builds of a shared object; the workload is whatever loads it:
///     afterlink compare old/libzip.so new/libzip.so -- ./viewer a.zip
/// Several programs against the first one, or one that was kept:
///     afterlink compare main/server branch-1/server branch-2/server -- ./bench.sh {}
///     afterlink compare --self server --keep-baseline main-server -- ./bench.sh {}
///     afterlink compare --baseline main-server server
/// A server, judged by what its processes use for a transaction that pgbench counts:
///     afterlink compare old/postgres new/postgres --set-up './start {}' --tear-down ./stop
///         --ignore-output -- pgbench -S -T 5
///
/// A shared object stands alone in a folder that comes first in LD_LIBRARY_PATH, under its
/// file name and its soname; $AFTERLINK_LIBRARIES holds the folder.
///
/// What is undecided can go on, and the promise of 5 % holds for all of it together:
///     afterlink compare A B --record r.json -- ./bench.sh {}
///     afterlink compare --resume r.json --blocks 40
///
/// Exit code: 0 faster or no difference, 1 slower with the whole interval beyond the
/// margin, 2 undecided, 3 not to be trusted, 64 an error.
#[derive(clap::Args, Clone)]
#[command(verbatim_doc_comment)]
pub struct Compare {
    /// The first program or shared object, as the linker made it (with -Wl,--emit-relocs).
    #[arg(required_unless_present_any = ["replay", "resume"], value_name = "A")]
    a: Option<PathBuf>,
    /// The second one; A again if that is laid out by a profile.
    #[arg(required_unless_present_any = ["replay", "resume", "itself", "profile_a", "profile_b", "baseline"], value_name = "B")]
    b: Option<PathBuf>,
    /// More programs, each of which is compared with the first one.
    #[arg(value_name = "C", conflicts_with_all = ["itself", "profile_a", "profile_b"])]
    more: Vec<PathBuf>,
    /// Lay A out by this profile, and judge that layout: its order stays, only the gaps are varied.
    #[arg(long, value_name = "FILE", conflicts_with = "itself")]
    profile_a: Option<PathBuf>,
    /// The same of B, which is A if there is no other.
    #[arg(long, value_name = "FILE", conflicts_with = "itself")]
    profile_b: Option<PathBuf>,
    /// Use a profile even if less than half of it, by names or by counts, is about functions of this program: then it is most
    /// likely another program's, which is an error. A profile of another build or version passes without this.
    #[arg(long)]
    any_profile: bool,
    /// Compare A with itself, in layouts that have nothing to do with each other: any difference found is a fault of
    /// the machine or the workload.
    #[arg(long = "self", conflicts_with = "b", id = "itself")]
    itself: bool,
    /// Compare with the program that was kept in this folder: it runs again, as times of another day say more of the machine than
    /// of the program. Without a workload, that of then.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["itself", "profile_a"])]
    baseline: Option<PathBuf>,
    /// Keep the new program (or the only one) in this folder, with its profile, the workload and what it took, unless the
    /// verdict is that it is slower by more than the margin, or not to be trusted.
    #[arg(long, value_name = "DIR", conflicts_with = "more")]
    keep_baseline: Option<PathBuf>,
    #[command(flatten)]
    measure: MeasureArgs,
    /// Several benchmarks instead of one workload, in a JSON file: {"benchmarks": [{"name": "insert", "workload": ["./bench.sh", "{}"]}, …]}.
    /// A command is a list of words, or one string for the shell; a benchmark may also have set_up, warm_up, tear_down,
    /// metrics (a list as for --metric), server_pids (a list) and timeout_seconds.
    #[arg(long, value_name = "FILE", conflicts_with = "workload")]
    benchmarks: Option<PathBuf>,
    /// Write the report as one HTML page.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Write every run and the verdict as JSON.
    #[arg(long, value_name = "FILE.json")]
    record: Option<PathBuf>,
    /// Write the verdicts as JUnit's XML: a regression beyond the margin fails, what is undecided is skipped.
    #[arg(long, value_name = "FILE.xml")]
    junit: Option<PathBuf>,
    /// Write the verdicts as a table in Markdown, for a comment.
    #[arg(long, value_name = "FILE.md")]
    markdown: Option<PathBuf>,
    /// Write one row for each benchmark, as comma-separated values.
    #[arg(long, value_name = "FILE.csv")]
    csv: Option<PathBuf>,
    /// Judge a record or a report that was written earlier, without running anything.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["a", "b", "more", "itself", "profile_a", "profile_b", "any_profile", "benchmarks", "workload", "baseline", "keep_baseline"])]
    replay: Option<PathBuf>,
    /// Go on with what a record holds, with the command that began it: --blocks more layouts, for --max-time seconds at most. The
    /// record is written anew, unless --record names another file.
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["a", "b", "more", "itself", "profile_a", "profile_b", "any_profile", "benchmarks", "workload", "replay", "baseline", "keep_baseline"])]
    resume: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The workload: a command, with {} for the program; the program alone if left out.
    #[arg(last = true, value_name = "WORKLOAD")]
    workload: Vec<String>,
}

impl Compare {
    pub fn run(self) -> Result<ExitCode> {
        // An error must not look like the verdict "slower".
        Ok(self.judge().unwrap_or_else(|error| {
            commands::complain(&error);
            ExitCode::from(FAILED)
        }))
    }

    fn judge(&self) -> Result<ExitCode> {
        let records = match (&self.replay, &self.resume) {
            (Some(path), _) => read_records(path)?,
            (None, Some(path)) => {
                self.targets()?;
                self.go_on(path, read_records(path)?)?
            }
            (None, None) => {
                self.targets()?;
                self.measure(&Earlier::default())?
            }
        };
        let suite = analyse_suite(&records);
        self.write(&records, &suite)?;
        let kept = self.keep(&records, &suite)?;
        let colour = std::io::stdout().is_terminal();
        let text = match (self.json, &records[..]) {
            (true, _) => afterlink_report::to_json(&records, &suite),
            (_, [record]) => afterlink_report::compare_text(record, &suite.benchmarks[0], colour),
            _ => afterlink_report::suite_text(&records, &suite, colour),
        };
        commands::print_text(text.trim_end())?;
        if !self.json
            && let Some(command) = self.settling_command(&suite)
        {
            commands::print_text(&format!("to settle it   {command}"))?;
        }
        if let Some(kept) = kept.filter(|_| !self.json) {
            commands::print_text(&kept)?;
        }
        Ok(ExitCode::from(suite.exit_code()))
    }

    /// The files to write, each with what is written into it. Where they go is checked before anything is measured.
    fn targets(&self) -> Result<Vec<(files::Target, Writer)>> {
        // A record that goes on may be written in its own place.
        let input = self.replay.as_ref().or(self.a.as_ref());
        let nowhere = PathBuf::new();
        let record = if self.record.is_some() { &self.record } else { &self.resume };
        let outputs: [(&Option<PathBuf>, Writer); 5] = [
            (&self.report, afterlink_report::html_page),
            (record, afterlink_report::to_json),
            (&self.junit, afterlink_report::junit_xml),
            (&self.markdown, afterlink_report::markdown),
            (&self.csv, afterlink_report::csv),
        ];
        let inputs = [&self.b, &self.profile_a, &self.profile_b, &self.benchmarks];
        let mut others: Vec<&PathBuf> =
            inputs.into_iter().filter_map(|other| other.as_ref()).chain(&self.more).collect();
        let mut targets = Vec::new();
        for (path, writer) in outputs {
            let Some(path) = path else { continue };
            let target = files::Target::check(path, input.unwrap_or(&nowhere))?;
            targets.push((target.differs_from(others.iter().copied())?, writer));
            others.push(path);
        }
        Ok(targets)
    }

    fn write(&self, records: &[ExperimentRecord], suite: &SuiteAnalysis) -> Result<()> {
        for (target, text) in self.targets()? {
            target.write(text(records, suite).as_bytes())?;
        }
        Ok(())
    }
}

fn read_records(path: &Path) -> Result<Vec<ExperimentRecord>> {
    let text = String::from_utf8_lossy(&files::read(path)?).into_owned();
    afterlink_report::parse_records(&text).map_err(|e| e.in_file(path.display()))
}
