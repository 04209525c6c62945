//! What a server used while the workload ran: all of its processes, those that it starts meanwhile too.
//!
//! Which processes are its own is looked up right before the run: those that execute the file under test, those that the set-up command
//! started (they have its process group or its mark in their environment), or the one that the user names; and all their
//! descendants. The kernel's counters are attached to each of their threads and inherited by what they start. Where counters are forbidden,
//! CPU time comes from `/proc/PID/stat`, which has it in steps of 10 ms.

mod processes;

use std::path::Path;

use afterlink_core::{Error, Result};
use rustix::process::Pid;

use self::processes::{Table, Thread};
use super::counters::ThreadCounter;
use crate::record::Side;

/// The variable by which a server's processes are known: another value for each set-up.
pub const MARK_VARIABLE: &str = "AFTERLINK_SERVER";

/// How often the threads are looked up again until none was started meanwhile.
const ATTEMPTS: u32 = 20;

/// By what a server's processes are found.
#[derive(Debug, Clone, Copy)]
pub struct ServerProcesses<'a> {
    /// The file under test.
    pub file: &'a Path,
    /// The process group of its set-up command.
    pub group: Option<Pid>,
    /// The value of [`MARK_VARIABLE`] in it.
    pub mark: Option<&'a str>,
    /// Its first process, or the file that holds the number: alone, or one for each side.
    pub named: &'a [String],
    pub side: Side,
}

/// What all processes of the server used between two moments.
#[derive(Debug, Clone, PartialEq)]
pub struct Use {
    pub processes: usize,
    pub cpu_seconds: Option<f64>,
    /// In the order asked for.
    pub counters: Vec<Option<f64>>,
}

/// Counts from its start on.
#[derive(Debug)]
pub struct Watch {
    roots: Vec<i32>,
    processes: usize,
    before: Option<f64>,
    clock: Option<Vec<ThreadCounter>>,
    counters: Vec<Option<Vec<ThreadCounter>>>,
}

impl ServerProcesses<'_> {
    /// The numbers of all its processes.
    ///
    /// # Errors
    /// The file that holds the number of its process cannot be read.
    fn roots(&self, table: &Table) -> Result<Vec<i32>> {
        if let Some(named) = self.named.get(self.side as usize).or(self.named.first()) {
            return Ok(vec![number(named)?]);
        }
        let group = self.group.map(|group| group.as_raw_nonzero().get());
        let mark = self.mark.map(|mark| format!("{MARK_VARIABLE}={mark}"));
        Ok(table.matching(self.file, group, mark.as_deref()))
    }

    /// Begins to count what it uses: CPU time, and the counters of these names.
    ///
    /// # Errors
    /// As of a file with the number of its process that cannot be read.
    pub fn watch(&self, names: &[&str]) -> Result<Watch> {
        let mut table = Table::read();
        let roots = self.roots(&table)?;
        let mut threads = table.threads_below(&roots);
        for _ in 0..ATTEMPTS {
            let clock = attach("task-clock", &threads);
            let counters = names.iter().map(|name| attach(name, &threads)).collect();
            table = Table::read();
            let now = table.threads_below(&roots);
            // What started in between may be counted or not: begin again.
            if now == threads {
                let processes = table.below(&roots).len();
                return Ok(Watch { before: table.cpu_seconds(&roots), roots, processes, clock, counters });
            }
            threads = now;
        }
        let before = table.cpu_seconds(&roots);
        let counters = names.iter().map(|_| None).collect();
        Ok(Watch { processes: table.below(&roots).len(), before, roots, clock: None, counters })
    }
}

impl Watch {
    /// What was used since.
    pub fn finish(self) -> Use {
        let coarse = || {
            let after = Table::read().cpu_seconds(&self.roots)?;
            // A process that ended unknown to all others takes what it used with it.
            Some(after - self.before?).filter(|seconds| *seconds >= 0.0)
        };
        let fine = self.clock.and_then(sum).map(|nanoseconds| nanoseconds * 1e-9);
        Use {
            processes: self.processes,
            cpu_seconds: if self.processes == 0 { None } else { fine.or_else(coarse) },
            counters: self.counters.into_iter().map(|threads| sum(threads?)).collect(),
        }
    }
}

/// One counter on every thread; nothing unless all have it.
fn attach(name: &str, threads: &[Thread]) -> Option<Vec<ThreadCounter>> {
    if threads.is_empty() {
        return None;
    }
    threads.iter().map(|thread| ThreadCounter::start(name, thread.id)).collect()
}

fn sum(counters: Vec<ThreadCounter>) -> Option<f64> {
    counters.into_iter().map(ThreadCounter::read).sum()
}

/// A process by its number, or by a file whose first word is the number.
fn number(named: &str) -> Result<i32> {
    let parse = |text: &str| text.split_whitespace().next()?.parse::<i32>().ok().filter(|number| *number > 0);
    if let Some(number) = parse(named) {
        return Ok(number);
    }
    let text = std::fs::read_to_string(named).map_err(|e| {
        Error::new(format!("cannot be read: {}", super::process::system_message(&e)))
            .in_file(named)
            .next("give a number or a file that holds one with --server-pid")
    })?;
    parse(&text).ok_or_else(|| {
        Error::new("does not begin with the number of a process")
            .in_file(named)
            .next("name the server's file with --server-pid")
    })
}

#[cfg(test)]
mod tests;
