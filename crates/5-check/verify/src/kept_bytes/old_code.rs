//! The place that moved code left. At each moved function's entry stands a jump to where it went (behind
//! the `endbr64` that stood there), so that an address that someone kept, unseen, still works; the rest is as
//! it was, or filled with traps.

use crate::address_map::places::{Place, stub_end};
use crate::addresses::relative_words::word_at;
use crate::check::Check;
use crate::input::ranges::{holding, holds};
use crate::input::references::Field;
use crate::kept_bytes::expected::Layout;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::{Image, elf};
use rayon::prelude::*;

/// Findings after which the rest is not looked at.
const ENOUGH: usize = 4096;

/// An entry stub, as a range of addresses.
pub(crate) type Stub = (u64, u64);

/// Checks the left places of all moved functions; returns what the stubs cover, ascending, too.
/// `demanded` are branches and the old entries that they still lead to, `taken` places in code whose address something has, ascending.
pub(crate) fn check(
    check: &Check,
    layout: &Layout,
    demanded: &[(u64, u64)],
    taken: &[u64],
) -> (Vec<Finding>, Vec<Stub>) {
    let mut findings = Vec::new();
    let stubs = stubs(check, layout, taken, &mut findings);
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
fn stubs(check: &Check, layout: &Layout, taken: &[u64], findings: &mut Vec<Finding>) -> Vec<Stub> {
    let mut required: Vec<u64> = check.places.functions.iter().map(|f| f.entry).collect();
    required.sort_unstable();
    let mut entries: Vec<u64> =
        check.functions.rows.iter().map(|f| f.start).chain(required.iter().copied()).collect();
    entries.sort_unstable();
    entries.dedup();
    let mut names = names(check.input);
    names.extend(&entries);
    names.sort_unstable();
    names.extend(named_behind(check, layout, &entries, &names, taken));
    names.sort_unstable();
    let mut stubs: Vec<Stub> = Vec::new();
    for &entry in &entries {
        let Place::Moved(place) = check.place(entry) else { continue };
        let limit = room_end(check, entry, next_name(&names, entry));
        match stub_at(check, layout, entry, place, limit) {
            Some(end) => stubs.push((entry, end)),
            None if required.binary_search(&entry).is_ok() && wants_stub(check, entry, limit) => {
                let what = format!("the old entry does not lead to the function's new place {place:#x}");
                if findings.len() < ENOUGH {
                    findings.push(Finding::new(FindingKind::EntryStub, what).input(entry).output(entry));
                }
                stubs.push((entry, stub_end(&check.code, entry)));
            }
            None => {}
        }
    }
    stubs
}

/// Whatever has a name in code may be kept by it, so no stub covers it.
fn names(input: &Image) -> Vec<u64> {
    let named = input.symbols.iter().filter(|s| {
        s.is_defined() && (s.is_function() || s.kind == elf::STT_NOTYPE.0 && !s.name().is_empty())
    });
    named.map(|s| s.address.get()).collect()
}

fn next_name(names: &[u64], place: u64) -> Option<u64> {
    names.get(names.partition_point(|&name| name <= place)).copied()
}

/// Places behind moved code, as far as stubs at these entries would reach beyond it and no name stands in between, that an instruction or
/// a word names: what looks like padding there is something else.
fn named_behind(check: &Check, layout: &Layout, entries: &[u64], names: &[u64], taken: &[u64]) -> Vec<u64> {
    let places = &check.places;
    let beyond = entries.iter().filter_map(|&entry| {
        let (_, end) = holding(&places.moved, entry)?;
        let stub = stub_end(&check.code, entry).min(next_name(names, entry).unwrap_or(u64::MAX));
        Some((end, stub)).filter(|(start, end)| start < end)
    });
    // Invariant: these ascend and are apart, since entries do, and are among the names.
    let beyond: Vec<(u64, u64)> = beyond.collect();
    let is_beyond = |place: &u64| holds(&beyond, *place);
    let code = &check.code;
    let mut named: Vec<u64> = taken.iter().copied().filter(is_beyond).collect();
    for section in &code.sections {
        let targets = code.section_chunks(section).flat_map_iter(|chunk| {
            let naming = chunk.filter(|(_, _, inst)| inst.is_direct() || inst.has_rip());
            naming.map(|(_, address, inst)| inst.target(code, address))
        });
        named.par_extend(targets.filter(is_beyond));
    }
    let references = &check.references;
    let from_itself = |word: &Field| {
        // These count from elsewhere, or lead to code that has not moved.
        let is_told =
            references.base_of_virtual(word.address).or(references.constant_on_symbol(word.address));
        let distance = word_at(check.input.bytes, layout, *word).filter(|_| is_told.is_none())?;
        Some(word.address.wrapping_add_signed(distance))
    };
    named.extend(references.relative_words.iter().filter_map(from_itself).filter(is_beyond));
    named
}

/// Up to where a stub at `entry` may reach: the next name, or code that stays.
fn room_end(check: &Check, entry: u64, next_name: Option<u64>) -> u64 {
    let mut end = holding(&check.places.moved, entry).map_or(entry, |moved| moved.1);
    // Padding between functions is free to use.
    while let Some(inst) = check.code.at(end).filter(|i| i.is_padding()) {
        if end - entry > 16 || check.places.of(&check.code, end) != Place::Same {
            break;
        }
        end += u64::from(inst.len);
    }
    next_name.map_or(end, |next| end.min(next))
}

fn wants_stub(check: &Check, entry: u64, limit: u64) -> bool {
    stub_end(&check.code, entry) <= limit
}

/// Where the right stub at `entry` ends, if it stands there.
fn stub_at(check: &Check, layout: &Layout, entry: u64, place: u64, limit: u64) -> Option<u64> {
    let end = stub_end(&check.code, entry);
    let bytes = output_bytes(check, layout, entry, end)?;
    let target = check.code.judgement.stub_target(bytes, end)?;
    (end <= limit && target == place).then_some(end)
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
    if input == output
        || (output.len() == input.len() && output.iter().all(|&byte| check.code.judgement.is_trap_byte(byte)))
    {
        return None;
    }
    let at = start + input.iter().zip(output).position(|(a, b)| a != b).unwrap_or(0) as u64;
    let what = "where moved code was, neither its bytes nor traps stand";
    Some(Finding::new(FindingKind::OldCode, what).input(at).output(at))
}
