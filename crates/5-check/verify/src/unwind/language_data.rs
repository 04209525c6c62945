//! What becomes of an exception, as the personality routines of gcc find it out (`PERSONALITY_FUNCTION` in `unwind-c.c` and
//! `eh_personality.cc`; those of LLVM, Rust and GNAT read the same): for each place of a function the landing pad, and all that
//! the landing pad is told. Two places say the same if their landing pads correspond and they are told the same numbers, which
//! mean the same types.

use afterlink_core::InputAddr;
use afterlink_image::Image;
use rustc_hash::{FxHashMap, FxHashSet};

/// Numbers in one area that are looked at; real ones have some tens.
const MOST: usize = 1 << 14;

/// What becomes of an exception that comes out of a run of code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Handling {
    pub start: u64,
    pub end: u64,
    pub landing: Landing,
    /// All that the landing pad is told, as bytes that compare.
    pub told: Vec<u8>,
}

/// Where it leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Landing {
    /// To the caller, as without any language-specific data.
    #[default]
    Caller,
    /// The place is in no row: the program ends.
    Nowhere,
    Pad(u64),
    /// The data cannot be followed.
    Unknown,
}

/// A function's area.
pub(crate) struct Area {
    /// One behind the other, over the whole function.
    pub handlings: Vec<Handling>,
    /// Where its first byte stands, and what is behind its last one.
    pub extent: (u64, u64),
    /// Every byte of it says something, or is zero.
    pub is_dense: bool,
}

/// Words that the dynamic linker fills: what is in the file says nothing of them.
pub(crate) struct Filled {
    words: FxHashSet<u64>,
}

impl Filled {
    pub fn of(image: &Image) -> Self {
        Self { words: image.dynamic.relocations.iter().map(|r| r.address.get()).collect() }
    }
}

/// Entries that may have the same area; compilers give each its own.
const MOST_SHARERS: usize = 8;

/// Where areas start, ascending, as often as entries name them. None reaches into the next one: a file that was made to could
/// otherwise have many that go on to the end of their section.
pub(crate) struct Starts(pub Vec<u64>);

impl Starts {
    /// Up to where the area at `address` may go.
    fn end_of(&self, address: u64) -> Option<u64> {
        let first = self.0.partition_point(|&start| start < address);
        let behind = self.0.partition_point(|&start| start <= address);
        let next = self.0.get(behind).copied().unwrap_or(u64::MAX);
        (behind - first <= MOST_SHARERS).then_some(next)
    }
}

/// Reads the area at `address` of the function from `start` to `end`; `None` if it is not as personality routines expect it.
pub(crate) fn read(
    image: &Image,
    filled: &Filled,
    starts: &Starts,
    address: u64,
    (start, end): (u64, u64),
) -> Option<Area> {
    let id = image.section_at(InputAddr(address))?;
    let section = &image.sections[id];
    let first = section.address.get();
    let area = usize::try_from(address - first).ok()?;
    let size = usize::try_from(starts.end_of(address)?.saturating_sub(first)).unwrap_or(usize::MAX);
    let bytes = image.section_bytes(id);
    let bytes = &bytes[..bytes.len().min(size)];
    let mut reader = Reader {
        bytes,
        known: FxHashMap::default(),
        first,
        area,
        filled,
        left: MOST,
        types_end: 0,
        seen: Vec::new(),
    };
    let handlings = reader.area(start, end)?;
    let extent = reader.extent();
    Some(Area {
        handlings,
        extent: (first + extent.0 as u64, first + extent.1 as u64),
        is_dense: reader.is_dense(),
    })
}

#[derive(Clone, Copy)]
struct Types {
    /// Behind the first type; lists begin here.
    base: usize,
    encoding: u8,
    width: usize,
}

struct Reader<'r> {
    bytes: &'r [u8],
    /// Address of the section.
    first: u64,
    area: usize,
    filled: &'r Filled,
    left: usize,
    /// Behind the first type, if there are types.
    types_end: usize,
    /// What is told for each action that was met.
    known: FxHashMap<u64, Vec<u8>>,
    /// Bytes that were looked at.
    seen: Vec<(usize, usize)>,
}

const OMITTED: u8 = 0xff;
const INDIRECT: u8 = 0x80;

impl Reader<'_> {
    fn area(&mut self, start: u64, end: u64) -> Option<Vec<Handling>> {
        let mut at = self.area;
        let encoding = self.byte(&mut at)?;
        let base = match encoding {
            OMITTED => start,
            // What the dynamic linker writes there nobody knows.
            _ if encoding & INDIRECT != 0 || self.filled.words.contains(&(self.first + at as u64)) => {
                return None;
            }
            _ => self.pointer(&mut at, encoding, start)?,
        };
        let encoding = self.byte(&mut at)?;
        let types = if encoding == OMITTED {
            None
        } else {
            let width = match encoding & 0x0f {
                0x03 | 0x0b => 4,
                0x00 | 0x04 | 0x08 | 0x0c => 8,
                _ => return None,
            };
            let distance = usize::try_from(self.unsigned(&mut at)?).ok()?;
            let base = at.checked_add(distance).filter(|&base| base <= self.bytes.len())?;
            self.types_end = base;
            Some(Types { base, encoding, width })
        };
        let encoding = self.byte(&mut at)?;
        let size = usize::try_from(self.unsigned(&mut at)?).ok()?;
        let actions = at.checked_add(size).filter(|&end| end <= self.bytes.len() && encoding & 0xf0 == 0)?;
        let mut handlings: Vec<Handling> = Vec::new();
        let mut reached = start;
        while at < actions {
            let from = start.checked_add(self.number(&mut at, encoding)?)?;
            let to = from.checked_add(self.number(&mut at, encoding)?)?;
            let pad = self.number(&mut at, encoding)?;
            let action = self.unsigned(&mut at)?;
            // Routines stop looking at the first row behind the place.
            if from < reached || to > end || at > actions {
                return None;
            }
            let (landing, told) = match (pad, action) {
                (0, 0) => (Landing::Caller, Vec::new()),
                (0, _) => return None,
                (pad, action) => {
                    (Landing::Pad(base.wrapping_add(pad)), self.known_told(actions, action, types)?)
                }
            };
            push(
                &mut handlings,
                Handling { start: reached, end: from, landing: Landing::Nowhere, told: Vec::new() },
            );
            push(&mut handlings, Handling { start: from, end: to, landing, told });
            reached = to;
        }
        push(&mut handlings, Handling { start: reached, end, landing: Landing::Nowhere, told: Vec::new() });
        Some(handlings)
    }

    fn known_told(&mut self, actions: usize, action: u64, types: Option<Types>) -> Option<Vec<u8>> {
        if let Some(told) = self.known.get(&action) {
            return Some(told.clone());
        }
        let told = self.told(actions, action, types)?;
        self.known.insert(action, told.clone());
        Some(told)
    }

    /// Everything that a landing pad gets to know: the filters in their order, with what they mean.
    fn told(&mut self, actions: usize, action: u64, types: Option<Types>) -> Option<Vec<u8>> {
        let mut told = Vec::new();
        if action == 0 {
            return Some(told);
        }
        let mut at = actions.checked_add(usize::try_from(action - 1).ok()?)?;
        loop {
            self.left = self.left.checked_sub(1)?;
            if at < actions {
                return None;
            }
            let filter = self.signed(&mut at)?;
            let next = at;
            let distance = self.signed(&mut at)?;
            told.extend_from_slice(&filter.to_le_bytes());
            match filter {
                0 => {}
                1.. => self.kind(filter as u64, types?, &mut told)?,
                _ => self.list(filter, types?, &mut told)?,
            }
            if distance == 0 {
                return Some(told);
            }
            at = next.checked_add_signed(isize::try_from(distance).ok()?)?;
        }
    }

    /// The types of an exception specification.
    fn list(&mut self, filter: i64, types: Types, told: &mut Vec<u8>) -> Option<()> {
        let place = usize::try_from(filter.checked_neg()? - 1).ok()?;
        let mut at = types.base.checked_add(place)?;
        loop {
            self.left = self.left.checked_sub(1)?;
            let number = self.unsigned(&mut at)?;
            told.extend_from_slice(&number.to_le_bytes());
            if number == 0 {
                return Some(());
            }
            self.kind(number, types, told)?;
        }
    }

    /// What the type of that number is: none, one at a place, or one that a word leads to.
    fn kind(&mut self, number: u64, types: Types, told: &mut Vec<u8>) -> Option<()> {
        let number = usize::try_from(number).ok().filter(|&number| number <= MOST)?;
        let mut at = types.base.checked_sub(number * types.width).filter(|&at| at > self.area)?;
        let field = self.first + at as u64;
        let value = self.pointer(&mut at, types.encoding & !INDIRECT, 0)?;
        let is_word = types.encoding & INDIRECT != 0;
        let is_whole = types.encoding & 0x70 == 0 && types.width == 8;
        let (tag, place) = match self.filled.words.contains(&field) {
            true if is_whole && !is_word => (2u8, field),
            true => return None,
            false if value == 0 => (0, 0),
            false if is_word => (2, value),
            false if is_whole => (2, field),
            false => (1, value),
        };
        told.push(tag);
        told.extend_from_slice(&place.to_le_bytes());
        Some(())
    }

    fn take(&mut self, at: &mut usize, size: usize) -> Option<&[u8]> {
        let end = at.checked_add(size)?;
        let found = self.bytes.get(*at..end)?;
        match self.seen.last_mut() {
            Some(last) if last.1 == *at => last.1 = end,
            _ => self.seen.push((*at, end)),
        }
        *at = end;
        Some(found)
    }

    fn byte(&mut self, at: &mut usize) -> Option<u8> {
        self.take(at, 1).map(|bytes| bytes[0])
    }

    fn unsigned(&mut self, at: &mut usize) -> Option<u64> {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let byte = self.byte(at)?;
            if shift == 63 && byte > 1 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return Some(value);
            }
            if shift > 63 {
                return None;
            }
        }
    }

    fn signed(&mut self, at: &mut usize) -> Option<i64> {
        let (mut value, mut shift) = (0i64, 0);
        loop {
            let byte = self.byte(at)?;
            // So many bits are in no action.
            if shift > 56 {
                return None;
            }
            value |= i64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return Some(if byte & 0x40 != 0 { value | -1 << shift } else { value });
            }
        }
    }

    /// A number without a base.
    fn number(&mut self, at: &mut usize, encoding: u8) -> Option<u64> {
        let wide = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
        Some(match encoding & 0x0f {
            0x00 | 0x04 | 0x08 | 0x0c => wide(self.take(at, 8)?),
            0x01 => self.unsigned(at)?,
            0x02 => wide(self.take(at, 2)?),
            0x03 => wide(self.take(at, 4)?),
            0x09 => self.signed(at)? as u64,
            0x0a => wide(self.take(at, 2)?) as i16 as u64,
            0x0b => wide(self.take(at, 4)?) as i32 as u64,
            _ => return None,
        })
    }

    /// A pointer; a stored zero is none, whatever it counts from.
    fn pointer(&mut self, at: &mut usize, encoding: u8, function: u64) -> Option<u64> {
        let field = self.first + *at as u64;
        let value = self.number(at, encoding)?;
        let base = match encoding & 0x70 {
            0x00 => 0,
            0x10 => field,
            0x40 => function,
            _ => return None,
        };
        Some(if value == 0 { 0 } else { base.wrapping_add(value) })
    }

    fn extent(&self) -> (usize, usize) {
        let seen = self.seen.iter().map(|seen| seen.1).max().unwrap_or(self.area);
        (self.area, seen.max(self.types_end))
    }

    fn is_dense(&mut self) -> bool {
        self.seen.sort_unstable();
        let mut reached = self.area;
        let end = self.extent().1;
        let end = (end, end);
        self.seen.iter().chain([&end]).all(|&(start, end)| {
            let gap = self.bytes.get(reached.min(start)..start).unwrap_or(&[]);
            reached = reached.max(end);
            gap.iter().all(|&byte| byte == 0)
        })
    }
}

/// Adds a run unless it is empty; equal neighbours are one.
fn push(all: &mut Vec<Handling>, handling: Handling) {
    match all.last_mut() {
        _ if handling.start == handling.end => {}
        Some(last) if last.landing == handling.landing && last.told == handling.told => {
            last.end = handling.end
        }
        _ => all.push(handling),
    }
}

#[cfg(test)]
mod tests;
