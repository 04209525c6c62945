//! The active probe: what the machine really does while nothing else of ours runs. A register-only
//! loop in quanta of a few milliseconds on each CPU; two CPUs at once; a loop over memory; starting
//! processes; reading the clock.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use serde::Serialize;

use crate::experiment::cpus::allowed;
use crate::stats::estimate::{mean, median, variance};

/// How long to probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbeOptions {
    /// Seconds of spinning per CPU.
    pub spin_seconds: f64,
    /// CPUs at most, spread evenly.
    pub most_cpus: usize,
}

impl Default for ProbeOptions {
    fn default() -> Self {
        Self { spin_seconds: 2.0, most_cpus: 8 }
    }
}

/// What the probe found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probe {
    pub cpus: Vec<Spin>,
    /// Two CPUs at the same time, where there are two.
    pub pair: Option<Pair>,
    /// The loop over memory, on the first CPU.
    pub memory: Spin,
    /// Starting and ending a tiny process, median microseconds and spread in percent.
    pub start_microseconds: f64,
    pub start_sd_percent: f64,
    /// Reading the clock once.
    pub clock_nanoseconds: f64,
}

/// The quanta of one loop on one CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spin {
    pub cpu: u32,
    pub quanta: usize,
    /// Median length of a quantum in microseconds.
    pub median_microseconds: f64,
    /// Standard deviation of a quantum, in percent of the mean.
    pub sd_percent: f64,
    /// By how much the slowest twentieth exceeds the median, at least; and the slowest of all.
    pub p95_percent: f64,
    pub max_percent: f64,
    /// Correlation of neighbouring quanta: long disturbances make it large.
    pub lag1: f64,
    /// Standard deviation of a quantum as neighbours' differences show it: what interleaving leaves.
    pub adjacent_sd_percent: f64,
    /// Standard deviation of a run of a fifth of a second, as neighbouring runs' differences show it.
    pub run_sd_percent: f64,
}

/// Two CPUs at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pair {
    pub first: u32,
    pub second: u32,
    /// Time of a quantum together over alone: 1 if they do not share anything.
    pub slowdown: f64,
    /// The same in the turn in which it was least, and most.
    pub range: (f64, f64),
}

const QUANTUM: Duration = Duration::from_millis(5);
const RUN_SECONDS: f64 = 0.2;

/// Probes this machine; takes about (CPUs + 3) times `spin_seconds`.
pub fn run_probe(options: &ProbeOptions) -> Probe {
    let every = allowed();
    let step = every.len().div_ceil(options.most_cpus.max(1));
    let chosen: Vec<u32> = every.iter().copied().step_by(step).collect();
    let cpus: Vec<Spin> =
        chosen.iter().map(|&cpu| on_cpu(cpu, options.spin_seconds, Load::Registers)).collect();
    let pair = match every[..] {
        [first, second, ..] => Some(at_once(first, second, options.spin_seconds / 2.0)),
        _ => None,
    };
    let memory = on_cpu(chosen[0], options.spin_seconds, Load::Memory);
    let (start_microseconds, start_sd_percent) = process_starts();
    Probe { cpus, pair, memory, start_microseconds, start_sd_percent, clock_nanoseconds: clock_cost() }
}

#[derive(Clone, Copy)]
enum Load {
    Registers,
    Memory,
}

fn on_cpu(cpu: u32, seconds: f64, load: Load) -> Spin {
    summarise(cpu, &quanta_on(cpu, seconds, load))
}

/// A thread of its own, so that the caller's freedom of CPUs is not touched.
fn quanta_on(cpu: u32, seconds: f64, load: Load) -> Vec<f64> {
    let worker = std::thread::spawn(move || {
        let mut set = CpuSet::new();
        set.set(cpu as usize);
        // Not pinned is still a probe, only of another CPU; the files say which ones are allowed.
        let _ = sched_setaffinity(None, &set);
        let mut memory = match load {
            Load::Registers => Vec::new(),
            Load::Memory => chain(1 << 20),
        };
        let mut work = |rounds: u64| match load {
            Load::Registers => spin(rounds),
            Load::Memory => chase(&mut memory, rounds),
        };
        let rounds = calibrate(&mut work);
        let begun = Instant::now();
        let mut quanta = Vec::new();
        while begun.elapsed().as_secs_f64() < seconds || quanta.len() < 20 {
            let clock = Instant::now();
            work(rounds);
            quanta.push(clock.elapsed().as_secs_f64());
        }
        quanta
    });
    worker.join().expect("the probe's loop cannot panic")
}

/// Rounds that take about one quantum, from the fastest of a few tries.
fn calibrate(work: &mut impl FnMut(u64)) -> u64 {
    let mut rounds = 1_000u64;
    loop {
        let fastest = (0..3)
            .map(|_| {
                let clock = Instant::now();
                work(rounds);
                clock.elapsed()
            })
            .min()
            .expect("three tries");
        if fastest >= QUANTUM / 4 {
            let scale = QUANTUM.as_secs_f64() / fastest.as_secs_f64();
            return (rounds as f64 * scale) as u64;
        }
        rounds *= 2;
    }
}

fn spin(rounds: u64) {
    let mut x = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..rounds {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    std::hint::black_box(x);
}

/// A random cycle through an array (Sattolo's shuffle), so that each load waits for the one before.
fn chain(length: usize) -> Vec<u32> {
    let mut next: Vec<u32> = (0..length as u32).collect();
    let mut x = 1u64;
    for i in (1..length).rev() {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        next.swap(i, (x >> 33) as usize % i);
    }
    next
}

fn chase(next: &mut [u32], rounds: u64) {
    let mut at = 0u32;
    for _ in 0..rounds {
        at = next[at as usize];
    }
    std::hint::black_box(at);
}

fn summarise(cpu: u32, quanta: &[f64]) -> Spin {
    let (centre, middle) = (mean(quanta), median(quanta));
    let mut sorted = quanta.to_vec();
    sorted.sort_by(f64::total_cmp);
    let over = |value: f64| 100.0 * (value / middle - 1.0);
    let sd = variance(quanta).sqrt();
    let covariance: f64 = quanta.windows(2).map(|w| (w[0] - centre) * (w[1] - centre)).sum();
    let squares: f64 = quanta.iter().map(|q| (q - centre).powi(2)).sum();
    let per_run = ((RUN_SECONDS / middle) as usize).clamp(1, (quanta.len() / 8).max(1));
    let runs: Vec<f64> = quanta.chunks_exact(per_run).map(mean).collect();
    Spin {
        cpu,
        quanta: quanta.len(),
        median_microseconds: middle * 1e6,
        sd_percent: 100.0 * sd / centre,
        p95_percent: over(sorted[(sorted.len() * 19 / 20).min(sorted.len() - 1)]),
        max_percent: over(sorted[sorted.len() - 1]),
        lag1: if squares > 0.0 { covariance / squares } else { 0.0 },
        adjacent_sd_percent: adjacent_sd(quanta),
        run_sd_percent: adjacent_sd(&runs),
    }
}

/// Standard deviation in percent from neighbours' differences, free of slow drift.
fn adjacent_sd(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let squares: f64 = values.windows(2).map(|w| (w[1] - w[0]).powi(2)).sum();
    100.0 * (squares / (2.0 * (values.len() - 1) as f64)).sqrt() / mean(values)
}

/// Alone and together in short turns, so that the machine's mood is the same for both; every turn is
/// the same fixed work.
fn at_once(first: u32, second: u32, seconds: f64) -> Pair {
    let rounds = calibrate(&mut spin);
    let turns = ((seconds / QUANTUM.as_secs_f64() / 16.0) as usize).clamp(2, 50);
    let on = |cpu: u32, until: Arc<AtomicBool>, count: usize| {
        std::thread::spawn(move || {
            let mut set = CpuSet::new();
            set.set(cpu as usize);
            let _ = sched_setaffinity(None, &set);
            let mut times = Vec::new();
            while times.len() < count && !until.load(Ordering::Relaxed) {
                let clock = Instant::now();
                spin(rounds);
                times.push(clock.elapsed().as_secs_f64());
            }
            times
        })
    };
    let (mut alone, mut together, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..turns {
        let never = Arc::new(AtomicBool::new(false));
        let by_itself = on(first, never.clone(), 8).join().unwrap_or_default();
        let done = Arc::new(AtomicBool::new(false));
        let companion = on(second, done.clone(), usize::MAX);
        let beside = on(first, never, 8).join().unwrap_or_default();
        done.store(true, Ordering::Relaxed);
        let _ = companion.join();
        ratios.push(median(&beside) / median(&by_itself));
        alone.extend(by_itself);
        together.extend(beside);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let range = (ratios[0], ratios[ratios.len() - 1]);
    Pair { first, second, slowdown: median(&together) / median(&alone), range }
}

fn process_starts() -> (f64, f64) {
    let mut micros = Vec::new();
    for _ in 0..50 {
        let clock = Instant::now();
        let mut command = Command::new("/bin/true");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if command.status().is_err() {
            break;
        }
        micros.push(clock.elapsed().as_secs_f64() * 1e6);
    }
    if micros.len() < 2 {
        return (0.0, 0.0);
    }
    (median(&micros), 100.0 * variance(&micros).sqrt() / mean(&micros))
}

fn clock_cost() -> f64 {
    let rounds = 20_000;
    let begun = Instant::now();
    for _ in 0..rounds {
        std::hint::black_box(Instant::now());
    }
    begun.elapsed().as_nanos() as f64 / f64::from(rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_series_have_known_summaries() {
        let steady = summarise(3, &[0.007_812_5; 100]);
        assert_eq!((steady.cpu, steady.quanta), (3, 100));
        assert!(steady.sd_percent < 1e-9 && steady.max_percent.abs() < 1e-9 && steady.lag1 == 0.0);
        // Two levels, fifty quanta each: all the spread is slow, none is left between neighbours.
        let steps: Vec<f64> = (0..100).map(|i| if i < 50 { 0.005 } else { 0.0055 }).collect();
        let s = summarise(0, &steps);
        assert!(s.lag1 > 0.9 && s.sd_percent > 4.0, "{s:?}");
        assert!(s.adjacent_sd_percent < s.sd_percent / 5.0, "{s:?}");
        // Alternating levels: the neighbours differ more than anything else.
        let zigzag: Vec<f64> = (0..100).map(|i| if i % 2 == 0 { 0.005 } else { 0.0055 }).collect();
        let z = summarise(0, &zigzag);
        assert!(z.lag1 < -0.9 && z.adjacent_sd_percent > z.sd_percent, "{z:?}");
        assert!((z.p95_percent - 100.0 * (0.0055 / 0.00525 - 1.0)).abs() < 1e-6);
    }

    #[test]
    fn the_chain_visits_everything() {
        let next = chain(1000);
        let (mut at, mut steps) = (0u32, 0);
        loop {
            at = next[at as usize];
            steps += 1;
            if at == 0 {
                break;
            }
        }
        assert_eq!(steps, 1000, "one cycle through all elements");
    }

    #[test]
    fn this_machine_can_be_probed() {
        let probe = run_probe(&ProbeOptions { spin_seconds: 0.1, most_cpus: 1 });
        assert_eq!(probe.cpus.len(), 1);
        let spin = &probe.cpus[0];
        assert!(spin.quanta >= 20 && spin.median_microseconds > 500.0, "{spin:?}");
        assert!(probe.start_microseconds > 50.0 && probe.clock_nanoseconds > 1.0);
        assert!(probe.pair.is_none_or(|p| p.slowdown > 0.3 && p.slowdown < 20.0), "{:?}", probe.pair);
    }
}
