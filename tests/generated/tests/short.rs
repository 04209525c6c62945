//! Some thirty programs of fixed seeds, in every mode. `cargo run --release -p afterlink-generated --example hunt` goes on where this ends.

use std::sync::atomic::{AtomicUsize, Ordering};

use afterlink_generated::build::{Order, Writer, build};
use afterlink_generated::check::{check, clean};

/// Pieces of which it is known that they go wrong, each with what must be mended first.
const OPEN: &[&str] = &[];

/// Seeds that no hunt uses.
const FIRST: u64 = 1 << 40;

fn orders() -> Vec<Order> {
    let without: Vec<String> = OPEN.iter().map(|name| (*name).to_owned()).collect();
    let order = |writer, seed| Order { writer, seed, only: Vec::new(), without: without.clone() };
    let pieces = (FIRST..FIRST + 20).map(|seed| order(Writer::Pieces, seed));
    let exceptions = (FIRST..FIRST + 6).map(|seed| order(Writer::Exceptions, seed));
    pieces.chain(exceptions).chain((1..=4).map(|seed| order(Writer::Csmith, seed))).collect()
}

/// What is wrong with a program, if anything; `None` when it could not be tried.
fn try_order(order: &Order) -> Option<Vec<String>> {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let built = match build(order, &folder.path().join("program")) {
        Ok(built) => built,
        Err(why) => panic!("{} {} does not build: {why}", order.writer.name(), order.seed),
    };
    let report = check(&built);
    clean(&built);
    let name =
        format!("{} {}: {} ({})", order.writer.name(), order.seed, built.command, built.pieces.join(" "));
    report.skipped.is_none().then(|| report.findings.iter().map(|f| format!("{name}\n{f}")).collect())
}

#[test]
fn rewritten_programs_do_what_they_did() {
    let (orders, next, tried) = (orders(), AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let mut findings = Vec::new();
        while let Some(order) = orders.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Some(more) = try_order(order) {
                tried.fetch_add(1, Ordering::Relaxed);
                findings.extend(more);
            }
        }
        findings
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let findings: Vec<String> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        all.into_iter().flat_map(|thread| thread.join().expect("no thread panics")).collect()
    });
    assert!(findings.is_empty(), "{}", findings.join("\n\n"));
    let tried = tried.into_inner();
    assert!(tried >= orders.len() - 2, "only {tried} of {} programs could be tried", orders.len());
}
