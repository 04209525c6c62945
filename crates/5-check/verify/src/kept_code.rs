//! Code that stays where it is: references from it into moved code must have followed; everything else in it
//! must be as it was. A branch with a one-byte displacement cannot follow; it keeps leading to the old entry,
//! where a stub must stand.

use crate::check::Check;
use crate::code::CodeSection;
use crate::expected::{Expected, Layout};
use crate::places::Place;
use crate::verdict::{Finding, FindingKind};

/// Findings of this kind after which a section is not looked at further.
const ENOUGH: usize = 64;

/// What code that did not move asks for.
#[derive(Default)]
pub(crate) struct Demands {
    pub findings: Vec<Finding>,
    /// Instruction and target of each branch that needs a stub at its target.
    pub stubs: Vec<(u64, u64)>,
}

/// What must have changed in code that did not move.
pub(crate) fn expect(check: &Check, layout: &Layout, expected: &mut Vec<Expected>) -> Demands {
    let mut demands = Demands::default();
    if !check.places.moved.is_empty() {
        for section in &check.code.sections {
            expect_in(check, layout, section, expected, &mut demands);
        }
    }
    demands
}

fn expect_in(
    check: &Check,
    layout: &Layout,
    section: &CodeSection,
    expected: &mut Vec<Expected>,
    demands: &mut Demands,
) {
    let kept = |index: usize, address: u64| {
        check.places.of_inst(index) == Place::Same && !check.places.is_moved(address)
    };
    for (index, address, inst) in check.code.section_insts(section) {
        let absolute = check.references.fields_in(address, inst.len);
        let field = inst.field().filter(|_| check.place(inst.target(address)) != Place::Same);
        if (field.is_none() && absolute.is_empty()) || !kept(index, address) {
            continue;
        }
        if field.is_some_and(|(_, size)| size == 1) && absolute.is_empty() {
            demands.stubs.push((address, inst.target(address)));
            continue;
        }
        let bytes = match check.expected_bytes(inst, address, address) {
            Ok(bytes) => bytes,
            Err(finding) => {
                if demands.findings.len() < ENOUGH {
                    demands.findings.push(Finding { kind: FindingKind::KeptCode, ..*finding });
                }
                continue;
            }
        };
        let fields = absolute.iter().map(|f| ((f.address - address) as usize, usize::from(f.size)));
        for (at, size) in field.into_iter().chain(fields) {
            let (Some(offset), Some(field)) = (layout.offset(address + at as u64), bytes.get(at..at + size))
            else {
                continue;
            };
            let mut value = [0; 8];
            value[..size].copy_from_slice(field);
            let value = u64::from_le_bytes(value);
            expected.push(Expected::number(offset, size as u8, value, FindingKind::KeptCode));
        }
    }
}
