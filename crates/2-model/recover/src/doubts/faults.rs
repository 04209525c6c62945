//! Behind an instruction that only raises a signal (`ud2`, `hlt`) a handler may find code or data, by its distance.

use crate::code::event::{Event, EventKind};
use crate::code::scan::Scan;
use afterlink_program::Range;

/// Whether what stands behind each fault of a piece, up to the next place that something names, is right as
/// code and as data when it moves with the fault: nothing in it depends on its place, and no jump is written anew. `named` gives
/// the places that something besides the piece's own jumps names, its start among them.
pub(crate) fn keep_what_follows(scan: &Scan, range: Range, named: impl FnOnce() -> Vec<u32>) -> bool {
    let faults = scan.events.iter().filter(|event| event.kind == EventKind::Fault);
    let cuts: Vec<u32> = faults.map(Event::end).collect();
    if cuts.is_empty() {
        return true;
    }
    let sure = sure_starts(scan, range, &cuts, named());
    let size = range.size as u32;
    (1..sure.len()).all(|i| {
        let end = cuts.get(i).copied().unwrap_or(size).min(sure[i]);
        is_fixed(scan, cuts[i - 1], end, size)
    })
}

/// Cuts a piece behind its faults, and gives for each part from where on it is surely code: the first place that is named by something
/// else, or by a jump that is surely code itself. A jump among data may name anything, itself too.
fn sure_starts(scan: &Scan, range: Range, cuts: &[u32], named: Vec<u32>) -> Vec<u32> {
    let mut sure = vec![u32::MAX; cuts.len() + 1];
    let mut waiting = named;
    while let Some(start) = waiting.pop() {
        let part = cuts.partition_point(|&cut| cut <= start);
        let end = sure[part].min(cuts.get(part).copied().unwrap_or(u32::MAX));
        if start >= sure[part] {
            continue;
        }
        sure[part] = start;
        let first = scan.events.partition_point(|event| event.offset < start);
        let here = scan.events[first..].iter().take_while(|event| event.offset < end);
        let own = here.filter(|event| event.is_direct_jump() && range.contains(event.target));
        waiting.extend(own.map(|event| event.target.since(range.start) as u32));
    }
    sure
}

/// Whether what stands in `start..end` may be data. Only at the end of a piece may control leave in it: elsewhere, what follows must
/// stay right behind.
fn is_fixed(scan: &Scan, start: u32, end: u32, size: u32) -> bool {
    let first = scan.events.partition_point(|event| event.offset < start);
    let mut events = scan.events[first..].iter().take_while(|event| event.offset < end);
    while let Some(event) = events.next() {
        match event.kind {
            EventKind::Nop | EventKind::Breakpoint | EventKind::Fault => {}
            EventKind::Return | EventKind::IndirectJump => {
                let mut at = event.end();
                for filler in events.take_while(|event| event.is_filler()) {
                    if filler.offset != at {
                        return false;
                    }
                    at = filler.end();
                }
                return at == end && end == size;
            }
            _ => return false,
        }
    }
    true
}
