//! Lists of ranges and of locations, read in all their forms and written in the plainest.

use crate::bytes::{Damaged, Reader, Result, write_uleb};
use crate::moves::{Moves, join};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cell::RefCell;

/// An entry of a list: the run, and what stands with it.
#[derive(Clone, Debug)]
pub struct Entry {
    pub start: u64,
    pub end: u64,
    /// Of a location.
    pub expression: SmallVec<[u8; 24]>,
    /// gcc's numbers of rows at the same address.
    pub views: (u64, u64),
    /// A location wherever no other entry says one.
    pub is_default: bool,
}

/// How lists of a unit are read.
#[derive(Clone, Copy)]
pub struct Form<'a> {
    pub version: u16,
    pub is_location: bool,
    /// What offsets are counted from.
    pub base: u64,
    /// Whether the unit names no address that new lists count from: debuggers want to be told one then.
    pub lacks_base: bool,
    /// The unit's addresses.
    pub addresses: &'a [u8],
    /// Where the unit stands in another file, whose lists name all addresses by their numbers.
    pub pool: Option<&'a RefCell<Pool>>,
}

/// Numbers of addresses.
#[derive(Default)]
pub struct Pool {
    known: FxHashMap<u64, u64>,
    /// How many there were.
    count: u64,
    /// Those that were added.
    pub added: Vec<u64>,
    /// Numbers of those that there were, and are named now.
    pub used: FxHashSet<u64>,
}

impl Pool {
    /// `addresses` are what the numbers stand for; none where it is not decided yet.
    pub fn new(addresses: impl Iterator<Item = Option<u64>>) -> Self {
        let mut pool = Self::default();
        for address in addresses {
            if let Some(address) = address {
                pool.known.entry(address).or_insert(pool.count);
            }
            pool.count += 1;
        }
        pool
    }

    /// The number of an address.
    pub fn number(&mut self, address: u64) -> u64 {
        let next = self.count + self.added.len() as u64;
        let number = *self.known.entry(address).or_insert(next);
        if number == next {
            self.added.push(address);
        } else if number < self.count {
            self.used.insert(number);
        }
        number
    }
}

impl Form<'_> {
    fn indexed(&self, index: u64) -> Result<u64> {
        let at = usize::try_from(index).ok().and_then(|i| i.checked_mul(8)).ok_or(Damaged)?;
        Reader::new(self.addresses, at).number(8)
    }

    pub fn read(&self, section: &[u8], at: u64) -> Result<Vec<Entry>> {
        let mut r = Reader::new(section, usize::try_from(at).map_err(|_| Damaged)?);
        let (mut entries, mut base, mut views) = (Vec::new(), self.base, (0, 0));
        loop {
            let run = if self.version >= 5 {
                self.kind(&mut r, &mut base, &mut views)?
            } else if self.is_location && self.pool.is_some() {
                self.old_kind(&mut r, &mut base)?
            } else {
                pair(&mut r, &mut base)?
            };
            let (start, end, is_default) = match run {
                Run::End => return Ok(entries),
                Run::Nothing => continue,
                Run::Default => (0, 0, true),
                Run::Of(start, end) => (start, end, false),
            };
            let size = match (self.is_location, self.version >= 5) {
                (false, _) => 0,
                (true, true) => r.uleb()? as usize,
                (true, false) => r.u16()?.into(),
            };
            let expression = r.take(size)?.into();
            entries.push(Entry { start, end, expression, views: std::mem::take(&mut views), is_default });
        }
    }

    /// An entry of a list of locations in a file apart, before DWARF 5.
    fn old_kind(&self, r: &mut Reader, base: &mut u64) -> Result<Run> {
        Ok(match r.u8()? {
            0 => Run::End,
            1 => {
                *base = self.indexed(r.uleb()?)?;
                Run::Nothing
            }
            2 => Run::Of(self.indexed(r.uleb()?)?, self.indexed(r.uleb()?)?),
            3 => {
                let start = self.indexed(r.uleb()?)?;
                Run::Of(start, start.wrapping_add(r.number(4)?))
            }
            4 => Run::Of(base.wrapping_add(r.number(4)?), base.wrapping_add(r.number(4)?)),
            _ => return Err(Damaged),
        })
    }

    fn kind(&self, r: &mut Reader, base: &mut u64, views: &mut (u64, u64)) -> Result<Run> {
        // Behind the default location the numbers of both kinds of lists differ by one.
        let kind = match (r.u8()?, self.is_location) {
            (kind @ 5.., false) => kind.checked_add(1).ok_or(Damaged)?,
            (kind, _) => kind,
        };
        Ok(match kind {
            0 => Run::End,
            1 => {
                *base = self.indexed(r.uleb()?)?;
                Run::Nothing
            }
            2 => Run::Of(self.indexed(r.uleb()?)?, self.indexed(r.uleb()?)?),
            3 => {
                let start = self.indexed(r.uleb()?)?;
                Run::Of(start, start.wrapping_add(r.uleb()?))
            }
            4 => Run::Of(base.wrapping_add(r.uleb()?), base.wrapping_add(r.uleb()?)),
            5 => Run::Default,
            6 => {
                *base = r.number(8)?;
                Run::Nothing
            }
            7 => Run::Of(r.number(8)?, r.number(8)?),
            8 => {
                let start = r.number(8)?;
                Run::Of(start, start.wrapping_add(r.uleb()?))
            }
            9 if self.is_location => {
                *views = (r.uleb()?, r.uleb()?);
                Run::Nothing
            }
            _ => return Err(Damaged),
        })
    }

    /// Writes entries; `base` is the unit's new one.
    pub fn write(&self, entries: &[Entry], base: u64, out: &mut Vec<u8>) {
        if let Some(pool) = self.pool.filter(|_| self.version >= 5 || self.is_location) {
            return self.write_numbered(entries, &mut pool.borrow_mut(), out);
        }
        let place = |out: &mut Vec<u8>, n: u64| out.extend_from_slice(&n.to_le_bytes());
        if self.version < 5 {
            let mut base = base;
            if self.lacks_base || entries.iter().any(|e| e.start < base) {
                place(out, u64::MAX);
                place(out, 0);
                base = 0;
            }
            for entry in entries {
                place(out, entry.start.wrapping_sub(base));
                place(out, entry.end.wrapping_sub(base));
                if self.is_location {
                    out.extend_from_slice(&(entry.expression.len() as u16).to_le_bytes());
                    out.extend_from_slice(&entry.expression);
                }
            }
            out.extend_from_slice(&[0; 16]);
            return;
        }
        let shift = u8::from(self.is_location);
        let mut base = None;
        for (i, entry) in entries.iter().enumerate() {
            let is_near = |base: u64| entry.start.checked_sub(base).is_some_and(|d| d < 1 << 21);
            if entry.is_default {
                out.push(5);
            } else if base.is_some_and(is_near) {
                let base = base.unwrap_or(0);
                out.push(4);
                write_uleb(out, entry.start.wrapping_sub(base));
                write_uleb(out, entry.end.wrapping_sub(base));
            } else if entries.get(i + 1).is_some_and(|next| next.start.wrapping_sub(entry.start) < 1 << 21) {
                base = Some(entry.start);
                out.push(5 + shift);
                place(out, entry.start);
                out.extend_from_slice(&[4, 0]);
                write_uleb(out, entry.end.wrapping_sub(entry.start));
            } else {
                out.push(7 + shift);
                place(out, entry.start);
                write_uleb(out, entry.end.wrapping_sub(entry.start));
            }
            if self.is_location {
                write_uleb(out, entry.expression.len() as u64);
                out.extend_from_slice(&entry.expression);
            }
        }
        out.push(0);
    }
}

impl Form<'_> {
    /// Each run as the number of its start and its size: all that gdb 13 reads in lists of files apart.
    fn write_numbered(&self, entries: &[Entry], pool: &mut Pool, out: &mut Vec<u8>) {
        for entry in entries {
            if entry.is_default {
                out.push(5);
            } else {
                out.push(3);
                write_uleb(out, pool.number(entry.start));
                let size = entry.end.wrapping_sub(entry.start);
                match self.version {
                    5.. => write_uleb(out, size),
                    _ => out.extend_from_slice(&(size as u32).to_le_bytes()),
                }
            }
            if self.is_location {
                match self.version {
                    5.. => write_uleb(out, entry.expression.len() as u64),
                    _ => out.extend_from_slice(&(entry.expression.len() as u16).to_le_bytes()),
                }
                out.extend_from_slice(&entry.expression);
            }
        }
        out.push(0);
    }
}

enum Run {
    End,
    Nothing,
    Default,
    Of(u64, u64),
}

/// An entry of the forms before DWARF 5.
fn pair(r: &mut Reader, base: &mut u64) -> Result<Run> {
    let (start, end) = (r.number(8)?, r.number(8)?);
    Ok(match (start, end) {
        (0, 0) => Run::End,
        (u64::MAX, end) => {
            *base = end;
            Run::Nothing
        }
        _ => Run::Of(base.wrapping_add(start), base.wrapping_add(end)),
    })
}

/// Ranges where they are now; where the first one started comes first. None, where all are of what the linker removed: its addresses are no code's, and
/// those who verify take them for one another's.
pub fn moved_ranges(entries: &[Entry], moves: &Moves) -> Vec<(u64, u64)> {
    if !entries.iter().any(|entry| moves.is_code(entry.start)) {
        return Vec::new();
    }
    let runs = entries.iter().filter(|e| e.start < e.end);
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for entry in runs {
        match moves.is_code(entry.start) {
            true => ranges.extend(moves.ranges(entry.start, entry.end)),
            false => ranges.push((entry.start, entry.end)),
        }
    }
    let first = ranges.first().map(|r| r.0);
    join(&mut ranges, first);
    ranges
}

/// Locations where they are now, in the input's order.
pub fn moved_locations(entries: Vec<Entry>, moves: &Moves) -> Vec<Entry> {
    let mut moved = Vec::new();
    for entry in entries {
        if entry.is_default || !moves.is_code(entry.start) || entry.start > entry.end {
            moved.push(entry);
            continue;
        }
        let mut parts = moves.parts(entry.start, entry.end);
        let last = parts.len().saturating_sub(1);
        // Nothing may be left of a call's first bytes where code stands in place of it, and all of it where its block stands a second time.
        if !parts.is_empty() || moves.is_copied_in_duplicates(entry.start, entry.end) {
            parts.extend(moves.duplicate_parts(entry.start, entry.end));
        }
        for (i, part) in parts.iter().enumerate() {
            // Where a run is cut, no row of the line table stands in between.
            let views = (
                if i == 0 && part.input == entry.start { entry.views.0 } else { 0 },
                if i == last { entry.views.1 } else { 0 },
            );
            moved.push(Entry {
                start: part.start,
                end: part.end,
                views,
                expression: entry.expression.clone(),
                is_default: false,
            });
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_no_list_has() {
        for (is_location, kind) in [(false, u8::MAX), (false, 8), (true, 10), (true, u8::MAX)] {
            let form =
                Form { version: 5, is_location, base: 0, lacks_base: false, addresses: &[], pool: None };
            assert_eq!(form.read(&[kind, 0, 0], 0).err(), Some(Damaged), "{kind} {is_location}");
        }
    }
}
