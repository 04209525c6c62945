//! Debug information (DWARF 2 to 5) of a program whose code moved: its sections and where code went in, its sections as
//! they must be out. `docs/debug-info.md` says what is done with each.
//!
//! What is not understood, a unit or a table, stays as it was, is counted and leaves all else alone.

mod bytes;
mod forms;
mod frames;
mod indices;
mod lines;
mod lists;
mod moves;
mod tally;
mod units;

pub use bytes::Damaged;
pub use moves::{Inside, Moves, Piece};
pub use tally::{Left, Removed, Tally};

use bytes::{Reader, Result, put};
use indices::{BaseField, MoreAddresses};
use lines::Lines;
use rayon::prelude::*;
use std::collections::BTreeSet;
use units::{LeftUnit, Lists, Unit};

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
    pub gdb_index: &'a [u8],
    pub frame: &'a [u8],
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
    pub gdb_index: Vec<u8>,
    pub frame: Vec<u8>,
    /// What could not be led.
    pub tally: Tally,
}

const COUNT: usize = 12;

impl<'a> From<[&'a [u8]; COUNT]> for Sections<'a> {
    fn from(sections: [&'a [u8]; COUNT]) -> Self {
        let [info, types, abbrev, line, addr, aranges, ranges, rnglists, loc, loclists, gdb_index, frame] =
            sections;
        Self { info, types, abbrev, line, addr, aranges, ranges, rnglists, loc, loclists, gdb_index, frame }
    }
}

impl From<Updated> for [Vec<u8>; COUNT] {
    fn from(sections: Updated) -> Self {
        let Updated {
            info,
            types,
            abbrev,
            line,
            addr,
            aranges,
            ranges,
            rnglists,
            loc,
            loclists,
            gdb_index,
            frame,
            ..
        } = sections;
        [info, types, abbrev, line, addr, aranges, ranges, rnglists, loc, loclists, gdb_index, frame]
    }
}

/// What units that are left need as it was.
#[derive(Default)]
struct Kept {
    /// Lists keep their places, and new ones come behind them.
    lists: bool,
    /// Where the parts of `.debug_addr` start that stay.
    addresses: BTreeSet<u64>,
}

impl Kept {
    /// Sections to which what is led is added.
    fn start(&self, sections: &Sections) -> Updated {
        let old = |section: &[u8]| if self.lists { section.to_vec() } else { Vec::new() };
        Updated {
            abbrev: sections.abbrev.to_vec(),
            ranges: old(sections.ranges),
            rnglists: old(sections.rnglists),
            loc: old(sections.loc),
            loclists: old(sections.loclists),
            ..Updated::default()
        }
    }

    /// Adds what the units need that were left, and says whether it had it all.
    fn complete(&mut self, tally: &Tally, addresses: BTreeSet<u64>) -> bool {
        let lists = tally.left.keys().any(|why| !matches!(why, Left::Rows | Left::Index | Left::Frame));
        let had_all = (self.lists || !lists) && addresses.is_subset(&self.addresses);
        self.lists |= lists;
        self.addresses.extend(addresses);
        had_all
    }
}

/// Leads all sections.
pub fn update(sections: &Sections, moves: &Moves) -> Updated {
    let mut kept = Kept::default();
    let (updated, is_complete) = lead(sections, moves, &mut kept);
    // What a unit needs that is left is only known now. That is so seldom that nobody waits for it twice.
    if is_complete { updated } else { lead(sections, moves, &mut kept).0 }
}

/// Leads all sections, and says whether `kept` had all that units need that are left. It has it afterwards.
fn lead(sections: &Sections, moves: &Moves, kept: &mut Kept) -> (Updated, bool) {
    let mut tally = Tally::default();
    let mut lines = lines::update(sections.line, moves, &mut tally);
    let mut updated = Updated {
        line: std::mem::take(&mut lines.bytes),
        addr: indices::addresses(sections.addr, moves, &kept.addresses, &mut tally),
        ..kept.start(sections)
    };
    let (mut left, mut needed, mut more) = (BTreeSet::new(), BTreeSet::new(), MoreAddresses::default());
    let led = units::Led { sections, moves, lines: &lines, kept_addresses: &kept.addresses };
    for (section, is_types) in [(sections.info, false), (sections.types, true)] {
        let (units, rest) = starts(section);
        let mut whole = Vec::with_capacity(section.len());
        for some in units.chunks(AT_ONCE) {
            let some: Vec<std::result::Result<Unit, LeftUnit>> =
                some.par_iter().map(|&(s, e)| units::update(&led, &section[s..e], is_types)).collect();
            for unit in some {
                let start = whole.len();
                let follow = |at, size, base| BaseField { in_types: is_types, at: start + at, size, base };
                let unit = unit.and_then(|mut unit| {
                    let base = unit.address_base_at.map(|at| follow(at, unit.offset_size, unit.address_base));
                    let added = more.add(unit.address_base, std::mem::take(&mut unit.more_addresses));
                    let added = added.map_err(|Damaged| Left::SharedAddress).and_then(|()| {
                        put_together(unit, &mut updated, &mut whole, &mut tally)
                            .map_err(|Damaged| Left::NoRoom)
                    });
                    base.into_iter().for_each(|field| more.follow(field));
                    let end = units[units.partition_point(|u| u.0 <= start) - 1].1;
                    added.map_err(|why| units::leave(&led, &section[start..end], is_types, why))
                });
                let Err(unit) = unit else { continue };
                tally.leave(unit.why);
                whole.extend_from_slice(&unit.bytes);
                if let Some((base, at)) = unit.address_base {
                    needed.insert(base);
                    more.follow(follow(at, unit.offset_size, base as usize));
                }
                if !is_types {
                    left.insert(start as u64);
                }
            }
        }
        if rest < section.len() {
            tally.leave(Left::Damaged);
            left.insert(rest as u64);
            whole.extend_from_slice(&section[rest..]);
        }
        tally.units += units.len() as u64;
        *(if is_types { &mut updated.types } else { &mut updated.info }) = whole;
    }
    more.write(&mut updated.addr, [&mut updated.info, &mut updated.types]);
    updated.aranges = indices::aranges(sections.aranges, moves, &left, &mut tally);
    updated.frame = frames::update(sections.frame, moves, &mut tally);
    updated.gdb_index = indices::gdb_index(sections.gdb_index, moves, &left, &mut tally);
    let is_complete = kept.complete(&tally, needed);
    updated.tally = tally;
    (updated, is_complete)
}

/// Units that are led at the same time; their new bytes are in memory twice for that long.
const AT_ONCE: usize = 256;

/// Where each unit starts and ends, and where nothing more can be told apart.
fn starts(section: &[u8]) -> (Vec<(usize, usize)>, usize) {
    let (mut units, mut r) = (Vec::new(), Reader::new(section, 0));
    while r.at < section.len() {
        let start = r.at;
        let Ok((end, _)) = r.unit_end() else { return (units, start) };
        units.push((start, end));
        r.at = end;
    }
    (units, r.at)
}

/// Adds a unit, its lists and its abbreviations; nothing of it if something has no room.
fn put_together(mut unit: Unit, updated: &mut Updated, whole: &mut Vec<u8>, tally: &mut Tally) -> Result<()> {
    let is_new = unit.version >= 5;
    let places = (updated.abbrev.len(), updated.ranges.len(), updated.rnglists.len());
    let mut add = || {
        if let Some(table) = unit.abbreviations.take() {
            write_number(&mut unit.bytes, unit.abbreviations_at, unit.offset_size, places.0 as u64)?;
            updated.abbrev.extend_from_slice(&table);
        }
        let section = if is_new { &mut updated.rnglists } else { &mut updated.ranges };
        add_lists(&mut unit.bytes, &unit.ranges, is_new, unit.offset_size, section)?;
        let section = if is_new { &mut updated.loclists } else { &mut updated.loc };
        add_lists(&mut unit.bytes, &unit.locations, is_new, unit.offset_size, section)?;
        if unit.addresses.iter().any(|(at, _)| at + 8 > updated.addr.len()) { Err(Damaged) } else { Ok(()) }
    };
    if let Err(Damaged) = add() {
        // What was added of locations stays: nobody names it.
        updated.abbrev.truncate(places.0);
        updated.ranges.truncate(places.1);
        updated.rnglists.truncate(places.2);
        return Err(Damaged);
    }
    for (at, value) in &unit.addresses {
        put(&mut updated.addr, *at, 8, *value);
    }
    tally.add(&unit.tally);
    whole.extend_from_slice(&unit.bytes);
    Ok(())
}

fn write_number(bytes: &mut [u8], at: usize, size: usize, value: u64) -> Result<()> {
    if size < 8 && value >> (8 * size) != 0 {
        return Err(Damaged);
    }
    put(bytes, at, size, value);
    Ok(())
}

fn add_lists(
    unit: &mut [u8],
    lists: &Lists,
    has_head: bool,
    offset_size: usize,
    section: &mut Vec<u8>,
) -> Result<()> {
    if lists.bytes.is_empty() && lists.base.is_none() {
        return Ok(());
    }
    let table_size = lists.table.len() * offset_size;
    if has_head {
        let size = 8 + table_size + lists.bytes.len();
        if offset_size == 8 {
            section.extend_from_slice(&[0xff; 4]);
            section.extend_from_slice(&(size as u64).to_le_bytes());
        } else {
            section.extend_from_slice(&u32::try_from(size).map_err(|_| Damaged)?.to_le_bytes());
        }
        section.extend_from_slice(&[5, 0, 8, 0]);
        section.extend_from_slice(&(lists.table.len() as u32).to_le_bytes());
    }
    let table = section.len();
    for offset in &lists.table {
        section.extend_from_slice(&(offset + table_size as u64).to_le_bytes()[..offset_size]);
    }
    let base = section.len() as u64;
    section.extend_from_slice(&lists.bytes);
    if let Some(at) = lists.base {
        write_number(unit, at, offset_size, table as u64)?;
    }
    lists.fields.iter().try_for_each(|&(at, size, offset)| write_number(unit, at, size, base + offset))
}
