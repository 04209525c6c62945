//! Writes a language-specific data area: takes the call sites of a run of code in the output and what its landing pads are
//! told, gives the area's bytes for a given address.
//!
//! No base of landing pads is written, because the routine of LLVM's `compiler-rt` reads one and then counts from the function
//! all the same. So landing pads count from the run's start; those in front of it, in another fragment, are negative numbers,
//! and call sites have a form that can hold such. A pad right at the start has the offset 0, which means none: only then there is
//! a base, one byte in front of the run. Types count from their own field, so nothing needs a start-up relocation.

use super::{ExceptionTable, ExceptionType};
use crate::cursor::{write_sleb, write_uleb};
use crate::dwarf::*;
use afterlink_core::OutputAddr;
use std::collections::{BTreeMap, BTreeSet};

/// A run of code in the output and what becomes of an exception that comes out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputCallSite {
    /// Bytes from the start of the run that the area is for.
    pub start: u32,
    pub size: u32,
    /// `None`: on to the caller.
    pub landing_pad: Option<OutputAddr>,
    /// Row of [`ExceptionTable::actions`].
    pub action: Option<u32>,
}

/// Writes the area that will stand at `address` for a run that starts at `run`. `None` if something is out of reach, types are
/// stored in more than one way, or one would stand in its own field.
pub fn write_lsda(
    sites: &[OutputCallSite],
    table: &ExceptionTable,
    run: OutputAddr,
    address: OutputAddr,
) -> Option<Vec<u8>> {
    let pads = || sites.iter().filter_map(|site| site.landing_pad);
    let base = if pads().any(|pad| pad == run) { run - 1 } else { run };
    let (actions, places) = write_actions(sites, table);
    let mut rows = Vec::new();
    let is_signed = pads().any(|pad| pad < base);
    for site in sites {
        let pad = site.landing_pad.map_or(0, |pad| pad.since(base));
        for number in [u64::from(site.start), u64::from(site.size), pad] {
            if is_signed {
                rows.extend_from_slice(&i32::try_from(number as i64).ok()?.to_le_bytes());
            } else {
                write_uleb(&mut rows, number);
            }
        }
        write_uleb(&mut rows, site.action.filter(|_| pad != 0).map_or(0, |row| places[&row] + 1));
    }
    let mut out = Vec::new();
    if base == run {
        out.push(DW_EH_PE_OMIT);
    } else {
        out.push(DW_EH_PE_PCREL | DW_EH_PE_SDATA4);
        let distance = base.since(address + 1) as i64;
        out.extend_from_slice(&i32::try_from(distance).ok()?.to_le_bytes());
    }
    let mut rest = vec![if is_signed { DW_EH_PE_SDATA4 } else { DW_EH_PE_ULEB128 }];
    write_uleb(&mut rest, rows.len() as u64);
    rest.extend_from_slice(&rows);
    rest.extend_from_slice(&actions);
    let used = Used::of(sites, table);
    let Some(encoding) = used.encoding(table)? else {
        out.push(DW_EH_PE_OMIT);
        out.extend_from_slice(&rest);
        return Some(out);
    };
    out.push(encoding);
    let highest = used.types.last().copied().unwrap_or(0);
    write_uleb(&mut out, rest.len() as u64 + 4 * u64::from(highest));
    out.extend_from_slice(&rest);
    for number in (1..=highest).rev() {
        let field = address + out.len() as u64;
        // Nobody asks for types in between that no action names.
        let place = match table.types.get(&number).filter(|_| used.types.contains(&number)) {
            None | Some(ExceptionType::Any) => 0,
            // A field that named itself would say that any type is caught.
            Some(ExceptionType::At(place) | ExceptionType::In(place)) => {
                Some(place.get().wrapping_sub(field.get())).filter(|&distance| distance != 0)?
            }
        };
        out.extend_from_slice(&i32::try_from(place as i64).ok()?.to_le_bytes());
    }
    used.write_lists(&mut out, table)?;
    Some(out)
}

/// The chains of all actions, and where in them each starts.
fn write_actions(sites: &[OutputCallSite], table: &ExceptionTable) -> (Vec<u8>, BTreeMap<u32, u64>) {
    let (mut out, mut places) = (Vec::new(), BTreeMap::new());
    for row in sites.iter().filter_map(|site| site.action.filter(|_| site.landing_pad.is_some())) {
        if places.contains_key(&row) {
            continue;
        }
        places.insert(row, out.len() as u64);
        let chain = &table.actions[row as usize];
        for (i, filter) in chain.iter().enumerate() {
            write_sleb(&mut out, *filter);
            // The next one stands right behind this number.
            write_sleb(&mut out, i64::from(i + 1 < chain.len()));
        }
    }
    (out, places)
}

/// The types and lists that call sites lead to, by number and by place.
struct Used {
    types: BTreeSet<u32>,
    lists: BTreeSet<u32>,
}

impl Used {
    fn of(sites: &[OutputCallSite], table: &ExceptionTable) -> Self {
        let mut used = Self { types: BTreeSet::new(), lists: BTreeSet::new() };
        for row in sites.iter().filter_map(|site| site.action.filter(|_| site.landing_pad.is_some())) {
            for &filter in &table.actions[row as usize] {
                match u32::try_from(filter.unsigned_abs()) {
                    Ok(number) if filter > 0 => drop(used.types.insert(number)),
                    Ok(number) if filter < 0 => drop(used.lists.insert(number - 1)),
                    _ => {}
                }
            }
        }
        let named = used.lists.iter().filter_map(|place| table.lists.get(place)).flatten();
        used.types.extend(named);
        used
    }

    /// How types are stored: `Some(None)` if there are neither types nor lists, `None` if they are of two kinds.
    fn encoding(&self, table: &ExceptionTable) -> Option<Option<u8>> {
        let mut is_indirect = None;
        for found in self.types.iter().filter_map(|number| table.types.get(number)) {
            let own = match found {
                ExceptionType::Any => continue,
                ExceptionType::At(_) => false,
                ExceptionType::In(_) => true,
            };
            if is_indirect.replace(own).is_some_and(|other| other != own) {
                return None;
            }
        }
        if self.types.is_empty() && self.lists.is_empty() {
            return Some(None);
        }
        let indirect = if is_indirect == Some(true) { DW_EH_PE_INDIRECT } else { 0 };
        Some(Some(DW_EH_PE_PCREL | DW_EH_PE_SDATA4 | indirect))
    }

    /// `None` if lists overlap that do not agree: numbers that were stored longer than they need to be are written short.
    fn write_lists(&self, out: &mut Vec<u8>, table: &ExceptionTable) -> Option<()> {
        let base = out.len();
        for &place in &self.lists {
            let at = base + place as usize;
            let mut list = Vec::new();
            table.lists.get(&place)?.iter().for_each(|&number| write_uleb(&mut list, number.into()));
            list.push(0);
            out.resize(out.len().max(at), 0);
            // A list that starts inside another one is a part of it.
            let (shared, new) = list.split_at(list.len().min(out.len() - at));
            if !out[at..].starts_with(shared) {
                return None;
            }
            out.extend_from_slice(new);
        }
        Some(())
    }
}
