//! Section headers: each section of the input is there, where and as it was, but for those that the rewriting
//! replaces; each new one is known and lies where it says. Contents that are not loaded are the input's.

use crate::address_map::places::Displaced;
use crate::debug_info;
use crate::file::segments::same_notes;
use crate::file::{bb_addr_map, dynamic_tables, probes, tables};
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_core::limits::{HUGE_PAGE, PAGE};
use afterlink_image::{DEBUG_LINK_SECTION, Image, NOTE_SECTION, Section, SectionId, elf};
use rustc_hash::FxHashMap;

/// What is put behind the name of a section that is kept but has a successor of the same name.
const INPUT_SUFFIX: &str = ".input";

/// Sections with a successor.
const SUPERSEDED: [&str; 4] = [HOT, ".text.cold", ".eh_frame", ".eh_frame_hdr"];

const LOADED: u64 = elf::SHF_ALLOC.0;
const CODE: u64 = elf::SHF_ALLOC.0 | elf::SHF_EXECINSTR.0;
const COUNTED: u64 = elf::SHF_ALLOC.0 | elf::SHF_WRITE.0;

/// Moved code that runs often. It has the name by which tools look for a program's code: valgrind tells lines of that section alone.
pub(crate) const HOT: &str = ".text";

/// What becomes of exceptions in moved code.
pub(crate) const LANGUAGE_DATA: &str = ".gcc_except_table.afterlink";

/// Sections that an output may have in addition, each once: name, type, flags and alignment. What is not loaded stands in
/// this order.
const ADDED: [(&str, elf::SectionType, u64, u64); 15] = [
    (HOT, elf::SHT_PROGBITS, CODE, 64),
    (".text.cold", elf::SHT_PROGBITS, CODE, 64),
    (".text.afterlink", elf::SHT_PROGBITS, CODE, 16),
    (".text.afterlink.targets", elf::SHT_PROGBITS, CODE, 16),
    (".text.afterlink.pages", elf::SHT_PROGBITS, CODE, 16),
    (LANGUAGE_DATA, elf::SHT_PROGBITS, LOADED, 1),
    (".eh_frame", elf::SHT_PROGBITS, LOADED, 8),
    (".eh_frame_hdr", elf::SHT_PROGBITS, LOADED, 4),
    (".afterlink.counters", elf::SHT_NOBITS, COUNTED, PAGE),
    (".afterlink.description", elf::SHT_PROGBITS, LOADED, 16),
    (NOTE_SECTION, elf::SHT_NOTE, 0, 4),
    (".afterlink.map", elf::SHT_PROGBITS, 0, 1),
    // If no unit had a list until its code was cut.
    (".debug_ranges", elf::SHT_PROGBITS, 0, 1),
    (".debug_rnglists", elf::SHT_PROGBITS, 0, 1),
    // Judged by `debug_file`.
    (DEBUG_LINK_SECTION, elf::SHT_PROGBITS, 0, 4),
];

fn finding(what: String) -> Finding {
    Finding::new(FindingKind::Section, what)
}

/// The name that a section of the output has in the input.
pub(crate) fn input_name(name: &str) -> &str {
    name.strip_suffix(INPUT_SUFFIX).filter(|n| SUPERSEDED.contains(n)).unwrap_or(name)
}

/// Which section of the output each one of the input became.
pub(crate) struct Matching {
    /// By input index.
    pub to_output: Vec<Option<SectionId>>,
    /// Sections that the longer program header table pushed away.
    pub displaced: Vec<Displaced>,
}

/// Checks all sections.
pub(crate) fn check(input: &Image, output: &Image) -> (Vec<Finding>, Matching) {
    let mut findings = Vec::new();
    let mut matching = match_sections(input, output, &mut findings);
    for (id, old) in input.sections.iter().skip(1) {
        let Some(new) = matching.to_output[id.0 as usize] else { continue };
        if let Some(fault) = fault(input, output, id, new, &matching) {
            let finding = finding(format!("section {}: {fault}", old.name));
            findings.push(finding.input(old.address.get()).output(output.sections[new].address.get()));
        }
        if old.is_loaded() && output.sections[new].address != old.address {
            let place = output.sections[new].address.get();
            matching.displaced.push(Displaced { start: old.address.get(), end: old.end().get(), place });
        }
    }
    findings.extend(check_places(input, output));
    findings.extend(check_order(input, output, &matching));
    findings.extend(check_file_ranges(input, output));
    (findings, matching)
}

/// Pairs sections by name, in order; what stays alone must be one that may go or come.
fn match_sections(input: &Image, output: &Image, findings: &mut Vec<Finding>) -> Matching {
    let superseded = |image: &Image, s: &Section| {
        SUPERSEDED.contains(&s.name)
            && image.sections.iter().any(|(_, o)| o.name == format!("{}{INPUT_SUFFIX}", s.name))
    };
    let mut by_name: FxHashMap<&str, std::collections::VecDeque<SectionId>> = FxHashMap::default();
    for (id, section) in output.sections.iter().skip(1) {
        // A successor has the name of what it replaces, which is found under its longer name.
        if !superseded(output, section) {
            by_name.entry(input_name(section.name)).or_default().push_back(id);
        }
    }
    let mut to_output = vec![None; input.sections.len().max(1)];
    for (id, old) in input.sections.iter().skip(1) {
        let new = by_name.get_mut(old.name).and_then(|ids| ids.pop_front());
        to_output[id.0 as usize] = new;
        // A program that names no debug file any more is told apart from the input's.
        let may_go = !old.is_loaded()
            && (old.kind == elf::SHT_RELA.0
                || old.name == DEBUG_LINK_SECTION
                || bb_addr_map::is_map(old)
                || tables::is_outdated(input, id));
        if new.is_none() && !may_go {
            findings.push(finding(format!("section {} is missing", old.name)).input(old.address.get()));
        }
    }
    let mut alone: Vec<SectionId> = by_name.into_values().flatten().collect();
    alone.sort_unstable();
    alone.extend(output.sections.iter().filter(|(_, s)| superseded(output, s)).map(|(id, _)| id));
    for id in alone {
        let section = &output.sections[id];
        let known = |(name, kind, flags, alignment): &(&str, elf::SectionType, u64, u64)| {
            let plain = (section.link, section.info, section.entry_size) == (0, 0, 0);
            // Hot code may ask for whole pages; `segments` sees to it that it gets them.
            let asked =
                section.alignment.is_power_of_two() && (*alignment..=HUGE_PAGE).contains(&section.alignment);
            let aligned = section.alignment == *alignment || *name == HOT && asked;
            let fits = aligned && (kind.0, *flags) == (section.kind, section.flags);
            *name == section.name && fits && plain
        };
        if dynamic_tables::left_behind(input, output, section).is_some() {
            continue;
        }
        let first =
            output.sections.iter().find(|(_, s)| s.name == section.name).is_some_and(|(i, _)| i == id);
        if !ADDED.iter().any(known) || !first || (!section.is_loaded() && section.address.get() != 0) {
            findings
                .push(finding(format!("section {} was added", section.name)).output(section.address.get()));
        }
    }
    Matching { to_output, displaced: Vec::new() }
}

/// What is wrong with a section of the output that was one of the input.
fn fault(
    input: &Image,
    output: &Image,
    old_id: SectionId,
    new_id: SectionId,
    matching: &Matching,
) -> Option<String> {
    let (old, new) = (&input.sections[old_id], &output.sections[new_id]);
    let is_table = [input.symbols.section, Some(input.section_names)].contains(&Some(old_id))
        || input.symbols.section.is_some_and(|s| input.sections[s].link == old_id.0);
    if (old.kind, old.flags, old.entry_size, old.alignment)
        != (new.kind, new.flags, new.entry_size, new.alignment)
    {
        return Some("type, flags, entry size or alignment changed".to_owned());
    }
    let mapped = |index: u32| matching.to_output.get(index as usize).copied().flatten().map_or(0, |id| id.0);
    // Loaded relocations that name no symbol (a static program's) need not be linked with the unloaded symbols.
    let needs_no_link =
        old.is_loaded() && input.symbols.section == Some(SectionId(old.link)) && new.link == 0;
    if mapped(old.link) != new.link && !needs_no_link {
        return Some("is linked with another section".to_owned());
    }
    let info_is_section = old.kind == elf::SHT_RELA.0 || old.flags & elf::SHF_INFO_LINK.0 != 0;
    let info = if info_is_section { mapped(old.info) } else { old.info };
    if !is_table && info != new.info {
        return Some("its header's information changed".to_owned());
    }
    if is_table {
        // Where the symbols that are not local begin, is judged with them.
        let is_symbols = input.symbols.section == Some(old_id);
        let same = new.address == old.address && (is_symbols || old.info == new.info);
        return (!same).then(|| "stands elsewhere, or its header's information changed".to_owned());
    }
    let growth = dynamic_tables::growth(input, output, old_id);
    let may_change = debug_info::is_judged(old) || bb_addr_map::is_map(old) || old.name == DEBUG_LINK_SECTION;
    if new.size != old.size + growth && !may_change {
        return Some(format!("has {} bytes, not {}", new.size, old.size + growth));
    }
    let same = || input.section_bytes(old_id) == output.section_bytes(new_id);
    if dynamic_tables::goes_elsewhere(input, output, old_id) {
        if new.address < input.loaded_end() {
            return Some("stands among what stays, where it has no room".to_owned());
        }
        // Symbols are judged one by one, what grew by `dynamic_tables`.
        let is_judged = growth > 0 || old.kind == elf::SHT_DYNSYM.0;
        return (!is_judged && !same()).then(|| "its bytes changed".to_owned());
    }
    if old.address != new.address || (old.is_loaded() && old.offset != new.offset) {
        return displaced_fault(input, output, old_id, new_id);
    }
    (!old.is_loaded() && !is_judged_apart(old) && !same()).then(|| "its bytes changed".to_owned())
}

/// What is wrong with a section that stands elsewhere: only those right behind the program headers give way, and they stay what they are.
fn displaced_fault(input: &Image, output: &Image, old_id: SectionId, new_id: SectionId) -> Option<String> {
    let old = &input.sections[old_id];
    let constant = old.flags & (elf::SHF_WRITE.0 | elf::SHF_EXECINSTR.0) == 0;
    let reach = crate::file::segments::table_end(output) + DISPLACED_MAX;
    if old.is_loaded() && (!constant || old.offset.get() >= reach) {
        return Some("stands elsewhere".to_owned());
    }
    let (a, b) = (input.section_bytes(old_id), output.section_bytes(new_id));
    let same = if old.kind == elf::SHT_NOTE.0 { same_notes(a, b) } else { a == b };
    (!same).then(|| "its bytes changed".to_owned())
}

/// Whether another rule judges the bytes of a section that is not loaded.
fn is_judged_apart(section: &Section) -> bool {
    probes::are_judged(section)
        || debug_info::is_judged(section)
        || tables::is_judged(section)
        || section.name == DEBUG_LINK_SECTION
}

/// The small sections behind the program headers end within so many bytes behind the longer table.
const DISPLACED_MAX: u64 = 256;

/// The null section says nothing. The others stand in the input's order: what is loaded at its old place, then by
/// address what is new or gave way, then what is not loaded, and the tables of symbols and names last. Tools that edit
/// files look for neighbours in this order.
fn check_order(input: &Image, output: &Image, matching: &Matching) -> Option<Finding> {
    let rows = output.sections.as_slice();
    let null = rows.first().is_none_or(|s| {
        let numbers = [s.flags, s.address.get(), s.offset.get(), s.size, s.alignment, s.entry_size];
        s.name.is_empty() && numbers == [0; 6] && (s.kind, s.link, s.info) == (0, 0, 0)
    });
    if !null {
        return Some(finding("the section with number 0 says something".to_owned()));
    }
    let unchanged = (0u32..).zip(&matching.to_output).skip(1).all(|(old, new)| *new == Some(SectionId(old)));
    if unchanged && rows.len() == input.sections.len() {
        return None;
    }
    let mut was = vec![None; rows.len()];
    for ((old, section), new) in input.sections.iter().zip(&matching.to_output) {
        if let Some(slot) = new.and_then(|id| was.get_mut(id.0 as usize)) {
            *slot = Some((u64::from(old.0), section.address));
        }
    }
    let tables = [output.symbols.section, Some(output.section_names)];
    let names = output.symbols.section.map(|id| SectionId(output.sections[id].link));
    let is_link_kept = output.debug_link() == input.debug_link();
    let rank = |(id, s): (SectionId, &Section)| {
        let is_table = tables.contains(&Some(id)) || names == Some(id);
        match was.get(id.0 as usize).copied().flatten() {
            Some((old, address)) if s.is_loaded() && s.address == address => (0, old),
            // The place that a grown table left stands where the table's row stood.
            None if s.is_loaded() && s.address < input.loaded_end() => {
                let old = dynamic_tables::left_behind(input, output, s);
                (0, old.map_or(0, |old| u64::from(old.0)))
            }
            _ if s.is_loaded() => (1, s.address.get()),
            _ if is_table => (4, 0),
            // The name of a debug file stays where it was; another one comes last.
            Some((old, _)) if s.name != DEBUG_LINK_SECTION || is_link_kept => (2, old),
            _ => (3, ADDED.iter().position(|added| added.0 == s.name).map_or(0, |at| at as u64 + 1)),
        }
    };
    let mut last = (0, 0);
    for (id, section) in output.sections.iter().skip(1) {
        let (rank, at) = rank((id, section));
        let out_of_order = rank < last.0 || (rank == last.0 && at > 0 && at < last.1);
        if out_of_order {
            let what = format!("section {} stands at another place in the table", section.name);
            return Some(finding(what).output(section.address.get()));
        }
        last = if rank == last.0 { (rank, at.max(last.1)) } else { (rank, at) };
    }
    None
}

/// Loaded sections lie in a segment, at the file offset that the segment gives them.
fn check_places(input: &Image, output: &Image) -> Vec<Finding> {
    let end = input.loaded_end();
    let loads = || output.segments.iter().filter(|s| s.kind == elf::PT_LOAD.0);
    let mut findings = Vec::new();
    for (id, section) in output.sections.iter().filter(|(_, s)| s.is_loaded()) {
        if section.is_thread_local_zero() {
            continue;
        }
        let zero = section.kind == elf::SHT_NOBITS.0;
        let fits = loads().any(|s| {
            let inside = section.address >= s.address && section.address.since(s.address) <= s.memory_size;
            let at = section.address.since(s.address);
            inside
                && section.size <= s.memory_size - at
                && (zero || at + section.size <= s.file_size)
                && section.offset == s.offset + at
        });
        let was =
            |s: &Section| s.name == section.name && s.address == section.address && s.size == section.size;
        if !fits && !input.sections.iter().any(|(_, s)| was(s)) {
            findings.push(
                finding(format!("section {} does not lie in a segment", section.name))
                    .output(section.address.get()),
            );
        }
        let alignment = section.alignment.max(1);
        if !alignment.is_power_of_two() || section.address.get() % alignment != 0 {
            findings.push(
                finding(format!("section {} is not aligned", section.name)).output(section.address.get()),
            );
        }
        let code = section.is_code() && section.address >= end;
        if code && !section.name.starts_with(".text") {
            findings.push(
                finding(format!("section {} is new code", output.sections[id].name))
                    .output(section.address.get()),
            );
        }
    }
    findings
}

/// No two sections share bytes of the file, nor do the header tables, unless they did in the input.
fn check_file_ranges(input: &Image, output: &Image) -> Vec<Finding> {
    let overlapping = |image: &Image| -> Option<String> {
        let mut ranges: Vec<(u64, u64, &str)> = image
            .sections
            .iter()
            .filter(|(_, s)| s.kind != elf::SHT_NOBITS.0 && s.kind != elf::SHT_NULL.0 && s.size > 0)
            .map(|(_, s)| (s.offset.get(), s.offset.get() + s.size, s.name))
            .collect();
        ranges.push((0, crate::file::segments::table_end(image), "headers"));
        let table = image.section_headers.get();
        ranges.push((table, table + image.sections.len() as u64 * 64, "section headers"));
        ranges.sort_unstable();
        let pair = ranges.windows(2).find(|p| p[0].1 > p[1].0)?;
        Some(format!("{} and {} share bytes of the file", pair[0].2, pair[1].2))
    };
    if overlapping(input).is_some() {
        return Vec::new();
    }
    overlapping(output).map(finding).into_iter().collect()
}
