//! The dynamic section and the dynamic symbol table, which the dynamic linker reads: entries that lead into
//! moved code follow it; everything else stays.

use crate::address_map::places::Place;
use crate::check::Check;
use crate::file::dynamic_tables::{self, Repeats};
use crate::file::inlined_code::Run;
use crate::file::symbols;
use crate::kept_bytes::expected::{Expected, Layout};
use crate::moved_code::start_up;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::{Symbol, elf};

/// Dynamic entries whose value is an address in code or in a section that may have to give way to the
/// program headers.
const ADDRESS_TAGS: [elf::DynamicTag; 11] = [
    elf::DT_INIT,
    elf::DT_FINI,
    elf::DT_HASH,
    elf::DT_GNU_HASH,
    elf::DT_STRTAB,
    elf::DT_SYMTAB,
    elf::DT_VERSYM,
    elf::DT_VERNEED,
    elf::DT_VERDEF,
    elf::DT_RELA,
    elf::DT_RELR,
];

/// What the dynamic section must say.
pub(crate) fn expect(check: &Check, expected: &mut Vec<Expected>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for entry in check.input.dynamic.entries.iter().filter(|e| ADDRESS_TAGS.iter().any(|t| t.0 == e.tag)) {
        let mut expect = |value: u64| {
            let offset = entry.offset.get() + 8;
            expected.push(Expected::number(offset, 8, value, FindingKind::DynamicSection));
        };
        let place = check.place(entry.value);
        let is_init = entry.tag == elf::DT_INIT.0;
        if is_init && start_up::is_in_object(check) && start_up::is_in_front(check.output) {
            let own = if let Place::Moved(place) = place { place } else { entry.value };
            let start = start_up::address(check.output);
            expect(start);
            findings.extend(start_up::check(check, start, own));
            continue;
        }
        match place {
            Place::Same => {}
            Place::Moved(new) => expect(new),
            Place::Nowhere => {
                let what = "a function of the dynamic section lies in moved code without a counterpart";
                findings.push(Finding::new(FindingKind::DynamicSection, what).input(entry.value));
            }
        }
    }
    findings
}

/// The range of the file that holds `.dynsym`, which [`check_symbols`] judges.
pub(crate) fn symbols_range(check: &Check, layout: &Layout) -> Option<(u64, u64)> {
    let section = &check.input.sections[check.input.dynamic_symbols.section?];
    let start = layout.offset(section.address.get())?;
    Some((start, start + section.size))
}

/// Row for row the same symbols with corresponding values, and behind a row its repeats for what stands apart.
pub(crate) fn check_symbols(check: &Check) -> (Vec<Finding>, Repeats) {
    let mut findings = Vec::new();
    let repeats = Repeats::read(check, |old, new, nameless| fault(check, old, new, nameless), &mut findings);
    findings.truncate(64);
    (findings, repeats)
}

fn fault(check: &Check, old: &Symbol, new: &Symbol, nameless: &[Run]) -> Option<String> {
    if (old.name(), old.kind, old.binding, old.other) != (new.name(), new.kind, new.binding, new.other) {
        return Some(format!("is another symbol, {}", new.name()));
    }
    let fault = symbols::value_fault(check, old, new, nameless);
    let fault = fault.or_else(|| symbols::name_fault(check, old, new, true));
    fault.or_else(|| {
        (!dynamic_tables::names_where_it_lies(check, new))
            .then(|| "has the number of another section".to_owned())
    })
}
