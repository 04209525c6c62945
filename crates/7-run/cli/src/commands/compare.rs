//! `afterlink compare`.

mod resumed;

use crate::commands::measure_options::MeasureArgs;
use crate::layouts::{Relaid, Subject};
use crate::linked::Linked;
use crate::progress::Experiment;
use crate::{commands, files, interrupt};
use afterlink_bench::benchmarks::{Benchmark, parse_benchmarks};
use afterlink_bench::doctor::{ProbeOptions, examine};
use afterlink_bench::experiment::layouts::{AsIs, LayoutSource};
use afterlink_bench::experiment::library::Library;
use afterlink_bench::metric_choice::Choice;
use afterlink_bench::record::{LayoutMode, MachineRecord};
use afterlink_bench::{ExperimentRecord, Setup, SuiteAnalysis, analyse_suite, run_experiment};
use afterlink_core::{Error, Result};
use resumed::Earlier;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

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
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Compare {
    /// The first program or shared object, as the linker made it (with -Wl,--emit-relocs).
    #[arg(required_unless_present_any = ["replay", "resume"], value_name = "A")]
    a: Option<PathBuf>,
    /// The second one; A again if that is laid out by a profile.
    #[arg(required_unless_present_any = ["replay", "resume", "itself", "profile_a", "profile_b"], value_name = "B")]
    b: Option<PathBuf>,
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
    #[command(flatten)]
    measure: MeasureArgs,
    /// Several benchmarks instead of one workload, in a JSON file: {"benchmarks": [{"name": "insert", "workload": ["./bench.sh", "{}"]}, …]}.
    /// A command is a list of words, or one string for the shell; a benchmark may also have set_up, warm_up, tear_down,
    /// metrics (a list as for --metric) and timeout_seconds.
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
    #[arg(long, value_name = "FILE", conflicts_with_all = ["a", "b", "itself", "profile_a", "profile_b", "any_profile", "benchmarks", "workload"])]
    replay: Option<PathBuf>,
    /// Go on with what a record holds, with the command that began it: --blocks more layouts, for --max-time seconds at most. The
    /// record is written anew, unless --record names another file.
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["a", "b", "itself", "profile_a", "profile_b", "any_profile", "benchmarks", "workload", "replay"])]
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
        let mut others: Vec<&PathBuf> = inputs.into_iter().filter_map(|other| other.as_ref()).collect();
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

    fn measure(&self, earlier: &Earlier) -> Result<Vec<ExperimentRecord>> {
        let a = self.a.as_ref().expect("required without a record");
        let b = self.b.as_ref().unwrap_or(a);
        let inputs = [files::read(a)?, files::read(b)?];
        let benchmarks = self.benchmarks()?;
        let library = self.library([a, b], &benchmarks)?;
        let directory = self.measure.work_directory()?;
        interrupt::remove_on_signal(directory.path());
        let progress = Experiment::new(self.json);
        progress.say("recovering the programs");
        let mut source = self.source([a, b], &inputs, directory.path())?;
        progress.say("looking at the machine");
        let machine = self.machine(directory.path());
        interrupt::handle();
        let stop = interrupt::stopped();
        let mut records: Vec<ExperimentRecord> = Vec::new();
        for (index, benchmark) in benchmarks.iter().enumerate() {
            let before = earlier.of_benchmark(&benchmark.name);
            if let Some((record, false)) = before {
                records.push(record.clone());
                continue;
            }
            let work_dir = directory.path().join(format!("{index:04}"));
            std::fs::create_dir(&work_dir)
                .map_err(|e| Error::new(format!("cannot be made: {e}")).in_file(work_dir.display()))?;
            let setup = Setup {
                library: library.clone(),
                ..self.setup(benchmark, &benchmarks, [a, b], work_dir, machine.clone())?
            };
            let setup = match before {
                Some((record, _)) => earlier.set_up(record, setup),
                None => setup,
            };
            let mut progress = Experiment::of(self.json, (benchmarks.len() > 1).then_some(&benchmark.name));
            match run_experiment(&setup, &mut *source, &mut progress, stop) {
                Ok(record) => records.push(record),
                // What was finished before the interrupt still counts.
                Err(_)
                    if stop.load(Ordering::Relaxed)
                        && !(records.is_empty() && earlier.records.is_empty()) =>
                {
                    break;
                }
                Err(error) => return Err(error),
            }
            progress.done();
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(earlier.completed(records))
    }

    fn setup(
        &self,
        benchmark: &Benchmark,
        all: &[Benchmark],
        programs: [&Path; 2],
        work_dir: PathBuf,
        machine: MachineRecord,
    ) -> Result<Setup> {
        let [label_a, label_b] = self.labels(programs);
        let judged = Choice { metrics: benchmark.metrics.clone(), why: benchmark.metric_choice.clone() };
        Ok(Setup {
            name: benchmark.name.clone(),
            label_a,
            label_b,
            plan: self.measure.plan(self.layout_mode(), judged, all.len(), self.itself),
            workload: benchmark.workload.clone(),
            work_dir,
            machine,
            library: None,
            command: std::env::args().collect(),
            earlier: None,
        })
    }

    fn source<'a>(
        &self,
        [a, b]: [&'a Path; 2],
        [a_bytes, b_bytes]: &'a [Vec<u8>; 2],
        directory: &Path,
    ) -> Result<Box<dyn LayoutSource + 'a>> {
        let mode = self.layout_mode();
        if mode != LayoutMode::Jitter && self.is_by_profile() {
            return Err(Error::new("a layout by profile can only be judged in its own order")
                .at("--layout")
                .next("leave --layout out or give --layout jitter"));
        }
        if mode == LayoutMode::AsIs {
            return Ok(Box::new(AsIs::new(a, b)));
        }
        let side = |path: &'a Path, bytes: &'a [u8], profile: &Option<PathBuf>, name: &str| {
            let profiles = files::read_profiles(profile.as_slice(), files::Ran::new(path, bytes))?;
            Subject::new(path, bytes, profiles, self.any_profile, &directory.join(name)).map_err(|e| {
                match profile {
                    Some(_) => e,
                    None => or_as_is(e),
                }
            })
        };
        let a = side(a, a_bytes, &self.profile_a, "laid-out-a")?;
        let b = side(b, b_bytes, &self.profile_b, "laid-out-b")?;
        Ok(Box::new(Relaid::new(mode, [a, b])))
    }

    /// How both are found if they are shared objects.
    fn library(&self, paths: [&Path; 2], benchmarks: &[Benchmark]) -> Result<Option<Library>> {
        // What is measured as it is need not be linked by anyone.
        let [a, b] = paths.map(|path| Linked::open(path).ok().filter(Linked::is_object));
        let [Some(a), Some(b)] = [&a, &b] else {
            let Some(object) = a.or(b) else { return Ok(None) };
            return Err(Error::new("this is a shared object, and the other file is none")
                .in_file(object.path.display())
                .next("compare two builds of one of them"));
        };
        if benchmarks.iter().any(|benchmark| benchmark.workload.argv.is_empty()) {
            return Err(Error::new("a shared object does not run by itself")
                .in_file(a.path.display())
                .next("add `--` and a command that loads it"));
        }
        let mut names = a.names();
        names.extend(b.names().into_iter().filter(|name| !a.names().contains(name)));
        let folders = [a, b].into_iter().flat_map(Linked::own_folders).map(Path::to_owned).collect();
        Ok(Some(Library { names, folders }))
    }

    fn is_by_profile(&self) -> bool {
        self.profile_a.is_some() || self.profile_b.is_some()
    }

    fn layout_mode(&self) -> LayoutMode {
        match self.measure.layout {
            Some(layout) => layout.into(),
            None if self.is_by_profile() => LayoutMode::Jitter,
            None => LayoutMode::Shuffle,
        }
    }

    fn labels(&self, paths: [&Path; 2]) -> [String; 2] {
        let mut labels = labels(paths);
        for (label, profile) in labels.iter_mut().zip([&self.profile_a, &self.profile_b]) {
            if let Some(profile) = profile {
                label.push_str(" laid out by ");
                label.push_str(&profile.file_name().unwrap_or_default().to_string_lossy());
            }
        }
        labels
    }

    fn benchmarks(&self) -> Result<Vec<Benchmark>> {
        let Some(path) = &self.benchmarks else {
            let workload = self.measure.workload(self.workload.clone());
            let Choice { metrics, why: metric_choice } = self.measure.metrics()?;
            let name = match self.workload.join(" ") {
                none if none.is_empty() => "the program alone".into(),
                long if long.chars().count() > 60 => long.chars().take(59).chain(['…']).collect(),
                line => line,
            };
            return Ok(vec![Benchmark { name, workload, metrics, metric_choice }]);
        };
        let text = String::from_utf8_lossy(&files::read(path)?).into_owned();
        parse_benchmarks(&text).map_err(|e| e.in_file(path.display()))
    }

    fn machine(&self, directory: &Path) -> MachineRecord {
        let probe = ProbeOptions { spin_seconds: 0.5, ..ProbeOptions::default() };
        let probe = (!self.measure.no_probe).then_some(probe);
        examine(Path::new("/"), Some(directory), probe).machine_record()
    }
}

fn read_records(path: &Path) -> Result<Vec<ExperimentRecord>> {
    let text = String::from_utf8_lossy(&files::read(path)?).into_owned();
    afterlink_report::parse_records(&text).map_err(|e| e.in_file(path.display()))
}

/// Says what can be done with a program that cannot be rewritten.
fn or_as_is(error: Error) -> Error {
    let next = error.next.clone().map(|n| format!("{n}, or ")).unwrap_or_default();
    Error { next: Some(format!("{next}measure both files as they are with --layout as-is")), ..error }
}

/// The paths without the folders that both begin with: `old/server` and `new/server`.
fn labels(paths: [&Path; 2]) -> [String; 2] {
    let parts = paths.map(|p| p.components().collect::<Vec<_>>());
    let shorter = parts[0].len().min(parts[1].len());
    let common =
        parts[0].iter().zip(&parts[1]).take_while(|(a, b)| a == b).count().min(shorter.saturating_sub(1));
    parts.map(|p| p[common..].iter().collect::<PathBuf>().display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_what_tells_the_programs_apart() {
        let of = |a: &str, b: &str| labels([Path::new(a), Path::new(b)]);
        assert_eq!(of("/x/old/server", "/x/new/server"), ["old/server", "new/server"]);
        assert_eq!(of("a", "b"), ["a", "b"]);
        assert_eq!(of("/x/a", "/x/a"), ["a", "a"]);
        assert_eq!(of("/x/a", "b"), ["/x/a", "b"]);
        assert_eq!(of("/x/a", "/x/a/b"), ["a", "a/b"]);
    }
}
