//! The code in front of the program that asks the kernel for huge pages: known byte by byte, and what it asks for is hot code alone. That is why
//! it cannot change what the program does: advice about pages of a file that nobody may write to.

use crate::check::Check;
use crate::file::sections::HOT;
use crate::moved_code::counter_sections::section;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_core::limits::HUGE_PAGE;
use afterlink_image::Image;
use afterlink_isa::judgement::huge_pages::{Asking, expected};

/// The output's section of that code.
pub(crate) const SECTION: &str = ".text.afterlink.pages";

pub(crate) fn are_asked_for(output: &Image) -> bool {
    output.section_named(SECTION).is_some()
}

/// `start` is where control comes first in the output, `entry` where the program itself starts there.
pub(crate) fn check(check: &Check, start: u64, entry: u64) -> Option<Finding> {
    let fault = |place: u64, what: &str| {
        let finding = Finding::new(FindingKind::EntryPoint, what);
        Some(finding.input(check.input.entry.get()).output(place))
    };
    let new = check.input.loaded_end();
    let pages = section(check.output, HOT).filter(|(pages, _)| pages.address >= new);
    let (Some((code, bytes)), Some((pages, _))) = (section(check.output, SECTION), pages) else {
        return fault(start, "the program asks for huge pages, but lacks the code or the pages");
    };
    let (address, size) = (pages.address.get(), pages.size);
    if !(address.is_multiple_of(HUGE_PAGE) && size.is_multiple_of(HUGE_PAGE)) {
        return fault(address, "hot code is to be on huge pages, but does not take whole ones");
    }
    if start != code.address.get() || code.address < new {
        return fault(start, "the program does not start with the code that asks for huge pages");
    }
    let asking = Asking { code: start, entry, pages: (address, size) };
    let Some(expected) = expected(check.input.arch, asking) else {
        return fault(
            start,
            "no code that asks for huge pages is known for this instruction set, or it cannot reach them",
        );
    };
    if bytes == expected {
        return None;
    }
    let differs = bytes.iter().zip(&expected).position(|(a, b)| a != b);
    let at = differs.unwrap_or(bytes.len().min(expected.len()));
    fault(start + at as u64, "the code that asks for huge pages is not the one that afterlink writes")
}
