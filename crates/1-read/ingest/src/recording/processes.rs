//! Which files were mapped where, in each process, at any time of the recording.
//!
//! Each processor's records are in order, but not those of all; so what changed is collected first and sorted, and the
//! samples are looked at afterwards. Memory follows the number of mappings and processes, not that of samples, and not the length of the
//! rounds in which a recorder writes.
//!
//! Some programs put their own code on huge pages when they start: a copy of it, in memory without a file or with one of huge pages, takes the
//! place of what was mapped, at the same addresses. Such memory within the program's code, or beside what is left of it where by its file more
//! of it belongs, is its code still; anywhere else it is no program's.

use rustc_hash::FxHashMap;
use std::rc::Rc;

/// When something was recorded: its time, and its number in the file for what has the same.
pub type Moment = (u64, u64);

/// Which of the recorded files.
pub type FileId = u32;

/// What changes where a process finds its code.
#[derive(Clone, Copy, Debug)]
pub enum Change<F = FileId> {
    /// `end` is behind the last byte; `offset` is where the first stands in the file.
    Map { start: u64, end: u64, offset: u64, file: F },
    /// The process runs another program now.
    Exec,
    /// The process was made by another.
    Fork { parent: u32 },
}

/// What a recorded file is to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Its own code.
    Program,
    /// Memory that is no part of a file on a disk.
    Memory,
    Other,
}

/// Memory that shows a part of the program's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    /// It is a copy of that part.
    is_copy: bool,
}

impl Mapping {
    /// What its addresses are more than offsets of the file.
    fn bias(&self) -> u64 {
        self.start.wrapping_sub(self.offset)
    }

    fn copied(start: u64, end: u64, bias: u64) -> Self {
        Self { start, end, offset: start.wrapping_sub(bias), is_copy: true }
    }
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

    /// Sorts what was added, and keeps only what has to do with the program.
    pub fn settle(self, role: impl Fn(FileId) -> Role) -> Mappings {
        let spans = self.changes.values().flat_map(|changes| spans(changes, &role)).collect();
        let spans = united(spans);
        let touches = |start: u64, end: u64| {
            let behind = spans.partition_point(|s| s.0 <= end);
            spans[..behind].last().is_some_and(|s| s.1 >= start)
        };
        let settled = |changes: Vec<(Moment, Change<FileId>)>| {
            let kept = changes.into_iter().filter_map(|(moment, change)| match change {
                Change::Map { start, end, offset, file } => touches(start, end)
                    .then(|| (moment, Change::Map { start, end, offset, file: role(file) })),
                Change::Exec => Some((moment, Change::Exec)),
                Change::Fork { parent } => Some((moment, Change::Fork { parent })),
            });
            let mut kept: Vec<_> = kept.collect();
            kept.sort_by_key(|(moment, _)| *moment);
            kept
        };
        let changes = self.changes.into_iter().map(|(process, changes)| (process, settled(changes)));
        Mappings { changes: changes.collect(), views: FxHashMap::default() }
    }
}

/// Where a process may have found the program: from the first to the last of it, as there may be a copy between.
fn spans(changes: &[(Moment, Change<FileId>)], role: impl Fn(FileId) -> Role) -> Option<(u64, u64)> {
    let ours = changes.iter().filter_map(|(_, change)| match *change {
        Change::Map { start, end, file, .. } if role(file) == Role::Program => Some((start, end)),
        _ => None,
    });
    ours.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
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
    /// By process and ascending.
    changes: FxHashMap<u32, Vec<(Moment, Change<Role>)>>,
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
        let maps = |changes: &Vec<(Moment, Change<Role>)>| {
            changes.iter().any(|c| matches!(c.1, Change::Map { file: Role::Program, .. }))
        };
        let mut found = self.changes.iter().filter(|(_, changes)| maps(changes)).map(|(process, _)| *process);
        found.next().filter(|_| found.next().is_none())
    }

    fn build(&self, process: u32, count: usize) -> View {
        // Back to where this process, or the one that it came from, started afresh.
        let mut parts: Vec<&[(Moment, Change<Role>)]> = Vec::new();
        let (mut process, mut count) = (process, count);
        while let Some(changes) = self.changes.get(&process).map(|c| &c[..count]) {
            let start = changes.iter().rposition(|c| !matches!(c.1, Change::Map { .. }));
            parts.push(&changes[start.map_or(0, |s| s + 1)..]);
            let Some((moment, Change::Fork { parent })) = start.map(|s| changes[s]) else { break };
            // Invariant: each step goes back in time, so this ends.
            process = parent;
            count = self.changes.get(&parent).map_or(0, |c| c.partition_point(|c| c.0 < moment));
        }
        let mut shown = Shown::default();
        for (_, change) in parts.into_iter().rev().flatten() {
            if let Change::Map { start, end, offset, file } = *change {
                shown.map(start, end, offset, file);
            }
        }
        shown.finish()
    }
}

/// What a process has mapped.
#[derive(Default)]
struct Shown {
    /// Of the program, or copied from it.
    program: Vec<Mapping>,
    /// Memory that is not known to be a copy, as of a bias that says nothing.
    memory: Vec<Mapping>,
}

impl Shown {
    fn map(&mut self, start: u64, end: u64, offset: u64, role: Role) {
        if role == Role::Memory {
            let whole = self.program.iter().find(|m| m.start <= start && end <= m.end);
            if let Some(bias) = whole.map(Mapping::bias) {
                cut_out(&mut self.program, start, end);
                self.program.push(Mapping::copied(start, end, bias));
                return;
            }
        }
        cut_out(&mut self.program, start, end);
        cut_out(&mut self.memory, start, end);
        match role {
            Role::Program => self.program.push(Mapping { start, end, offset, is_copy: false }),
            Role::Memory => self.memory.push(Mapping::copied(start, end, 0)),
            Role::Other => {}
        }
    }

    /// With the memory beside parts of the program that agree where it is mapped. What of it is no code by the program's file does not matter.
    fn finish(mut self) -> View {
        let memory = united(self.memory.iter().map(|m| (m.start, m.end)).collect());
        for (start, end) in memory {
            let mut beside = self.program.iter().filter(|m| m.end == start || m.start == end);
            let Some(bias) = beside.next().map(Mapping::bias) else { continue };
            if beside.all(|other| other.bias() == bias) {
                self.program.push(Mapping::copied(start, end, bias));
            }
        }
        self.program.into()
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

fn mapping_at(view: &[Mapping], address: u64) -> Option<&Mapping> {
    view.iter().find(|m| m.start <= address && address < m.end)
}

/// Where in the file the byte stands that is mapped at `address`.
pub fn file_offset(view: &[Mapping], address: u64) -> Option<u64> {
    let mapping = mapping_at(view, address)?;
    mapping.offset.checked_add(address - mapping.start)
}

/// Whether a copy of the file's code is at `address`.
pub fn is_copy(view: &[Mapping], address: u64) -> bool {
    mapping_at(view, address).is_some_and(|m| m.is_copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: FileId = 7;
    const MEMORY: FileId = 8;

    fn role(file: FileId) -> Role {
        match file {
            OURS => Role::Program,
            MEMORY => Role::Memory,
            _ => Role::Other,
        }
    }

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
        let mut mappings = processes.settle(role);
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

    #[test]
    fn a_copy_in_its_place_is_the_program_still() {
        let start = (5, 10, map(0x10000, 0x50000, 0x1000, OURS));
        let copied = [start, (5, 20, map(0x20000, 0x30000, 0, MEMORY))];
        assert_eq!(offsets(&copied, 5, 0x20010, &[15, 25]), [Some(0x11010), Some(0x11010)]);
        assert_eq!(offsets(&copied, 5, 0x30010, &[25]), [Some(0x21010)]);
        // Another file there is another program.
        let other = [start, (5, 20, map(0x20000, 0x30000, 0, 3))];
        assert_eq!(offsets(&other, 5, 0x20010, &[15, 25]), [Some(0x11010), None]);
    }

    #[test]
    fn memory_beside_parts_is_a_copy_if_they_agree() {
        let around = |offset| {
            [
                (5, 10, map(0x10000, 0x20000, 0x1000, OURS)),
                (5, 11, map(0x20000, 0x30000, 0, MEMORY)),
                (5, 12, map(0x30000, 0x40000, offset, OURS)),
            ]
        };
        assert_eq!(offsets(&around(0x21000), 5, 0x20010, &[20]), [Some(0x11010)]);
        assert_eq!(offsets(&around(0x22000), 5, 0x20010, &[20]), [None]);
        let far = [around(0x21000)[0], (5, 11, map(0x21000, 0x30000, 0, MEMORY))];
        assert_eq!(offsets(&far, 5, 0x21010, &[20]), [None]);
    }
}
