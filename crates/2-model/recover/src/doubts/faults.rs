//! Behind an instruction that only raises a signal (`ud2`, `hlt`) a handler may find code or data, by its distance.

use crate::code::event::{Event, EventKind};
use crate::code::scan::Scan;
use std::iter::Peekable;
use std::slice::Iter;

/// Whether what stands behind each fault of a piece of `size` bytes, up to the next place that something names, is right as
/// code and as data when it moves with the fault: nothing in it depends on its place, and no jump is written anew.
/// `named` gives those places, ascending.
pub(crate) fn keep_what_follows(scan: &Scan, named: impl FnOnce() -> Vec<u32>, size: u32) -> bool {
    let mut events = scan.events.iter().peekable();
    let is_fault = |event: &&Event| event.kind == EventKind::Fault;
    let Some(mut fault) = events.find(is_fault) else { return true };
    let named = named();
    loop {
        let next = named.partition_point(|&start| start < fault.end());
        let end = named.get(next).copied().unwrap_or(size);
        if !is_fixed(&mut events, end) {
            return false;
        }
        match events.find(is_fault) {
            Some(next) => fault = next,
            None => return true,
        }
    }
}

/// Takes the events up to `end`. Only where nothing but padding follows may control leave.
fn is_fixed(events: &mut Peekable<Iter<Event>>, end: u32) -> bool {
    while let Some(event) = events.next_if(|e| e.offset < end) {
        match event.kind {
            EventKind::Nop | EventKind::Breakpoint | EventKind::Fault => {}
            EventKind::Return | EventKind::IndirectJump => {
                let mut at = event.end();
                while let Some(filler) = events.next_if(|e| e.offset == at && at < end && e.is_filler()) {
                    at = filler.end();
                }
                return at == end;
            }
            _ => return false,
        }
    }
    true
}
