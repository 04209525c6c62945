//! Sections that are not loaded and name code: sizes of stack frames are those of the corresponding functions, maps of blocks have a rule of
//! their own, and what is not understood is not there.

use crate::address_map::places::Place;
use crate::check::Check;
use crate::debug_info;
use crate::file::{bb_addr_map, probes};
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::{Image, Section, SectionId};

/// Functions and the sizes of their frames.
const STACK_SIZES: &str = ".stack_sizes";
/// What names code although no relocation says so: probes for profiles, symbols in a file of their own, old debug information.
const MARKED_BY_NAME: [&str; 4] = [".pseudo_probe", ".gnu_debugdata", ".stab", ".stabstr"];

/// Whether the section is judged here.
pub(crate) fn is_judged(section: &Section) -> bool {
    !section.is_loaded() && section.name == STACK_SIZES || bb_addr_map::is_map(section)
}

/// Whether an output must do without a section of the input: it tells of places in code, and no rule follows it.
pub(crate) fn is_outdated(image: &Image, id: SectionId) -> bool {
    let section = &image.sections[id];
    if section.is_loaded()
        || is_judged(section)
        || debug_info::is_judged(section)
        || probes::are_judged(section)
    {
        return false;
    }
    // Debug information that is not judged, as names are not, was not relocated by addresses of code.
    let is_debug = section.name.starts_with(".debug_") || section.name.starts_with(".zdebug_");
    let is_in_code = |symbol: u32| {
        let place = image.symbols.get(symbol).filter(|s| s.is_defined());
        place.and_then(|s| image.sections.get(SectionId(u32::from(s.section)))).is_some_and(Section::is_code)
    };
    let mut marks = image.kept_relocations().filter(|(of, _)| *of == id && !is_debug);
    MARKED_BY_NAME.contains(&section.name)
        || marks.any(|(_, rows)| rows.iter().any(|row| is_in_code(row.symbol)))
}

/// Nothing tells of where code was, and sizes of frames are of the functions that they were of.
pub(crate) fn check(check: &Check) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, section) in check.input.sections.iter().skip(1) {
        let Some(new) = check.sections[id.0 as usize] else { continue };
        let finding =
            |what: &str| Finding::new(FindingKind::Section, format!("section {} {what}", section.name));
        if bb_addr_map::is_map(section) {
            findings.extend(bb_addr_map::check(check, id, new));
        } else if is_judged(section) {
            let bytes = (check.input.section_bytes(id), check.output.section_bytes(new));
            if !same_sizes(check, bytes) {
                findings.push(finding("says something else of a function, or of another one"));
            }
        } else if !check.places.blocks.is_empty() && is_outdated(check.input, id) {
            findings.push(finding("tells of where code was"));
        }
    }
    findings
}

fn same_sizes(check: &Check, (mut old, mut new): (&[u8], &[u8])) -> bool {
    while let (Some((was, rest)), Some((is, new_rest))) = (row(old), row(new)) {
        let place = match check.place(was.0) {
            Place::Moved(place) => place,
            _ => was.0,
        };
        if is != (place, was.1) {
            return false;
        }
        (old, new) = (rest, new_rest);
    }
    old == new
}

/// A function's address and the bytes of its size.
type Row<'a> = (u64, &'a [u8]);

/// The first row, and what is behind it.
fn row(bytes: &[u8]) -> Option<(Row<'_>, &[u8])> {
    let (address, rest) = bytes.split_first_chunk()?;
    let size = rest.iter().position(|byte| byte & 0x80 == 0)? + 1;
    let (size, rest) = rest.split_at(size);
    Some(((u64::from_le_bytes(*address), size), rest))
}
