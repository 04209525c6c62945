//! Panics in inlined and in cold code, and shows its own stack: std's backtraces read debug information.
use std::backtrace::Backtrace;
use std::hint::black_box;

#[inline(never)]
fn deepest(kind: usize, values: &[u32]) -> u32 {
    match kind % 5 {
        0 => values[kind + 100],
        1 => values.iter().map(|v| v.checked_sub(1).unwrap()).sum(),
        2 => {
            eprintln!("{}", Backtrace::force_capture());
            7
        }
        3 => u32::from_str_radix("many", 10).expect("a number"),
        _ => values.iter().copied().fold(0, |a, b| a ^ b),
    }
}

#[inline(always)]
fn inlined(kind: usize) -> u32 {
    let values: Vec<u32> = (0..8).map(|v| v * kind as u32).collect();
    deepest(kind, &values) + 1
}

#[inline(never)]
fn outermost(kind: usize) -> u32 {
    if kind > 3 { inlined(kind) * 2 } else { inlined(kind) + 5 }
}

fn main() {
    for kind in 0..10 {
        println!("{kind} {:?}", std::panic::catch_unwind(|| outermost(black_box(kind))).ok());
    }
}
