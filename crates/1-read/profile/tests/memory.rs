//! Reading takes memory in proportion to the text, even when every line is as short as can be or has new names.

use afterlink_profile::fdata;
use std::fmt::Write;

/// A line of the process's memory figures, in bytes: `VmRSS` is resident now, `VmHWM` was at the peak.
fn memory(line: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix(line)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

/// What reading `text` needs at its peak, in multiples of its size.
fn cost(text: &str) -> f64 {
    let before = memory("VmRSS");
    let profile = fdata::read(text.as_bytes()).unwrap();
    assert!(!profile.is_empty());
    (memory("VmHWM") - before) as f64 / text.len() as f64
}

/// One test, so that nothing else runs in the process; the texts grow, as the peak never falls.
#[test]
fn memory_is_linear() {
    const SIZE: usize = 4 << 20;
    let mut repeated = String::new();
    while repeated.len() < SIZE {
        repeated.push_str("1 main 10 1 main 2 0 1\n");
    }
    let cost_of_repeated = cost(&repeated);
    assert!(cost_of_repeated < 2.0, "one record again and again: {cost_of_repeated:.1} times the text");

    let mut dense = String::new();
    for i in 0.. {
        if dense.len() > 3 * SIZE {
            break;
        }
        writeln!(dense, "0 a {i:x} 0 a 0 0 0").unwrap();
    }
    let cost_of_dense = cost(&dense);
    assert!(cost_of_dense < 6.0, "short lines: {cost_of_dense:.1} times the text");

    let mut names = String::new();
    for i in 0.. {
        if names.len() > 6 * SIZE {
            break;
        }
        writeln!(names, "0 a{i:x} 0 0 b{i:x} 0 0 0").unwrap();
    }
    let cost_of_names = cost(&names);
    assert!(cost_of_names < 8.0, "new names: {cost_of_names:.1} times the text");
    eprintln!(
        "repeated {cost_of_repeated:.2}, dense {cost_of_dense:.2}, names {cost_of_names:.2} times the text"
    );
}
