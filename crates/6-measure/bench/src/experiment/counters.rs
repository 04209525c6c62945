//! Hardware and kernel counters of a run through `perf_event_open(2)`.
//!
//! The counters are opened on the harness's own thread, switched off, inheritable, and to be switched
//! on at exec. A child forked by this thread inherits them; its exec switches its copy on; when it and
//! its children end, their counts are added to ours. The harness itself is never counted.

use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, RawFd};

/// Counters that a report shows where the machine has them.
pub const USUAL: [&str; 5] =
    ["cycles", "instructions", "L1-icache-load-misses", "iTLB-load-misses", "branch-misses"];

const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const CACHE: u32 = 3;
const READ_MISS: u64 = 1 << 16;
/// `task-clock`.
const CLOCK: (u32, u64) = (SOFTWARE, 1);

/// Type and number of a counter by its `perf` name.
fn event(name: &str) -> Option<(u32, u64)> {
    Some(match name.trim_end_matches(":u") {
        "cycles" => (HARDWARE, 0),
        "instructions" => (HARDWARE, 1),
        "cache-misses" => (HARDWARE, 3),
        "branches" => (HARDWARE, 4),
        "branch-misses" => (HARDWARE, 5),
        "L1-dcache-load-misses" => (CACHE, READ_MISS),
        "L1-icache-load-misses" => (CACHE, 1 | READ_MISS),
        "LLC-load-misses" => (CACHE, 2 | READ_MISS),
        "dTLB-load-misses" => (CACHE, 3 | READ_MISS),
        "iTLB-load-misses" => (CACHE, 4 | READ_MISS),
        "task-clock" => CLOCK,
        "page-faults" => (SOFTWARE, 2),
        "context-switches" => (SOFTWARE, 3),
        "cpu-migrations" => (SOFTWARE, 4),
        _ => return None,
    })
}

/// `struct perf_event_attr` of linux/perf_event.h up to `config2` (PERF_ATTR_SIZE_VER1).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_kind: u32,
    config1: u64,
    config2: u64,
}

const DISABLED: u64 = 1 << 0;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const ENABLE_ON_EXEC: u64 = 1 << 12;
const WITH_TIMES: u64 = 1 | 2;
const CLOSE_ON_EXEC: u64 = 1 << 3;

/// The open counters of the next run, in the order asked for.
#[derive(Debug, Default)]
pub struct Counters {
    files: Vec<Option<File>>,
}

impl Counters {
    /// Opens fresh counters on this thread; to be done right before the run is started from this
    /// thread. A counter that the machine does not have stays absent.
    pub fn open(names: &[&str]) -> Self {
        Self { files: names.iter().map(|name| open(name, 0)).collect() }
    }

    /// The counts of everything that was started and has ended since, scaled up where the counter had
    /// to share its register with others.
    pub fn read(self) -> Vec<Option<Count>> {
        self.files.into_iter().map(|file| read(file?)).collect()
    }
}

/// What a counter counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Count {
    pub value: f64,
    /// The share of the time in which it did; the value is scaled up by it.
    pub share: f64,
}

/// Which of these counters the machine has.
pub fn available(names: &[&str]) -> Vec<bool> {
    names.iter().map(|name| open(name, 0).is_some()).collect()
}

/// One counter of a thread that runs already, and of all threads and processes that it starts from now on.
#[derive(Debug)]
pub struct ThreadCounter(File);

impl ThreadCounter {
    /// Begins to count; nothing where the machine or its rules do not have it, or the thread is gone.
    pub fn start(name: &str, thread: i32) -> Option<Self> {
        open(name, thread).map(Self)
    }

    /// The count until now, with what has ended since.
    pub fn read(self) -> Option<f64> {
        // A thread that did not run has counted nothing.
        Some(read(self.0).map_or(0.0, |count| count.value))
    }
}

/// Whether the processor counts the cycles of a child: some virtual machines open the counter and leave it at zero.
pub fn count_cycles() -> bool {
    let counters = Counters::open(&["cycles"]);
    let ran = std::process::Command::new("true").status();
    ran.is_ok() && counters.read()[0].is_some_and(|cycles| cycles.value > 0.0)
}

/// On a thread that runs, or with 0 on this one, where it begins at the exec of a child.
fn open(name: &str, thread: i32) -> Option<File> {
    let (kind, config) = event(name)?;
    // Most software events happen inside the kernel; counting only user mode would make them zero. The clock runs in both modes
    // anyway, and who asks for user mode only may have it without a privilege.
    let user_only =
        if (kind, config) == CLOCK || kind != SOFTWARE { EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR } else { 0 };
    let begin = if thread == 0 { DISABLED | ENABLE_ON_EXEC } else { 0 };
    let attributes = Attributes {
        kind,
        size: std::mem::size_of::<Attributes>() as u32,
        config,
        read_format: WITH_TIMES,
        flags: INHERIT | begin | user_only,
        ..Attributes::default()
    };
    // SAFETY: the kernel reads `size` bytes of a live structure laid out as it expects.
    let fd = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attributes, thread, -1, -1, CLOSE_ON_EXEC)
    };
    // SAFETY: a non-negative result is a new descriptor that nobody else owns.
    (fd >= 0).then(|| unsafe { File::from_raw_fd(fd as RawFd) })
}

fn read(mut file: File) -> Option<Count> {
    let mut bytes = [0; 24];
    file.read_exact(&mut bytes).ok()?;
    let word = |i: usize| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().expect("eight bytes")) as f64;
    let (count, enabled, running) = (word(0), word(1), word(2));
    (running > 0.0).then(|| Count { value: count * enabled / running, share: running / enabled })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn unknown_names_are_absent() {
        assert_eq!(available(&["no-such-counter"]), [false]);
        assert_eq!(std::mem::size_of::<Attributes>(), 72, "PERF_ATTR_SIZE_VER1");
    }

    /// The kernel's own clock is a counter that every machine has, unless its use is forbidden.
    #[test]
    fn the_child_is_counted_and_the_harness_is_not() {
        if !available(&["task-clock"])[0] {
            assert!(
                std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").is_ok_and(|t| t.trim() > "1")
            );
            return;
        }
        let counters = Counters::open(&["task-clock", "page-faults", "no-such"]);
        let mut x = 1u64;
        for i in 0..30_000_000u64 {
            x = std::hint::black_box(x.wrapping_mul(i | 1));
        }
        let work = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let begun = std::time::Instant::now();
        assert!(Command::new("/bin/sh").args(["-c", work]).status().unwrap().success());
        let wall = begun.elapsed().as_nanos() as f64;
        let counts = counters.read();
        let clock = counts[0].unwrap().value;
        assert!(clock > 1e7 && clock <= wall, "{clock} ns of CPU in {wall} ns of wall time");
        assert_eq!(counts[0].unwrap().share, 1.0, "a clock of the kernel shares nothing");
        assert!(counts[1].unwrap().value > 20.0 && counts[2].is_none(), "{counts:?}");
    }
}
