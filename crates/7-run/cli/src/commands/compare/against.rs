//! The comparisons themselves: each further program against the first, in every benchmark.

use super::Compare;
use super::kept::Stored;
use super::resumed::Earlier;
use crate::files;
use crate::interrupt;
use crate::layouts::{Relaid, Subject};
use crate::linked::Linked;
use crate::progress::Experiment;
use afterlink_bench::baseline::Kept;
use afterlink_bench::benchmarks::{Benchmark, parse_benchmarks};
use afterlink_bench::doctor::{ProbeOptions, examine};
use afterlink_bench::experiment::layouts::{AsIs, LayoutSource};
use afterlink_bench::experiment::library::Library;
use afterlink_bench::metric_choice::Choice;
use afterlink_bench::record::{LayoutMode, MachineRecord};
use afterlink_bench::{ExperimentRecord, Setup, run_experiment};
use afterlink_core::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use tempfile::TempDir;

/// What all comparisons of one command have in common.
struct Sitting<'a> {
    earlier: &'a Earlier,
    stored: Option<Stored>,
    benchmarks: Vec<Benchmark>,
    directory: TempDir,
    machine: MachineRecord,
    progress: Experiment,
    /// How many comparisons share the time and the promise of 5 %.
    comparisons: usize,
}

impl Sitting<'_> {
    fn folder(&self, name: String) -> Result<PathBuf> {
        let folder = self.directory.path().join(name);
        std::fs::create_dir(&folder)
            .map_err(|e| Error::new(format!("cannot be made: {e}")).in_file(folder.display()))?;
        Ok(folder)
    }

    fn has_something(&self, records: &[ExperimentRecord]) -> bool {
        !(records.is_empty() && self.earlier.records.is_empty())
    }
}

/// The first program twice would make two comparisons of one name.
fn check_different(others: &[PathBuf]) -> Result<()> {
    for (i, other) in others.iter().enumerate() {
        if others[..i].contains(other) {
            return Err(Error::new("the program is given twice")
                .in_file(other.display())
                .next("give each one once"));
        }
    }
    Ok(())
}

impl Compare {
    /// Compares each further program with the first one.
    ///
    /// # Errors
    /// A program cannot be read or laid out, a workload does not work, an interrupt before anything was learned.
    pub(super) fn measure(&self, earlier: &Earlier) -> Result<Vec<ExperimentRecord>> {
        let stored = self.baseline.as_deref().map(Stored::open).transpose()?;
        let this = self.with_baseline(stored.as_ref());
        let first = this.a.clone().expect("required without a record");
        let others: Vec<PathBuf> = match &this.b {
            Some(b) => std::iter::once(b).chain(&this.more).cloned().collect(),
            None => vec![first.clone()],
        };
        check_different(&others)?;
        let benchmarks = this.benchmarks(stored.as_ref())?;
        let directory = this.measure.work_directory()?;
        interrupt::remove_on_signal(directory.path());
        let mut sitting = Sitting {
            earlier,
            stored,
            comparisons: benchmarks.len() * others.len(),
            benchmarks,
            directory,
            machine: MachineRecord::default(),
            progress: Experiment::new(this.json),
        };
        let mut records = Vec::new();
        for (index, other) in others.iter().enumerate() {
            this.measure_pair([&first, other], index, &mut sitting, &mut records)?;
            if interrupt::stopped().load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(earlier.completed(records))
    }

    /// The same comparison with the program that was kept as the first one.
    fn with_baseline(&self, stored: Option<&Stored>) -> Self {
        let mut this = self.clone();
        if let Some(stored) = stored {
            this.more = self.b.iter().chain(&self.more).cloned().collect();
            (this.a, this.b) = (Some(stored.program.clone()), self.a.clone());
            this.profile_a = stored.profile.clone();
        }
        this
    }

    /// All benchmarks with one pair of programs.
    fn measure_pair(
        &self,
        [a, b]: [&Path; 2],
        pair: usize,
        sitting: &mut Sitting,
        records: &mut Vec<ExperimentRecord>,
    ) -> Result<()> {
        let inputs = [files::read(a)?, files::read(b)?];
        let library = self.library([a, b], &sitting.benchmarks)?;
        let folder = sitting.folder(format!("pair-{pair}"))?;
        sitting.progress.say("recovering the programs");
        let mut source = self.source([a, b], &inputs, &folder)?;
        if pair == 0 {
            sitting.progress.say("looking at the machine");
            sitting.machine = self.machine(sitting.directory.path());
            interrupt::handle();
        }
        let stop = interrupt::stopped();
        for (index, benchmark) in sitting.benchmarks.iter().enumerate() {
            let name = self.name(benchmark, [a, b]);
            let before = sitting.earlier.of_benchmark(&name);
            if let Some((record, false)) = before {
                records.push(record.clone());
                continue;
            }
            let mut setup = Setup { library: library.clone(), ..self.setup(benchmark, [a, b], sitting)? };
            setup.work_dir = sitting.folder(format!("{pair:02}{index:02}"))?;
            if let Some((record, _)) = before {
                setup = sitting.earlier.set_up(record, setup);
            }
            let mut progress = Experiment::of(self.json, (sitting.comparisons > 1).then_some(&name));
            match run_experiment(&setup, &mut *source, &mut progress, stop) {
                Ok(record) => records.push(record),
                // What was finished before the interrupt still counts.
                Err(_) if stop.load(Ordering::Relaxed) && sitting.has_something(records) => break,
                Err(error) => return Err(error),
            }
            progress.done();
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }

    /// By which a comparison is known, in a record too.
    fn name(&self, benchmark: &Benchmark, programs: [&Path; 2]) -> String {
        if self.more.is_empty() {
            return benchmark.name.clone();
        }
        let [_, b] = self.labels(programs);
        format!("{b}: {}", benchmark.name)
    }

    fn setup(&self, benchmark: &Benchmark, programs: [&Path; 2], sitting: &Sitting) -> Result<Setup> {
        let [label_a, label_b] = self.labels(programs);
        let judged = Choice { metrics: benchmark.metrics.clone(), why: benchmark.metric_choice.clone() };
        Ok(Setup {
            name: self.name(benchmark, programs),
            label_a,
            label_b,
            plan: self.measure.plan(self.layout_mode(), judged, sitting.comparisons, self.itself),
            workload: benchmark.workload.clone(),
            work_dir: PathBuf::new(),
            machine: sitting.machine.clone(),
            library: None,
            command: std::env::args().collect(),
            earlier: None,
            then: sitting.stored.as_ref().and_then(|stored| stored.baseline.then(&benchmark.name)),
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

    fn benchmarks(&self, stored: Option<&Stored>) -> Result<Vec<Benchmark>> {
        let Some(path) = &self.benchmarks else {
            if let Some(stored) = stored.filter(|_| self.workload.is_empty()) {
                return Ok(stored.baseline.benchmarks.iter().map(Kept::benchmark).collect());
            }
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
        parse_benchmarks(&text, self.measure.together).map_err(|e| e.in_file(path.display()))
    }

    fn machine(&self, directory: &Path) -> MachineRecord {
        let probe = ProbeOptions { spin_seconds: 0.5, ..ProbeOptions::default() };
        let probe = (!self.measure.no_probe).then_some(probe);
        examine(Path::new("/"), Some(directory), probe).machine_record()
    }
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
