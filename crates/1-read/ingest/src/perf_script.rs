//! Text of `perf script` to a profile, where the `perf.data` itself is elsewhere: samples with their process and address or branch
//! stack, and mappings.
//!
//! ```text
//! perf script -G -F pid,time,event,ip,brstack --show-mmap-events --show-task-events
//! ```
//!
//! Read twice, as [`perf_data`](crate::perf_data) is. Without `-G` a sample's callers stand below it, and its own address first among them; but
//! there perf prints where in its file each stands, and not which file that is, so only branch stacks are of use then.

mod happening;
mod line;

use crate::program::Program;
use crate::reading::Reading;
use crate::recording::{
    Candidate, Change, Files, Moment, Processes, RecordedFile, Samples, choose, left_out, of_program,
    rank_of, roles,
};
use afterlink_core::{Error, Result, Viewed};
use happening::{Happening, MARK};
use line::Line;
use rustc_hash::FxHashMap;

pub use happening::read_build_id;

/// What to call to get all that is needed.
const COMMAND: &str = "perf script -G -F pid,time,event,ip,brstack --show-mmap-events --show-task-events";

/// How many bytes are looked at before they are given back.
const AT_ONCE: usize = 64 << 20;

/// Whether a line is of such text.
pub fn is_line(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let has_place = |line: Line| {
        let place = line.address.is_some() || line.has_stack;
        place && (line.event.is_some() || line.time.is_some() || line.has_stack)
            || line.starts_sample() && line.event.is_some()
    };
    text.contains(MARK) || Line::read(&text).is_some_and(has_place)
}

/// The files that were mapped, as far as the text tells.
pub fn files(file: Viewed) -> Vec<RecordedFile> {
    let mut survey = Survey::default();
    for_each_line(file, |line, number| survey.add(line, number));
    survey.files.to_vec()
}

/// Reads the text.
///
/// # Errors
/// It has no sample, or the program did not run in it.
pub fn read(file: Viewed, program: &Program) -> Result<Reading> {
    let mut survey = Survey::default();
    for_each_line(file, |line, number| survey.add(line, number));
    survey.end_sample();
    let candidates = survey.candidates();
    let events = choose(&candidates);
    if events.is_empty() {
        return Err(Error::new("no line of it is a sample").next(format!("make it with {COMMAND}")));
    }
    if survey.files.is_empty() {
        return Err(Error::new("it does not say where the program was mapped")
            .next(format!("make it with {COMMAND}")));
    }
    if survey.has_callers && !candidates[events[0]].has_branches {
        let what =
            "callers stand below its samples, and then perf script does not say where the samples were";
        return Err(Error::new(what).next(format!("make it with {COMMAND}")));
    }
    let ours = of_program(&survey.files, program)?;
    let mappings = std::mem::take(&mut survey.processes).settle(roles(&survey.files, &ours));
    let mut collected = Collected {
        survey: &survey,
        is_chosen: (0..candidates.len()).map(|event| events.contains(&event)).collect(),
        samples: Samples::new(program, mappings),
        pending: None,
    };
    for_each_line(file, |line, number| collected.add(line, number));
    collected.end_sample();
    let titles: Vec<String> = events.iter().map(|&e| candidates[e].title.clone()).collect();
    let mut reading = collected.samples.finish(&titles)?;
    reading.notes.extend(left_out(&candidates, &events));
    if survey.strange > 0 {
        reading.notes.push(format!(
            "{} lines are no samples and were left out; make it with {COMMAND}",
            survey.strange
        ));
    }
    Ok(reading)
}

/// Hands on each line that is not a comment, with its number.
fn for_each_line(file: Viewed, mut visit: impl FnMut(&str, u64)) {
    let mut seen = 0;
    for (number, line) in (1..).zip(file.bytes().split(|&b| b == b'\n')) {
        if !line.starts_with(b"#") {
            visit(String::from_utf8_lossy(line).trim_end(), number);
        }
        seen += line.len() + 1;
        if seen >= AT_ONCE {
            file.give_back();
            seen = 0;
        }
    }
}

/// The first look: what was mapped where, and how many samples each event has.
#[derive(Default)]
struct Survey {
    processes: Processes,
    files: Files,
    /// The process of each thread.
    threads: FxHashMap<u32, u32>,
    /// Events in the order in which they come up, and how many samples each has.
    events: Vec<(String, u64, bool)>,
    /// The event of the sample that the last lines are of.
    pending: Option<usize>,
    /// Whether some line has no time.
    untimed: bool,
    strange: u64,
    /// Whether callers stand below samples.
    has_callers: bool,
}

impl Survey {
    fn add(&mut self, text: &str, number: u64) {
        if text.contains(MARK) {
            // The time stands in front of it; a file's name may look like one.
            let front = &text[..text.find(MARK).unwrap_or_default()];
            let time = line::time_in(&format!("{front} ")).map(|t| t.1);
            self.untimed |= time.is_none();
            self.happened(text, (time.unwrap_or(0), number));
        } else if text.is_empty() {
            self.end_sample();
        } else {
            self.sample(text);
        }
    }

    fn happened(&mut self, text: &str, moment: Moment) {
        match happening::read(text) {
            Some(Happening::Mapped { process, start, size, offset, file }) => {
                let file = self.files.number(file);
                let end = start.saturating_add(size);
                self.processes.add(process, moment, Change::Map { start, end, offset, file });
            }
            Some(Happening::Forked { process, thread, parent }) => {
                self.threads.insert(thread, process);
                if process != parent {
                    self.processes.add(process, moment, Change::Fork { parent });
                }
            }
            Some(Happening::Named { process, thread, runs_another }) => {
                self.threads.insert(thread, process);
                if runs_another {
                    self.processes.add(process, moment, Change::Exec);
                }
            }
            None => {}
        }
    }

    fn sample(&mut self, text: &str) {
        let Some(line) = Line::read(text) else {
            self.strange += 1;
            return;
        };
        if line.starts_sample() || self.pending.is_none() || line.has_stack && line.address.is_some() {
            self.end_sample();
            self.untimed |= line.time.is_none();
            let event = self.event(line.event.unwrap_or(""));
            self.pending = Some(event);
            self.events[event].1 += 1;
        }
        if let Some(event) = self.pending {
            self.events[event].2 |= line.has_stack;
            self.has_callers |= !line.starts_sample() && !line.has_stack;
        }
    }

    fn end_sample(&mut self) {
        self.pending = None;
    }

    fn event(&mut self, name: &str) -> usize {
        self.find_event(name).unwrap_or_else(|| {
            self.events.push((name.to_owned(), 0, false));
            self.events.len() - 1
        })
    }

    fn find_event(&self, name: &str) -> Option<usize> {
        self.events.iter().position(|e| e.0 == name)
    }

    fn candidates(&self) -> Vec<Candidate> {
        let candidate = |(name, samples, has_branches): &(String, u64, bool)| Candidate {
            samples: *samples,
            rank: rank_of(name),
            has_branches: *has_branches,
            title: if name.is_empty() { "an_event".to_owned() } else { name.clone() },
        };
        self.events.iter().map(candidate).collect()
    }
}

/// The second look.
struct Collected<'a, 'p> {
    survey: &'a Survey,
    is_chosen: Vec<bool>,
    samples: Samples<'a, 'p>,
    pending: Option<Pending>,
}

/// A sample of which more lines may come.
struct Pending {
    event: usize,
    process: Option<u32>,
    moment: Moment,
    line: Line<'static>,
}

impl Collected<'_, '_> {
    fn add(&mut self, text: &str, number: u64) {
        if text.is_empty() || text.contains(MARK) {
            self.end_sample();
            return;
        }
        let Some(line) = Line::read(text) else { return };
        match &mut self.pending {
            Some(pending) if !(line.starts_sample() || line.has_stack && line.address.is_some()) => {
                pending.line.branches.extend(line.branches);
            }
            _ => {
                self.end_sample();
                let Some(event) = self.survey.find_event(line.event.unwrap_or("")) else { return };
                let time = line.time.filter(|_| !self.survey.untimed).unwrap_or(0);
                let process = line.process.or_else(|| self.process_of(line.task));
                let line = Line { event: None, ..line };
                self.pending = Some(Pending { event, process, moment: (time, number), line });
            }
        }
    }

    /// The process that a number stands for, which may be a thread's; where there is none, the only one that there is.
    fn process_of(&self, task: Option<u32>) -> Option<u32> {
        match task {
            Some(task) => Some(self.survey.threads.get(&task).copied().unwrap_or(task)),
            None => self.samples.only_process(),
        }
    }

    fn end_sample(&mut self) {
        let Some(Pending { event, process, moment, line }) = self.pending.take() else { return };
        if let Some(process) = process.filter(|_| self.is_chosen[event]) {
            self.samples.add((process, moment), line.address, line.branches.into_iter(), true);
        }
    }
}
