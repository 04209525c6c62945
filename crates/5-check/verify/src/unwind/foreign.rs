//! Entries under a common entry that nobody knows how to read: of another version, or with unknown letters in its augmentation.
//! libgcc finds their code all the same (`get_cie_encoding` in gcc's `unwind-dw2-fde.c`), in a search table without even reading
//! them. So that code must not move, and the entries stand in both files at the same place with the same bytes.

use crate::unwind::records::Record;
use crate::unwind::table::{self, Slice, Table};
use afterlink_core::InputAddr;
use afterlink_image::Image;
use gimli::{LittleEndian, Reader};
use rustc_hash::FxHashMap;

/// Such an entry.
pub(crate) struct Foreign {
    /// The code that it is for.
    pub start: u64,
    pub end: u64,
    /// Where the entry itself stands.
    pub address: u64,
    /// Its bytes and those of its common entry.
    pub bytes: Vec<u8>,
}

/// The foreign entries among `records`, whose code the search table names, or libgcc finds by itself. `others` are where the code of all other entries
/// starts, ascending.
pub(crate) fn read(
    image: &Image,
    table: &Table,
    records: &[(Record, Record)],
    others: &[u64],
) -> gimli::Result<Vec<Foreign>> {
    let rows = table::search_rows(image)?;
    let named: FxHashMap<u64, u64> = rows.iter().map(|(start, entry)| (*entry, *start)).collect();
    let extent = |(record, common): &(Record, Record)| {
        let read = extent(table, record, common);
        let start = match rows.is_empty() {
            true => read?.0,
            false => *named.get(&(table.address + record.offset as u64))?,
        };
        Some((start, read.map_or(u64::MAX, |(_, size)| size)))
    };
    let extents: Vec<Option<(u64, u64)>> = records.iter().map(extent).collect();
    let mut starts: Vec<u64> = extents.iter().flatten().map(|extent| extent.0).collect();
    starts.extend_from_slice(others);
    starts.sort_unstable();
    let entry = |((record, common), extent): (&(Record, Record), &Option<(u64, u64)>)| {
        let (start, size) = (*extent)?;
        let section = &image.sections[image.section_at(InputAddr(start))?];
        let next = starts.get(starts.partition_point(|&other| other <= start)).copied();
        let end = next.unwrap_or(u64::MAX).min(section.end().get());
        let end = start + size.clamp(1, end - start);
        let address = table.address + record.offset as u64;
        let bytes = [record.body, common.body].concat();
        section.is_code().then_some(Foreign { start, end, address, bytes })
    };
    Ok(records.iter().zip(&extents).filter_map(entry).collect())
}

/// The code of an entry as libgcc reads it.
fn extent(table: &Table, record: &Record, common: &Record) -> Option<(u64, u64)> {
    let encoding = encoding(common.body)?;
    let mut reader = Slice::new(record.body.get(4..)?, LittleEndian);
    let place = table.address + record.behind as u64 + 4;
    let start = number(&mut reader, encoding)?;
    let base = match encoding & 0x70 {
        0 => 0,
        0x10 => place,
        _ => return None,
    };
    let size = number(&mut reader, encoding)?;
    (start != 0).then(|| (base.wrapping_add(start), size))
}

/// How addresses are stored under a common entry.
fn encoding(common: &[u8]) -> Option<u8> {
    let mut reader = Slice::new(common.get(4..)?, LittleEndian);
    let version = reader.read_u8().ok()?;
    let letters = reader.read_null_terminated_slice().ok()?;
    if version >= 4 && (reader.read_u8().ok()?, reader.read_u8().ok()?) != (8, 0) {
        return None;
    }
    let Some((b'z', letters)) = letters.slice().split_first() else { return Some(0) };
    reader.read_uleb128().ok()?;
    reader.read_sleb128().ok()?;
    if version == 1 {
        reader.read_u8().ok()?;
    } else {
        reader.read_uleb128().ok()?;
    }
    reader.read_uleb128().ok()?;
    for letter in letters {
        let stored = matches!(letter, b'R' | b'L' | b'P').then(|| reader.read_u8().ok());
        match letter {
            b'R' => return stored?,
            b'L' => {}
            b'P' => _ = number(&mut reader, stored??)?,
            _ => break,
        }
    }
    Some(0)
}

/// A stored number (Linux Standard Base 5.0, 10.5.1).
fn number(reader: &mut Slice, encoding: u8) -> Option<u64> {
    match encoding & 0x0f {
        0 | 4 | 8 | 12 => reader.read_u64().ok(),
        1 => reader.read_uleb128().ok(),
        2 => reader.read_u16().ok().map(u64::from),
        3 => reader.read_u32().ok().map(u64::from),
        9 => reader.read_sleb128().ok().map(|value| value as u64),
        10 => reader.read_i16().ok().map(|value| value as u64),
        11 => reader.read_i32().ok().map(|value| value as u64),
        _ => None,
    }
}
