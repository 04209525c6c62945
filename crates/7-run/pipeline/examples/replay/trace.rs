//! A run that was written down.

use std::collections::HashMap;
use std::ops::Range;

/// Files other than the program lie so far apart.
const APART: u64 = 1 << 36;

/// A block that was executed, at an address of its file's.
pub struct Block {
    /// Of the program itself, not of a library.
    pub is_own: bool,
    pub range: Range<u64>,
}

pub struct Trace {
    pub blocks: Vec<Block>,
    /// Indices of the blocks that ran, in turn.
    pub ran: Vec<u32>,
    /// How many of these only warm the caches.
    pub skipped: usize,
}

impl Trace {
    pub fn read(name: &str, program: &str, skip: f64) -> Self {
        let file_of = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let own = file_of(program);
        let text = std::fs::read_to_string(format!("{name}.blocks")).expect("TRACE.blocks can be read");
        let mut others: HashMap<String, u64> = HashMap::new();
        let block = |line: &str| {
            let mut words = line.rsplitn(3, ' ');
            let mut number = || u64::from_str_radix(words.next()?, 16).ok();
            let (size, offset) = number().zip(number()).expect("a line is PATH OFFSET BYTES");
            let path = words.next().unwrap_or_default();
            let is_own = file_of(path) == own;
            let next = others.len() as u64 + 1;
            let base = if is_own { 0 } else { *others.entry(path.to_owned()).or_insert(next) * APART };
            Block { is_own, range: base + offset..base + offset + size }
        };
        let blocks = text.lines().map(block).collect();
        let bytes = std::fs::read(format!("{name}.trace")).expect("TRACE.trace can be read");
        let ran: Vec<u32> = bytes.as_chunks().0.iter().map(|number| u32::from_le_bytes(*number)).collect();
        let skipped = (ran.len() as f64 * skip) as usize;
        Self { blocks, ran, skipped }
    }
}
