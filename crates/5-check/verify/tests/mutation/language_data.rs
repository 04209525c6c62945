//! Takes the language-specific data of a rewritten program, gives where in the file each of their numbers stands.

use crate::eh_frame;
use crate::sites::Sites;

/// A number: where it stands, and its bytes.
pub type Number = (usize, usize);

/// A call site: start, size, landing pad and action.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub start: Number,
    pub size: Number,
    pub pad: Number,
    pub action: Number,
}

/// The data of one run of code.
#[derive(Clone, Debug, Default)]
pub struct Area {
    /// Where the pointer to them stands.
    pub pointer: usize,
    /// Where the code starts.
    pub code: u64,
    pub encodings: Vec<usize>,
    pub rows: Vec<Row>,
    /// What stands behind the rows.
    pub rest: (usize, usize),
    /// Words of types.
    pub types: Vec<usize>,
    /// Whether its numbers have four bytes each.
    pub is_wide: bool,
}

fn number(bytes: &[u8], at: &mut usize, size: Option<usize>) -> Number {
    let start = *at;
    match size {
        Some(size) => *at += size,
        None => {
            while bytes[*at] >= 0x80 {
                *at += 1;
            }
            *at += 1;
        }
    }
    (start, *at - start)
}

impl Area {
    /// Where the code of a row starts, and where it ends.
    pub fn run(&self, bytes: &[u8], row: &Row) -> (u64, u64) {
        let number = |(at, size): Number| match self.is_wide {
            true => bytes[at..at + size].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)),
            false => value(bytes, (at, size)) as u64,
        };
        let start = self.code + number(row.start);
        (start, start + number(row.size))
    }

    /// What a landing pad is told by the actions that a row begins with: filters, each with where the next one is.
    pub fn filters(&self, bytes: &[u8], action: u8) -> Option<Vec<u8>> {
        let mut filters = Vec::new();
        let mut at = self.rest.0 + usize::from(action.checked_sub(1)?);
        loop {
            // Numbers of one byte, as compilers have them here.
            let [filter, next] = *bytes.get(at..)?.first_chunk()?;
            if (filter | next) & 0x80 != 0 || filters.len() > 64 || at >= self.rest.1 {
                return None;
            }
            filters.push(filter);
            if next == 0 {
                return Some(filters);
            }
            let distance = isize::from((next << 1) as i8 >> 1);
            at = (at + 1).checked_add_signed(distance)?;
        }
    }
}

fn value(bytes: &[u8], (at, size): Number) -> usize {
    bytes[at..at + size].iter().rev().fold(0, |value, byte| value << 7 | usize::from(byte & 0x7f))
}

/// All areas of moved code.
pub fn areas(sites: &Sites) -> Vec<Area> {
    let Some((start, size)) = sites.section(".eh_frame") else { return Vec::new() };
    let (Some((data, data_size)), Some(frames)) =
        (sites.section(".gcc_except_table.afterlink"), sites.output.section_named(".eh_frame"))
    else {
        return Vec::new();
    };
    let frames_at = sites.output.sections[frames].address.get();
    let records = eh_frame::records(&sites.bytes[start..start + size]);
    let mut areas = Vec::new();
    for (at, _, _) in records.into_iter().filter(|r| r.2 != 0) {
        let pointer = start + at + 17;
        if sites.bytes[pointer - 1] != 4 || sites.word(pointer, 4) == 0 {
            continue;
        }
        let address = (frames_at + at as u64 + 17).wrapping_add_signed(sites.word(pointer, 4));
        let place = sites.offset(address).filter(|place| (data..data + data_size).contains(place));
        let code = (frames_at + at as u64 + 8).wrapping_add_signed(sites.word(start + at + 8, 4));
        areas.extend(place.map(|place| Area { code, ..area(sites.bytes, pointer, place) }));
    }
    let mut starts: Vec<usize> = areas.iter().map(|area| area.encodings[0]).collect();
    starts.sort_unstable();
    for area in &mut areas {
        let next = starts.iter().copied().find(|&start| start > area.encodings[0]);
        area.rest.1 = next.unwrap_or(data + data_size);
    }
    areas
}

fn area(bytes: &[u8], pointer: usize, start: usize) -> Area {
    let mut area = Area { pointer, encodings: vec![start], ..Area::default() };
    let mut at = start + 1;
    if bytes[start] != 0xff {
        at += 4;
    }
    area.encodings.push(at);
    at += 1;
    let mut base = None;
    if bytes[at - 1] != 0xff {
        let distance = number(bytes, &mut at, None);
        base = Some(at + value(bytes, distance));
    }
    area.encodings.push(at);
    area.is_wide = bytes[at] == 0x0b;
    let width = area.is_wide.then_some(4);
    at += 1;
    let size = number(bytes, &mut at, None);
    let end = at + value(bytes, size);
    while at < end {
        let [start, size, pad] = std::array::from_fn(|_| number(bytes, &mut at, width));
        let action = number(bytes, &mut at, None);
        area.rows.push(Row { start, size, pad, action });
    }
    area.rest = (end, end);
    let mut highest = 0;
    while let Some(base) = base.filter(|base| at < *base - 4 * highest) {
        let filter = i64::from(bytes[at] as i8) << 57 >> 57;
        highest = highest.max(usize::try_from(filter).unwrap_or(0));
        at += 2;
        if at >= base - 4 * highest {
            break;
        }
    }
    area.types = base.into_iter().flat_map(|base| (1..=highest).map(move |i| base - 4 * i)).collect();
    area
}
