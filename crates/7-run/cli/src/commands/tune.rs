//! `afterlink tune`: the whole job.

mod counts;
mod stand;
mod timing;
mod tuned;

use crate::commands::instrument::note;
use crate::commands::layout_options::{LayoutArgs, OutputArgs};
use crate::files::{Destination, Kind};
use crate::layouts::{Movable, Subject};
use crate::linked::{self, Linked};
use crate::progress::Terminal;
use crate::workload::Workload;
use crate::{commands, files};
use afterlink_bench::experiment::counters::Counters;
use afterlink_bench::experiment::process::children_cpu_seconds;
use afterlink_core::{Error, Result};
use afterlink_pipeline::{
    Counting, DebugSource, InstrumentOptions, LaidOut, OptimizeOptions, Optimized, Progress,
};
use afterlink_profile::{Profile, fdata};
use afterlink_report::numbers::shell_line;
use stand::{Scratch, Stand};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use timing::{Relayed, time};
use tuned::{Binary, Next, Tuned};

/// Makes a program faster, or a shared object, or a whole process.
///
/// Instruments it, runs the workload, lays it out anew, proves it, and times old
/// against new. A program:
///
///     afterlink tune ./server -o ./server.fast -- ./workload.sh {}
///
/// A shared object; the workload is whatever loads it:
///
///     afterlink tune libfoo.so -o libfoo.fast.so -- ./app its arguments
///
/// A program with any of its libraries, or several libraries: counted in one run,
/// each laid out by its own counts, timed together. They come into a folder, under
/// their own names, when all of them are proven; a file that can't be rewritten is
/// an error, and one of which nothing ran is left out:
///
///     afterlink tune ./server libfoo.so libbar.so -o fast -- ./workload.sh {}
///
/// A program under test stands beside the original while the workload runs, so that
/// it finds what it looks for relative to itself. Shared objects under test stand in
/// a folder that comes first in LD_LIBRARY_PATH, under their file names and sonames.
/// That is enough for whoever asks for them by name. Where an object is opened by a
/// path of its own (a plugin, an extension of Python), let the workload say where it
/// is, or put it there; AFTERLINK_LIBRARIES holds the folder:
///
///     afterlink tune foo.so -o foo.fast.so -- ./app --plugin {}
///     afterlink tune foo.so -o foo.fast.so -- sh -c 'cp {} plugins/foo.so && ./app'
///     afterlink tune foo.so -o foo.fast.so -- \
///         sh -c 'PYTHONPATH=$AFTERLINK_LIBRARIES python3 bench.py'
///
/// Nothing is written if the workload loads no copy that counts. LD_LIBRARY_PATH has
/// no say where the program has an RPATH (link it with -Wl,--enable-new-dtags, which
/// makes it a RUNPATH) or is set-user-id, or where the workload sets it anew.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Tune {
    /// The program or shared object, as the linker made it (linked with -Wl,--emit-relocs, not stripped). Of a whole process,
    /// the program and any of its libraries.
    #[arg(required = true, value_name = "BINARY")]
    binaries: Vec<PathBuf>,
    /// Where the faster one goes; of several, the folder that they go to.
    #[arg(long, short)]
    output: PathBuf,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    writing: OutputArgs,
    /// How often to time old and new, in turns; fewer than 6 give no verdict.
    #[arg(long, default_value_t = 7, value_name = "N")]
    pairs: u32,
    /// Also write the profile, for `optimize` and `compare`; of several binaries, a folder with a profile of each.
    #[arg(long, value_name = "FILE.fdata")]
    keep_profile: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// How to run it; `{}` stands for the (first) binary under test, as does the variable AFTERLINK_BINARY.
    #[arg(last = true, required = true)]
    workload: Vec<OsString>,
}

/// What to do about a workload that fails whatever it is given.
const ORIGINAL_FIRST: &str = "make it succeed with the original program first";

/// What to do about one file of several that can't be tuned.
const LEAVE_OUT: &str = "or leave it out of the command";

/// One run of the workload.
struct Run {
    seconds: f64,
    /// Of the workload and of all that it waited for.
    cpu_seconds: f64,
    /// In user mode, where the processor counts them.
    cycles: Option<f64>,
    stdout: Vec<u8>,
}

/// A file that was laid out anew; nothing of one of which nothing ran.
type Tried<'a> = Option<(LaidOut<'a>, Optimized)>;

impl Tune {
    pub fn run(self) -> Result<ExitCode> {
        let options = OptimizeOptions { explain: self.json, ..self.writing.added_to(self.layout.options()?) };
        let workload = Workload::new(self.workload.clone())?;
        let all = linked::open_all(&self.binaries)?;
        let (outputs, kept) = self.destinations()?;
        let progress = Terminal::new(self.json);
        let scratch = Scratch::new(&all, &self.output)?;

        for (index, linked) in all.iter().enumerate() {
            self.instrument(index, linked, &options, &scratch, &progress)?;
        }
        progress.step("running the workload, counting");
        run_workload(&workload, &scratch.new).map_err(|e| e.next(ORIGINAL_FIRST))?;
        let profiles = counts::read(&all, &scratch.counters)?;
        let kept_profiles = if kept.is_some() { as_text(&profiles)? } else { Vec::new() };

        let mut tried = Vec::new();
        for (index, (linked, profile)) in all.iter().zip(profiles).enumerate() {
            tried.push(self.lay_out(index, linked, profile, &options, &scratch, &progress)?);
        }
        let (laid_out, optimized): (Vec<_>, Vec<_>) = tried.into_iter().map(Option::unzip).unzip();
        let timing = match self.pairs {
            0 => None,
            pairs => {
                let relayed = self.relayed(&all, laid_out, &outputs)?;
                Some(time(pairs, &workload, relayed, &scratch, &progress)?)
            }
        };
        if let Some(kept) = kept {
            kept.publish(Kind::Other, &kept_profiles, &mut [])?;
        }
        let (mut bytes, mut reports, mut packages) = (Vec::new(), Vec::new(), Vec::new());
        for one in optimized {
            let (one, mut report) = one.map(|one| ((one.bytes, one.package), one.report)).unzip();
            let (program, package) = one.unzip();
            let parts = report.as_mut().map(|report| std::mem::take(&mut report.debug_files));
            bytes.push(program);
            reports.push(report);
            packages.push((package, parts.unwrap_or_default()));
        }
        outputs.publish(Kind::Program, &bytes, &mut packages)?;
        progress.done();
        if all.len() > 1 {
            link_sonames(&all, &outputs, &bytes)?;
        }
        let next = self.next_steps(&all, &outputs, &bytes);
        let each = all.iter().zip(outputs.outputs()).zip(reports);
        let binaries = each.map(|((linked, output), report)| Binary {
            binary: linked.path.clone(),
            output: report.is_some().then(|| output.to_owned()),
            report,
        });
        commands::print(&Tuned { binaries: binaries.collect(), timing, next }, self.json)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Where the outputs go, and where the profiles, if they are kept.
    fn destinations(&self) -> Result<(Destination, Option<Destination>)> {
        let inputs: Vec<&Path> = self.binaries.iter().map(PathBuf::as_path).collect();
        let outputs = Destination::check(&self.output, &inputs, "")?;
        let Some(kept) = &self.keep_profile else { return Ok((outputs, None)) };
        if inputs.len() == 1 {
            files::Target::check(kept, inputs[0])?.differs_from([&self.output])?;
        }
        Ok((outputs, Some(Destination::check(kept, &inputs, ".fdata")?)))
    }

    fn instrument(
        &self,
        index: usize,
        linked: &Linked,
        options: &OptimizeOptions,
        scratch: &Scratch,
        progress: &Terminal,
    ) -> Result<()> {
        progress.step(&format!("instrumenting {}", linked.path.display()));
        let instrument = InstrumentOptions {
            counter_file: scratch.counters[index].clone().into_os_string().into_vec(),
            skip_functions: options.skip_functions.clone(),
            // Layouts don't mind a lost count.
            counting: Counting::Fast,
            count_targets: true,
            check: options.check,
            note: note(),
        };
        let instrumented =
            afterlink_pipeline::instrument(&linked.bytes, &instrument, &afterlink_pipeline::Silent)
                .map_err(|e| self.of(linked, e))?;
        commands::complain_of_faults(&instrumented.report.unproven_functions);
        scratch.new.write(index, &instrumented.bytes, &linked.path)
    }

    /// Lays one file out by its profile and puts it where the workload finds it. One without a profile stands on both sides as it is.
    fn lay_out<'a>(
        &self,
        index: usize,
        linked: &'a Linked,
        profile: Option<Profile>,
        options: &OptimizeOptions,
        scratch: &Scratch,
        progress: &Terminal,
    ) -> Result<Tried<'a>> {
        let Some(profile) = profile else {
            scratch.old.write(index, &linked.bytes, &linked.path)?;
            scratch.new.write(index, &linked.bytes, &linked.path)?;
            return Ok(None);
        };
        let output = match self.binaries.len() {
            1 => self.output.clone(),
            _ => self.output.join(linked.path.file_name().unwrap_or_default()),
        };
        let beside = files::BesideProgram::new(&linked.path, &output);
        let options =
            &OptimizeOptions { debug_files: DebugSource(Some(Arc::new(beside))), ..options.clone() };
        let (laid_out, optimized) = LaidOut::proven(&linked.bytes, vec![profile], options, progress)
            .map_err(|e| self.of(linked, e))?;
        commands::complain_of_faults(&optimized.report.unproven_functions);
        scratch.new.write(index, &optimized.bytes, &linked.path)?;
        Ok(Some((laid_out, optimized)))
    }

    /// The error with the file's name. Whoever named several may do without one.
    fn of(&self, linked: &Linked, mut error: Error) -> Error {
        if let Some(next) = error.next.as_mut().filter(|_| self.binaries.len() > 1) {
            *next = format!("{next}, {LEAVE_OUT}");
        }
        error.in_file(linked.path.display())
    }

    /// Each file as it was linked, and as it is laid out now, to be written again and again.
    fn relayed<'a>(
        &self,
        all: &'a [Linked],
        laid_out: Vec<Option<LaidOut<'a>>>,
        outputs: &Destination,
    ) -> Result<Vec<Relayed<'a>>> {
        let mut relayed = Vec::new();
        for (index, ((linked, laid_out), output)) in
            all.iter().zip(laid_out).zip(outputs.outputs()).enumerate()
        {
            let Some(laid_out) = laid_out else { continue };
            let subject = |shipped: &Path, program| Subject {
                path: &linked.path,
                bytes: &linked.bytes,
                shipped: shipped.to_owned(),
                program,
            };
            let old = Movable::new(&linked.bytes, Vec::new(), false).map_err(|e| self.of(linked, e))?;
            let new = Movable::ByProfile(Box::new(laid_out));
            relayed.push(Relayed::new(index, [subject(&linked.path, old), subject(output, new)]));
        }
        Ok(relayed)
    }

    fn next_steps(&self, all: &[Linked], outputs: &Destination, written: &[Option<Vec<u8>>]) -> Vec<Next> {
        let next = |command, purpose| Next { command, purpose };
        let pairs = all.iter().zip(outputs.outputs()).zip(written).filter(|(_, written)| written.is_some());
        let (old, new): (Vec<_>, Vec<_>) =
            pairs.map(|((linked, new), _)| (line([&linked.path]), line([new]))).unzip();
        let mut steps = Vec::new();
        if let [linked] = all {
            let (old, new, workload) = (line([&linked.path]), line([&self.output]), line(&self.workload));
            let compare = match &self.keep_profile {
                Some(profile) => format!("afterlink compare {old} --profile-b {}", line([profile])),
                None => format!("afterlink compare --layout as-is {old} {new}"),
            };
            steps.push(next(format!("{compare} -- {workload}"), "times them until the gain is sure"));
        }
        let proves = match new.len() {
            1 => "proves once more that they are the same program",
            _ => "proves once more that they are the same program; so with each of the others",
        };
        steps.push(next(format!("afterlink verify {} {}", old[0], new[0]), proves));
        steps.push(next(format!("strip {}", new.join(" ")), "if you ship it without symbols"));
        steps
    }
}

/// Words of a command, as a shell reads them.
fn line(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
    let words = words.into_iter().map(|word| word.as_ref().to_string_lossy().into_owned());
    shell_line(&words.collect::<Vec<_>>())
}

/// Programs ask for an object by its soname: beside the outputs of several stands a link of that name.
fn link_sonames(all: &[Linked], outputs: &Destination, written: &[Option<Vec<u8>>]) -> Result<()> {
    for ((linked, output), _) in all.iter().zip(outputs.outputs()).zip(written).filter(|(_, w)| w.is_some()) {
        let soname = linked.object.as_ref().and_then(|object| object.soname.as_deref());
        let Some(soname) = soname.filter(|&soname| soname != linked.name()) else { continue };
        match std::os::unix::fs::symlink(linked.name(), output.with_file_name(soname)) {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
                let what = format!("no link can be made for its soname: {e}");
                return Err(Error::new(what).in_file(output.display()).next("give another folder"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The profiles as fdata.
fn as_text(profiles: &[Option<Profile>]) -> Result<Vec<Option<Vec<u8>>>> {
    let text = |profile: &Profile| {
        let mut text = Vec::new();
        fdata::write(profile, &mut text).map(|()| text)
    };
    profiles.iter().map(|profile| profile.as_ref().map(text).transpose()).collect()
}

/// Runs the workload on one side.
fn run_workload(workload: &Workload, stand: &Stand) -> Result<Run> {
    let (started, before) = (Instant::now(), children_cpu_seconds());
    let counters = Counters::open(&["cycles"]);
    let output = stand.run(workload)?;
    let seconds = started.elapsed().as_secs_f64();
    if output.status.success() {
        let cpu_seconds = children_cpu_seconds() - before;
        return Ok(Run {
            seconds,
            cpu_seconds,
            cycles: counters.read()[0].map(|count| count.value),
            stdout: output.stdout,
        });
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().map(|l| format!(", its last words: {l}")).unwrap_or_default();
    let line = workload.line(&stand.files[0]);
    Err(Error::new(format!("the workload failed ({}){last}", output.status)).at(line))
}
