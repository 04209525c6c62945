//! The start-up code of an instrumented output: the program starts in it, and it goes on to where the program
//! started before.

use crate::check::Check;
use crate::verdict::{Finding, FindingKind};
use afterlink_isa::{Flow, x86_64};

/// The output's section of start-up code.
const SECTION: &str = ".text.afterlink";

/// `entry` is where the program itself starts in the output.
pub(crate) fn check(check: &Check, entry: u64) -> Option<Finding> {
    let fault = |what: &str| {
        let finding = Finding::new(FindingKind::EntryPoint, what);
        Some(finding.input(check.input.entry.get()).output(check.output.entry.get()))
    };
    let Some(id) = check.output.section_named(SECTION) else {
        return fault("the instrumented program has no start-up code");
    };
    let section = &check.output.sections[id];
    let start = check.output.entry;
    if start < section.address || start >= section.end() {
        return fault("the program does not start in its start-up code");
    }
    if !jumps_to(check.output.section_bytes(id), section.address.get(), start.get(), entry) {
        return fault("the start-up code does not go on to where the program starts");
    }
    None
}

/// Whether the code from `at` on comes to a direct jump to `target`, read in a row.
fn jumps_to(bytes: &[u8], section: u64, mut at: u64, target: u64) -> bool {
    while let Some(rest) = bytes.get((at - section) as usize..)
        && let Some(inst) = x86_64::decode(&rest[..rest.len().min(15)])
    {
        at += u64::from(inst.len);
        if matches!(inst.flow, Flow::Jump(displacement) if at.wrapping_add(displacement as u64) == target) {
            return true;
        }
    }
    false
}
