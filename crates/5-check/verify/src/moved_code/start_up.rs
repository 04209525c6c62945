//! The start-up code of an instrumented output and what it works with: the program starts in it, it is known byte for
//! byte ([`start_up`]), and it goes on to where the program started before. An output that asks for huge pages has another one ([`huge_pages`]).

use crate::check::Check;
use crate::moved_code::counter_sections::{COUNTERS, DESCRIPTION, START_UP, TARGETS, header, section};
use crate::moved_code::{counter_sections, huge_pages};
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::{Image, LinkKind};
use afterlink_isa::judgement::start_up;

/// Whether the code is a shared object's: the dynamic linker calls it, and then what `DT_INIT` names in the input.
pub(crate) fn is_in_object(check: &Check) -> bool {
    check.input.link_kind == LinkKind::SharedObject
}

/// Whether code of afterlink comes in front of the output's own.
pub(crate) fn is_in_front(output: &Image) -> bool {
    counter_sections::is_instrumented(output) || huge_pages::are_asked_for(output)
}

/// Where that code stands, for what must lead to it; 0 if nobody knows.
pub(crate) fn address(output: &Image) -> u64 {
    let name = if huge_pages::are_asked_for(output) { huge_pages::SECTION } else { START_UP };
    section(output, name).map_or(0, |(section, _)| section.address.get())
}

/// `start` is where control comes first in the output, `entry` where the program itself starts there.
pub(crate) fn check(check: &Check, start: u64, entry: u64) -> Option<Finding> {
    match (counter_sections::is_instrumented(check.output), huge_pages::are_asked_for(check.output)) {
        (true, true) => {
            let what = "the output both counts and asks for huge pages";
            Some(Finding::new(FindingKind::EntryPoint, what).output(start))
        }
        (false, true) => huge_pages::check(check, start, entry),
        (_, false) => check_counting(check, start, entry),
    }
}

fn check_counting(check: &Check, start: u64, entry: u64) -> Option<Finding> {
    let output = check.output;
    let fault = |place: u64, what: &str| {
        let finding = Finding::new(FindingKind::EntryPoint, what);
        Some(finding.input(check.input.entry.get()).output(place))
    };
    let parts = (section(output, START_UP), section(output, DESCRIPTION), section(output, COUNTERS));
    let (Some((code, bytes)), Some((description, _)), Some((memory, _))) = parts else {
        return fault(start, "the instrumented program lacks start-up code, description or counters");
    };
    if start != code.address.get() {
        return fault(start, "the program does not start with its start-up code");
    }
    let id = &check.input.build_id[..check.input.build_id.len().min(20)];
    let header = header(output).filter(|h| h.file_size() == memory.size && h.build_id == id);
    let Some(header) = header else {
        return fault(description.address.get(), "the description of the counters is not right");
    };
    let expected = start_up::expected(
        check.input.arch,
        bytes,
        start_up::Addresses {
            code: start,
            entry,
            in_object: is_in_object(check),
            memory: (memory.address.get(), memory.size),
            counters: header.counters_offset(),
            description: (description.address.get(), description.size),
        },
    );
    let Some(expected) = expected else {
        return fault(start, "no start-up code is known for this instruction set");
    };
    if bytes == expected {
        let routine = section(output, TARGETS).filter(|_| {
            // Invariant: without counters there is nothing that could call it.
            check.places.counters.as_ref().is_none_or(|counters| counters.routine.is_none())
        });
        let what = "the routine that counts targets is not the one that afterlink writes";
        return routine.and_then(|(routine, _)| fault(routine.address.get(), what));
    }
    let differs = bytes.iter().zip(&expected).position(|(a, b)| a != b);
    let at = differs.unwrap_or(bytes.len().min(expected.len()));
    fault(start + at as u64, "the start-up code is not the one that afterlink writes")
}
