//! Start-up relocations in code: the dynamic linker fills the place that they name, which must be the one that runs.

use crate::check::Check;
use crate::verdict::finding::{Finding, FindingKind};

/// Bytes that a relocation may fill.
const WIDEST: u64 = 8;
/// Findings of this kind after which the rest is not looked at.
const ENOUGH: usize = 64;

/// No start-up relocation fills bytes of code that has moved, nor is moved code in a section that can be written to.
pub(crate) fn check(check: &Check) -> Vec<Finding> {
    let moved = &check.places.moved;
    let holds = |address: u64| {
        let next = moved.partition_point(|range| range.1 <= address);
        moved.get(next).is_some_and(|range| range.0 < address + WIDEST)
    };
    let addresses = check.input.dynamic.relocations.iter().map(|r| r.address.get());
    let relocated = addresses.filter(|&address| holds(address)).map(|address| {
        let what = "the program fills in an address here when it starts, but the code has moved";
        Finding::new(FindingKind::DynamicRelocation, what).input(address)
    });
    let written = check.input.sections.iter().filter(|(_, s)| s.is_code() && s.is_writable());
    let written = written.filter_map(|(_, section)| {
        let (start, end) = (section.address.get(), section.end().get());
        let next = moved.partition_point(|range| range.1 <= start);
        let range = moved.get(next).filter(|range| range.0 < end)?;
        let what = "the program may write to this code, but it has moved";
        Some(Finding::new(FindingKind::Instruction, what).input(range.0.max(start)))
    });
    relocated.chain(written).take(ENOUGH).collect()
}
