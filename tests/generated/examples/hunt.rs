//! Hunts for programs that behave differently once they are rewritten.
//!
//! ```text
//! hunt [WRITER] [--seconds N]          goes on with the next seeds for N seconds of processor time, and records them
//! hunt [WRITER] --seeds A..B           tries these, and records nothing; WRITER is pieces, exceptions or csmith
//!      --only NAMES, --without NAMES   of pieces, with commas
//! ```
//! fuzz/programs.tsv adds up what was done. Programs with findings stay in fuzz/artifacts/programs (sources, command, the original,
//! every output, and `findings`); a file `stop` there ends the hunt. The variable AFTERLINK names another command to try.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

use afterlink_generated::build::{Order, Writer, build};
use afterlink_generated::check::{check, clean};
use afterlink_generated::record::{Row, processor_time, read, write};

struct Plan {
    order: Order,
    seeds: Option<std::ops::Range<u64>>,
    seconds: f64,
}

fn usage(word: &str) -> ! {
    eprintln!("hunt: {word}; see the head of {}", file!());
    exit(64)
}

fn plan() -> Plan {
    let order = Order { writer: Writer::Pieces, seed: 0, only: Vec::new(), without: Vec::new() };
    let mut plan = Plan { order, seeds: None, seconds: 60.0 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| usage(&format!("{word} needs a value")));
        let names = |list: String| list.split(',').map(str::to_owned).collect();
        match word.as_str() {
            "--seconds" => plan.seconds = value().parse().unwrap_or_else(|_| usage("--seconds N")),
            "--only" => plan.order.only = names(value()),
            "--without" => plan.order.without = names(value()),
            "--seeds" => {
                let range = value();
                let ends: Vec<u64> = range.split("..").filter_map(|end| end.parse().ok()).collect();
                let [start, end] = ends[..] else { usage("--seeds A..B") };
                plan.seeds = Some(start..end);
            }
            other => plan.order.writer = Writer::of_name(other).unwrap_or_else(|| usage(other)),
        }
    }
    plan
}

/// Tries one seed, counts it, and keeps what is wrong.
fn try_seed(order: &Order, kept: &Path, row: &mut Row) {
    let name = format!("{}-{}", order.writer.name(), order.seed);
    let folder = kept.join(&name);
    let built = match build(order, &folder) {
        Ok(built) => built,
        Err(why) => {
            println!("{name}: does not build: {why}");
            row.programs += 1;
            row.skipped += 1;
            let _ = fs::remove_dir_all(&folder);
            return;
        }
    };
    let report = check(&built);
    row.add(&report);
    if let Some(why) = report.skipped {
        println!("{name}: {why}: {} {}", built.command, built.pieces.join(" "));
    }
    if report.findings.is_empty() {
        clean(&built);
        return;
    }
    let text = format!("{}\n{}\n{}\n", built.command, built.pieces.join(" "), report.findings.join("\n"));
    println!("{name}: FOUND\n{text}");
    fs::write(folder.join("findings"), text).expect("the folder was just made");
}

fn commit(repository: &Path) -> String {
    let output =
        Command::new("git").args(["describe", "--always", "--dirty=+"]).current_dir(repository).output();
    output.map_or("unknown".to_owned(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
}

fn main() {
    let plan = plan();
    let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let table = repository.join("fuzz/programs.tsv");
    let kept = repository.join("fuzz/artifacts/programs");
    let mut row = read(&table, plan.order.writer.name());
    if let Some(seeds) = plan.seeds {
        let mut tried = Row::default();
        seeds.for_each(|seed| try_seed(&Order { seed, ..plan.order.clone() }, &kept, &mut tried));
        println!(
            "{} programs, {} skipped, {} with findings; {} of {} functions moved",
            tried.programs, tried.skipped, tried.findings, tried.moved, tried.functions
        );
        exit(i32::from(tried.findings > 0));
    }
    row.commit = commit(&repository);
    let before = row.cpu_seconds;
    while processor_time() < plan.seconds && !kept.join("stop").exists() {
        try_seed(&Order { seed: row.next_seed, ..plan.order.clone() }, &kept, &mut row);
        row.next_seed += 1;
        row.cpu_seconds = before + processor_time();
        write(&table, &row).expect("fuzz/programs.tsv can be written");
    }
}
