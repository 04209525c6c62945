//! What the machine did between two moments: pressure, steal, interrupts, swapping, throttling.
//! A file that is missing means "unknown", never "good".

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::files::{control_group, parse_cpu_list, read_text};
use crate::record::MachineDelta;

/// The counters at one moment, and the clock.
#[derive(Debug)]
pub struct Watch {
    root: PathBuf,
    /// The CPU on which the runs are to be.
    cpu: Option<u32>,
    began: Instant,
    before: Counters,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Counters {
    pressure_us: Option<u64>,
    cpu_ticks: Option<CpuTicks>,
    swapped: Option<u64>,
    throttled_us: Option<u64>,
    thermal: Option<u64>,
    /// Of the other threads of the runs' core.
    siblings: Option<CpuTicks>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct CpuTicks {
    pub total: u64,
    pub idle: u64,
    pub interrupts: u64,
    pub steal: u64,
}

impl Watch {
    /// Begins on this machine; the runs are on one CPU, if they are pinned.
    pub fn start(cpu: Option<u32>) -> Self {
        Self::start_at(Path::new("/"), cpu)
    }

    /// Begins with /proc and /sys found under `root`.
    pub fn start_at(root: &Path, cpu: Option<u32>) -> Self {
        Self { root: root.to_path_buf(), cpu, began: Instant::now(), before: Counters::read(root, cpu) }
    }

    /// What happened since.
    pub fn finish(self) -> MachineDelta {
        let micros = self.began.elapsed().as_secs_f64() * 1e6;
        Counters::read(&self.root, self.cpu).since(&self.before, micros)
    }
}

impl Counters {
    fn read(root: &Path, cpu: Option<u32>) -> Self {
        Self {
            pressure_us: read_text(root, "proc/pressure/cpu").and_then(|t| field_after(&t, "total=")),
            cpu_ticks: read_text(root, "proc/stat").and_then(|t| cpu_ticks(&t)),
            swapped: read_text(root, "proc/vmstat")
                .and_then(|t| Some(line_value(&t, "pswpin")? + line_value(&t, "pswpout")?)),
            throttled_us: control_group(root)
                .and_then(|dir| std::fs::read_to_string(dir.join("cpu.stat")).ok())
                .and_then(|t| line_value(&t, "throttled_usec")),
            thermal: thermal_events(root),
            siblings: cpu.and_then(|cpu| sibling_ticks(root, cpu)),
        }
    }

    fn since(&self, before: &Self, micros: f64) -> MachineDelta {
        let grown = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        let share = |part: fn(&CpuTicks) -> u64| {
            let (now, then) = (self.cpu_ticks?, before.cpu_ticks?);
            let total = now.total.saturating_sub(then.total);
            (total > 0).then(|| part(&now).saturating_sub(part(&then)) as f64 / total as f64)
        };
        MachineDelta {
            cpu_pressure: grown(self.pressure_us, before.pressure_us).map(|us| us as f64 / micros.max(1.0)),
            steal: share(|t| t.steal),
            interrupts: share(|t| t.interrupts),
            swapped_pages: grown(self.swapped, before.swapped),
            throttled_seconds: grown(self.throttled_us, before.throttled_us).map(|us| us as f64 * 1e-6),
            thermal_events: grown(self.thermal, before.thermal),
            sibling_busy: busy_share(self.siblings, before.siblings),
        }
    }
}

/// The number right after `key` in the first line that has it.
fn field_after(text: &str, key: &str) -> Option<u64> {
    let rest = &text[text.find(key)? + key.len()..];
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The number of the line `key number`.
fn line_value(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The first line of /proc/stat: user nice system idle iowait irq softirq steal guest guest_nice.
/// Guest time is contained in user time already.
pub(super) fn cpu_ticks(text: &str) -> Option<CpuTicks> {
    ticks_of(text, "cpu ")
}

/// The line that begins so.
fn ticks_of(text: &str, name: &str) -> Option<CpuTicks> {
    let line = text.lines().find(|l| l.starts_with(name))?;
    let fields: Vec<u64> = line.split_whitespace().skip(1).filter_map(|f| f.parse().ok()).collect();
    if fields.len() < 8 {
        return None;
    }
    Some(CpuTicks {
        total: fields[..8].iter().sum(),
        idle: fields[3],
        interrupts: fields[5] + fields[6],
        steal: fields[7],
    })
}

/// All other threads of this CPU's core together; nothing if it has none.
fn sibling_ticks(root: &Path, cpu: u32) -> Option<CpuTicks> {
    let list = read_text(root, &format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"))?;
    let text = read_text(root, "proc/stat")?;
    let others = parse_cpu_list(&list).into_iter().filter(|other| *other != cpu);
    others.filter_map(|other| ticks_of(&text, &format!("cpu{other} "))).reduce(|sum, other| CpuTicks {
        total: sum.total + other.total,
        idle: sum.idle + other.idle,
        interrupts: sum.interrupts + other.interrupts,
        steal: sum.steal + other.steal,
    })
}

/// The share of the time in which they did not idle.
fn busy_share(now: Option<CpuTicks>, before: Option<CpuTicks>) -> Option<f64> {
    let (now, before) = (now?, before?);
    let total = now.total.saturating_sub(before.total);
    let idle = now.idle.saturating_sub(before.idle);
    (total > 0).then(|| total.saturating_sub(idle) as f64 / total as f64)
}

fn thermal_events(root: &Path) -> Option<u64> {
    let cpus = std::fs::read_dir(root.join("sys/devices/system/cpu")).ok()?;
    let mut sum = None;
    for cpu in cpus.flatten() {
        let count = cpu.path().join("thermal_throttle/core_throttle_count");
        if let Some(n) = std::fs::read_to_string(count).ok().and_then(|t| t.trim().parse::<u64>().ok()) {
            *sum.get_or_insert(0) += n;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::files::fake_root;
    use super::*;

    #[test]
    fn differences_of_counters_become_shares() {
        let root = fake_root(&[
            (
                "proc/pressure/cpu",
                "some avg10=1.00 avg60=0.00 avg300=0.00 total=1000\nfull avg10=0 total=5\n",
            ),
            ("proc/stat", "cpu  100 0 50 800 0 10 10 30 0 0\ncpu0 1 2 3\ncpu1 10 0 0 90 0 0 0 0 0 0\n"),
            ("proc/vmstat", "pgpgin 7\npswpin 5\npswpout 6\n"),
            ("proc/self/cgroup", "0::/box\n"),
            ("sys/fs/cgroup/box/cpu.stat", "usage_usec 9\nnr_throttled 1\nthrottled_usec 2000000\n"),
            ("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "4\n"),
            ("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-1\n"),
        ]);
        let before = Counters::read(root.path(), Some(0));
        let write = |path: &str, text: &str| std::fs::write(root.path().join(path), text).unwrap();
        write("proc/pressure/cpu", "some avg10=1.00 avg60=0.00 avg300=0.00 total=501000\n");
        write("proc/stat", "cpu  150 0 60 820 0 15 10 45 0 0\ncpu0 1 2 3\ncpu1 40 0 0 100 0 0 0 0 0 0\n");
        write("proc/vmstat", "pswpin 5\npswpout 16\n");
        write("sys/fs/cgroup/box/cpu.stat", "throttled_usec 2500000\n");
        write("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "6\n");
        let delta = Counters::read(root.path(), Some(0)).since(&before, 1e6);
        assert_eq!(delta.cpu_pressure, Some(0.5));
        assert_eq!(delta.steal, Some(0.15));
        assert_eq!(delta.interrupts, Some(0.05));
        assert_eq!(delta.swapped_pages, Some(10));
        assert_eq!(delta.throttled_seconds, Some(0.5));
        assert_eq!(delta.thermal_events, Some(2));
        assert_eq!(delta.sibling_busy, Some(0.75));
    }

    #[test]
    fn missing_files_are_unknown() {
        let root = fake_root(&[]);
        assert_eq!(Watch::start_at(root.path(), Some(0)).finish(), MachineDelta::default());
    }

    #[test]
    fn this_machine_has_a_proc_stat() {
        let watch = Watch::start(None);
        std::thread::sleep(std::time::Duration::from_millis(60));
        let steal = watch.finish().steal.expect("every Linux has /proc/stat");
        assert!((0.0..=1.0).contains(&steal));
    }
}
