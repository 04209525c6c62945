//! What an instrumented program needs besides its own code.

use afterlink_core::InputAddr;

/// The parts of an instrumented program that are not its own code.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// Bytes of zero memory to reserve, in whole pages; as many as the counter file has.
    pub memory: u64,
    /// Where in that memory counter 0 stands.
    pub counters_offset: u64,
    /// Read-only bytes that the counter file starts with: its header and description.
    pub description: Vec<u8>,
    /// The counter file's path.
    pub counter_file: Vec<u8>,
    /// Set if targets of indirect calls are counted.
    pub targets: Option<CountedTargets>,
}

/// What counting targets needs.
#[derive(Clone, Debug)]
pub struct CountedTargets {
    /// The number of the counter with which the sites' words begin.
    pub first_word: u64,
    /// Words of each.
    pub site_words: u64,
    /// Whether no count may be lost.
    pub is_exact: bool,
    /// Where the input starts in memory; what targets are counted from.
    pub base: InputAddr,
    /// The entries of functions. The description ends with four bytes for each: how far from `base` it stands now.
    pub entries: Vec<InputAddr>,
}
