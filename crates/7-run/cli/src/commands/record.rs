//! `afterlink record`.

use crate::files::{OutputFile, Ran, Target};
use crate::{commands, files, interrupt};
use afterlink_core::{Error, Output, Result};
use afterlink_profile::fdata;
use afterlink_record::{
    Follow, Frequency, Options, Recorded, Recorder, Sampled, Whom, descendants, is_running,
};
use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Samples a command, or processes that run, with all their threads and what they start
///
/// No other program is needed.
///
///     afterlink record -o P.fdata -- ./server its arguments
///     afterlink record -o P.fdata -p $(pgrep -o postgres) --seconds 30
///
/// Where the machine has branch stacks, they are taken. Where not (most virtual machines), they
/// are made: at each sample the thread is held for a fraction of a millisecond, and which way it
/// will go next is worked out from its registers and memory. That is worth nine tenths of what
/// counts of afterlink instrument are; single addresses (--no-branches) two to three quarters.
/// Processes that run already (-p) are held only if --follow says so.
///
/// A name that ends in .fdata gets a profile of one program, any other a recording (perf.data) of
/// all, which perf reads, and every command of afterlink that takes a profile.
///
/// It ends as the command does: what that returns, record returns, once all is written.
///
/// Sampling needs the right to: perf_event_paranoid of at most 2, or CAP_PERFMON.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Record {
    /// Where the profile (*.fdata) or the recording goes.
    #[arg(long, short)]
    output: PathBuf,
    /// A process to sample, with what it has started; until it ends, --seconds are over, or Ctrl-C.
    #[arg(long, short, value_name = "PID")]
    pid: Vec<u32>,
    /// The program that the profile is of: by default the command's, or the first process's.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// What the program was made of, where that is an output of afterlink: the profile is of the
    /// original in any case; needed where the output is stripped, or functions became one.
    #[arg(long, value_name = "FILE")]
    original: Option<PathBuf>,
    /// Samples a second, on each processor [default: 1000, or 250 where threads are followed].
    #[arg(long, short = 'F', value_name = "N")]
    frequency: Option<u64>,
    /// Sample single addresses: take no branch stacks, and hold no thread.
    #[arg(long)]
    no_branches: bool,
    /// Hold and follow threads of processes that run already, too, if the machine has no branch
    /// stacks. A sample costs such a thread a fraction of a millisecond.
    #[arg(long, conflicts_with = "no_branches")]
    follow: bool,
    /// Instructions that a thread is followed.
    #[arg(long, hide = true, default_value_t = FOLLOWED, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_FOLLOWED))]
    follow_length: u32,
    /// Stop after so long; a command runs on to its end.
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The command and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What was recorded, and what it is worth.
#[derive(serde::Serialize)]
struct Report {
    event: &'static str,
    branch_stacks: bool,
    samples: u64,
    /// Samples whose thread was followed.
    followed: Option<u64>,
    lost: u64,
    output: String,
}

/// A program: what it is called, and where it can be read.
struct Program {
    name: PathBuf,
    place: PathBuf,
}

impl Program {
    fn at(path: PathBuf) -> Self {
        Self { name: path.clone(), place: path }
    }

    /// What a process runs, also if that is a container's and has another path here, or was replaced by a newer one meanwhile.
    fn of_process(process: u32) -> Result<Self> {
        let place = PathBuf::from(format!("/proc/{process}/exe"));
        let name = std::fs::read_link(&place)
            .map_err(|_| Error::new("the process's program cannot be found").next("name it with --binary"))?;
        let bare = name.to_str().and_then(|name| name.strip_suffix(" (deleted)")).map(PathBuf::from);
        Ok(Self { name: bare.unwrap_or(name), place })
    }
}

impl Record {
    pub fn run(self) -> Result<ExitCode> {
        if self.command.is_empty() == self.pid.is_empty() {
            let what =
                if self.pid.is_empty() { "nothing to record" } else { "a command and processes at once" };
            return Err(Error::new(what).next("give a command behind `--`, or processes by -p"));
        }
        let limit = self.seconds.map(Duration::try_from_secs_f64).transpose().map_err(|_| {
            Error::new("no time that a recording may take").at("--seconds").next("give seconds, such as 30")
        })?;
        if self.frequency == Some(0) {
            return Err(Error::new("no sample a second").at("--frequency").next("give a number above zero"));
        }
        let program = self.makes_profile().then(|| self.program()).transpose()?;
        let target = self.target()?;
        // What is wrong with the program is said before an hour of recording.
        let bytes = program.as_ref().map(|program| files::map(&program.place)).transpose()?;
        let original = self.original.as_deref().map(files::map).transpose()?;
        let original = self.original.as_deref().zip(original.as_deref());
        let ran = program.as_ref().zip(bytes.as_deref());
        let ran = ran.map(|(program, bytes)| Ran::new(&program.name, bytes).made_of(original));
        ran.map(Ran::check).transpose()?;
        let mut out = target.open()?;
        interrupt::handle();
        let ((sampled, recorded), ended) = match self.command.split_first() {
            Some((name, arguments)) => self.sample_command(name, arguments, limit, &mut out)?,
            None => (self.sample_processes(limit, &mut out)?, ExitCode::SUCCESS),
        };
        if recorded.samples == 0 {
            return Err(Error::new("no sample was taken: nothing of it ran for long enough")
                .next("record for longer, or at a higher rate (-F)"));
        }
        self.put(out, &target, ran)?;
        commands::print(&Report::new(sampled, recorded, &self.output), self.json)?;
        Ok(ended)
    }

    /// Where the output goes, which is none of the programs.
    fn target(&self) -> Result<Target> {
        let mut programs: Vec<PathBuf> = self.original.iter().chain(&self.binary).cloned().collect();
        programs.extend(self.command.first().map(|name| found_in_path(Path::new(name))));
        programs.extend(self.pid.iter().map(|pid| PathBuf::from(format!("/proc/{pid}/exe"))));
        programs.iter().try_for_each(|program| Target::check(&self.output, program).map(drop))?;
        Target::check(&self.output, Path::new(""))
    }

    fn makes_profile(&self) -> bool {
        self.output.extension().is_some_and(|e| e == "fdata")
    }

    /// The program that the profile is to be of.
    fn program(&self) -> Result<Program> {
        match (&self.binary, self.command.first(), self.pid.first()) {
            (Some(binary), ..) => Ok(Program::at(binary.clone())),
            (None, Some(name), _) => Ok(Program::at(found_in_path(Path::new(name)))),
            (None, None, pid) => Program::of_process(pid.copied().unwrap_or(0)),
        }
    }

    fn options(&self) -> Options {
        let frequency = Frequency {
            sampled: self.frequency.unwrap_or(SAMPLED_A_SECOND),
            followed: self.frequency.unwrap_or(FOLLOWED_A_SECOND),
        };
        Options { frequency, branches: !self.no_branches, follow: self.following() }
    }

    fn following(&self) -> Follow {
        match (self.follow, self.no_branches || self.command.is_empty()) {
            (true, _) => Follow::Always(self.follow_length),
            (false, true) => Follow::Never,
            (false, false) => Follow::IfAllowed(self.follow_length),
        }
    }

    fn sample_command(
        &self,
        name: &OsString,
        arguments: &[OsString],
        limit: Option<Duration>,
        out: &mut OutputFile,
    ) -> Result<((Sampled, Recorded), ExitCode)> {
        let mut recorder = Recorder::new(&Whom::Children, &self.options(), out)?;
        let sampled = *recorder.sampled();
        tell_refusal(&recorder);
        let mut child = std::process::Command::new(name).args(arguments).spawn().map_err(|e| {
            Error::new(format!("the command {} cannot be run: {e}", name.display())).next("check its path")
        })?;
        let done = until(limit, || {
            recorder.take(SHORT, out)?;
            Ok(is_at_work(&child))
        });
        let recorded = done.and_then(|()| recorder.finish(out));
        let ended = end(&mut child);
        Ok(((sampled, recorded?), ended))
    }

    fn sample_processes(&self, limit: Option<Duration>, out: &mut OutputFile) -> Result<(Sampled, Recorded)> {
        if let Some(gone) = self.pid.iter().find(|pid| !is_running(**pid)) {
            return Err(Error::new(format!("there is no process {gone}")).next("give one that runs"));
        }
        let all = descendants(&self.pid);
        let mut recorder = Recorder::new(&Whom::Processes(&all), &self.options(), out)?;
        let sampled = *recorder.sampled();
        recorder.start();
        until(limit, || Ok(recorder.take(SHORT, out)? && self.pid.iter().any(|&pid| is_running(pid))))?;
        Ok((sampled, recorder.finish(out)?))
    }

    /// Puts what was recorded under its name: as it is, or as a profile of the program.
    fn put(&self, mut out: OutputFile, target: &Target, ran: Option<Ran>) -> Result<()> {
        let Some(ran) = ran else { return out.publish() };
        let profile = files::profile_of(out.bytes()?, &self.output, ran)?;
        let mut text = Vec::new();
        fdata::write(&profile, &mut text).map_err(|e| e.in_file(self.output.display()))?;
        target.write(&text)
    }
}

/// Fewer samples of single addresses give a layout less than half of what counts give (`docs/decisions/0008-samples.md`: 1,441 a third,
/// 10,281 two thirds).
const ENOUGH_SAMPLES: u64 = 5_000;

/// Fewer threads that were followed are worth less than nine tenths.
const ENOUGH_FOLLOWED: u64 = 2_500;

/// More than 250 a second are worth no more than these, and hold threads for longer (`docs/decisions/0008-samples.md`).
const SAMPLED_A_SECOND: u64 = 1_000;
const FOLLOWED_A_SECOND: u64 = 250;

/// Instructions that a thread is followed: some hundred and thirty taken branches.
const FOLLOWED: u32 = 1_000;
/// More would not fit into a record if all of them were jumps.
const MOST_FOLLOWED: i64 = 2_500;

/// How long to wait for samples at once.
const SHORT: Duration = Duration::from_millis(100);

/// Repeats `step` as long as it says so, until the time is up or the user stops it.
fn until(limit: Option<Duration>, mut step: impl FnMut() -> Result<bool>) -> Result<()> {
    let start = Instant::now();
    let in_time = || limit.is_none_or(|limit| start.elapsed() < limit);
    while in_time() && !interrupt::stopped().load(Ordering::SeqCst) && step()? {}
    Ok(())
}

/// Waits for the command; where the user wants to stop, it is asked to end. Gives how it ended, as a shell tells it, if nobody asked for that.
fn end(child: &mut Child) -> ExitCode {
    let id = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    let mut asked = false;
    while is_at_work(child) {
        if interrupt::stopped().load(Ordering::SeqCst) && !std::mem::replace(&mut asked, true) {
            let _ = id.map(|id| rustix::process::kill_process(id, rustix::process::Signal::TERM));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let Some(status) = child.wait().ok().filter(|_| !asked) else { return ExitCode::SUCCESS };
    let code = status.code().or_else(|| status.signal().map(|signal| BY_SIGNAL + signal));
    code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// What shells add to the number of the signal that ended a command.
const BY_SIGNAL: i32 = 128;

/// Whether a command has not ended. Asked so, as a thread of it may be held, which others would take for an end.
fn is_at_work(child: &Child) -> bool {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let Some(id) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return false };
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(id), look);
    status.is_ok_and(|status| {
        status.is_none_or(|status| !(status.exited() || status.killed() || status.dumped()))
    })
}

/// Says why no thread is followed, where that was the plan.
fn tell_refusal(recorder: &Recorder) {
    if let Some(error) = recorder.refused() {
        let _ = writeln!(std::io::stderr(), "afterlink: note: {error}: addresses are sampled");
    }
}

/// The file that a shell would run.
fn found_in_path(name: &Path) -> PathBuf {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file());
    match found {
        Some(found) if name.components().count() == 1 => found,
        _ => name.to_owned(),
    }
}

impl Report {
    fn new(sampled: Sampled, recorded: Recorded, output: &Path) -> Self {
        let Recorded { samples, lost, followed } = recorded;
        let output = output.display().to_string();
        let followed = sampled.is_followed.then_some(followed);
        Self { event: sampled.name, branch_stacks: sampled.branches, samples, followed, lost, output }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { samples, event, lost, output, .. } = self;
        write!(f, "{output}: {samples} samples of {event} ")?;
        match (self.followed, self.branch_stacks) {
            (Some(followed), _) => {
                let few = if followed < ENOUGH_FOLLOWED { "; so few are worth less, record for longer" } else { "" };
                write!(
                    f,
                    "with branch stacks by following threads ahead ({followed} of them), which are worth nine tenths of what counts of afterlink \
                     instrument are{few}"
                )
            }
            (None, true) => f.write_str("with branch stacks, which show the ways that control took"),
            (None, false) if *samples < ENOUGH_SAMPLES => f.write_str("of single addresses: so few are worth little, record for longer, or count with afterlink instrument"),
            (None, false) => f.write_str("of single addresses: a layout gains two to three quarters of what counts of afterlink instrument give"),
        }?;
        if *lost > 0 {
            write!(f, "; {lost} were lost, as there was no room: record at a lower rate (-F)")?;
        }
        Ok(())
    }
}
