//! Tables of addresses beside the units: `.debug_addr`, `.debug_aranges` and `.gdb_index`. A part that belongs to a unit that is left
//! stays as it was, and so does whatever is damaged.

use crate::Updated;
use crate::bytes::{Damaged, Reader, Result, put};
use crate::moves::{Moves, join};
use crate::tally::{Left, Tally};
use std::collections::{BTreeMap, BTreeSet};

/// The tables of `.debug_addr`.
#[derive(Default)]
pub struct Tables {
    tables: Vec<Table>,
    /// What cannot be told apart, to the end.
    rest: Option<usize>,
}

struct Table {
    start: usize,
    /// Where its addresses start, and where they end.
    base: usize,
    end: usize,
    /// Where its size stands, as many bytes as it has; tables from before DWARF 5 do not say it.
    size_at: Option<(usize, usize)>,
}

impl Tables {
    /// `bare` are the bases of tables without a head, `others` the starts of those with one.
    pub fn read(section: &[u8], bare: &BTreeSet<usize>, others: &BTreeSet<usize>) -> Self {
        let (mut found, mut r) = (Self::default(), Reader::new(section, 0));
        while r.at < section.len() {
            let start = r.at;
            if bare.contains(&start) {
                let behind = |starts: &BTreeSet<usize>| starts.range(start + 1..).next().copied();
                let next = behind(bare).into_iter().chain(behind(others)).min();
                let end = next.unwrap_or(section.len()).min(section.len());
                found.tables.push(Table { start, base: start, end, size_at: None });
                r.at = end;
                continue;
            }
            let mut head = || {
                let (end, offset_size) = r.unit_end()?;
                let size_at = r.at - offset_size;
                if (r.u16()?, r.u8()?, r.u8()?) != (5, 8, 0) || r.at > end {
                    return Err(Damaged);
                }
                Ok(Table { start, base: r.at, end, size_at: Some((size_at, offset_size)) })
            };
            match head() {
                Ok(table) => {
                    r.at = table.end;
                    found.tables.push(table);
                }
                Err(Damaged) => {
                    found.rest = Some(start);
                    break;
                }
            }
        }
        found
    }

    /// How many addresses start at `base`.
    pub fn count(&self, base: usize) -> usize {
        let row = self.tables.binary_search_by_key(&base, |table| table.base);
        row.map_or(0, |row| (self.tables[row].end - base) / 8)
    }
}

/// `.debug_addr`: addresses that units name by their number. The parts that start at one of `kept` stay.
pub fn addresses(
    section: &[u8],
    tables: &Tables,
    moves: &Moves,
    kept: &BTreeSet<u64>,
    tally: &mut Tally,
) -> Vec<u8> {
    let mut out = section.to_vec();
    for table in tables.tables.iter().filter(|table| !kept.contains(&(table.base as u64))) {
        let mut r = Reader::new(section, table.base);
        while r.at + 8 <= table.end {
            let at = r.at;
            // Invariant: the table's end was held against the section's.
            let Ok(address) = r.number(8) else { break };
            put(&mut out, at, 8, moves.point(address));
        }
    }
    if tables.rest.is_some() {
        tally.leave(Left::Index);
    }
    out
}

/// Entries that are added to `.debug_addr`, and who must know where all others are then.
#[derive(Default)]
pub struct MoreAddresses {
    /// By where the unit's others start.
    added: BTreeMap<usize, Vec<u64>>,
    /// Attributes that say where a unit's entries start.
    bases: Vec<BaseField>,
}

/// An attribute that says where a unit's entries of `.debug_addr` start.
pub struct BaseField {
    pub in_types: bool,
    pub at: usize,
    pub size: usize,
    pub base: usize,
}

impl MoreAddresses {
    /// Adds addresses behind those that start at `base`; they have numbers already, so only one unit may.
    pub fn add(&mut self, base: usize, more: Vec<u64>) -> Result<()> {
        if more.is_empty() {
            return Ok(());
        }
        if self.added.contains_key(&base) {
            return Err(Damaged);
        }
        self.added.insert(base, more);
        Ok(())
    }

    pub fn follow(&mut self, field: BaseField) {
        self.bases.push(field);
    }

    /// Adds all addresses to `.debug_addr`, and writes the new places into `.debug_info` and `.debug_types`.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(self, tables: &Tables, updated: &mut Updated) -> afterlink_core::Result<()> {
        let Updated { addr, info, types, .. } = updated;
        if self.added.is_empty() {
            return Ok(());
        }
        let (old, mut shifts) = (std::mem::take(addr), Vec::new());
        for table in &tables.tables {
            let out = addr.len();
            addr.extend_from_slice(&old[table.start..table.end]);
            let more = self.added.get(&table.base).map_or(&[][..], Vec::as_slice);
            more.iter().for_each(|place| addr.extend_from_slice(&place.to_le_bytes()));
            if let Some((at, offset_size)) = table.size_at {
                let head = at - table.start + offset_size;
                let size = (addr.len() - out - head) as u64;
                put(addr, out + head - offset_size, offset_size, size);
            }
            shifts.push((table.base, out + (table.base - table.start)));
        }
        addr.extend_from_slice(&old[tables.rest.unwrap_or(old.len())..]);
        for BaseField { in_types, at, size, base } in self.bases {
            let Ok(row) = shifts.binary_search_by_key(&base, |shift| shift.0) else { continue };
            let units = if in_types { &mut *types } else { &mut *info };
            units.replace(at as u64, &(shifts[row].1 as u64).to_le_bytes()[..size])?;
        }
        Ok(())
    }
}

/// `.debug_aranges`: the code of each unit. The sets of units that start at one of `left` stay.
pub fn aranges(section: &[u8], moves: &Moves, left: &BTreeSet<u64>, tally: &mut Tally) -> Vec<u8> {
    let (mut out, mut r) = (Vec::with_capacity(section.len()), Reader::new(section, 0));
    while r.at < section.len() {
        let (start, new_start) = (r.at, out.len());
        if set(&mut r, moves, left, &mut out).is_err() {
            tally.leave(Left::Index);
            out.truncate(new_start);
            let end = Reader::new(section, start).unit_end().map_or(section.len(), |(end, _)| end);
            out.extend_from_slice(&section[start..end]);
            r.at = end;
        }
    }
    out
}

fn set(r: &mut Reader, moves: &Moves, left: &BTreeSet<u64>, out: &mut Vec<u8>) -> Result<()> {
    let (section, start) = (r.bytes, r.at);
    let (end, offset_size) = r.unit_end()?;
    r.u16()?;
    let unit = r.number(offset_size)?;
    if left.contains(&unit) {
        out.extend_from_slice(&section[start..end]);
        r.at = end;
        return Ok(());
    }
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
        add_moved(low, low.wrapping_add(size), moves, &mut ranges);
    }
    join(&mut ranges, None);
    for (start, end) in ranges.into_iter().chain([(0, 0)]) {
        out.extend_from_slice(&start.to_le_bytes());
        out.extend_from_slice(&end.wrapping_sub(start).to_le_bytes());
    }
    let size = out.len() - new_start - if offset_size == 8 { 12 } else { 4 };
    put(out, new_start + if offset_size == 8 { 4 } else { 0 }, offset_size, size as u64);
    r.at = end;
    Ok(())
}

fn add_moved(low: u64, high: u64, moves: &Moves, ranges: &mut Vec<(u64, u64)>) {
    match moves.is_code(low) {
        true => ranges.extend(moves.ranges(low, high)),
        false => ranges.push((low, high)),
    }
}

/// `.gdb_index` (7 to 9): its table of addresses is written anew, all else is moved along with it.
pub fn gdb_index(section: &[u8], moves: &Moves, left: &BTreeSet<u64>, tally: &mut Tally) -> Vec<u8> {
    if section.is_empty() {
        return Vec::new();
    }
    led_index(section, moves, left).unwrap_or_else(|Damaged| {
        tally.leave(Left::Index);
        section.to_vec()
    })
}

/// Bytes of a row of the table of addresses: the run's two ends and the unit's number.
const ROW: usize = 20;

fn led_index(section: &[u8], moves: &Moves, left: &BTreeSet<u64>) -> Result<Vec<u8>> {
    let mut r = Reader::new(section, 0);
    let version = r.number(4)?;
    if !(7..=9).contains(&version) {
        return Err(Damaged);
    }
    let count = if version >= 9 { 6 } else { 5 };
    let places: Vec<usize> = (0..count).map(|_| Ok(r.number(4)? as usize)).collect::<Result<_>>()?;
    let (units, table, behind) = (places[0], places[2], places[3]);
    if units > table || !places.is_sorted() || places.last().is_none_or(|last| *last > section.len()) {
        return Err(Damaged);
    }
    let mut out = section[..table].to_vec();
    let mut rows = Reader::new(&section[..behind], table);
    while rows.at + ROW <= behind {
        let (low, high, unit) = (rows.number(8)?, rows.number(8)?, rows.number(4)?);
        let mut ranges = vec![(low, high)];
        let start = units.checked_add(unit as usize * 16).ok_or(Damaged)?;
        if !left.contains(&Reader::new(&section[..places[1]], start).number(8)?) && low < high {
            ranges.clear();
            add_moved(low, high, moves, &mut ranges);
            join(&mut ranges, None);
        }
        for (low, high) in ranges {
            out.extend_from_slice(&low.to_le_bytes());
            out.extend_from_slice(&high.to_le_bytes());
            out.extend_from_slice(&(unit as u32).to_le_bytes());
        }
    }
    let new_behind = out.len();
    out.extend_from_slice(&section[behind..]);
    for (i, place) in places.iter().enumerate().skip(3) {
        let place = u32::try_from(place - behind + new_behind).map_err(|_| Damaged)?;
        put(&mut out, 4 + i * 4, 4, place.into());
    }
    Ok(out)
}
