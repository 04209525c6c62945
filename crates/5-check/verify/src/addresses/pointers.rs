//! Addresses in data: words that a start-up relocation fills, and in a program at fixed addresses the words
//! that the linker filled. Each that leads into moved code must lead to the corresponding place.

use crate::address_map::places::Place;
use crate::check::Check;
use crate::kept_bytes::expected::{Expected, Layout};
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::DynamicRelocation;
use afterlink_isa::judgement::StartUpRelocation;

/// Sections made of addresses only, also where the linker keeps no relocation for a word.
const POINTER_SECTIONS: [&str; 7] =
    [".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors", ".got", ".got.plt"];

/// Size of a dynamic relocation, and where its addend stands in it.
const ADDEND: u64 = 16;

/// What the words and addends must be.
pub(crate) fn expect(check: &Check, layout: &Layout, expected: &mut Vec<Expected>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for relocation in &check.input.dynamic.relocations {
        expect_dynamic(check, layout, relocation, expected, &mut findings);
    }
    if !check.input.link_kind.is_position_independent() {
        for field in &check.references.data_words {
            expect_word(check, layout, field.address, field.size, expected, &mut findings);
        }
        for (_, section) in check.input.sections.iter().filter(|(_, s)| POINTER_SECTIONS.contains(&s.name)) {
            let (start, end) = (section.address.get(), section.end().get());
            for address in (start..end).step_by(8) {
                expect_word(check, layout, address, 8, expected, &mut findings);
            }
        }
    }
    findings
}

fn no_counterpart(address: u64, old: u64) -> Finding {
    let what = format!("the pointer leads to {old:#x} in moved code, which has no counterpart");
    Finding::new(FindingKind::Pointer, what).input(address).output(address).names(old)
}

fn expect_dynamic(
    check: &Check,
    layout: &Layout,
    relocation: &DynamicRelocation,
    expected: &mut Vec<Expected>,
    findings: &mut Vec<Finding>,
) {
    let address = relocation.address.get();
    match check.code.judgement.start_up_relocation(relocation.kind) {
        Some(StartUpRelocation::Symbol) => return expect_symbolic(check, relocation, expected, findings),
        Some(StartUpRelocation::FromBase | StartUpRelocation::Resolved)
            if !check.references.means_data(address) => {}
        _ => return,
    }
    let old = relocation.addend as u64;
    let new = match check.place_named(address, old) {
        Place::Same => return,
        Place::Moved(new) => new,
        Place::Nowhere => return findings.push(no_counterpart(address, old)),
    };
    let word = layout.offset(address);
    if let Some(row) = relocation.row {
        let addend = row.get() + ADDEND;
        expected.push(Expected::number(addend, 8, new, FindingKind::DynamicRelocation));
        // The word itself is written when the program starts; linkers may leave the address there, too.
        if let Some(offset) = word.filter(|_| check.input.word_at(relocation.address) == Some(old)) {
            let word = Expected::number(offset, 8, new, FindingKind::Pointer);
            expected.push(Expected { or_unchanged: true, ..word });
        }
    } else if let Some(offset) = word {
        expected.push(Expected::number(offset, 8, new, FindingKind::Pointer));
    }
}

/// A relocation against a symbol that the program itself defines in moved code, with an addend.
fn expect_symbolic(
    check: &Check,
    relocation: &DynamicRelocation,
    expected: &mut Vec<Expected>,
    findings: &mut Vec<Finding>,
) {
    let symbol = check.input.dynamic_symbols.get(relocation.symbol).filter(|s| s.is_defined());
    let (Some(symbol), Some(row), true) = (symbol, relocation.row, relocation.addend != 0) else { return };
    let (base, addend) = (symbol.address.get(), relocation.addend as u64);
    let places = (check.place(base), check.place(base.wrapping_add(addend)));
    let new = match places {
        (Place::Same, Place::Same) => return,
        (Place::Moved(base), Place::Moved(target)) => target.wrapping_sub(base),
        _ => return findings.push(no_counterpart(relocation.address.get(), base.wrapping_add(addend))),
    };
    expected.push(Expected::number(row.get() + ADDEND, 8, new, FindingKind::DynamicRelocation));
}

fn expect_word(
    check: &Check,
    layout: &Layout,
    address: u64,
    size: u8,
    expected: &mut Vec<Expected>,
    findings: &mut Vec<Finding>,
) {
    let Some(offset) = layout.offset(address) else { return };
    let Some(bytes) = check.input.bytes.get(offset as usize..).and_then(|b| b.get(..usize::from(size)))
    else {
        return;
    };
    let mut word = [0; 8];
    word[..usize::from(size)].copy_from_slice(bytes);
    let old = u64::from_le_bytes(word);
    if check.references.means_data(address) {
        return;
    }
    match check.place_named(address, old) {
        Place::Same => {}
        Place::Moved(new) => expected.push(Expected::number(offset, size, new, FindingKind::Pointer)),
        Place::Nowhere => findings.push(no_counterpart(address, old)),
    }
}
