//! Which files were mapped where, in each process, at any time of the recording.
//!
//! Each processor's records are in order, but not those of all; so what changed is collected first and sorted, and the
//! samples are looked at afterwards. Memory follows the number of mappings and processes, not that of samples, and not the length of the
//! rounds in which a recorder writes.

use rustc_hash::FxHashMap;
use std::rc::Rc;

/// When something was recorded: its time, and its number in the file for what has the same.
pub type Moment = (u64, u64);

/// Which of the recorded files.
pub type FileId = u32;

/// What changes where a process finds its code.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// `end` is behind the last byte; `offset` is where the first stands in the file.
    Map { start: u64, end: u64, offset: u64, file: FileId },
    /// The process runs another program now.
    Exec,
    /// The process was made by another.
    Fork { parent: u32 },
}

/// Memory that shows a part of the program's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
}

/// What each process went through.
#[derive(Default)]
pub struct Processes {
    changes: FxHashMap<u32, Vec<(Moment, Change)>>,
}

impl Processes {
    pub fn add(&mut self, process: u32, moment: Moment, change: Change) {
        self.changes.entry(process).or_default().push((moment, change));
    }

    /// Sorts what was added, and keeps only what has to do with the files that `is_wanted`.
    pub fn settle(mut self, is_wanted: impl Fn(FileId) -> bool) -> Mappings {
        let all = self.changes.values().flatten();
        let spans = all.filter_map(|(_, change)| match *change {
            Change::Map { start, end, file, .. } if is_wanted(file) => Some((start, end)),
            _ => None,
        });
        let spans = united(spans.collect());
        let meets = |start: u64, end: u64| {
            let behind = spans.partition_point(|s| s.0 < end);
            spans[..behind].last().is_some_and(|s| s.1 > start)
        };
        for changes in self.changes.values_mut() {
            changes.retain(|(_, change)| match *change {
                Change::Map { start, end, .. } => meets(start, end),
                _ => true,
            });
            changes.sort_by_key(|(moment, _)| *moment);
            for (_, change) in changes.iter_mut() {
                if let Change::Map { file, .. } = change {
                    *file = FileId::from(is_wanted(*file));
                }
            }
        }
        Mappings { changes: self.changes, views: FxHashMap::default() }
    }
}

/// Spans without overlaps, ascending.
fn united(mut spans: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    spans.sort_unstable();
    let mut united: Vec<(u64, u64)> = Vec::new();
    for (start, end) in spans {
        match united.last_mut().filter(|last| last.1 >= start) {
            Some(last) => last.1 = last.1.max(end),
            None => united.push((start, end)),
        }
    }
    united
}

/// Where the program's file was mapped.
pub struct Mappings {
    /// By process and ascending; a file's number is 1 for the program, and 0 for any other.
    changes: FxHashMap<u32, Vec<(Moment, Change)>>,
    /// What was last asked for of each process, and how many of its changes had come by then.
    views: FxHashMap<u32, (usize, View)>,
}

/// Where the program's file was mapped in one process at one time.
pub type View = Rc<[Mapping]>;

impl Mappings {
    /// Where the file was mapped in `process` at `moment`.
    pub fn view(&mut self, process: u32, moment: Moment) -> View {
        let Some(changes) = self.changes.get(&process) else { return Rc::default() };
        let count = changes.partition_point(|c| c.0 < moment);
        if let Some((_, view)) = self.views.get(&process).filter(|v| v.0 == count) {
            return view.clone();
        }
        let view = self.build(process, count);
        self.views.insert(process, (count, view.clone()));
        view
    }

    /// The process that mapped the file, if there is one only.
    pub fn only_process(&self) -> Option<u32> {
        let maps = |changes: &Vec<(Moment, Change)>| {
            changes.iter().any(|c| matches!(c.1, Change::Map { file: 1, .. }))
        };
        let mut found = self.changes.iter().filter(|(_, changes)| maps(changes)).map(|(process, _)| *process);
        found.next().filter(|_| found.next().is_none())
    }

    fn build(&self, process: u32, count: usize) -> View {
        // Back to where this process, or the one that it came from, started afresh.
        let mut parts: Vec<&[(Moment, Change)]> = Vec::new();
        let (mut process, mut count) = (process, count);
        while let Some(changes) = self.changes.get(&process).map(|c| &c[..count]) {
            let start = changes.iter().rposition(|c| !matches!(c.1, Change::Map { .. }));
            parts.push(&changes[start.map_or(0, |s| s + 1)..]);
            let Some((moment, Change::Fork { parent })) = start.map(|s| changes[s]) else { break };
            // Invariant: each step goes back in time, so this ends.
            process = parent;
            count = self.changes.get(&parent).map_or(0, |c| c.partition_point(|c| c.0 < moment));
        }
        let mut mapped: Vec<Mapping> = Vec::new();
        for (_, change) in parts.into_iter().rev().flatten() {
            if let Change::Map { start, end, offset, file } = *change {
                cut_out(&mut mapped, start, end);
                if file == 1 {
                    mapped.push(Mapping { start, end, offset });
                }
            }
        }
        mapped.into()
    }
}

/// Takes what is mapped anew out of what was mapped before.
fn cut_out(mapped: &mut Vec<Mapping>, start: u64, end: u64) {
    if mapped.iter().all(|m| m.end <= start || m.start >= end) {
        return;
    }
    let left = |m: &Mapping| (m.start < start).then(|| Mapping { end: m.end.min(start), ..*m });
    let right = |m: &Mapping| {
        let from = m.start.max(end);
        (m.end > end).then(|| Mapping { start: from, offset: m.offset.wrapping_add(from - m.start), ..*m })
    };
    *mapped = mapped.iter().flat_map(|m| left(m).into_iter().chain(right(m))).collect();
}

/// Where in the file the byte stands that is mapped at `address`.
pub fn file_offset(view: &[Mapping], address: u64) -> Option<u64> {
    let mapping = view.iter().find(|m| m.start <= address && address < m.end)?;
    mapping.offset.checked_add(address - mapping.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: FileId = 7;

    fn map(start: u64, end: u64, offset: u64, file: FileId) -> Change {
        Change::Map { start, end, offset, file }
    }

    /// Asks at each time where the address stands in the file.
    fn offsets(
        changes: &[(u32, u64, Change)],
        process: u32,
        address: u64,
        times: &[u64],
    ) -> Vec<Option<u64>> {
        let mut processes = Processes::default();
        for (i, &(process, time, change)) in changes.iter().enumerate() {
            processes.add(process, (time, i as u64), change);
        }
        let mut mappings = processes.settle(|file| file == OURS);
        times.iter().map(|&t| file_offset(&mappings.view(process, (t, u64::MAX)), address)).collect()
    }

    #[test]
    fn what_is_mapped_later_counts_whatever_the_order_of_the_file() {
        let changes = [(5, 30, map(0x1000, 0x3000, 0, 1)), (5, 10, map(0x2000, 0x4000, 0x500, OURS))];
        assert_eq!(offsets(&changes, 5, 0x2010, &[9, 10, 29, 30]), [None, Some(0x510), Some(0x510), None]);
        assert_eq!(offsets(&changes, 5, 0x3010, &[30]), [Some(0x1510)]);
        assert_eq!(offsets(&changes, 6, 0x3010, &[30]), [None]);
    }

    #[test]
    fn children_inherit_what_was_there_when_they_were_made_until_they_run_another_program() {
        let changes = [
            (1, 10, map(0x1000, 0x2000, 0, OURS)),
            (2, 20, Change::Fork { parent: 1 }),
            (1, 30, map(0x1000, 0x2000, 0, 3)),
            (3, 40, Change::Fork { parent: 2 }),
            (3, 50, Change::Exec),
            (3, 60, map(0x1000, 0x2000, 0x700, OURS)),
        ];
        assert_eq!(offsets(&changes, 2, 0x1001, &[15, 25, 70]), [None, Some(1), Some(1)]);
        assert_eq!(offsets(&changes, 3, 0x1001, &[45, 55, 65]), [Some(1), None, Some(0x701)]);
        assert_eq!(offsets(&changes, 1, 0x1001, &[25, 35]), [Some(1), None]);
    }

    #[test]
    fn processes_that_claim_to_be_their_own_ancestors() {
        let changes = [
            (1, 10, Change::Fork { parent: 2 }),
            (2, 10, Change::Fork { parent: 1 }),
            (1, 5, map(0x1000, 0x2000, 0, OURS)),
            (3, 8, Change::Fork { parent: 3 }),
        ];
        assert_eq!(offsets(&changes, 2, 0x1001, &[20]), [None]);
        assert_eq!(offsets(&changes, 3, 0x1001, &[20]), [None]);
    }
}
