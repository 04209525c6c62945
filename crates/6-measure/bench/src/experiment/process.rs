//! One run of one command: started on its CPU with its environment, its output kept in memory files,
//! its end awaited without touching it, its costs read from the kernel.
//!
//! While the command runs, the harness sleeps in `poll` on a file descriptor of the process. The output
//! goes to anonymous memory files and not through pipes, so nothing has to be read in the meantime.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use afterlink_core::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::record::Cost;

/// How often the harness looks at its stop flag while a command runs.
const TICK: Duration = Duration::from_millis(250);

/// A command ready to run.
#[derive(Debug, Clone)]
pub struct Launch<'a> {
    pub argv: Vec<String>,
    /// Added to the harness's own environment.
    pub environment: Vec<(&'static str, String)>,
    /// Pins it to this CPU.
    pub cpu: Option<u32>,
    pub timeout: Duration,
    /// Set by the user's Ctrl-C: the command is ended at the next tick.
    pub stop: &'a AtomicBool,
    /// Leave its background children alone until [`Finished::end_group`] (a set-up command).
    pub keep_group: bool,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Exit(i32),
    Signal(i32),
    TimedOut,
    Interrupted,
}

/// What a finished command cost and printed.
#[derive(Debug)]
pub struct Finished {
    pub ending: Ending,
    pub cost: Cost,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// The process group, while its leader is kept as a zombie so that the number stays ours.
    group: Option<Pid>,
}

impl Finished {
    /// Whether it ended by itself with exit code 0.
    pub fn succeeded(&self) -> bool {
        self.ending == Ending::Exit(0)
    }

    /// The end in words that follow a name.
    pub fn ending_text(&self) -> String {
        match self.ending {
            Ending::Exit(code) => format!("ended with exit code {code}"),
            Ending::Signal(signal) => format!("was killed by signal {signal}"),
            Ending::TimedOut => "did not end within the time limit".into(),
            Ending::Interrupted => "was interrupted".into(),
        }
    }

    /// The kept group.
    pub fn group(&self) -> Option<Pid> {
        self.group
    }

    /// A run that printed this within so many seconds.
    #[cfg(test)]
    pub fn of_test(stdout: &str, wall_seconds: f64) -> Self {
        // SAFETY: all-zero bytes are a valid rusage.
        let cost = cost(wall_seconds, &unsafe { std::mem::zeroed() });
        Self { ending: Ending::Exit(0), cost, stdout: stdout.into(), stderr: Vec::new(), group: None }
    }

    /// Ends what a kept group still runs.
    pub fn end_group(mut self) {
        if let Some(group) = self.group.take() {
            reap(group);
        }
    }
}

/// Runs the command to its end.
///
/// # Errors
/// The command cannot be started at all: not found, not executable, no process or memory file to be had.
pub fn run(launch: &Launch) -> Result<Finished> {
    Started::start(launch)?.finish(launch)
}

/// Runs two commands at the same time, the first one started first, to the end of both. Their wall times
/// say nothing of either.
///
/// # Errors
/// One of them cannot be started at all; nothing of the other is then left.
pub fn run_both(launches: [&Launch; 2]) -> Result<[Finished; 2]> {
    let first = Started::start(launches[0])?;
    let second = Started::start(launches[1]).inspect_err(|_| reap(first.pid))?;
    let ends = [first.finish(launches[0]), second.finish(launches[1])];
    let [first, second] = ends;
    Ok([first?, second?])
}

/// A command under way.
struct Started {
    pid: Pid,
    began: Instant,
    stdout: File,
    stderr: File,
}

impl Started {
    fn start(launch: &Launch) -> Result<Self> {
        let stdout = memory_file("afterlink-stdout")?;
        let stderr = memory_file("afterlink-stderr")?;
        let mut command = command_of(launch);
        command.stdout(duplicate(&stdout)?).stderr(duplicate(&stderr)?);
        let began = Instant::now();
        let child = start(&mut command, &launch.argv[0])?;
        let pid = Pid::from_raw(child.id() as i32).expect("a started process has a positive number");
        Ok(Self { pid, began, stdout, stderr })
    }

    fn finish(self, launch: &Launch) -> Result<Finished> {
        let Self { pid, began, mut stdout, mut stderr } = self;
        let waited = wait_for_end(pid, began, launch)?;
        let wall_seconds = began.elapsed().as_secs_f64();
        if !launch.keep_group || waited != Waited::Ended {
            // The leader is a zombie or about to be killed: its number cannot belong to anyone else yet.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let keep = launch.keep_group && waited == Waited::Ended;
        let (status, usage) = if keep { peek(pid)? } else { collect(pid)? };
        let ending = match waited {
            Waited::TimedOut => Ending::TimedOut,
            Waited::Interrupted => Ending::Interrupted,
            Waited::Ended if libc::WIFEXITED(status) => Ending::Exit(libc::WEXITSTATUS(status)),
            Waited::Ended => Ending::Signal(libc::WTERMSIG(status)),
        };
        Ok(Finished {
            ending,
            cost: cost(wall_seconds, &usage),
            stdout: read_back(&mut stdout)?,
            stderr: read_back(&mut stderr)?,
            group: keep.then_some(pid),
        })
    }
}

fn cost(wall_seconds: f64, usage: &libc::rusage) -> Cost {
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    Cost {
        wall_seconds,
        user_seconds: seconds(usage.ru_utime),
        system_seconds: seconds(usage.ru_stime),
        max_rss_kib: usage.ru_maxrss as u64,
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
    }
}

fn command_of(launch: &Launch) -> Command {
    let mut command = Command::new(&launch.argv[0]);
    command.args(&launch.argv[1..]);
    command.envs(launch.environment.iter().map(|(k, v)| (*k, v.as_str())));
    command.stdin(Stdio::null());
    command.process_group(0);
    if let Some(cpu) = launch.cpu {
        let mut set = CpuSet::new();
        set.set(cpu as usize);
        // SAFETY: between fork and exec only one system call is made, which allocates nothing and takes no lock.
        unsafe { command.pre_exec(move || sched_setaffinity(None, &set).map_err(Into::into)) };
    }
    command
}

fn memory_file(name: &str) -> Result<File> {
    let fd = memfd_create(name, MemfdFlags::CLOEXEC)
        .map_err(|e| Error::new(format!("no memory file for a run's output: {e}")))?;
    Ok(File::from(fd))
}

fn duplicate(file: &File) -> Result<Stdio> {
    let copy: OwnedFd = file
        .as_fd()
        .try_clone_to_owned()
        .map_err(|e| Error::new(format!("no file descriptor for a run's output: {e}")))?;
    Ok(Stdio::from(copy))
}

fn read_back(file: &mut File) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))
        .and_then(|_| file.read_to_end(&mut bytes))
        .map_err(|e| Error::new(format!("a run's output cannot be read back: {e}")))?;
    Ok(bytes)
}

/// A file that was just written may still be open in a child of another thread that has not yet
/// reached its exec; the kernel then says "text file busy" for a moment.
pub(super) fn start(command: &mut Command, name: &str) -> Result<std::process::Child> {
    for _ in 0..100 {
        match command.spawn() {
            Err(e) if e.raw_os_error() == Some(libc::ETXTBSY) => {
                std::thread::sleep(Duration::from_millis(10))
            }
            result => {
                return result.map_err(|e| {
                    Error::new(format!("cannot be started: {}", system_message(&e)))
                        .in_file(name)
                        .next("check the command after `--`, its path and its permissions")
                });
            }
        }
    }
    Err(Error::new("stays busy: something holds it open for writing").in_file(name))
}

/// The system's message without the number that Rust adds.
pub fn system_message(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waited {
    Ended,
    TimedOut,
    Interrupted,
}

fn wait_for_end(pid: Pid, started: Instant, launch: &Launch) -> Result<Waited> {
    let lost = |e| Error::new(format!("a started run cannot be watched: {e}"));
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(lost)?;
    loop {
        if launch.stop.load(Ordering::Relaxed) {
            return Ok(Waited::Interrupted);
        }
        let left = launch.timeout.saturating_sub(started.elapsed());
        if left.is_zero() {
            return Ok(Waited::TimedOut);
        }
        let nap = left.min(TICK);
        let timeout = Timespec { tv_sec: nap.as_secs() as i64, tv_nsec: i64::from(nap.subsec_nanos()) };
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(Waited::Ended),
            Err(e) => return Err(lost(e)),
        }
    }
}

/// Takes the ended (or killed) leader away and says what it and its waited-for children used.
fn collect(pid: Pid) -> Result<(i32, libc::rusage)> {
    let mut status = 0;
    // SAFETY: all-zero bytes are a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live local variables.
        let got = unsafe { libc::wait4(pid.as_raw_nonzero().get(), &mut status, 0, &mut usage) };
        if got > 0 {
            return Ok((status, usage));
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(Error::new(format!("the end of a run was lost: {error}")));
        }
    }
}

/// The status of an ended leader that stays a zombie, so that its process group keeps its number.
fn peek(pid: Pid) -> Result<(i32, libc::rusage)> {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let status = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
        .map_err(|e| Error::new(format!("the end of a command was lost: {e}")))?;
    let code = status.as_ref().and_then(|s| s.exit_status()).unwrap_or(0);
    let signal = status.as_ref().and_then(|s| s.terminating_signal()).unwrap_or(0);
    // SAFETY: all-zero bytes are a valid rusage.
    Ok(((code << 8) | signal, unsafe { std::mem::zeroed() }))
}

fn reap(group: Pid) {
    let _ = kill_process_group(group, Signal::KILL);
    let _ = collect(group);
}

/// CPU time of all children that have ended and were waited for.
pub fn children_cpu_seconds() -> f64 {
    // SAFETY: all-zero bytes are a valid rusage, and the kernel fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

#[cfg(test)]
mod tests;
