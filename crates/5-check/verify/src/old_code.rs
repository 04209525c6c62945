//! The place that moved code left. At each moved function's entry stands a jump to where it went (behind
//! the `endbr64` that stood there), so that an address that someone kept, unseen, still works; the rest is as
//! it was, or filled with traps.

use crate::check::Check;
use crate::expected::Layout;
use crate::places::Place;
use crate::verdict::{Finding, FindingKind};
use afterlink_isa::x86_64::{ENDBR64, JUMP_LONG, TRAP};

/// Findings after which the rest is not looked at.
const ENOUGH: usize = 4096;

/// An entry stub, as a range of addresses.
pub(crate) type Stub = (u64, u64);

/// Checks the left places of all moved functions; returns what the stubs cover, ascending, too.
/// `demanded` are branches and the old entries that they still lead to.
pub(crate) fn check(check: &Check, layout: &Layout, demanded: &[(u64, u64)]) -> (Vec<Finding>, Vec<Stub>) {
    let mut findings = Vec::new();
    let stubs = stubs(check, layout, &mut findings);
    for &(branch, target) in demanded {
        if stubs.binary_search_by_key(&target, |s| s.0).is_err() && findings.len() < ENOUGH {
            let what = format!("a short branch still leads to {target:#x}, from where code moved away");
            findings
                .push(Finding::new(FindingKind::KeptCode, what).input(branch).output(branch).names(target));
        }
    }
    let mut rest = stubs.iter().peekable();
    let mut checked = 0;
    for &(start, end) in &check.places.moved {
        let mut at = start.max(checked);
        while let Some(&(stub, behind)) = rest.next_if(|stub| stub.0 < end) {
            findings.extend(check_functions(check, layout, at, stub));
            at = behind;
        }
        findings.extend(check_functions(check, layout, at, end));
        checked = at;
        if findings.len() >= ENOUGH {
            break;
        }
    }
    (findings, stubs)
}

/// The stubs that stand in the output, ascending. Wanting or wrong ones are findings.
fn stubs(check: &Check, layout: &Layout, findings: &mut Vec<Finding>) -> Vec<Stub> {
    let mut required: Vec<u64> = check.places.functions.iter().map(|f| f.entry).collect();
    required.sort_unstable();
    let mut entries: Vec<u64> =
        check.functions.rows.iter().map(|f| f.start).chain(required.iter().copied()).collect();
    entries.sort_unstable();
    entries.dedup();
    let mut stubs: Vec<Stub> = Vec::new();
    for (i, &entry) in entries.iter().enumerate() {
        let Place::Moved(place) = check.place(entry) else { continue };
        let limit = room_end(check, entry, entries.get(i + 1).copied());
        match stub_at(check, layout, entry, place, limit) {
            Some(end) => stubs.push((entry, end)),
            None if required.binary_search(&entry).is_ok() && wants_stub(check, entry, limit) => {
                let what = format!("the old entry does not lead to the function's new place {place:#x}");
                if findings.len() < ENOUGH {
                    findings.push(Finding::new(FindingKind::EntryStub, what).input(entry).output(entry));
                }
                stubs.push((entry, stub_end(check, entry)));
            }
            None => {}
        }
    }
    stubs
}

/// Up to where a stub at `entry` may reach: the next entry, or code that stays.
fn room_end(check: &Check, entry: u64, next_entry: Option<u64>) -> u64 {
    let places = &check.places;
    let index = places.moved.partition_point(|m| m.0 <= entry);
    let mut end = index.checked_sub(1).map_or(entry, |i| places.moved[i].1);
    // Padding between functions is free to use.
    while let Some(inst) = check.code.at(end).filter(|i| i.is_padding()) {
        if end - entry > 16 || check.places.of(&check.code, end) != Place::Same {
            break;
        }
        end += u64::from(inst.len);
    }
    next_entry.map_or(end, |next| end.min(next))
}

fn stub_end(check: &Check, entry: u64) -> u64 {
    let mark = if starts_with_mark(check, entry) { ENDBR64.len() as u64 } else { 0 };
    entry + mark + JUMP_LONG
}

fn starts_with_mark(check: &Check, entry: u64) -> bool {
    check.code.bytes(entry, ENDBR64.len()) == Some(&ENDBR64)
}

fn wants_stub(check: &Check, entry: u64, limit: u64) -> bool {
    stub_end(check, entry) <= limit
}

/// Where the right stub at `entry` ends, if it stands there.
fn stub_at(check: &Check, layout: &Layout, entry: u64, place: u64, limit: u64) -> Option<u64> {
    let end = stub_end(check, entry);
    let bytes = output_bytes(check, layout, entry, end)?;
    let jump_length = JUMP_LONG as usize;
    let (mark, jump) = bytes.split_at(bytes.len() - jump_length);
    let (0xe9, field) = (jump[0], jump.get(1..5)?) else { return None };
    let target = end.wrapping_add(i32::from_le_bytes(field.try_into().ok()?) as i64 as u64);
    (end <= limit && (mark.is_empty() || mark == ENDBR64) && target == place).then_some(end)
}

fn output_bytes<'a>(check: &Check<'_, 'a>, layout: &Layout, start: u64, end: u64) -> Option<&'a [u8]> {
    let offset = usize::try_from(layout.offset(start)?).ok()?;
    check.output.bytes.get(offset..)?.get(..(end - start) as usize)
}

/// Each function in a range for itself: those too small for a stub keep their bytes.
fn check_functions(check: &Check, layout: &Layout, mut start: u64, end: u64) -> Vec<Finding> {
    let functions = &check.functions.rows;
    let mut findings = Vec::new();
    let mut next = functions.partition_point(|f| f.start <= start);
    while start < end {
        let stop = functions.get(next).map_or(end, |f| f.start.min(end));
        findings.extend(check_range(check, layout, start, stop));
        start = stop;
        next += 1;
    }
    findings
}

/// Left bytes that are no stub are the input's, or all traps.
fn check_range(check: &Check, layout: &Layout, start: u64, end: u64) -> Option<Finding> {
    if start >= end {
        return None;
    }
    let input = check.code.bytes(start, (end - start) as usize)?;
    let output = output_bytes(check, layout, start, end).unwrap_or(&[]);
    if input == output || (output.len() == input.len() && output.iter().all(|&byte| byte == TRAP)) {
        return None;
    }
    let at = start + input.iter().zip(output).position(|(a, b)| a != b).unwrap_or(0) as u64;
    let what = "where moved code was, neither its bytes nor traps stand";
    Some(Finding::new(FindingKind::OldCode, what).input(at).output(at))
}
