//! How fast fdata is read, written and merged, on one thread, by processor time:
//!
//! ```text
//! cargo run --release -p afterlink-profile --example read_speed [FILE.fdata]
//! ```
//!
//! Without a file, on 4 million made-up records of 100,000 functions, grouped by function as instrumentation writes
//! them, and then in random order as merge-fdata does.

use afterlink_profile::{fdata, merge};
use std::fmt::Write;

fn main() {
    match std::env::args().nth(1) {
        Some(path) => measure(&path, &std::fs::read(&path).expect("the file can be read")),
        None => {
            let mut lines = made_up_lines(4_000_000, 100_000);
            measure("grouped by function", lines.concat().as_bytes());
            let mut random = Random(1);
            for i in (1..lines.len()).rev() {
                lines.swap(i, random.below(i + 1));
            }
            measure("in random order", lines.concat().as_bytes());
        }
    }
}

/// Nanoseconds that this thread has run.
fn processor_time() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("schedstat starts with a number")
}

fn measure(what: &str, text: &[u8]) {
    // Bytes per nanosecond are gigabytes per second.
    let rate = |start: f64| 1000.0 * text.len() as f64 / (processor_time() - start);
    let start = processor_time();
    let profile = fdata::read(text).expect("fdata");
    let read = rate(start);
    let mut out = Vec::with_capacity(text.len());
    let start = processor_time();
    fdata::write(&profile, &mut out).expect("memory");
    let write = rate(start);
    let records = profile.branches().len() + profile.samples().len();
    let start = processor_time();
    merge(vec![profile.clone(), profile]).expect("one kind");
    let merge = rate(start) * 2.0;
    println!(
        "{what}: {:.0} MB, {records} records; read {read:.0}, write {write:.0}, merge {merge:.0} MB/s",
        text.len() as f64 / 1e6
    );
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

fn made_up_lines(count: usize, functions: usize) -> Vec<String> {
    let mut random = Random(0);
    let name = |i: usize| format!("_ZN4some9namespace8function{i}Ev/{}", i % 3 + 1);
    (0..count)
        .map(|i| {
            let from = i / (count / functions).max(1);
            let to = if random.below(4) == 0 { random.below(functions) } else { from };
            let mut line = format!("1 {} {:x} 1 {} ", name(from), random.below(4096), name(to));
            writeln!(line, "{:x} {} {}", random.below(4096), random.below(10), random.below(1_000_000))
                .expect("memory");
            line
        })
        .collect()
}
