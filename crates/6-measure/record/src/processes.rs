//! Processes that run already: their threads, their descendants, and what they have mapped.

use crate::event::gone;
use afterlink_core::Result;
use std::collections::BTreeMap;
use std::fs::{read_dir, read_to_string};
use std::path::Path;

/// All threads of these processes.
pub fn threads(processes: &[u32]) -> Result<Vec<u32>> {
    let mut all = Vec::new();
    for process in processes {
        all.extend(numbers(Path::new(&format!("/proc/{process}/task"))));
    }
    if all.is_empty() { Err(gone()) } else { Ok(all) }
}

/// Names in a folder that are numbers.
fn numbers(folder: &Path) -> Vec<u32> {
    let entries = read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

pub fn is_running(process: u32) -> bool {
    Path::new(&format!("/proc/{process}/task")).exists()
}

/// These processes, what they have started, what that has started, and so on.
pub fn descendants(processes: &[u32]) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for process in numbers(Path::new("/proc")) {
        let status = read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // The name, which may hold anything, ends at the last parenthesis; the state and the parent follow.
        let parent =
            status.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        children.entry(parent.unwrap_or(0)).or_default().push(process);
    }
    let mut all: Vec<u32> = processes.to_vec();
    let mut at = 0;
    while at < all.len() {
        let of = children.remove(&all[at]).unwrap_or_default();
        all.extend(of);
        at += 1;
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Memory of a process that shows a file and may be run.
#[derive(Debug, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    pub offset: u64,
    pub name: String,
}

/// What a process has mapped to be run; nothing, if it has ended.
pub fn mappings(process: u32) -> Vec<Mapping> {
    let text = read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    text.lines().filter_map(mapping).collect()
}

/// `start-end rights offset device inode      name`
pub fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (span, rights, offset) = (words.next()?, words.next()?, words.next()?);
    let name = words.nth(2)?.trim_start();
    let (start, end) = span.split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let mapping =
        Mapping { start: number(start)?, end: number(end)?, offset: number(offset)?, name: name.to_owned() };
    rights.contains('x').then_some(mapping)
}
