//! Panics that unwind: through split frames, out of closures and trait objects, with values to drop on the way, while dropping,
//! in threads, and caught again; and backtraces, which must name the functions that were called.

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::hint::black_box;
use std::panic::{self, AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

thread_local! {
    static SUM: Cell<u32> = const { Cell::new(0) };
}

fn note(value: u32) {
    SUM.with(|s| s.set((s.get() ^ value).wrapping_mul(0x0100_0193).wrapping_add(s.get() >> 13)));
}

fn sum() -> u32 {
    SUM.with(Cell::get)
}

struct Noted(u32);
impl Drop for Noted {
    fn drop(&mut self) {
        note(self.0);
    }
}

/// Panics while it is dropped, if nothing else panics.
struct Fragile(u32);
impl Drop for Fragile {
    fn drop(&mut self) {
        note(self.0);
        if self.0 % 3 == 0 && !thread::panicking() {
            panic!("dropped {}", self.0);
        }
    }
}

#[inline(never)]
fn checked(values: &[u32], at: usize) -> u32 {
    let _noted = Noted(at as u32);
    if at % 5 == 4 {
        panic!("value {at}");
    }
    values[at] + 1
}

#[inline(never)]
fn nested(values: &[u32], depth: u32, at: usize) -> u32 {
    let first = Noted(depth * 10);
    let text = vec![depth; depth as usize];
    let below = if depth == 0 { checked(values, at) } else { nested(values, depth - 1, at) };
    let _second = Noted(below);
    drop(first);
    below + text.iter().sum::<u32>()
}

#[inline(never)]
fn caught(values: &[u32], at: usize) -> String {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let kept = Noted(99);
        let found = nested(values, 3, at);
        note(kept.0);
        found
    }));
    match result {
        Ok(found) => format!("{found}"),
        Err(payload) => match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
            (Some(text), _) => format!("str {text}"),
            (_, Some(text)) => format!("String {text}"),
            _ => "something else".to_owned(),
        },
    }
}

#[inline(never)]
fn resumed(values: &[u32], at: usize) -> u32 {
    let _outer = Noted(7);
    match catch_unwind(AssertUnwindSafe(|| nested(values, 1, at))) {
        Ok(found) => found,
        Err(payload) => {
            note(8);
            let _inner = Noted(9);
            resume_unwind(payload)
        }
    }
}

#[inline(never)]
fn drops(n: u32) -> bool {
    catch_unwind(|| {
        let _first = Noted(n);
        let _all = (0..n).map(Fragile).skip(n as usize / 2).collect::<Vec<_>>();
        let _last = Fragile(n + 1);
        if n % 4 == 1 {
            black_box(None::<u32>).unwrap();
        }
    })
    .is_ok()
}

trait Step {
    fn step(&self, n: u32) -> Result<u32, String>;
}
struct Halves;
struct Triples(Noted);
impl Step for Halves {
    fn step(&self, n: u32) -> Result<u32, String> {
        if n % 2 == 0 { Ok(n / 2) } else { Err(format!("odd {n}")) }
    }
}
impl Step for Triples {
    fn step(&self, n: u32) -> Result<u32, String> {
        note(self.0.0);
        Ok(n.checked_mul(3).expect("small enough") + 1)
    }
}

#[inline(never)]
fn steps(mut n: u32, fault: u32) -> u32 {
    let all: [Box<dyn Step>; 2] = [Box::new(Halves), Box::new(Triples(Noted(n)))];
    let mut count = 0;
    while n != 1 {
        n = all[n as usize % 2].step(n).unwrap();
        count += 1;
        assert_ne!(count, fault, "too many steps");
    }
    count
}

/// Never inlined and not the last to be called: each of the three must have its frame.
#[inline(never)]
fn trace_inner(n: u32) -> Vec<String> {
    let trace = Backtrace::force_capture().to_string();
    let mut names: Vec<String> = Vec::new();
    for line in trace.lines() {
        if let Some((_, name)) = line.trim().split_once(": ") {
            if let Some(at) = name.find("trace_") {
                // A fragment that was split off is `name.cold`, a closure `name::{{closure}}`.
                let end = name[at..].find([':', '.']).map_or(name.len(), |i| at + i);
                names.push(name[at..end].to_owned());
            }
        }
    }
    names.dedup();
    note(black_box(n));
    names
}
#[inline(never)]
fn trace_middle(n: u32) -> Vec<String> {
    let _noted = Noted(n);
    let mut names = if n == 0 { panic!("none") } else { trace_inner(n) };
    names.push(black_box(n).to_string());
    names
}
#[inline(never)]
fn trace_outer(n: u32) -> Vec<String> {
    let mut names = catch_unwind(|| trace_middle(n)).unwrap_or_default();
    names.push(black_box(n).to_string());
    names
}

fn main() {
    panic::set_hook(Box::new(|info| {
        note(info.location().map_or(0, |l| l.line()));
    }));
    let values: Vec<u32> = (0..7).map(|i| i * 3).collect();
    for at in 0..9 {
        println!("{at}: {} {:08x}", caught(&values, black_box(at)), sum());
    }
    for at in 3..5 {
        let found = catch_unwind(|| resumed(&values, black_box(at)));
        println!("resumed {} {:08x}", found.unwrap_or(0), sum());
    }
    for n in 0..8 {
        println!("drops {} {:08x}", drops(black_box(n)), sum());
    }
    for n in [6, 7, 0x6000_0001] {
        let found = catch_unwind(|| steps(black_box(n), black_box(10)));
        println!("steps {:?} {:08x}", found.ok(), sum());
    }
    let threads: Vec<_> = (0..6usize)
        .map(|i| {
            let values = values.clone();
            thread::spawn(move || {
                let _noted = Noted(i as u32);
                let mut all = 0;
                for at in 0..200 {
                    all += caught(&values, black_box((at + i) % 9)).len();
                }
                assert!(i % 2 == 0, "thread {i} {all} {:08x}", sum());
                (all, sum())
            })
        })
        .collect();
    for thread in threads {
        match thread.join() {
            Ok((all, sum)) => println!("thread {all} {sum:08x}"),
            Err(payload) => println!("panicked: {}", payload.downcast_ref::<String>().expect("a text")),
        }
    }
    println!("{:?} {:?}", trace_outer(black_box(2)), trace_outer(black_box(0)));
}
