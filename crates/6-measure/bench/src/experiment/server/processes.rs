//! The table of processes at one moment, from `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// One thread of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thread {
    pub process: i32,
    pub id: i32,
}

/// What `/proc/PID/stat` says of one process.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Process {
    parent: i32,
    group: i32,
    ended: bool,
    /// Its own time and that of the children it waited for, in ticks of the clock.
    ticks: u64,
}

/// All processes.
#[derive(Debug)]
pub struct Table {
    processes: BTreeMap<i32, Process>,
}

impl Table {
    /// What there is now.
    pub fn read() -> Self {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let process = |number: i32| {
            let text = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
            Some((number, parse(&text)?))
        };
        Self { processes: numbers.filter_map(process).collect() }
    }

    /// Those that execute this file, have this process group, or this word in the environment that they were started with.
    pub fn matching(&self, file: &Path, group: Option<i32>, word: Option<&str>) -> Vec<i32> {
        let identity = |path: &Path| std::fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
        let wanted = identity(file);
        let executes =
            |number: i32| wanted.is_some() && identity(format!("/proc/{number}/exe").as_ref()) == wanted;
        let is_marked = |number: i32| {
            let Some(word) = word else { return false };
            let environment = std::fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == word.as_bytes())
        };
        let alive = self.processes.iter().filter(|(_, process)| !process.ended);
        alive
            .filter(|(number, process)| {
                Some(process.group) == group || executes(**number) || is_marked(**number)
            })
            .map(|(number, _)| *number)
            .collect()
    }

    /// These and all their descendants that are alive.
    pub fn below(&self, roots: &[i32]) -> BTreeSet<i32> {
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for (number, process) in &self.processes {
            children.entry(process.parent).or_default().push(*number);
        }
        let mut found = BTreeSet::new();
        let mut open = roots.to_vec();
        while let Some(number) = open.pop() {
            if self.processes.get(&number).is_some_and(|process| !process.ended) && found.insert(number) {
                open.extend(children.get(&number).into_iter().flatten());
            }
        }
        found
    }

    /// The threads of these and all their descendants.
    pub fn threads_below(&self, roots: &[i32]) -> Vec<Thread> {
        let threads = |process: i32| {
            let entries = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
            entries.filter_map(move |entry| {
                Some(Thread { process, id: entry.file_name().to_str()?.parse().ok()? })
            })
        };
        let mut all: Vec<Thread> = self.below(roots).into_iter().flat_map(threads).collect();
        all.sort_unstable();
        all
    }

    /// What these, their descendants and those of them that have ended and were waited for used so far.
    pub fn cpu_seconds(&self, roots: &[i32]) -> Option<f64> {
        // SAFETY: it only reads a number.
        let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        let processes = self.below(roots);
        let ticks: u64 = processes.iter().map(|number| self.processes[number].ticks).sum();
        (!processes.is_empty() && per_second > 0).then(|| ticks as f64 / per_second as f64)
    }
}

/// The fields behind the name, which may hold spaces and brackets (proc(5)): state, parent, group; from the twelfth on user and
/// system time, its own and of the children it waited for.
fn parse(stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<i64>().ok();
    let ticks = (11..15).map(number).sum::<Option<i64>>()?;
    Some(Process {
        parent: number(1)? as i32,
        group: number(2)? as i32,
        ended: matches!(*fields.first()?, "Z" | "X"),
        ticks: u64::try_from(ticks).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_fields() {
        let line = "42 (a) R 1 (x)) S 7 8 9 0 -1 4194304 100 0 0 0 11 22 33 44 20 0 1 0 99 1000 10";
        let process = parse(line).unwrap();
        assert_eq!((process.parent, process.group, process.ended, process.ticks), (7, 8, false, 110));
        assert_eq!(parse("42 (gone"), None);
    }

    #[test]
    fn descendants_are_found_and_the_dead_are_not() {
        let process = |parent, state: char| {
            parse(&format!("0 (x) {state} {parent} 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0")).unwrap()
        };
        let processes = [
            (10, process(1, 'S')),
            (11, process(10, 'R')),
            (12, process(11, 'S')),
            (13, process(10, 'Z')),
            (20, process(1, 'S')),
        ];
        let table = Table { processes: processes.into_iter().collect() };
        assert_eq!(table.below(&[10]).into_iter().collect::<Vec<_>>(), [10, 11, 12]);
        assert_eq!(table.below(&[20, 99]).into_iter().collect::<Vec<_>>(), [20]);
        assert_eq!(table.cpu_seconds(&[99]), None);
        assert!(table.cpu_seconds(&[10]).unwrap() > 0.0);
    }
}
