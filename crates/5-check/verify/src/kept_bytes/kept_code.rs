//! Code that stays where it is: references from it into moved code must have followed; everything else in it
//! must be as it was. A branch with a one-byte displacement cannot follow, and code whose bytes the program may read must not; they
//! keep leading to the old entry, where a stub must stand, as any branch may.

use crate::address_map::places::Place;
use crate::addresses::read_code::ReadCode;
use crate::check::Check;
use crate::input::code::Inst;
use crate::kept_bytes::expected::{Expected, Layout};
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_core::InputAddr;
use rayon::prelude::*;

/// Findings of this kind after which the rest is not looked at.
const ENOUGH: usize = 4096;

/// What code that did not move asks for.
#[derive(Default)]
pub(crate) struct Demands {
    pub findings: Vec<Finding>,
    /// Instruction and target of each branch that needs a stub at its target.
    pub stubs: Vec<(u64, u64)>,
}

/// What must have changed in code that did not move.
pub(crate) fn expect(
    check: &Check,
    layout: &Layout,
    read: &ReadCode,
    expected: &mut Vec<Expected>,
) -> Demands {
    let mut demands = Demands::default();
    if check.places.moved.is_empty() {
        return demands;
    }
    for section in &check.code.sections {
        let found: Vec<(Vec<Expected>, Demands)> =
            check.code.section_chunks(section).map(|chunk| expect_in(check, layout, read, chunk)).collect();
        for (more, asked) in found {
            expected.extend(more);
            demands.stubs.extend(asked.stubs);
            demands.findings.extend(asked.findings);
        }
    }
    demands.findings.truncate(ENOUGH);
    demands
}

/// Whether the output has the same instruction there: it leads to the old entry.
fn is_unchanged(check: &Check, address: u64, inst: &Inst) -> bool {
    let size = usize::from(inst.len);
    let written = check.output.bytes_at(InputAddr(address), size);
    written.is_some() && written == check.code.bytes(address, size)
}

fn expect_in<'i>(
    check: &Check,
    layout: &Layout,
    read: &ReadCode,
    insts: impl Iterator<Item = (usize, u64, &'i Inst)>,
) -> (Vec<Expected>, Demands) {
    let (mut expected, mut demands) = (Vec::new(), Demands::default());
    for (index, address, inst) in insts {
        if check.places.of_inst(index) != Place::Same {
            continue;
        }
        let absolute = check.references.fields_in(address, inst.len);
        let field = inst.field().filter(|_| check.place(inst.target(&check.code, address)) != Place::Same);
        // Few name what moved, so whether an instruction is itself among what moved is looked up last.
        if field.is_none() && absolute.is_empty() || check.places.is_moved(address) {
            continue;
        }
        let keeps_bytes = || inst.is_direct() && (read.holds(address) || is_unchanged(check, address, inst));
        if field.is_some_and(|(_, size)| size == 1 || keeps_bytes()) && absolute.is_empty() {
            demands.stubs.push((address, inst.target(&check.code, address)));
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
        let changes =
            || check.code.bytes(address, usize::from(inst.len)) != bytes.get(..usize::from(inst.len));
        if read.holds(address) && changes() {
            let what = "the instruction names what moved, and the program may read its bytes";
            demands.findings.push(Finding::new(FindingKind::KeptCode, what).input(address));
            continue;
        }
        let fields = absolute.iter().map(|f| ((f.address - address) as usize, usize::from(f.size)));
        for (at, size) in field.into_iter().chain(fields) {
            // A field that reaches beyond the instruction names nothing that moved.
            let (Some(offset), Some(field)) =
                (layout.offset(address + at as u64), bytes[..usize::from(inst.len)].get(at..at + size))
            else {
                continue;
            };
            let mut value = [0; 8];
            value[..size].copy_from_slice(field);
            let value = u64::from_le_bytes(value);
            expected.push(Expected::number(offset, size as u8, value, FindingKind::KeptCode));
        }
    }
    (expected, demands)
}
