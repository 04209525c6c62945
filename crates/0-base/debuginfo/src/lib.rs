//! Debug information (DWARF 2 to 5) of a program whose code moved: its sections and where code went in, its sections as
//! they must be out. `docs/debug-info.md` says what is done with each.
//!
//! All or nothing: what is not understood leaves everything as it was, and says so.

mod bytes;
mod forms;
mod lines;
mod lists;
mod moves;
mod units;

pub use bytes::Damaged;
pub use moves::{Inside, Moves, Piece};

use bytes::{Reader, Result, put};
use rayon::prelude::*;
use std::collections::BTreeMap;
use units::{Lists, Unit};

/// The sections, not compressed; those that are not there are empty.
#[derive(Clone, Copy, Default)]
pub struct Sections<'a> {
    pub info: &'a [u8],
    pub types: &'a [u8],
    pub abbrev: &'a [u8],
    pub line: &'a [u8],
    pub addr: &'a [u8],
    pub aranges: &'a [u8],
    pub ranges: &'a [u8],
    pub rnglists: &'a [u8],
    pub loc: &'a [u8],
    pub loclists: &'a [u8],
}

/// The sections as they are now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Updated {
    pub info: Vec<u8>,
    pub types: Vec<u8>,
    pub abbrev: Vec<u8>,
    pub line: Vec<u8>,
    pub addr: Vec<u8>,
    pub aranges: Vec<u8>,
    pub ranges: Vec<u8>,
    pub rnglists: Vec<u8>,
    pub loc: Vec<u8>,
    pub loclists: Vec<u8>,
}

const COUNT: usize = 10;

impl<'a> From<[&'a [u8]; COUNT]> for Sections<'a> {
    fn from(sections: [&'a [u8]; COUNT]) -> Self {
        let [info, types, abbrev, line, addr, aranges, ranges, rnglists, loc, loclists] = sections;
        Self { info, types, abbrev, line, addr, aranges, ranges, rnglists, loc, loclists }
    }
}

impl From<Updated> for [Vec<u8>; COUNT] {
    fn from(sections: Updated) -> Self {
        let Updated { info, types, abbrev, line, addr, aranges, ranges, rnglists, loc, loclists } = sections;
        [info, types, abbrev, line, addr, aranges, ranges, rnglists, loc, loclists]
    }
}

/// Leads all sections.
///
/// # Errors
/// If anything is damaged, or of a kind that is not led yet.
pub fn update(sections: &Sections, moves: &Moves) -> Result<Updated> {
    let lines = lines::update(sections.line, moves)?;
    let mut updated = Updated { abbrev: sections.abbrev.to_vec(), line: lines.bytes, ..Updated::default() };
    updated.addr = addresses(sections.addr, moves)?;
    let mut more = MoreAddresses::default();
    updated.aranges = aranges(sections.aranges, moves)?;
    for (section, is_types) in [(sections.info, false), (sections.types, true)] {
        let mut starts = Vec::new();
        let mut r = Reader::new(section, 0);
        while r.at < section.len() {
            let start = r.at;
            r.at = r.unit_end()?.0;
            starts.push((start, r.at));
        }
        let lead = |&(start, end): &(usize, usize)| {
            units::update(sections, moves, &lines.offsets, &section[start..end], is_types)
        };
        let units: Vec<Unit> = starts.par_iter().map(lead).collect::<Result<_>>()?;
        let mut whole = Vec::with_capacity(section.len());
        for mut unit in units {
            more.take(&mut unit, whole.len(), is_types)?;
            put_together(unit, &mut updated, &mut whole)?;
        }
        *(if is_types { &mut updated.types } else { &mut updated.info }) = whole;
    }
    more.add(&mut updated)?;
    Ok(updated)
}

/// Entries that are added to `.debug_addr`, and who must know where all others are then.
#[derive(Default)]
struct MoreAddresses {
    /// By where the unit's others start.
    added: BTreeMap<usize, Vec<u64>>,
    /// Attributes that say where a unit's entries start: whether in `.debug_types`, where, how wide, and what.
    bases: Vec<(bool, usize, usize, usize)>,
}

impl MoreAddresses {
    fn take(&mut self, unit: &mut Unit, start: usize, is_types: bool) -> Result<()> {
        let more = std::mem::take(&mut unit.more_addresses);
        // Invariant: two units that share entries would number what they add alike.
        if !more.is_empty() && self.added.insert(unit.address_base, more).is_some() {
            return Err(Damaged);
        }
        let base = unit.address_base_at.map(|at| (is_types, start + at, unit.offset_size, unit.address_base));
        self.bases.extend(base);
        Ok(())
    }

    fn add(self, updated: &mut Updated) -> Result<()> {
        let (old, mut shifts, mut r) = (std::mem::take(&mut updated.addr), Vec::new(), Reader::new(&[], 0));
        r.bytes = &old;
        while r.at < old.len() {
            let (start, out) = (r.at, updated.addr.len());
            let (end, offset_size) = r.unit_end()?;
            let base = r.at + 4;
            updated.addr.extend_from_slice(&old[start..end]);
            let more = self.added.get(&base).map_or(&[][..], Vec::as_slice);
            more.iter().for_each(|place| updated.addr.extend_from_slice(&place.to_le_bytes()));
            let size = (updated.addr.len() - out - (r.at - start)) as u64;
            put(&mut updated.addr, out + (r.at - start) - offset_size, offset_size, size);
            shifts.push((base, out + (base - start)));
            r.at = end;
        }
        for (is_types, at, size, base) in self.bases {
            let Ok(row) = shifts.binary_search_by_key(&base, |shift| shift.0) else { continue };
            let section = if is_types { &mut updated.types } else { &mut updated.info };
            put(section, at, size, shifts[row].1 as u64);
        }
        Ok(())
    }
}

/// Adds a unit, its lists and its abbreviations.
fn put_together(mut unit: Unit, updated: &mut Updated, whole: &mut Vec<u8>) -> Result<()> {
    if let Some(table) = unit.abbreviations.take() {
        put(&mut unit.bytes, unit.abbreviations_at, unit.offset_size, updated.abbrev.len() as u64);
        updated.abbrev.extend_from_slice(&table);
    }
    for (at, value) in &unit.addresses {
        if at + 8 > updated.addr.len() {
            return Err(Damaged);
        }
        put(&mut updated.addr, *at, 8, *value);
    }
    let is_new = unit.version >= 5;
    add_lists(
        &mut unit.bytes,
        &unit.ranges,
        is_new,
        if is_new { &mut updated.rnglists } else { &mut updated.ranges },
    )?;
    let section = if is_new { &mut updated.loclists } else { &mut updated.loc };
    add_lists(&mut unit.bytes, &unit.locations, is_new, section)?;
    whole.extend_from_slice(&unit.bytes);
    Ok(())
}

fn add_lists(unit: &mut [u8], lists: &Lists, has_head: bool, section: &mut Vec<u8>) -> Result<()> {
    if lists.bytes.is_empty() && lists.base.is_none() {
        return Ok(());
    }
    if has_head {
        let size = u32::try_from(8 + lists.table.len() * 4 + lists.bytes.len()).map_err(|_| Damaged)?;
        section.extend_from_slice(&size.to_le_bytes());
        section.extend_from_slice(&[5, 0, 8, 0]);
        section.extend_from_slice(&(lists.table.len() as u32).to_le_bytes());
    }
    let table = section.len();
    for offset in &lists.table {
        section.extend_from_slice(&((offset + lists.table.len() as u64 * 4) as u32).to_le_bytes());
    }
    let base = section.len() as u64;
    section.extend_from_slice(&lists.bytes);
    let mut write = |at: usize, value: u64| {
        let value = u32::try_from(value).map_err(|_| Damaged)?;
        put(unit, at, 4, value.into());
        Ok(())
    };
    if let Some(at) = lists.base {
        write(at, table as u64)?;
    }
    lists.fields.iter().try_for_each(|(at, offset)| write(*at, base + offset))
}

/// `.debug_addr`: addresses that units name by their number.
fn addresses(section: &[u8], moves: &Moves) -> Result<Vec<u8>> {
    let (mut out, mut r) = (section.to_vec(), Reader::new(section, 0));
    while r.at < section.len() {
        let (end, _) = r.unit_end()?;
        if (r.u16()?, r.u8()?, r.u8()?) != (5, 8, 0) {
            return Err(Damaged);
        }
        while r.at + 8 <= end {
            let at = r.at;
            put(&mut out, at, 8, moves.point(r.number(8)?));
        }
        r.at = end;
    }
    Ok(out)
}

/// `.debug_aranges`: the code of each unit.
fn aranges(section: &[u8], moves: &Moves) -> Result<Vec<u8>> {
    let (mut out, mut r) = (Vec::with_capacity(section.len()), Reader::new(section, 0));
    while r.at < section.len() {
        let start = r.at;
        let (end, offset_size) = r.unit_end()?;
        r.take(2 + offset_size)?;
        if (r.u8()?, r.u8()?) != (8, 0) {
            return Err(Damaged);
        }
        // Tuples stand at multiples of their size, from the start of the set.
        let head = (r.at - start).next_multiple_of(16);
        let new_start = out.len();
        out.extend_from_slice(section.get(start..start + head).ok_or(Damaged)?);
        r.at = start + head;
        let mut ranges = Vec::new();
        while r.at + 16 <= end {
            let (low, size) = (r.number(8)?, r.number(8)?);
            if (low, size) == (0, 0) {
                break;
            }
            match moves.is_code(low) {
                true => ranges.extend(moves.ranges(low, low.wrapping_add(size))),
                false => ranges.push((low, low.wrapping_add(size))),
            }
        }
        moves::join(&mut ranges, None);
        for (start, end) in ranges.into_iter().chain([(0, 0)]) {
            out.extend_from_slice(&start.to_le_bytes());
            out.extend_from_slice(&end.wrapping_sub(start).to_le_bytes());
        }
        let size = out.len() - new_start - if offset_size == 8 { 12 } else { 4 };
        put(&mut out, new_start + if offset_size == 8 { 4 } else { 0 }, offset_size, size as u64);
        r.at = end;
    }
    Ok(out)
}
