//! `.gdb_index`: all is the same but for the table of addresses, in which each unit's runs correspond, and what is counted from the
//! section's start behind it.

use super::counterparts::{Counterparts, Run};
use super::fault::Fault;
use std::collections::BTreeMap;

pub(super) const NAME: &str = ".gdb_index";

/// Words of the head that are offsets: of the units, the type units, the addresses, and what is behind them.
const BEFORE: usize = 3;
/// Bytes of a row of the table of addresses: both ends of a run, and the number of its unit.
const ROW: usize = 20;

/// The parts of an index.
struct Index<'a> {
    version: u32,
    /// The units, up to the table of addresses.
    units: &'a [u8],
    runs: BTreeMap<u32, Vec<Run>>,
    /// What is behind the table of addresses, and where its parts start in it.
    rest: &'a [u8],
    parts: Vec<usize>,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn address(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.first_chunk()?))
}

fn read(section: &[u8]) -> Option<Index<'_>> {
    let version = word(section, 0)?;
    let count = match version {
        7 | 8 => 5,
        9 => 6,
        _ => return None,
    };
    let offsets: Vec<usize> =
        (1..=count).map(|row| word(section, row * 4).map(|at| at as usize)).collect::<Option<_>>()?;
    let (start, end) = (offsets[BEFORE - 1], offsets[BEFORE]);
    let mut runs: BTreeMap<u32, Vec<Run>> = BTreeMap::new();
    for row in section.get(start..end)?.chunks_exact(ROW) {
        let run = (address(row)?, address(&row[8..])?);
        runs.entry(word(row, 16)?).or_default().push(run);
    }
    let parts = offsets[BEFORE..].iter().map(|at| at.checked_sub(end)).collect::<Option<_>>()?;
    let units = section.get((count + 1) * 4..start)?;
    Some(Index { version, units, runs, rest: section.get(end..)?, parts })
}

pub(super) fn judge([moved, unmoved]: [&Counterparts; 2], [old, new]: [&[u8]; 2]) -> Result<(), Fault> {
    if old == new {
        return Ok(());
    }
    let (Some(old), Some(new)) = (read(old), read(new)) else {
        return Err(Fault::new("the index of a debugger cannot be read"));
    };
    let rest = |index: &Index| (index.version, index.parts.clone());
    if rest(&old) != rest(&new) || (old.units, old.rest) != (new.units, new.rest) {
        return Err(Fault::new("the index of a debugger says something else"));
    }
    for unit in old.runs.keys().chain(new.runs.keys()) {
        let runs = |index: &Index| index.runs.get(unit).cloned().unwrap_or_default();
        let (was, is) = (runs(&old), runs(&new));
        // Those of a unit that was left as it was stay.
        let judged = moved.judge_runs(&was, &is);
        judged.or_else(|fault| unmoved.judge_runs(&was, &is).map_err(|_| fault)).map_err(|(what, at)| {
            Fault { what: format!("the index of a debugger {what}"), input: None, output: Some(at) }
        })?;
    }
    Ok(())
}
