//! The result of a sweep over one run of code: which bytes start an instruction, and the few instructions that matter.

use super::event::{Event, EventKind};
use afterlink_isa::TableJump;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// The events of a piece: a part of a list that is shared with the pieces beside it. One list for each would leave the memory
/// in small pieces, of which those that come later keep the most.
#[derive(Clone, Default)]
pub(crate) struct Events {
    pub all: Arc<Vec<Event>>,
    pub own: Range<usize>,
}

impl Deref for Events {
    type Target = [Event];

    fn deref(&self) -> &[Event] {
        &self.all[self.own.clone()]
    }
}

/// The result of sweeping one piece.
#[derive(Default)]
pub(crate) struct Scan<E = Events> {
    /// By ascending offset.
    pub events: E,
    /// One bit a byte: set where an instruction starts.
    pub boundaries: Vec<u64>,
    /// Every byte was part of an instruction, and every field part of one.
    pub complete: bool,
    pub has_indirect_jump: bool,
    /// The last instruction that is no padding is a call.
    pub ends_in_call: bool,
    /// It is a trap.
    pub ends_in_trap: Option<EventKind>,
    /// Indirect jumps that are known to go through a table, each with its offset.
    pub table_jumps: Vec<(u32, TableJump)>,
    /// The target of some indirect jump is calculated in a way that is not followed.
    pub has_calculated_jump: bool,
}

impl<E: Deref<Target = [Event]>> Scan<E> {
    /// Whether an instruction starts `offset` bytes into the piece.
    pub fn is_boundary(&self, offset: u64) -> bool {
        self.boundaries.get(offset as usize / 64).is_some_and(|w| w >> (offset % 64) & 1 == 1)
    }

    /// Start of the instruction before the one at `offset`.
    pub fn previous(&self, offset: u32) -> Option<u32> {
        (1..=15).map_while(|d| offset.checked_sub(d)).find(|&o| self.is_boundary(u64::from(o)))
    }

    /// Events of instructions that start in `from..to`.
    pub fn events_in(&self, from: u32, to: u32) -> &[Event] {
        let start = self.events.partition_point(|e| e.offset < from);
        let end = self.events.partition_point(|e| e.offset < to);
        &self.events[start..end]
    }
}

impl Scan<Vec<Event>> {
    /// The same with its events elsewhere.
    pub fn with(self, events: Events) -> Scan {
        Scan {
            events,
            boundaries: self.boundaries,
            complete: self.complete,
            has_indirect_jump: self.has_indirect_jump,
            ends_in_call: self.ends_in_call,
            ends_in_trap: self.ends_in_trap,
            table_jumps: self.table_jumps,
            has_calculated_jump: self.has_calculated_jump,
        }
    }
}
