//! Notes of tracing probes (`.note.stapsdt`), if they are not loaded: each says where a tracer may set a breakpoint, and where the
//! probe's arguments are then. The place must be the one that corresponds, where the same instruction stands, and all
//! else must be the same.
//!
//! Control that comes to one must have come to the other. So such an instruction is no padding, though it is a nop, on
//! either side: nothing runs through it that did not, or beside it that did
//! ([`Code::observe`](crate::input::code::Code::observe), [`Places::observed`](crate::address_map::places::Places)).

use crate::address_map::places::Place;
use crate::check::Check;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_core::InputAddr;
use afterlink_image::{Image, Section, SectionId, notes};

/// Bytes of an address.
const ADDRESS: usize = 8;

/// Whether the checks here are all that is asked of the section's bytes.
pub(crate) fn are_judged(section: &Section) -> bool {
    section.name == ".note.stapsdt" && !section.is_loaded()
}

/// Addresses of the input at which a tracer may set a breakpoint, ascending.
pub(crate) fn places(input: &Image) -> Vec<u64> {
    let sections = input.sections.iter().filter(|(_, s)| s.name == ".note.stapsdt");
    let notes = sections.flat_map(|(id, _)| {
        let bytes = input.section_bytes(id);
        fields(bytes).into_iter().map(|at| word(bytes, at))
    });
    let mut places: Vec<u64> = notes.collect();
    places.sort_unstable();
    places.dedup();
    places
}

pub(crate) fn check(check: &Check) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, section) in check.input.sections.iter().filter(|(_, s)| are_judged(s)) {
        let successor = check.sections.get(id.0 as usize).copied().flatten();
        findings.extend(successor.into_iter().flat_map(|new| check_section(check, section, id, new)));
    }
    findings
}

fn check_section(check: &Check, section: &Section, old: SectionId, new: SectionId) -> Vec<Finding> {
    let (was, is) = (check.input.section_bytes(old), check.output.section_bytes(new));
    let finding = |what: String| Finding::new(FindingKind::Probe, what);
    let mut expected = was.to_vec();
    let mut findings = Vec::new();
    for at in fields(was) {
        let probe = word(was, at);
        let place = match check.place(probe) {
            Place::Same => probe,
            Place::Moved(place) => place,
            Place::Nowhere => {
                let what = "the probe is in moved code, and nothing corresponds to its place".to_owned();
                findings.push(finding(what).input(probe));
                continue;
            }
        };
        expected[at..at + ADDRESS].copy_from_slice(&place.to_le_bytes());
        if !stands(check, probe, place) {
            findings.push(
                finding("the probe's instruction is not at its place".to_owned()).input(probe).output(place),
            );
        }
        let found = if at + ADDRESS <= is.len() { word(is, at) } else { 0 };
        if found != place {
            let what = format!("the probe's note says {found:#x}, not {place:#x}");
            findings.push(finding(what).input(probe).output(place));
            expected[at..at + ADDRESS].copy_from_slice(&found.to_le_bytes());
        }
    }
    if expected != is && findings.is_empty() {
        findings
            .push(finding(format!("a note in {} changed in more than its probe's address", section.name)));
    }
    findings
}

/// Whether the instruction of a probe stands at `place` of the output. One whose bytes depend on its place is compared as such.
fn stands(check: &Check, probe: u64, place: u64) -> bool {
    let Some(inst) = check.code.at(probe).filter(|inst| inst.field().is_none()) else { return true };
    let len = usize::from(inst.len);
    let is = check.output.bytes_at(InputAddr(place), len);
    place == probe
        || is == check.code.bytes(probe, len)
        || !check.references.fields_in(probe, inst.len).is_empty()
}

/// Where the address stands in each note, up to the first that reaches beyond the end.
fn fields(bytes: &[u8]) -> Vec<usize> {
    notes(bytes).filter(|note| note.description.len() >= ADDRESS).map(|note| note.at).collect()
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + ADDRESS].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}
