//! Debug information, if it follows moved code: read afresh from both files, and walked in step. Each row of the line tables,
//! each run, each location and each address corresponds through the proven map; all else is the same.
//!
//! Entries keep their places, so references between them, and what counts from a unit's start, stay true. Where lists, line
//! tables and abbreviations stand in their sections, and how they say what they say, is not asked.

mod counterparts;
mod entries;
mod expressions;
mod lines;
mod lists;
mod unit;

use crate::check::Check;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::{Image, Section, elf};
use counterparts::Counterparts;
use entries::{Fault, Pair};
use gimli::{Dwarf, EndianSlice, LittleEndian, SectionId, UnitHeader};
use rayon::prelude::*;
use unit::{R, Unit};

/// Sections whose bytes are judged here, and by nothing else.
const JUDGED: [&str; 10] = [
    ".debug_info",
    ".debug_types",
    ".debug_abbrev",
    ".debug_line",
    ".debug_addr",
    ".debug_aranges",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_loc",
    ".debug_loclists",
];

/// Whether the checks here are all that is asked of a section's size and bytes.
pub(crate) fn is_judged(section: &Section) -> bool {
    let is_plain = section.flags & elf::SHF_COMPRESSED.0 == 0;
    JUDGED.contains(&section.name) && !section.is_loaded() && is_plain
}

fn bytes<'a>(image: &Image<'a>, name: &str) -> &'a [u8] {
    image.section_named(name).map_or(&[], |id| image.section_bytes(id))
}

fn read<'a>(image: &Image<'a>) -> Dwarf<R<'a>> {
    let section = |id: SectionId| Ok::<_, ()>(EndianSlice::new(bytes(image, id.name()), LittleEndian));
    Dwarf::load(section).unwrap_or_default()
}

/// What is wrong with the debug information. That of the input, unchanged, is none of a moved program, but no wrong one: it
/// tells of code that still stands there.
pub(crate) fn check(check: &Check) -> Vec<Finding> {
    let same = |name: &&str| bytes(check.input, name) == bytes(check.output, name);
    if JUDGED.iter().all(same) {
        return Vec::new();
    }
    let counterparts = Counterparts::of(check);
    let (lines, mut faults) =
        lines::judge(&counterparts, bytes(check.input, ".debug_line"), bytes(check.output, ".debug_line"));
    let (old, new) = (read(check.input), read(check.output));
    let lists = |image| (bytes(image, ".debug_loc"), bytes(image, ".debug_loclists"));
    let (old_lists, new_lists) = (lists(check.input), lists(check.output));
    match headers(&old).and_then(|a| Ok((a, headers(&new)?))) {
        Ok((a, b)) if a.len() == b.len() => {
            let judged = a.par_iter().zip(&b).map(|(&a, &b)| {
                let input = Unit::read(&old, a, old_lists)?;
                let output = Unit::read(&new, b, new_lists)?;
                Pair { counterparts: &counterparts, lines: &lines, input, output }.judge()
            });
            faults.extend(judged.filter_map(Result::err).collect::<Vec<_>>());
        }
        Ok(_) => faults.push(Fault::new("there are more units, or fewer")),
        Err(error) => faults.push(error.into()),
    }
    faults.extend(judge_aranges(&counterparts, &old, &new).err());
    faults.extend(judge_addresses(&counterparts).err());
    faults.into_iter().map(finding).collect()
}

fn finding(fault: Fault) -> Finding {
    let finding = Finding::new(FindingKind::DebugInfo, format!("debug information: {}", fault.what));
    let finding = fault.input.into_iter().fold(finding, Finding::input);
    fault.output.into_iter().fold(finding, Finding::output)
}

fn headers<'a>(dwarf: &Dwarf<R<'a>>) -> gimli::Result<Vec<UnitHeader<R<'a>>>> {
    let (mut headers, mut units) = (Vec::new(), dwarf.debug_info.units());
    while let Some(header) = units.next()? {
        headers.push(header);
    }
    let mut units = dwarf.debug_types.units();
    while let Some(header) = units.next()? {
        headers.push(header);
    }
    Ok(headers)
}

/// `.debug_aranges`: the code of each unit.
fn judge_aranges(counterparts: &Counterparts, old: &Dwarf<R>, new: &Dwarf<R>) -> Result<(), Fault> {
    let (mut old, mut new) = (old.debug_aranges.headers(), new.debug_aranges.headers());
    loop {
        let (a, b) = match (old.next()?, new.next()?) {
            (None, None) => return Ok(()),
            (Some(a), Some(b)) => (a, b),
            _ => return Err(Fault::new("there are more sets of ranges, or fewer")),
        };
        if (a.debug_info_offset(), a.encoding()) != (b.debug_info_offset(), b.encoding()) {
            return Err(Fault::new("a set of ranges is of another unit"));
        }
        let runs = |mut entries: gimli::ArangeEntryIter<R>| {
            let mut runs = Vec::new();
            while let Some(entry) = entries.next_raw()? {
                runs.push((entry.address(), entry.address().wrapping_add(entry.length())));
            }
            Ok::<_, gimli::Error>(runs)
        };
        let judged = counterparts.judge_runs(&runs(a.entries())?, &runs(b.entries())?);
        judged.map_err(|(what, at)| Fault {
            what: format!("a set of ranges {what}"),
            input: None,
            output: Some(at),
        })?;
    }
}

/// `.debug_addr`: what units name by its number is judged with them. No number may mean something else, but a unit may have
/// more of them: the place behind a call may have been that of an instruction, too, and be another one now.
fn judge_addresses(counterparts: &Counterparts) -> Result<(), Fault> {
    let [mut old, mut new] =
        [counterparts.check.input, counterparts.check.output].map(|i| bytes(i, ".debug_addr"));
    while !old.is_empty() {
        let (Some((head, own, rest)), Some((new_head, others, new_rest))) = (table(old), table(new)) else {
            return Err(Fault::new("a table of addresses ends elsewhere"));
        };
        if head != new_head || own.len() > others.len() {
            return Err(Fault::new("a table of addresses is another one"));
        }
        for (a, b) in own.chunks(8).zip(others.chunks(8)).filter(|(a, b)| a != b) {
            let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b));
            let (was, is) = (number(a), number(b));
            let (first, last) = counterparts.behind(was);
            let is_place = counterparts.point(was) == is || (first..=last).contains(&is);
            if !counterparts.is_code(was) || !is_place {
                let what = "an address in the table names another place".to_owned();
                return Err(Fault { what, input: Some(was), output: Some(is) });
            }
        }
        (old, new) = (rest, new_rest);
    }
    if new.is_empty() { Ok(()) } else { Err(Fault::new("there are more tables of addresses")) }
}

/// The first table in `.debug_addr`: what its head says but for its size, its addresses, and what is behind it.
fn table(section: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let word = u32::from_le_bytes(*section.first_chunk()?);
    let (start, size) = match word {
        u32::MAX => (12, usize::try_from(u64::from_le_bytes(*section.get(4..)?.first_chunk()?)).ok()?),
        size => (4, size as usize),
    };
    let (own, rest) = section.get(start..)?.split_at_checked(size)?;
    let (head, addresses) = own.split_at_checked(4)?;
    Some((head, addresses, rest))
}
