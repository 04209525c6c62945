//! A program whose panics abort: no landing pads of its own, but a standard library that has them; the drops that happen
//! without a panic, and a panic at the end that a handler of the abort's signal turns into an exit.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::panic;
use std::thread;

thread_local! {
    static SUM: Cell<u32> = const { Cell::new(0) };
}

fn note(value: u32) {
    SUM.with(|s| s.set((s.get() ^ value).wrapping_mul(0x0100_0193).wrapping_add(s.get() >> 13)));
}

struct Noted(u32);
impl Drop for Noted {
    fn drop(&mut self) {
        note(self.0);
        if thread::panicking() {
            println!("dropped in a panic");
        }
    }
}

#[inline(never)]
fn parsed(text: &str) -> Result<u32, String> {
    let noted = Noted(text.len() as u32);
    let value: u32 = text.parse().map_err(|e| format!("{text}: {e}"))?;
    note(noted.0 + value);
    if value > 1000 { Err(format!("{value} is too much")) } else { Ok(value) }
}

#[inline(never)]
fn counted(words: &[&str]) -> BTreeMap<u32, Vec<String>> {
    let mut found: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for word in words {
        match parsed(word) {
            Ok(value) => found.entry(value % 3).or_default().push(word.to_string()),
            Err(words) => found.entry(9).or_default().push(words),
        }
    }
    found
}

#[inline(never)]
fn fails(values: &[u32], at: usize) -> u32 {
    let _noted = Noted(1);
    values[at]
}

unsafe extern "C" {
    fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
    fn _exit(code: i32) -> !;
}
extern "C" fn aborted(number: i32) {
    unsafe { _exit(number + 30) }
}

fn main() {
    panic::set_hook(Box::new(|info| println!("panic in line {}", info.location().map_or(0, |l| l.line()))));
    println!("{:?}", counted(&["1", "22", "x", "333", "4444", "", "55555555555"]));
    let threads: Vec<_> = (0..3u32)
        .map(|i| {
            thread::spawn(move || {
                let text = (i * 700).to_string();
                (parsed(&text), SUM.with(Cell::get))
            })
        })
        .collect();
    for thread in threads {
        println!("{:?}", thread.join().expect("it ends well"));
    }
    println!("{:08x}", SUM.with(Cell::get));
    unsafe { signal(6, aborted) };
    println!("{}", fails(&[1, 2, 3], black_box(3)));
}
