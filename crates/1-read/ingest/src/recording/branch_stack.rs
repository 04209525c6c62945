//! Branch stacks to traces. A stack lists the branches last taken, the newest first; between two of them the code ran from where the
//! older led to where the newer stands.
//!
//! What processors and the kernel put into one besides (`struct perf_branch_entry`): branches that were predicted and never taken
//! (AMD, marked as the wrong path), halves of which one address is zero (Arm's BRBE), interrupts and system calls, and transactions that
//! were given up.

use crate::traces::{Spot, Traces};

/// A branch as it is recorded (`struct perf_branch_entry`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub from: u64,
    pub to: u64,
    pub flags: u64,
}

/// Bits of an entry's flags.
pub mod flag {
    pub const MISPREDICTED: u64 = 1;
    pub const ABORT: u64 = 1 << 3;
    pub const WRONG_PATH: u64 = 1 << 24;
    /// The type of an interrupt.
    pub const INTERRUPT: u64 = 12 << 20;
}

/// Addresses from here on are the kernel's.
const KERNEL: u64 = 1 << 63;

impl Entry {
    fn is_mispredicted(self) -> bool {
        self.flags & flag::MISPREDICTED != 0
    }

    /// It ended a transaction: where it came from is no branch.
    fn is_abort(self) -> bool {
        self.flags & flag::ABORT != 0
    }

    /// Predicted, but never taken.
    fn is_on_wrong_path(self) -> bool {
        const PATHS: u64 = 3 << 24;
        self.flags & PATHS == flag::WRONG_PATH
    }

    /// Into the kernel or out of it: system calls, interrupts and returns from them.
    fn crosses_into_kernel(self) -> bool {
        // `PERF_BR_*`: SYSCALL, SYSRET, ERET, IRQ, SERROR; EXTEND_ABI says that a newer type stands elsewhere, which are
        // faults and debugging.
        let by_type = matches!(self.flags >> 20 & 0xf, 7 | 8 | 11..=13 | 15);
        by_type || (self.from | self.to) & KERNEL != 0
    }
}

/// What was left out of stacks.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeftOut {
    pub wrong_path: u64,
}

/// How to read the stacks of an event.
pub struct Stacks<'t> {
    pub traces: &'t mut Traces,
    /// Whether all taken branches are in them.
    pub all_kinds: bool,
    pub left_out: &'t mut LeftOut,
}

impl Stacks<'_> {
    /// Counts a stack; `place` says where an address stands in the program.
    pub fn add(
        &mut self,
        stack: impl Iterator<Item = Entry>,
        place: &dyn Fn(u64) -> Spot,
        starts_piece: &dyn Fn(Spot) -> bool,
    ) {
        // Where the newer branch stands, if what ran up to it is known to be without a gap.
        let mut newer: Spot = None;
        for entry in stack {
            if entry.is_on_wrong_path() {
                self.left_out.wrong_path += 1;
                continue;
            }
            let (from, to) = (place(entry.from), place(entry.to));
            if entry.crosses_into_kernel() {
                // The program goes on where it was interrupted, as if nothing had been; or the kernel starts a
                // function of it, a signal's handler.
                if starts_piece(to) && entry.from & KERNEL != 0 {
                    self.run(to, newer);
                    self.traces.add_branch(None, to, 0, 1);
                    newer = None;
                }
                continue;
            }
            self.run(to, newer);
            newer = None;
            // Half an entry, or a transaction that was given up: there is no branch.
            let is_whole = entry.from != 0 && entry.to != 0 && !entry.is_abort();
            if is_whole {
                self.traces.add_branch(from, to, u64::from(entry.is_mispredicted()), 1);
            }
            if !entry.is_abort() {
                newer = from;
            }
        }
    }

    fn run(&mut self, start: Spot, end: Spot) {
        if let (true, Some(start), Some(end)) = (self.all_kinds, start, end) {
            self.traces.add_run(start, end, 1);
        }
    }
}
