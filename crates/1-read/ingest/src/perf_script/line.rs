//! A line of `perf script`. Which fields it has is up to whoever called it; their order is always the same: command, process or thread,
//! processor, time, period, event, address, branches.

use crate::recording::{Entry, flag};

/// What a line says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line<'a> {
    /// A process or a thread, and the process where both stand there.
    pub task: Option<u32>,
    pub process: Option<u32>,
    /// In nanoseconds.
    pub time: Option<u64>,
    pub event: Option<&'a str>,
    pub address: Option<u64>,
    /// The newest first.
    pub branches: Vec<Entry>,
    /// Whether there was a stack, be it an empty one.
    pub has_stack: bool,
}

impl<'a> Line<'a> {
    /// Whether it starts a sample, and does not go on with one.
    pub fn starts_sample(&self) -> bool {
        self.task.is_some() || self.event.is_some() || self.time.is_some()
    }

    /// Reads a line; `None` if it is none of a sample.
    pub fn read(text: &'a str) -> Option<Self> {
        let mut line = Self::default();
        let mut rest = text;
        if let Some((before, time, behind)) = time_in(text) {
            line.time = Some(time);
            (line.process, line.task) = last_task(before).unwrap_or_default();
            rest = behind;
        } else {
            let (first, behind) = first_word(text)?;
            // Processes are written in seven columns, addresses in sixteen.
            let columns = text.len() - behind.len();
            if let Some(task) = task(first).filter(|_| columns <= 8 || first.contains('/')) {
                (line.process, line.task) = task;
                rest = behind;
            }
        }
        if let Some((event, behind)) = event_in(rest) {
            line.event = Some(event);
            rest = behind;
        }
        if let Some((first, behind)) = first_word(rest)
            && let Some(address) = address(first)
        {
            line.address = Some(address);
            rest = behind;
        }
        for word in rest.split_ascii_whitespace().filter(|word| word.starts_with("0x") && word.contains('/'))
        {
            line.has_stack = true;
            line.branches.extend(entry(word)?);
        }
        (line.address.is_some() || line.has_stack || line.event.is_some()).then_some(line)
    }
}

fn first_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find([' ', '\t']).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// What stands in front of the time, the time, and what stands behind it. A command in front may hold anything, but a task stands between
/// it and the time.
pub fn time_in(text: &str) -> Option<(&str, u64, &str)> {
    let mut from = 0;
    while let Some(colon) = text[from..].find(": ").map(|at| at + from) {
        let start = text[..colon].rfind([' ', '\t']).map_or(0, |at| at + 1);
        let before = &text[..start];
        let is_in_place = before.trim_start().is_empty() || last_task(before).is_some();
        if let Some(time) = nanoseconds(&text[start..colon]).filter(|_| is_in_place) {
            return Some((before, time, &text[colon + 1..]));
        }
        from = colon + 1;
    }
    None
}

/// Seconds with a point.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, part) = text.split_once('.')?;
    let is_number = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    if !is_number(seconds) || !is_number(part) || part.len() > 9 {
        return None;
    }
    let scale = 10u64.pow(9 - part.len() as u32);
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part.parse::<u64>().ok()? * scale)
}

/// The task in front of a time, with the processor perhaps in between: `[003]`.
fn last_task(before: &str) -> Option<(Option<u32>, Option<u32>)> {
    let mut words = before.split_ascii_whitespace().rev();
    words.find(|word| !word.starts_with('[')).and_then(task)
}

/// `PID/TID`, or a number that may be either.
fn task(word: &str) -> Option<(Option<u32>, Option<u32>)> {
    match word.split_once('/') {
        Some((process, thread)) => Some((Some(process.parse().ok()?), Some(thread.parse().ok()?))),
        None => Some((None, Some(word.parse().ok()?))),
    }
}

/// An event's name, with a period perhaps in front.
fn event_in(text: &str) -> Option<(&str, &str)> {
    let (mut word, mut behind) = first_word(text)?;
    if word.bytes().all(|b| b.is_ascii_digit()) && !word.ends_with(':') {
        (word, behind) = first_word(behind)?;
    }
    let name = word.strip_suffix(':').filter(|name| !name.is_empty())?;
    Some((name, behind))
}

fn address(word: &str) -> Option<u64> {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    (digits.len() <= 16 && !digits.is_empty()).then(|| u64::from_str_radix(digits, 16).ok())?
}

/// `0xFROM/0xTO/M/X/A/CYCLES/TYPE/SPECULATION`, the last two only of later versions. Of what was not taken (Arm SPE's `PN`) nothing
/// comes; `None` is an entry that cannot be read.
fn entry(word: &str) -> Option<Option<Entry>> {
    let mut parts = word.split('/');
    let mut number = || address(parts.next()?);
    let (from, to) = (number()?, number()?);
    let (prediction, _, abort) = (parts.next()?, parts.next()?, parts.next()?);
    let (_, kind, path) = (parts.next(), parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if prediction.contains('N') {
        return Some(None);
    }
    let mut flags = 0;
    if prediction.starts_with('M') {
        flags |= flag::MISPREDICTED;
    }
    if abort == "A" {
        flags |= flag::ABORT;
    }
    if path == "SPEC_WRONG_PATH" {
        flags |= flag::WRONG_PATH;
    }
    if matches!(kind, "SYSCALL" | "SYSRET" | "ERET" | "IRQ" | "SERROR") || kind.starts_with("FAULT") {
        flags |= flag::INTERRUPT;
    }
    Some(Some(Entry { from, to, flags }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_all_kinds() {
        let line = |text| Line::read(text).unwrap();
        let plain = line(
            "        prog-pie  6012 26216.799668:     250000 cpu-clock:u:      7fbda70bd69e f+0x7e (/lib/l.so)",
        );
        assert_eq!((plain.task, plain.time), (Some(6012), Some(26_216_799_668_000)));
        assert_eq!((plain.event, plain.address), (Some("cpu-clock:u"), Some(0x7fbd_a70b_d69e)));
        let odd = line("Web: 1.5 Content 77/78 [003]  1.000000001: cycles:  401136 ");
        assert_eq!((odd.process, odd.task, odd.time), (Some(77), Some(78), Some(1_000_000_001)));
        assert_eq!((odd.event, odd.address), (Some("cycles"), Some(0x401136)));
        let bare = line(" 6012 cpu_core/cycles/u:      55ad4f7f12d3");
        assert_eq!(
            (bare.task, bare.event, bare.address),
            (Some(6012), Some("cpu_core/cycles/u"), Some(0x55ad_4f7f_12d3))
        );
        // Fixed addresses look like processes.
        let address = line("          401136  0x401000/0x401136/P/-/-/3 ");
        assert_eq!((address.task, address.address, address.branches.len()), (None, Some(0x401136), 1));
        let process = line("   5123  0x401000/0x401136/P/-/-/3 ");
        assert_eq!((process.task, process.address, process.branches.len()), (Some(5123), None, 1));
        let header = line(" 6012 cpu-clock:u: ");
        assert_eq!((header.task, header.address), (Some(6012), None));
        assert!(Line::read("6012").is_none() && Line::read("no sample at all").is_none());
    }

    #[test]
    fn entries_of_all_versions() {
        let one = |text: &str| Line::read(text).unwrap().branches;
        let at = |flags| vec![Entry { from: 0x10, to: 0x20, flags }];
        assert_eq!(one(" 1 10 0x10/0x20/P/-/-/0"), at(0));
        assert_eq!(one(" 1 10 0x10/0x20/M/X/A/12/COND"), at(flag::MISPREDICTED | flag::ABORT));
        assert_eq!(one(" 1 10 0x10/0x20/-/-/-/1/RET/SPEC_WRONG_PATH"), at(flag::WRONG_PATH));
        assert_eq!(one(" 1 10 0x10/0x20/P/-/-/1/IRQ/-"), at(flag::INTERRUPT));
        assert_eq!(one(" 1 10 0x10/0x20/PN/-/-/1"), []);
        assert!(Line::read(" 1 10 0x10/0x20/P").is_none());
    }
}
