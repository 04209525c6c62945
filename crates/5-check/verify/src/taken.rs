//! Places in code whose address is stored in data or named by an instruction: where indirect jumps may lead, and what
//! may be compared and tagged.

use crate::check::Check;
use crate::expected::Layout;
use crate::jump_tables::{self, Named};
use crate::jumps::Jumps;
use crate::places::Place;
use crate::verdict::{Finding, FindingKind};
use afterlink_image::elf;

/// All such addresses of the input, ascending.
pub(crate) fn addresses(check: &Check, layout: &Layout, named: &Named, jumps: &Jumps) -> Vec<u64> {
    let mut taken = jump_tables::targets(check, layout, named, jumps);
    taken.extend(pointers(check, layout));
    in_order(check, taken)
}

/// Those that the program can get hold of as a number, ascending.
pub(crate) fn pointers(check: &Check, layout: &Layout) -> Vec<u64> {
    let (code, references) = (&check.code, &check.references);
    let relative = [elf::R_X86_64_RELATIVE, elf::R_X86_64_RELATIVE64, elf::R_X86_64_IRELATIVE].map(|k| k.0);
    let at_start = check.input.dynamic.relocations.iter();
    let at_start = at_start.filter(|r| relative.contains(&r.kind) && !references.means_data(r.address.get()));
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
        taken.extend(means_code.map(|(_, address, inst)| inst.target(address)));
    }
    in_order(check, taken)
}

fn in_order(check: &Check, mut taken: Vec<u64>) -> Vec<u64> {
    taken.retain(|&address| check.code.holds(address));
    taken.sort_unstable();
    taken.dedup();
    taken
}

/// What the program can see of the addresses of functions that moved: in the low bits, which an alignment that was asked
/// for leaves free for tags, and, if it has the address where its text ends, whether they lie before it.
pub(crate) fn check(check: &Check, layout: &Layout, text_end: Option<u64>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let sections: Vec<(u64, u64, u64)> = check
        .input
        .sections
        .iter()
        .filter(|(_, s)| s.is_code())
        .map(|(_, s)| (s.address.get(), s.end().get(), s.alignment))
        .collect();
    let entries = pointers(check, layout).into_iter();
    for entry in entries.filter(|&address| check.functions.starts_at(address)) {
        let Place::Moved(place) = check.place(entry) else { continue };
        let finding = |kind, what: String| Finding::new(kind, what).input(entry).output(place);
        if let Some(field) = text_end {
            let what =
                "the function moved behind the text's end, with which the program may compare its address";
            findings.push(finding(FindingKind::Pointer, format!("{what} (named at {field:#x})")));
        }
        let asked = sections.iter().find(|s| entry >= s.0 && entry < s.1).map_or(1, |s| s.2.clamp(1, 64));
        let shown = entry & entry.wrapping_neg();
        if place % asked.min(shown) != 0 {
            let what = format!(
                "the function may have been asked to start at a multiple of {} bytes",
                asked.min(shown)
            );
            findings.push(finding(FindingKind::Alignment, what));
        }
    }
    findings
}
