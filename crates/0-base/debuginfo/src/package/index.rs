//! The index of a package: where each unit's parts are, by its id.

use crate::bytes::{Damaged, Reader, Result};
use crate::split::{PARTS, Part};
use std::collections::BTreeMap;

/// Where a unit's parts start, and their sizes.
pub type Row = [(u32, u32); PARTS.len()];

/// The index, read.
#[derive(Default)]
pub struct Index {
    /// 2 for units before DWARF 5.
    pub version: u16,
    pub rows: BTreeMap<u64, Row>,
}

impl Index {
    pub fn read(section: &[u8]) -> Result<Self> {
        if section.is_empty() {
            return Ok(Self::default());
        }
        let mut r = Reader::new(section, 0);
        // The first field was a word before it became a half and padding.
        let version = r.number(4)? as u16;
        if !matches!(version, 2 | 5) {
            return Err(Damaged);
        }
        let mut word = || Ok::<_, Damaged>(r.number(4)? as usize);
        let (columns, units, slots) = (word()?, word()?, word()?);
        if columns > 16 || slots > section.len() / 12 || units > slots {
            return Err(Damaged);
        }
        let ids: Vec<u64> = (0..slots).map(|_| r.number(8)).collect::<Result<_>>()?;
        let numbers: Vec<usize> = (0..slots).map(|_| Ok(r.number(4)? as usize)).collect::<Result<_>>()?;
        let kinds: Vec<Option<Part>> = (0..columns)
            .map(|_| {
                let number = r.number(4)? as u32;
                Ok(PARTS.into_iter().find(|part| part.number(version) == Some(number)))
            })
            .collect::<Result<_>>()?;
        let mut rows = vec![Row::default(); units];
        for is_size in [false, true] {
            for row in &mut rows {
                for kind in &kinds {
                    let value = r.number(4)? as u32;
                    let Some(kind) = kind else { continue };
                    let field = &mut row[*kind as usize];
                    *(if is_size { &mut field.1 } else { &mut field.0 }) = value;
                }
            }
        }
        let used = ids.into_iter().zip(numbers).filter(|(_, number)| *number > 0);
        let rows = used.map(|(id, number)| rows.get(number - 1).map(|row| (id, *row)).ok_or(Damaged));
        Ok(Self { version, rows: rows.collect::<Result<_>>()? })
    }
}

/// Writes an index: a hash table of ids, then the table of places, then that of sizes. `used` are the columns.
pub fn write(version: u16, rows: &[(u64, Row)], used: &[Part]) -> Vec<u8> {
    let used: Vec<(Part, u32)> =
        used.iter().filter_map(|part| part.number(version).map(|number| (*part, number))).collect();
    let slots = (rows.len() * 3 / 2 + 1).next_power_of_two();
    let mut out = Vec::new();
    let mut word = |n: usize| out.extend_from_slice(&(n as u32).to_le_bytes());
    [version.into(), used.len(), rows.len(), slots].into_iter().for_each(&mut word);
    let (mut ids, mut numbers) = (vec![0u64; slots], vec![0u32; slots]);
    let mask = slots as u64 - 1;
    for (number, (id, _)) in rows.iter().enumerate() {
        // Double hashing, as DWARF 5 has it in 7.3.5.3.
        let (mut at, step) = (id & mask, id >> 32 & mask | 1);
        while numbers[at as usize] != 0 {
            at = (at + step) & mask;
        }
        (ids[at as usize], numbers[at as usize]) = (*id, number as u32 + 1);
    }
    ids.iter().for_each(|id| out.extend_from_slice(&id.to_le_bytes()));
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    used.iter().for_each(|(_, number)| out.extend_from_slice(&number.to_le_bytes()));
    for is_size in [false, true] {
        for (_, row) in rows {
            for (part, _) in &used {
                let (start, size) = row[*part as usize];
                out.extend_from_slice(&(if is_size { size } else { start }).to_le_bytes());
            }
        }
    }
    out
}
