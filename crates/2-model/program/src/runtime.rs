//! What an instrumented program needs besides its own code.

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
}
