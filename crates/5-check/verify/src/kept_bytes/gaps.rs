//! What nothing leads to: names without a user, and bytes that belong to no section. They hold what they held in the
//! input, or zeroes, so that nothing can hide there; and all moved code lies in sections.

use crate::check::Check;
use crate::file::sections::HOT;
use crate::file::segments::table_end;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::{Image, SectionId, elf};
use rustc_hash::FxHashSet;

pub(crate) fn check(check: &Check) -> Vec<Finding> {
    let mut findings = check_names(check);
    findings.extend(check_file(check));
    findings.extend(check_left(check));
    findings.extend(check_covered(check));
    findings
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}

/// The table of symbols' names is the input's with names of symbols behind it, that of sections' names holds those only.
fn check_names(check: &Check) -> Vec<Finding> {
    let (input, output) = (check.input, check.output);
    let table = |image: &Image| image.symbols.section.map(|id| SectionId(image.sections[id].link));
    let old = table(input).map_or(&[][..], |id| input.section_bytes(id));
    let new = table(output).map_or(&[][..], |id| output.section_bytes(id));
    let finding = |what: &str| Finding::new(FindingKind::Section, what);
    let mut findings = Vec::new();
    let used = || output.symbols.iter().map(|s| s.name()).collect();
    let holds_only_used = |added: &[u8]| added.is_empty() || holds_only(added, &used());
    if !new.strip_prefix(old).is_some_and(holds_only_used) {
        findings
            .push(finding("the names of symbols are not the input's with those of fragments behind them"));
    }
    if input.sections.len().min(output.sections.len()) < 2 {
        return findings;
    }
    let used: FxHashSet<&str> = output.sections.iter().map(|(_, s)| s.name).collect();
    let names = output.section_bytes(output.section_names);
    let unchanged = input.section_bytes(input.section_names) == names;
    if !unchanged && !holds_only(names, &used) {
        findings.push(finding("the names of sections hold something else, too"));
    }
    findings
}

/// Whether a table of names, each ended by a zero, holds no other than these.
fn holds_only(table: &[u8], used: &FxHashSet<&str>) -> bool {
    let Some(names) = table.strip_suffix(&[0]) else { return table.is_empty() };
    let mut names = names.split(|&byte| byte == 0);
    names.all(|name| name.is_empty() || std::str::from_utf8(name).is_ok_and(|name| used.contains(name)))
}

/// Bytes of the output's file between headers, loaded segments of the input, fragments and sections.
fn check_file(check: &Check) -> Option<Finding> {
    let (input, output) = (check.input, check.output);
    let mut ranges = vec![(0, table_end(output))];
    let table = output.section_headers.get();
    ranges.push((table, table + output.sections.len() as u64 * 64));
    let sections = output.sections.iter().filter(|(_, s)| {
        // Of the sections of moved code only what lies between the first and the last fragment has been looked at.
        let moved = [HOT, ".text.cold"].contains(&s.name);
        let has_bytes = s.kind != elf::SHT_NOBITS.0 && s.kind != elf::SHT_NULL.0;
        has_bytes && !(moved && s.address >= input.loaded_end())
    });
    ranges.extend(sections.map(|(_, s)| (s.offset.get(), s.offset.get() + s.size)));
    let fragments = &check.places.fragments;
    if let (Some(first), Some(last)) = (fragments.first(), fragments.iter().map(|f| f.1).max())
        && let Some(start) = output.file_offset(afterlink_core::InputAddr(first.0))
    {
        ranges.push((start.get(), start.get() + (last - first.0)));
    }
    let olds = input.segments.iter().filter(|s| s.kind == elf::PT_LOAD.0);
    // What is loaded of the input has been compared already.
    ranges.extend(olds.map(|s| (s.offset.get(), s.offset.get() + s.file_size)));
    ranges.sort_unstable();
    ranges.push((output.bytes.len() as u64, u64::MAX));
    let mut at = 0;
    for (start, end) in ranges {
        if let Some(gap) = output.bytes.get(at as usize..start as usize)
            // Traps stand between the fragments of code, and in front of the first.
            && !gap.iter().all(|&byte| byte == 0 || check.code.judgement.is_trap_byte(byte))
            && input.bytes.get(at as usize..start as usize) != Some(gap)
        {
            let what = format!(
                "bytes of the file from {at:#x} to {start:#x} belong to no section and are no padding"
            );
            return Some(Finding::new(FindingKind::Section, what));
        }
        at = at.max(end);
    }
    None
}

/// Tools that write the file anew leave out what lies in no section.
fn check_covered(check: &Check) -> Option<Finding> {
    let sections = check.output.sections.iter().map(|(_, s)| s).filter(|s| s.is_code());
    let ranges: Vec<(u64, u64)> = sections.map(|s| (s.address.get(), s.end().get())).collect();
    let is_in = |f: &&(u64, u64)| ranges.iter().any(|range| range.0 <= f.0 && f.1 <= range.1);
    let (start, _) = check.places.fragments.iter().find(|fragment| !is_in(fragment))?;
    let what = "moved code reaches out of the sections of code";
    Some(Finding::new(FindingKind::Section, what).output(*start))
}

/// Where sections gave way to the program headers and these do not reach: bytes of the section, or zeroes.
fn check_left(check: &Check) -> Option<Finding> {
    let end = table_end(check.output);
    check.places.displaced.iter().find_map(|d| {
        let start = check.input.file_offset(afterlink_core::InputAddr(d.start))?.get();
        let size = (d.end - d.start) as usize;
        let skip = end.saturating_sub(start).min(size as u64) as usize;
        let left = check.output.bytes.get(start as usize..)?.get(skip..size)?;
        let was = check.input.bytes.get(start as usize..)?.get(skip..size)?;
        let is = check.output.bytes_at(afterlink_core::InputAddr(d.place), size).and_then(|b| b.get(skip..));
        let kept = is_zero(left) || left == was || Some(left) == is;
        let what = "where a section gave way to the program headers, something else stands";
        (!kept).then(|| Finding::new(FindingKind::Data, what).input(d.start))
    })
}
