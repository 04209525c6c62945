//! Runs that entries name by their two ends.

use super::{Attribute, Unit, Walk, put_padded, put_size};
use crate::bytes::{Damaged, Reader, Result, put};
use crate::forms::{Abbreviation, is_unit};
use crate::tally::Removed;
use gimli::constants::*;

impl Walk<'_, '_> {
    /// The run that an entry names by its two ends.
    pub(super) fn run<'t>(
        &self,
        attributes: &'t [Attribute],
    ) -> Result<Option<(u64, u64, &'t Attribute, &'t Attribute)>> {
        let of = |name| attributes.iter().find(|a| a.name == name);
        let (Some(low), Some(high)) = (of(DW_AT_low_pc), of(DW_AT_high_pc)) else { return Ok(None) };
        let start = self.address(low)?;
        let mut r = Reader::new(self.bytes, high.at);
        let end = match high.form {
            DW_FORM_addr => r.number(8)?,
            DW_FORM_data1 | DW_FORM_data2 | DW_FORM_data4 | DW_FORM_data8 => {
                start.wrapping_add(r.number(high.end - high.at)?)
            }
            DW_FORM_udata => start.wrapping_add(r.uleb()?),
            _ => return Err(Damaged),
        };
        Ok(Some((start, end, low, high)))
    }

    fn runs(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        match start <= end && self.moves.is_code(start) {
            true => self.moves.ranges(start, end),
            false => vec![(start, end)],
        }
    }

    /// Whether the run of an entry is no single one any more.
    pub(super) fn is_cut(&self, kind: &Abbreviation, attributes: &[Attribute]) -> Result<bool> {
        let Some((start, end, _, high)) = self.run(attributes)? else { return Ok(false) };
        if kind.room(self.offset_size).is_none() {
            return Ok(false);
        }
        let (place, runs) = self.now(start, end);
        Ok(!is_plain((start, end), place, &runs, high))
    }

    /// Where a run starts now, and its runs: none, if another function's code stands for it.
    fn now(&self, start: u64, end: u64) -> (u64, Vec<(u64, u64)>) {
        (self.moves.point(start), if start == end { Vec::new() } else { self.runs(start, end) })
    }

    /// Where a run starts now, and its list.
    pub(super) fn listed(&self, kind: &Abbreviation, start: u64, end: u64) -> (u64, Vec<(u64, u64)>) {
        let (place, mut runs) = self.now(start, end);
        if !self.moves.is_code(start) {
            // What the linker removed is known by an address of no code, in a list as a run of its own to those who verify.
            runs.clear();
        }
        if kind.room(self.offset_size) == Some(DW_AT_low_pc) {
            enter_at(&mut runs, place);
        }
        (place, runs)
    }

    pub(super) fn lead_run(
        &self,
        kind: &Abbreviation,
        (start, end, low, high): (u64, u64, &Attribute, &Attribute),
        unit: &mut Unit,
    ) {
        unit.tally.folded += u64::from(self.moves.is_folded(start, end));
        let bytes = &mut unit.bytes;
        if kind.is_split {
            let (place, runs) = self.listed(kind, start, end);
            put_size(bytes, high, 0);
            let field = if kind.room(self.offset_size) == Some(DW_AT_low_pc) {
                put(bytes, low.at, 8, 0);
                low
            } else {
                if low.form == DW_FORM_addr {
                    put(bytes, low.at, 8, if is_unit(kind.tag) { 0 } else { place });
                }
                high
            };
            let at = self.add_ranges(&runs, unit);
            if self.numbers_lists() {
                let number = self.range_lists + unit.ranges.added.len() as u64;
                put_padded(&mut unit.bytes[field.at..field.end], number);
                unit.ranges.added.push(at);
            } else {
                unit.ranges.fields.push((field.at, self.offset_size, at));
            }
            return;
        }
        let (place, mut runs) = self.now(start, end);
        if !is_plain((start, end), place, &runs, high) {
            unit.tally.remove(Removed::Run);
            runs.clear();
        }
        let (start, end) = runs.first().copied().unwrap_or((place, place));
        if low.form == DW_FORM_addr {
            put(&mut unit.bytes, low.at, 8, start);
        }
        put_size(
            &mut unit.bytes,
            high,
            if high.form == DW_FORM_addr { end } else { end.wrapping_sub(start) },
        );
    }
}

/// Whether a run that starts at `place` now and has become these can be told by its two ends.
fn is_plain(run: (u64, u64), place: u64, runs: &[(u64, u64)], high: &Attribute) -> bool {
    // Nothing is left of a run inside of code that was replaced.
    let Some(&first) = runs.first() else { return true };
    let is_one = runs.len() == 1 && first.0 == place || run == first;
    let bits = (high.end - high.at) * if high.form == DW_FORM_udata { 7 } else { 8 };
    let fits = high.form == DW_FORM_addr || bits >= 64 || first.1.wrapping_sub(first.0) < 1 << bits;
    is_one && fits
}

/// Has the runs start at `entry`: without an address of its own, code is entered where its first run starts.
fn enter_at(runs: &mut Vec<(u64, u64)>, entry: u64) {
    let Some(holds) = runs.iter().position(|run| run.0 <= entry && entry < run.1) else { return };
    runs[..=holds].rotate_right(1);
    let start = std::mem::replace(&mut runs[0].0, entry);
    if start < entry {
        runs.push((start, entry));
    }
}
