//! The ways in which headers, symbol table and what lies between the sections are broken: every field of every row,
//! rows in another order, rows dropped, and bytes that nothing describes.

use crate::kinds::{Mutant, Mutate, byte_of, flip, write, write_number};
use crate::sites::Sites;
use afterlink_image::{NOTE_SECTION, Section, elf};
use rand::prelude::*;
use rand_chacha::ChaCha8Rng;

pub const HEADER_KINDS: [(&str, Mutate); 18] = [
    ("file header, any byte", file_header),
    ("program header, any byte", program_header),
    ("program headers swapped", program_headers_swapped),
    ("program header dropped", program_header_dropped),
    ("new segment between two pages of the file", between_pages),
    ("section header, any byte", section_header),
    ("section headers swapped", section_headers_swapped),
    ("section of moved code cut short", moved_section_cut),
    ("first symbol that is not local", first_global),
    ("symbols swapped", symbols_swapped),
    ("symbol doubled", symbol_doubled),
    ("symbol's visibility", symbol_visibility),
    ("name of a fragment", fragment_name),
    ("name of a symbol without one", name_of_nameless),
    ("byte of the names", name_byte),
    ("byte of the note", note_byte),
    ("number of the address map made longer", map_slack),
    ("byte between sections", gap_byte),
];

const TRAP: u8 = 0xcc;
const HEADER: usize = 64;
const ROW: usize = 56;
const SECTION: usize = 64;
const SYMBOL: usize = 24;

fn segment_count(sites: &Sites) -> usize {
    sites.output.segments.len()
}

fn file_header(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let at = rng.random_range(0..HEADER);
    flip(sites, rng, at, "file header")
}

fn program_header(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let at = HEADER + rng.random_range(0..segment_count(sites) * ROW);
    flip(sites, rng, at, "program header")
}

/// Exchanges two rows of a table.
fn swap(sites: &Sites, start: usize, size: usize, (a, b): (usize, usize), what: &str) -> Mutant {
    let mut bytes = sites.bytes.to_vec();
    let (a, b) = (start + a.min(b) * size, start + a.max(b) * size);
    let (head, tail) = bytes.get_mut(..b + size)?.split_at_mut(b);
    head.get_mut(a..a + size)?.swap_with_slice(tail);
    (bytes != sites.bytes).then(|| (bytes, format!("{what} at {a:#x} and {b:#x} swapped")))
}

fn program_headers_swapped(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let mut index = || rng.random_range(0..segment_count(sites));
    swap(sites, HEADER, ROW, (index(), index()), "program headers")
}

fn program_header_dropped(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let count = segment_count(sites);
    let index = rng.random_range(0..count);
    let mut bytes = sites.bytes.to_vec();
    bytes.copy_within(HEADER + (index + 1) * ROW..HEADER + count * ROW, HEADER + index * ROW);
    bytes[HEADER + (count - 1) * ROW..HEADER + count * ROW].fill(0);
    bytes[56..58].copy_from_slice(&(count as u16 - 1).to_le_bytes());
    Some((bytes, format!("program header {index} dropped")))
}

/// Shifts everything from the new segment on by a few bytes, which its program header allows by its alignment.
fn between_pages(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let end = sites.input.loaded_end();
    let new = sites.output.segments.iter().find(|s| s.kind == elf::PT_LOAD.0 && s.address >= end)?;
    let (start, shift) = (new.offset.get(), *[8, 16, 64, 512].choose(rng)?);
    let mut bytes = sites.bytes.to_vec();
    let table = sites.output.section_headers.get() as usize;
    let mut fields: Vec<usize> = (0..segment_count(sites)).map(|i| HEADER + i * ROW + 8).collect();
    fields.extend((0..sites.output.sections.len()).map(|i| table + i * SECTION + 24));
    // Where the section headers stand.
    fields.push(40);
    for at in fields {
        let offset = sites.word(at, 8) as u64;
        if offset >= start {
            bytes[at..at + 8].copy_from_slice(&(offset + shift).to_le_bytes());
        }
    }
    let row = sites.output.segments.iter().position(|s| s == new)?;
    bytes[HEADER + row * ROW + 48..][..8].copy_from_slice(&8u64.to_le_bytes());
    bytes.splice(start as usize..start as usize, vec![0; shift as usize]);
    Some((bytes, format!("new segment {shift} bytes further on")))
}

fn section_header(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let at = sites.output.section_headers.get() as usize;
    let at = at + rng.random_range(0..sites.output.sections.len() * SECTION);
    flip(sites, rng, at, "section header")
}

/// Tools that write the file anew would leave out the end of the code.
fn moved_section_cut(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let end = sites.input.loaded_end();
    let is_moved = |s: &Section| s.address >= end && [".text", ".text.cold"].contains(&s.name);
    let sections = sites.output.sections.iter().filter(|(_, s)| is_moved(s) && s.size > 0);
    let (id, section) = sections.choose(rng)?;
    let at = sites.output.section_headers.get() as usize + id.0 as usize * SECTION + 32;
    let left = section.size - rng.random_range(1..=section.size.min(64));
    write_number(sites, at, 8, left as i64, "section of moved code cut short")
}

fn section_headers_swapped(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let table = sites.output.section_headers.get() as usize;
    let mut index = || rng.random_range(1..sites.output.sections.len());
    swap(sites, table, SECTION, (index(), index()), "section headers")
}

fn symbol_table(sites: &Sites) -> Option<(usize, usize, usize)> {
    let id = sites.output.symbols.section?;
    let table = &sites.output.sections[id];
    let header = sites.output.section_headers.get() as usize + id.0 as usize * SECTION;
    Some((table.offset.get() as usize, sites.output.symbols.len(), header))
}

fn first_global(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let (_, count, header) = symbol_table(sites)?;
    write_number(sites, header + 44, 4, rng.random_range(0..=count as i64), "first global symbol")
}

fn symbols_swapped(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let (start, count, _) = symbol_table(sites)?;
    let a = rng.random_range(0..count - 1);
    let b = if rng.random() { a + 1 } else { rng.random_range(0..count) };
    // In which order names of fragments stand is not judged.
    let is_fragment = |row: usize| {
        let name = sites.output.symbols.get(row as u32).map_or("", |s| s.name());
        [".warm", ".cold", ".inlined", ".rest"].iter().any(|kind| name.contains(kind))
    };
    if is_fragment(a) && is_fragment(b) {
        return None;
    }
    swap(sites, start, SYMBOL, (a, b), "symbols")
}

/// A row in the place of its neighbour.
fn symbol_doubled(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let (start, count, _) = symbol_table(sites)?;
    let at = start + rng.random_range(0..count - 1) * SYMBOL;
    write(sites, at + SYMBOL, &sites.bytes[at..at + SYMBOL], "symbol doubled".to_owned())
}

fn symbol_visibility(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let (start, count, _) = symbol_table(sites)?;
    let at = start + rng.random_range(0..count) * SYMBOL + 5;
    flip(sites, rng, at, "visibility")
}

fn fragment_name(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let is_fragment = |s: &afterlink_image::Symbol| s.name().contains(".warm") || s.name().contains(".cold");
    let row = sites.symbol(rng, false, is_fragment)?;
    write_number(sites, row, 4, sites.word(row, 4) + rng.random_range(-3..4), "name of a fragment")
}

/// A number behind all names: readers may take it for no name, or for damage.
fn name_of_nameless(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let row = sites.symbol(rng, false, |s| s.name().is_empty())?;
    write_number(sites, row, 4, rng.random_range(1 << 16..1 << 30), "name of a symbol without one")
}

fn name_byte(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let table = *[".strtab", ".shstrtab"].choose(rng)?;
    let at = byte_of(sites, rng, table)?;
    flip(sites, rng, at, "name")
}

/// All but what the note's text says of options.
fn note_byte(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let (start, size) = sites.section(NOTE_SECTION)?;
    let text = &sites.bytes[start..start + size];
    let id = text.windows(15).position(|w| w == b"input-build-id=")?;
    let at = if rng.random() { rng.random_range(0..24) } else { rng.random_range(id..size) };
    flip(sites, rng, start + at, "note")
}

/// One number of the map in two bytes instead of one, and the section one byte longer where that fits.
fn map_slack(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let id = sites.output.section_named(afterlink_core::address_map::SECTION)?;
    let header = sites.output.section_headers.get() as usize + id.0 as usize * SECTION;
    let (start, size) = sites.section(afterlink_core::address_map::SECTION)?;
    let at = start + rng.random_range(0..size);
    if sites.bytes[at] & 0x80 != 0 {
        return None;
    }
    let mut bytes = sites.bytes.to_vec();
    // What stands behind the map gives way by one byte: it is no longer what it was, unless that was padding.
    if bytes.get(start + size) != Some(&0) {
        return None;
    }
    bytes[at] |= 0x80;
    bytes.copy_within(at + 1..start + size, at + 2);
    bytes[at + 1] = 0;
    bytes[header + 32..header + 40].copy_from_slice(&(size as u64 + 1).to_le_bytes());
    Some((bytes, format!("number of the map at {at:#x} in two bytes")))
}

fn gap_byte(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let sections = sites.output.sections.iter().filter(|(_, s)| s.kind != elf::SHT_NOBITS.0 && s.size > 0);
    let mut ranges: Vec<(usize, usize)> =
        sections.map(|(_, s)| (s.offset.get() as usize, (s.offset.get() + s.size) as usize)).collect();
    ranges.push((0, HEADER + segment_count(sites) * ROW));
    let table = sites.output.section_headers.get() as usize;
    ranges.push((table, table + sites.output.sections.len() * SECTION));
    ranges.sort_unstable();
    let mut gaps = Vec::new();
    let mut end = 0;
    for (start, stop) in ranges {
        gaps.extend(end..start);
        end = end.max(stop);
    }
    let at = *gaps.choose(rng)?;
    // Zeroes and traps are padding alike.
    flip(sites, rng, at, "between sections").filter(|(bytes, _)| bytes[at] != TRAP)
}
