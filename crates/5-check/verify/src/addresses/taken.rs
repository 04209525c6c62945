//! Places in code whose address is stored in data or named by an instruction: what may be compared, tagged
//! and jumped to.

use crate::address_map::places::Place;
use crate::check::Check;
use crate::kept_bytes::expected::Layout;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_core::InputAddr;
use afterlink_isa::judgement::StartUpRelocation;

/// All such addresses of the input, ascending: those that the program can get hold of as a number.
pub(crate) fn pointers(check: &Check, layout: &Layout) -> Vec<u64> {
    let (code, references) = (&check.code, &check.references);
    let at_start = check.input.dynamic.relocations.iter();
    let at_start = at_start.filter(|r| {
        let meaning = code.judgement.start_up_relocation(r.kind);
        let is_own = matches!(meaning, Some(StartUpRelocation::FromBase | StartUpRelocation::Resolved));
        is_own && !references.means_data(r.address.get())
    });
    let mut taken: Vec<u64> = at_start.map(|r| r.addend as u64).collect();
    let word = |address: u64, size: u8| -> Option<u64> {
        let at = usize::try_from(layout.offset(address)?).ok()?;
        let mut word = [0; 8];
        word[..usize::from(size)].copy_from_slice(check.input.bytes.get(at..at + usize::from(size))?);
        Some(u64::from_le_bytes(word))
    };
    let fields = references.data_words.iter().chain(&references.code_fields);
    taken.extend(fields.filter_map(|f| word(f.address, f.size)));
    for section in &code.sections {
        let named = code.section_insts(section).filter(|(_, _, inst)| inst.is_address_only());
        let means_code = named.filter(|(_, address, inst)| {
            inst.field().is_some_and(|(field, _)| !references.means_data(address + field as u64))
        });
        taken.extend(means_code.map(|(_, address, inst)| inst.target(code, address)));
    }
    in_order(check, taken)
}

/// Those of the addresses that lie in code, ascending.
pub(crate) fn in_order(check: &Check, mut taken: Vec<u64>) -> Vec<u64> {
    taken.retain(|&address| check.code.holds(address));
    taken.sort_unstable();
    taken.dedup();
    taken
}

/// What the program can see of the addresses of functions that moved: in the low bits, which an alignment that was asked
/// for leaves free for tags, and, if it has the address where its text ends, whether they lie before it. `taken` are those of [`pointers`].
pub(crate) fn check(check: &Check, taken: &[u64], text_end: Option<u64>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let sections: Vec<(u64, u64, u64)> = check
        .input
        .sections
        .iter()
        .filter(|(_, s)| s.is_code())
        .map(|(_, s)| (s.address.get(), s.end().get(), s.alignment))
        .collect();
    let mut entries = taken.to_vec();
    entries.extend(check.input.exported_functions().map(InputAddr::get));
    entries.sort_unstable();
    entries.dedup();
    let (entries, functions) = (entries.into_iter(), &check.functions);
    for entry in entries.filter(|&address| functions.starts_at(address) || functions.is_swallowed(address)) {
        let Place::Moved(place) = check.place(entry) else { continue };
        let finding = |kind, what: String| Finding::new(kind, what).input(entry).output(place);
        if let Some(field) = text_end {
            let what =
                "the function moved behind the text's end, with which the program may compare its address";
            findings.push(finding(FindingKind::Pointer, format!("{what} (named at {field:#x})")));
        }
        let asked = sections.iter().find(|s| entry >= s.0 && entry < s.1).map_or(1, |s| s.2.max(1));
        let shown = entry & entry.wrapping_neg();
        let least = asked.min(shown);
        if !place.is_multiple_of(least) {
            let what = format!("the function may have been asked to start at a multiple of {least} bytes");
            findings.push(finding(FindingKind::Alignment, what));
        }
    }
    findings
}
