//! Debug information, if it follows moved code: read afresh from both files, and walked in step. Each row of the line tables,
//! each run, each location and each address corresponds through the proven map; all else is the same.
//!
//! Entries keep their places, so references between them, and what counts from a unit's start, stay true. Where lists, line
//! tables and abbreviations stand in their sections, and how they say what they say, is not asked.

mod addresses;
mod callees;
mod counterparts;
mod entries;
mod expressions;
mod fault;
mod frames;
mod gdb_index;
mod lines;
mod lists;
mod plain;
mod rows;
mod split;
mod unit;

use crate::check::Check;
use crate::verdict::finding::{Finding, FindingKind};
use addresses::Tables;
use afterlink_core::DebugUnit;
use afterlink_image::{Contents, Image, Section};
use callees::Files;
use counterparts::Counterparts;
use entries::{Inlined, Pair};
use fault::Fault;
use gimli::{DebugAranges, DebugInfo, DebugTypes, Dwarf, EndianSlice, LittleEndian, SectionId, UnitHeader};
use rayon::prelude::*;
use rows::Rows;
use rustc_hash::FxHashMap;
use split::{Others, Program, Skeleton};
use unit::{R, RawLists, Unit};

/// Sections whose bytes are judged here, and by nothing else.
const JUDGED: [&str; 14] = [
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
    gdb_index::NAME,
    ".debug_frame",
    ".debug_str",
    ".debug_str_offsets",
];

/// Those in which only the names of files with entries may change.
const STRINGS: [&str; 2] = [".debug_str", ".debug_str_offsets"];

/// Whether the checks here are all that is asked of a section's size and bytes.
pub(crate) fn is_judged(section: &Section) -> bool {
    let is_name = |name: &&str| **name == *section.name || old_name(name) == section.name;
    !section.is_loaded() && JUDGED.iter().any(is_name)
}

/// The name of a section that is compressed in the old way.
fn old_name(name: &str) -> String {
    name.replacen(".debug_", ".zdebug_", 1)
}

/// Bytes that are in memory, of each file, while they are judged.
const BYTES_AT_ONCE: usize = 4 << 20;

/// The bytes of a section as they stand in the file.
fn raw<'a>(image: &Image<'a>, name: &str) -> &'a [u8] {
    image.debug_section(name).map_or(&[], |id| image.section_bytes(id))
}

/// Whether a section is the same in both files.
fn is_same(check: &Check, name: &str) -> bool {
    let [old, new] = check.told.map(|image| raw(image, name));
    let mut both = old.chunks(BYTES_AT_ONCE).zip(new.chunks(BYTES_AT_ONCE));
    let is_same = |(a, b): (&[u8], &[u8])| {
        let is_same = a == b;
        if a.len() == BYTES_AT_ONCE {
            (check.forget)();
        }
        is_same
    };
    old.len() == new.len() && both.all(is_same)
}

/// The judged sections of a file, not compressed.
struct Sections<'a>(Vec<Option<Contents<'a>>>);

/// Where units name folders.
const LINE_STRINGS: [&str; 1] = [".debug_line_str"];

impl<'a> Sections<'a> {
    /// Texts are only asked for where units may stand in other files, or line tables may name files of others.
    fn read(image: &Image<'a>, has_inlined: bool) -> Result<Self, Fault> {
        let contents = |name: &&str| image.debug_section(name).map(|id| image.contents(id)).transpose();
        // Units with entries in other files have addresses apart.
        let has_texts = has_inlined || image.debug_section(".debug_addr").is_some();
        let contents = JUDGED.par_iter().chain(&LINE_STRINGS).map(|name| match STRINGS.contains(name) {
            true if !has_texts => Ok(None),
            _ => contents(name),
        });
        let contents = contents.collect::<Result<_, _>>();
        contents.map(Self).map_err(|error| Fault::new(error.to_string()))
    }

    fn bytes(&self, name: &str) -> &[u8] {
        let at = JUDGED.iter().chain(&LINE_STRINGS).position(|known| *known == name);
        at.and_then(|at| self.0.get(at)?.as_ref()).map_or(&[], |contents| &contents.bytes)
    }

    fn dwarf(&self) -> Dwarf<R<'_>> {
        let section = |id: SectionId| Ok::<_, ()>(EndianSlice::new(self.bytes(id.name()), LittleEndian));
        Dwarf::load(section).unwrap_or_default()
    }

    fn lists(&self) -> RawLists<'_> {
        let of = |name| self.bytes(name);
        RawLists { loc: of(".debug_loc"), loclists: of(".debug_loclists"), rnglists: of(".debug_rnglists") }
    }
}

/// What is wrong with the debug information. That of the input, unchanged, is none of a moved program, but no wrong one: it
/// tells of code that still stands there.
pub(crate) fn check(check: &Check) -> Vec<Finding> {
    let is_same = |name: &&str| is_same(check, name);
    if JUDGED.iter().all(is_same) {
        return Vec::new();
    }
    // Without files that units name nothing of strings is looked at, and nothing may change.
    if check.told[0].debug_section(".debug_addr").is_none() && !STRINGS.iter().all(is_same) {
        return vec![finding((None, Fault::new("strings changed")))];
    }
    let has_inlined = !check.places.inlined.is_empty();
    let read = |image| Sections::read(image, has_inlined);
    let faults = match (read(check.told[0]), read(check.told[1])) {
        (Ok(old), Ok(new)) => judge(check, &old, &new),
        (Err(fault), _) | (_, Err(fault)) => vec![(None, fault)],
    };
    faults.into_iter().map(finding).collect()
}

/// What is wrong, and with which part, if it is about no other.
type Found = (Option<DebugUnit>, Fault);

fn judge(check: &Check, old_sections: &Sections, new_sections: &Sections) -> Vec<Found> {
    let counterparts = Counterparts::of(check);
    let of_both = |name| [old_sections.bytes(name), new_sections.bytes(name)];
    let (old, new) = (old_sections.dwarf(), new_sections.dwarf());
    let files = Files::new([&old, &new], &counterparts);
    let (rows, mut faults) = lines::judge(&counterparts, of_both(".debug_line"), files);
    (check.forget)();
    let lists = [old_sections, new_sections].map(Sections::lists);
    let unmoved = counterparts.unmoved();
    let ([addr, new_addr], [ranges, new_ranges]) = (of_both(".debug_addr"), of_both(".debug_ranges"));
    let programs = [(addr, ranges), (new_addr, new_ranges)];
    let programs = programs.map(|(addresses, ranges)| Program { addresses, ranges });
    let (others, tables) = (Others::read(check.files, programs), Tables::default());
    let inlined = Inlined::default();
    let same_lines = rows.places.keys().map(|&table| (table, table)).collect();
    let judge = Judge {
        ways: [(&counterparts, &rows.places), (&unmoved, &same_lines)],
        rows: &rows,
        inlined: &inlined,
        dwarf: [&old, &new],
        lists,
        others: &others,
        tables: &tables,
    };
    for (name, is_types) in [(".debug_info", false), (".debug_types", true)] {
        let [old_units, new_units] = of_both(name).map(units);
        // Heads lie so near to each other that the system has fetched it all.
        (check.forget)();
        let is_aligned = |(a, b): (&&[u8], &&[u8])| a.len() == b.len();
        if old_units.len() != new_units.len() || !old_units.iter().zip(&new_units).all(is_aligned) {
            faults.push((None, Fault::new(format!("the units in {name} are not where they were"))));
            continue;
        }
        let part = if is_types { DebugUnit::Types } else { DebugUnit::Entries };
        let (mut old_rest, mut new_rest, mut start) = (&old_units[..], &new_units[..], 0);
        while !old_rest.is_empty() {
            let ((some, behind), new) = (at_once(old_rest), new_rest);
            let judged = some.par_iter().zip(new).map(|(a, b)| judge.unit(a, b, is_types).err());
            for (unit, fault) in some.iter().zip(judged.collect::<Vec<_>>()) {
                faults.extend(fault.map(|fault| (Some(part(start)), fault)));
                start += unit.len() as u64;
            }
            (old_rest, new_rest) = (behind, &new[some.len()..]);
            (check.forget)();
        }
    }
    faults.extend(inlined.judge(&rows));
    let mut whole = Vec::from_iter(
        judge_aranges([&counterparts, &unmoved], of_both(".debug_aranges"), &mut faults).err(),
    );
    whole.extend(others.judge_all_types());
    whole.extend(others.judge_strings(of_both(STRINGS[0]), of_both(STRINGS[1])).err());
    whole.extend(tables.judge(&counterparts, of_both(".debug_addr")).err());
    whole.extend(frames::judge(&counterparts, of_both(".debug_frame")).err());
    whole.extend(gdb_index::judge([&counterparts, &unmoved], of_both(gdb_index::NAME)).err());
    faults.extend(whole.into_iter().map(|fault| (None, fault)));
    faults
}

/// What units are judged by.
struct Judge<'j, 'a> {
    /// As what corresponds, and as if nothing had moved; and where line tables went.
    ways: [(&'j Counterparts<'j, 'j>, &'j FxHashMap<usize, usize>); 2],
    /// Rows of code in place of calls, and entries of such calls.
    rows: &'j Rows,
    inlined: &'j Inlined,
    dwarf: [&'a Dwarf<R<'a>>; 2],
    lists: [RawLists<'a>; 2],
    others: &'j Others<'j>,
    tables: &'j Tables,
}

impl<'a> Judge<'_, 'a> {
    fn unit(&self, a: &'a [u8], b: &'a [u8], is_types: bool) -> Result<(), Fault> {
        // Of what nobody can read nothing may change.
        let (Some(old), Some(new)) = (header(a, is_types), header(b, is_types)) else {
            return if a == b { Ok(()) } else { Err(Fault::new("a unit that cannot be read changed")) };
        };
        let was = || Unit::read(self.dwarf[0], old, self.lists[0]);
        // What cannot be read names nothing.
        let (input, output) = match (was(), Unit::read(self.dwarf[1], new, self.lists[1])) {
            (Ok(was), Ok(is)) => (was, is),
            (Err(error), _) | (_, Err(error)) if a != b => return Err(error.into()),
            _ => return Ok(()),
        };
        let [(counterparts, lines), (unmoved, same_lines)] = self.ways;
        let pair = |counterparts, lines, (input, output)| Pair {
            counterparts,
            lines,
            rows: self.rows,
            inlined: self.inlined,
            input,
            output,
        };
        let is_readable = || pair(unmoved, same_lines, (was()?, was()?)).judge();
        let mut pair = pair(counterparts, lines, (input, output));
        if let Err(fault) = pair.judge() {
            // A unit that tells of where the code was is as good as no unit, but no wrong one.
            pair.counterparts = unmoved;
            if pair.judge().is_err() && (a != b || is_readable().is_ok()) {
                return Err(fault);
            }
        }
        let skeletons = (Skeleton::of(&pair.input)?, Skeleton::of(&pair.output)?);
        self.tables.add(&pair.input, &pair.output)?;
        self.others.judge(counterparts, skeletons)
    }
}

fn finding((part, fault): Found) -> Finding {
    let finding = Finding::new(FindingKind::DebugInfo, format!("debug information: {}", fault.what));
    let finding = Finding { debug_unit: part, ..finding };
    let finding = fault.input.into_iter().fold(finding, Finding::input);
    fault.output.into_iter().fold(finding, Finding::output)
}

/// The bytes of each unit, and of what cannot be told apart.
fn units(mut section: &[u8]) -> Vec<&[u8]> {
    let mut units = Vec::new();
    while !section.is_empty() {
        let size = rows::size_at(section, 0).unwrap_or(section.len());
        let (unit, rest) = section.split_at(size);
        units.push(unit);
        section = rest;
    }
    units
}

/// Units that are judged before what was looked at is forgotten, and the others. A unit is looked at in one go.
fn at_once<'u, 'a>(units: &'u [&'a [u8]]) -> (&'u [&'a [u8]], &'u [&'a [u8]]) {
    let mut bytes = 0;
    let is_in_time = |unit: &&&[u8]| {
        bytes += unit.len();
        bytes <= BYTES_AT_ONCE
    };
    let count = units.iter().take_while(is_in_time).count();
    units.split_at(count.clamp(1, units.len()))
}

/// The head of a unit, if it can be read.
fn header(unit: &[u8], is_types: bool) -> Option<UnitHeader<R<'_>>> {
    match is_types {
        true => DebugTypes::new(unit, LittleEndian).units().next().ok()?,
        false => DebugInfo::new(unit, LittleEndian).units().next().ok()?,
    }
}

/// `.debug_aranges`: the code of each unit. What is wrong with single sets is added to `found`.
fn judge_aranges(
    ways: [&Counterparts; 2],
    sections: [&[u8]; 2],
    found: &mut Vec<Found>,
) -> Result<(), Fault> {
    let sections = sections.map(|bytes| DebugAranges::new(bytes, LittleEndian));
    let [mut old, mut new] = sections.map(|section| section.headers());
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
        let (was, is) = (runs(a.entries())?, runs(b.entries())?);
        let judged = ways[0].judge_runs(&was, &is).or_else(|fault| match ways[1].judge_runs(&was, &is) {
            Ok(()) => Ok(()),
            Err(_) => Err(fault),
        });
        if let Err((what, at)) = judged {
            let fault = Fault::new(format!("a set of ranges {what}")).output_at(at);
            found.push((Some(DebugUnit::Entries(a.debug_info_offset().0 as u64)), fault));
        }
    }
}
