//! Threads that are held for a moment, so that their registers and their memory can be read (`ptrace(2)`: `PTRACE_SEIZE`,
//! `PTRACE_INTERRUPT`, and `PTRACE_DETACH` as soon as they have been looked at).
//!
//! A thread that is held between two instructions notices nothing but the time. One that the request meets inside of a system call is
//! sent on at once; most calls go on by themselves then, and those that the kernel has given up (`EINTR`, such as `epoll_wait`) are
//! called again, unless a signal has come for it, of which it should be told. Such a wait begins anew with all of its time; a thread that
//! waits is not sampled, so that this happens to one wait once.

use afterlink_isa::Arch;
use libc::{c_int, c_long, c_uint, c_void, iovec, pid_t};
use std::fs::read_to_string;
use std::time::{Duration, Instant};

/// How often one looks whether a thread has stopped before it is waited for by the clock.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_micros(20);
/// How long a thread that was killed may take to die.
const DYING: Duration = Duration::from_millis(200);

/// The general registers, by their number in core files.
const NT_PRSTATUS: c_long = 1;
/// More than any of them has that is looked at: matrices (AMX) stand behind.
const LARGEST_SET: usize = 4096;

/// A thread that was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked(pid_t);

/// What became of it.
pub enum Stop {
    /// It stands still.
    Held(Held),
    /// It has ended.
    Gone,
    /// It has not stopped in time: it sleeps in the kernel where nobody wakes it up.
    NotYet,
}

/// A thread that stands still until this is dropped.
pub struct Held {
    thread: pid_t,
    /// The signal that it is about to receive.
    signal: c_int,
}

fn trace(request: c_uint, thread: pid_t, address: usize, data: usize) -> Result<(), std::io::Error> {
    // SAFETY: the requests below read or write nothing of ours but the vector that `data` points at, which the caller has.
    let done = unsafe { libc::ptrace(request, thread, address as *mut c_void, data as *mut c_void) };
    if done < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// Asks a thread to stop.
///
/// # Errors
/// It may not be held: it has ended, is another user's, or somebody else holds it.
pub fn ask(thread: u32) -> Result<Asked, std::io::Error> {
    let asked = Asked(thread as pid_t);
    trace(libc::PTRACE_SEIZE, asked.0, 0, 0)?;
    // It may have ended meanwhile, which is seen when it is waited for.
    let _ = trace(libc::PTRACE_INTERRUPT, asked.0, 0, 0);
    Ok(asked)
}

/// `struct sched_attr` of the kernel, without what deadlines need.
#[repr(C)]
struct Scheduling {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Lets this thread run as soon as it is woken up, if only for short: otherwise whom it is to hold has mostly gone on for milliseconds when it comes to
/// run. What it starts does not inherit that. Kernels before 6.12 know no such slices, and users without the right to it no such priority.
pub fn be_prompt() {
    const RESET_ON_FORK: u64 = 1;
    const SLICE: u64 = 100_000;
    let size = size_of::<Scheduling>() as u32;
    for nice in [-15, 0] {
        let wish = Scheduling {
            size,
            policy: 0,
            flags: RESET_ON_FORK,
            nice,
            priority: 0,
            runtime: SLICE,
            deadline: 0,
            period: 0,
        };
        // SAFETY: the structure is whole, its size in it; the kernel only reads it.
        if unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wish, 0) } == 0 {
            return;
        }
    }
}

/// Tries it with a process of our own, which does nothing and ends.
///
/// # Errors
/// Not even our own may be held.
pub fn try_child() -> Result<Asked, std::io::Error> {
    let parent = std::process::id() as pid_t;
    // SAFETY: the child calls nothing but what may be called in a copy of a process with threads.
    let child = unsafe { libc::fork() };
    match child {
        -1 => Err(std::io::Error::last_os_error()),
        0 => {
            // SAFETY: none of the calls takes memory. Where we are killed before we kill the child, it ends with us.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if libc::getppid() != parent {
                    libc::_exit(0);
                }
            }
            loop {
                // SAFETY: the call takes nothing; whoever kills the child ends it.
                unsafe { libc::pause() };
            }
        }
        child => {
            let asked = ask(child as u32);
            // SAFETY: the process is ours, and was not waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
            asked.inspect_err(|_| {
                // SAFETY: as above; nobody else waits for it.
                unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            })
        }
    }
}

impl Asked {
    /// Waits until it stands still, at most so long.
    pub fn wait(self, limit: Duration) -> Stop {
        let start = Instant::now();
        for tries in 0.. {
            let mut status = 0;
            // SAFETY: the status is ours.
            match unsafe { libc::waitpid(self.0, &raw mut status, libc::__WALL | libc::WNOHANG) } {
                0 => {}
                thread if thread == self.0 && libc::WIFSTOPPED(status) => {
                    return Stop::Held(Held::new(thread, status));
                }
                _ => return Stop::Gone,
            }
            if start.elapsed() > limit {
                break;
            }
            if tries < TRIES { std::thread::yield_now() } else { std::thread::sleep(PAUSE) }
        }
        Stop::NotYet
    }
}

impl Asked {
    fn wait_for_end(self) {
        let start = Instant::now();
        while start.elapsed() < DYING {
            let mut status = 0;
            // SAFETY: the status is ours.
            let seen = unsafe { libc::waitpid(self.0, &raw mut status, libc::__WALL | libc::WNOHANG) };
            match seen {
                0 => std::thread::sleep(PAUSE),
                thread if thread == self.0 && libc::WIFSTOPPED(status) => {
                    // A last stop on its way out, at which it need not stand.
                    let _ = trace(libc::PTRACE_DETACH, self.0, 0, 0);
                    return;
                }
                _ => return,
            }
        }
    }
}

impl Held {
    fn new(thread: pid_t, status: c_int) -> Self {
        // What we asked for, and a stop that holds its whole process, are no signals that it waits for.
        let is_event = status >> 16 != 0;
        Self { thread, signal: if is_event { 0 } else { libc::WSTOPSIG(status) } }
    }

    /// Its general registers, and those of floating point and vectors, as the kernel gives them; nothing where it ends.
    pub fn registers(&self, arch: Arch) -> Option<(Vec<u8>, Vec<u8>)> {
        let sets = arch.float_register_sets();
        let float_registers = sets.iter().find_map(|&set| self.set(c_long::from(set)))?;
        Some((self.set(NT_PRSTATUS)?, float_registers))
    }

    fn set(&self, which: c_long) -> Option<Vec<u8>> {
        let mut bytes = vec![0; LARGEST_SET];
        let mut vector = iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        trace(libc::PTRACE_GETREGSET, self.thread, which as usize, (&raw mut vector) as usize).ok()?;
        bytes.truncate(vector.iov_len);
        Some(bytes)
    }

    /// Gives it other general registers.
    pub fn set_registers(&self, bytes: &mut [u8]) {
        let mut vector = iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let _ = trace(libc::PTRACE_SETREGSET, self.thread, NT_PRSTATUS as usize, (&raw mut vector) as usize);
    }

    /// Whether a signal is about to be delivered.
    pub fn has_signal(&self) -> bool {
        self.signal != 0
            || has_pending_signal(
                &read_to_string(format!("/proc/{}/status", self.thread)).unwrap_or_default(),
            )
    }

    /// Reads its memory; gives whether all of it is there.
    pub fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let ours = iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let theirs = iovec { iov_base: address as *mut c_void, iov_len: into.len() };
        // SAFETY: the first vector is the slice, which is written to; of the second, which is of the other process, nothing is.
        let read =
            unsafe { libc::process_vm_readv(self.thread, &raw const ours, 1, &raw const theirs, 1, 0) };
        usize::try_from(read) == Ok(into.len())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if trace(libc::PTRACE_DETACH, self.thread, 0, self.signal as usize).is_err() {
            // It was killed meanwhile. Until we have seen that, nobody else sees it, nor that its process has ended.
            Asked(self.thread).wait_for_end();
        }
    }
}

/// What `/proc/PID/status` says of signals that have come, for the thread or its process, and are not held back.
pub fn has_pending_signal(status: &str) -> bool {
    let set = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
    };
    (set("SigPnd") | set("ShdPnd")) & !(set("SigBlk") | set("SigIgn")) != 0
}

/// What tests see of a thread in motion.
#[cfg(test)]
impl Held {
    pub fn instruction(&self) -> u64 {
        let registers = self.set(NT_PRSTATUS).unwrap();
        const AT: std::ops::Range<usize> = 16 * 8..17 * 8;
        u64::from_le_bytes(registers[AT].try_into().unwrap())
    }

    /// Lets it execute one instruction.
    pub fn step(&self) {
        trace(libc::PTRACE_SINGLESTEP, self.thread, 0, 0).unwrap();
        let mut status = 0;
        // SAFETY: the status is ours.
        let stopped = unsafe { libc::waitpid(self.thread, &raw mut status, libc::__WALL) };
        assert!(stopped == self.thread && libc::WIFSTOPPED(status), "{status:#x}");
    }
}
