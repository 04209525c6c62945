//! The event that is sampled: the best of those that the machine has and the user may use.

use crate::{Options, failed, reason};
use afterlink_core::{Error, Result};
use perf_event_open_sys as sys;
use std::fs::read_to_string;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use sys::bindings as abi;

/// `struct perf_event_attr`.
pub type Attribute = abi::perf_event_attr;

/// Bytes of it that are used. Later versions are longer, and older kernels and `perf` read none of those.
pub const ATTRIBUTE_SIZE: usize = 112;

/// Bytes of records behind which the kernel wakes us up: a quarter of a ring.
const WAKE_UP_AT: u32 = 128 << 10;

/// What is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// As `perf` names it.
    pub name: &'static str,
    /// Whether samples have a stack of the branches last taken.
    pub branches: bool,
    /// Whether it is a stack of those that will be taken next, which [`crate::follow`] has worked out.
    pub is_followed: bool,
}

/// An event of a thread on a processor.
pub struct Opened {
    pub file: OwnedFd,
    pub processor: i32,
}

impl Opened {
    pub fn enable(&self) {
        // SAFETY: the file is an open event; the call takes no pointer.
        unsafe { sys::ioctls::ENABLE(self.file.as_raw_fd(), 0) };
    }

    pub fn disable(&self) {
        // SAFETY: as above.
        unsafe { sys::ioctls::DISABLE(self.file.as_raw_fd(), 0) };
    }
}

/// The events to try, the best first.
const CHOICE: [(u32, u64, Sampled); 3] = [
    (
        abi::PERF_TYPE_HARDWARE,
        abi::PERF_COUNT_HW_CPU_CYCLES as u64,
        Sampled { name: "cycles:u", branches: true, is_followed: false },
    ),
    (
        abi::PERF_TYPE_HARDWARE,
        abi::PERF_COUNT_HW_CPU_CYCLES as u64,
        Sampled { name: "cycles:u", branches: false, is_followed: false },
    ),
    (
        abi::PERF_TYPE_SOFTWARE,
        abi::PERF_COUNT_SW_CPU_CLOCK as u64,
        Sampled { name: "cpu-clock:u", branches: false, is_followed: false },
    ),
];

/// What each sample says.
const FIELDS: u32 =
    abi::PERF_SAMPLE_IP | abi::PERF_SAMPLE_TID | abi::PERF_SAMPLE_TIME | abi::PERF_SAMPLE_PERIOD;

/// Opens the best event for each of `threads` on each processor. 0 is the calling thread. `follows`: threads are followed where the machine has no branch stacks.
pub fn open_best(
    threads: &[u32],
    options: &Options,
    on_exec: bool,
    follows: bool,
) -> Result<(Sampled, Attribute, Vec<Opened>)> {
    let processors = processors()?;
    let mut last = None;
    for (kind, config, sampled) in CHOICE {
        if sampled.branches && !options.branches {
            continue;
        }
        // Kernels before 5.12 don't put build-ids into records of mappings.
        for with_build_ids in [true, false] {
            let mut attribute = attribute(kind, config, sampled, options, follows);
            attribute.set_enable_on_exec(on_exec.into());
            attribute.set_build_id(with_build_ids.into());
            match open_all(&mut attribute, threads, &processors) {
                Ok(events) if !events.is_empty() => {
                    let is_followed = follows && !sampled.branches;
                    if is_followed {
                        say_branches(&mut attribute);
                    }
                    let sampled =
                        Sampled { branches: sampled.branches || is_followed, is_followed, ..sampled };
                    return Ok((sampled, attribute, events));
                }
                Ok(_) => return Err(gone()),
                Err(error) if may_be_lacking(&error) => last = Some(error),
                Err(error) => return Err(refused(&error)),
            }
        }
    }
    Err(refused(&last.unwrap_or_else(|| ErrorKind::Unsupported.into())))
}

/// Whether an event may only be one that this machine has not.
fn may_be_lacking(error: &std::io::Error) -> bool {
    let lacking = [libc::ENOENT, libc::EOPNOTSUPP, libc::EINVAL, libc::ENODEV, libc::E2BIG];
    error.raw_os_error().is_some_and(|code| lacking.contains(&code))
}

fn attribute(kind: u32, config: u64, sampled: Sampled, options: &Options, follows: bool) -> Attribute {
    let mut attribute = Attribute {
        type_: kind,
        size: ATTRIBUTE_SIZE as u32,
        config,
        sample_type: FIELDS.into(),
        ..Attribute::default()
    };
    let is_followed = follows && !sampled.branches;
    let frequency = if is_followed { options.frequency.followed } else { options.frequency.sampled };
    attribute.__bindgen_anon_1.sample_freq = frequency.min(most());
    attribute.__bindgen_anon_2.wakeup_watermark = WAKE_UP_AT;
    if sampled.branches {
        say_branches(&mut attribute);
    }
    attribute.set_disabled(1);
    attribute.set_inherit(1);
    attribute.set_exclude_kernel(1);
    attribute.set_exclude_hv(1);
    attribute.set_freq(1);
    if is_followed {
        // Each thread is held as soon as it was sampled.
        attribute.__bindgen_anon_2.wakeup_events = 1;
    } else {
        attribute.set_watermark(1);
    }
    attribute.set_mmap(1);
    attribute.set_mmap2(1);
    attribute.set_comm(1);
    attribute.set_comm_exec(1);
    attribute.set_task(1);
    attribute.set_sample_id_all(1);
    attribute
}

/// Says that samples have stacks of branches.
fn say_branches(attribute: &mut Attribute) {
    attribute.sample_type |= u64::from(abi::PERF_SAMPLE_BRANCH_STACK);
    attribute.branch_sample_type =
        u64::from(abi::PERF_SAMPLE_BRANCH_ANY) | u64::from(abi::PERF_SAMPLE_BRANCH_USER);
}

/// The highest frequency that the kernel gives.
fn most() -> u64 {
    let most = read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").ok();
    most.and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX)
}

/// An event for each thread on each processor; inherited events with a ring have to be each processor's own.
fn open_all(attribute: &mut Attribute, threads: &[u32], processors: &[i32]) -> std::io::Result<Vec<Opened>> {
    let mut events = Vec::with_capacity(threads.len() * processors.len());
    for &thread in threads {
        for &processor in processors {
            // SAFETY: the attribute is a whole structure, its size in it; the kernel only reads it.
            let file = unsafe {
                let flags = abi::PERF_FLAG_FD_CLOEXEC.into();
                sys::perf_event_open(attribute, thread as i32, processor, -1, flags)
            };
            match file {
                // SAFETY: the kernel has just made it for us.
                0.. => events.push(Opened { file: unsafe { OwnedFd::from_raw_fd(file) }, processor }),
                _ => {
                    let error = std::io::Error::last_os_error();
                    // It ended meanwhile.
                    if error.raw_os_error() != Some(libc::ESRCH) {
                        return Err(error);
                    }
                }
            }
        }
    }
    Ok(events)
}

/// Processors that are there: `0-3,6`.
fn processors() -> Result<Vec<i32>> {
    let list = read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some(first.parse::<i32>().ok()?..=last.parse::<i32>().ok()?)
    };
    let ranges: Option<Vec<_>> = list.trim().split(',').map(range).collect();
    match ranges {
        Some(ranges) => Ok(ranges.into_iter().flatten().collect()),
        None => Err(Error::new("the processors cannot be counted")
            .in_file("/sys/devices/system/cpu/online")
            .next("run it where /sys is mounted")),
    }
}

/// Threads times processors are open at once, more than a process may have by default.
pub fn raise_limit_of_files() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is ours and whole; where a call fails, the limit stays.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

pub(crate) fn gone() -> Error {
    Error::new("the process has ended").next("give one that runs, or record a command")
}

/// Why the kernel lets nothing be sampled, and what may be done.
fn refused(error: &std::io::Error) -> Error {
    const WITHOUT: &str = "or count instead of sampling: afterlink instrument";
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let level = read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
            match level.trim().parse::<i32>() {
                Ok(level) if level > 2 => Error::new(format!(
                    "the kernel lets only those with CAP_PERFMON sample (perf_event_paranoid is {level})"
                ))
                .next(format!("as root: sysctl kernel.perf_event_paranoid=2, or setcap cap_perfmon+ep on afterlink; {WITHOUT}")),
                _ => Error::new("sampling is not permitted: the process is another user's, or a container forbids it").next(format!(
                    "run it as the program's user or as root, in a container with --cap-add PERFMON and a seccomp profile that allows perf_event_open; {WITHOUT}"
                )),
            }
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            Error::new("too many threads to be sampled: each takes an open file for each processor")
                .next("raise the limit (ulimit -n), or start the program by afterlink record")
        }
        Some(libc::ENOSYS) => Error::new("the kernel has no performance events")
            .next(format!("use a kernel that has them, {WITHOUT}")),
        _ => Error::new(format!("the kernel offers no event that can be sampled: {}", reason(error)))
            .next(format!("look what perf record says, {WITHOUT}")),
    }
}

/// Lets `event` write into the ring of `first`, which is of the same processor.
pub fn share_ring(event: &Opened, first: &Opened) -> Result<()> {
    // SAFETY: both are open events; the call takes no pointer.
    let done = unsafe { sys::ioctls::SET_OUTPUT(event.file.as_raw_fd(), first.file.as_raw_fd()) };
    if done < 0 {
        return Err(failed("events cannot share their memory").next("record fewer processes at once"));
    }
    Ok(())
}
