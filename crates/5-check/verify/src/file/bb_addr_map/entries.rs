//! Reads `.llvm_bb_addr_map` (versions 2 to 5) as addresses.

use afterlink_core::varint::Reader;
use afterlink_image::Section;

/// `SHT_LLVM_BB_ADDR_MAP`.
pub(crate) fn is_map(section: &Section) -> bool {
    !section.is_loaded() && section.kind == 0x6fff_4c0a
}

/// What is told of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub version: u8,
    /// What is told beside ids, places and flags, but for whether there is more than one range.
    pub features: u16,
    pub ranges: Vec<Range>,
    pub entry_count: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub base: u64,
    /// As it is told, even if the blocks are not.
    pub count: u64,
    pub blocks: Vec<Block>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub id: u64,
    pub start: u64,
    pub calls: Vec<u64>,
    pub end: u64,
    pub flags: u64,
    pub hash: Option<[u8; 8]>,
    /// What a profile said, number by number.
    pub counts: Vec<u64>,
}

impl Entry {
    fn tells(&self, bit: u32) -> bool {
        self.features >> bit & 1 != 0
    }

    pub fn omits_blocks(&self) -> bool {
        self.tells(4)
    }
}

/// `None` if anything in it is not understood.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Entry>> {
    let mut reader = Reader::new(bytes);
    let mut entries = Vec::new();
    while reader.remaining() > 0 {
        entries.push(entry(&mut reader)?);
    }
    Some(entries)
}

fn entry(reader: &mut Reader) -> Option<Entry> {
    let version = reader.take(1)?[0];
    let features = match version {
        2..=4 => u16::from(reader.take(1)?[0]),
        5 => u16::from_le_bytes(*reader.take(2)?.first_chunk()?),
        _ => return None,
    };
    let mut entry = Entry { version, features, ranges: Vec::new(), entry_count: None };
    let too_new = features >= 1 << 8
        || entry.tells(5) && version < 3
        || entry.tells(6) && version < 4
        || entry.tells(7) && version < 5;
    if too_new {
        return None;
    }
    let ranges = if entry.tells(3) { reader.unsigned().filter(|&count| count > 0)? } else { 1 };
    for _ in 0..ranges {
        let base = u64::from_le_bytes(*reader.take(8)?.first_chunk()?);
        let count = reader.unsigned()?;
        let (mut blocks, mut at) = (Vec::new(), base);
        for _ in 0..if entry.omits_blocks() { 0 } else { count } {
            let block = block(&entry, at, reader)?;
            at = block.end;
            blocks.push(block);
        }
        entry.ranges.push(Range { base, count, blocks });
    }
    if entry.tells(0) {
        entry.entry_count = Some(reader.unsigned()?);
    }
    let (has_frequency, has_ways, has_later) = (entry.tells(1), entry.tells(2), entry.tells(7));
    if has_frequency || has_ways {
        for block in entry.ranges.iter_mut().flat_map(|range| &mut range.blocks) {
            let mut read = |reader: &mut Reader| -> Option<u64> {
                let number = reader.unsigned()?;
                block.counts.push(number);
                Some(number)
            };
            for _ in 0..u8::from(has_frequency) + u8::from(has_later) {
                read(reader)?;
            }
            let ways = if has_ways { read(reader)? } else { 0 };
            for _ in 0..ways {
                for _ in 0..2 + u8::from(has_later) {
                    read(reader)?;
                }
            }
        }
    }
    entry.features &= !(1 << 3);
    Some(entry)
}

fn block(entry: &Entry, before: u64, reader: &mut Reader) -> Option<Block> {
    let id = reader.unsigned()?;
    let start = before.checked_add(reader.unsigned()?)?;
    let (mut calls, mut at) = (Vec::new(), start);
    if entry.tells(5) {
        for _ in 0..reader.unsigned()? {
            at = at.checked_add(reader.unsigned()?)?;
            calls.push(at);
        }
    }
    let end = at.checked_add(reader.unsigned()?)?;
    let flags = reader.unsigned()?;
    let hash = if entry.tells(6) { Some(*reader.take(8)?.first_chunk()?) } else { None };
    Some(Block { id, start, calls, end, flags, hash, counts: Vec::new() })
}
