//! The bytes of `.llvm_bb_addr_map`, versions 2 to 5: one entry a function, each with its version and what it tells beside its blocks.
//! A function's blocks stand in ranges; each counts from its base, and each number from where the one before it ended.

use afterlink_core::varint::{Reader, write_unsigned};

/// What an entry tells.
const ENTRY_COUNT: u16 = 1;
const FREQUENCIES: u16 = 1 << 1;
const PROBABILITIES: u16 = 1 << 2;
const SEVERAL_RANGES: u16 = 1 << 3;
const NO_BLOCKS: u16 = 1 << 4;
const CALLS: u16 = 1 << 5;
const HASHES: u16 = 1 << 6;
const LATER_COUNTS: u16 = 1 << 7;
/// From which version on each may be told.
const SINCE: [(u16, u8); 3] = [(CALLS, 3), (HASHES, 4), (LATER_COUNTS, 5)];
const KNOWN: u16 = (LATER_COUNTS << 1) - 1;

/// Of a block: control may run out of its end into what stands behind.
pub const FALLS_THROUGH: u64 = 1 << 3;

/// A function.
#[derive(Clone)]
pub struct Entry<'a> {
    version: u8,
    features: u16,
    pub ranges: Vec<Range<'a>>,
    entry_count: &'a [u8],
    /// All of it, as it stands.
    pub bytes: &'a [u8],
}

/// Blocks that stand together.
#[derive(Clone)]
pub struct Range<'a> {
    pub base: u64,
    pub blocks: Vec<Block<'a>>,
}

/// A block, by its addresses.
#[derive(Clone)]
pub struct Block<'a> {
    id: u64,
    pub start: u64,
    /// Where calls end.
    pub calls: Vec<u64>,
    pub end: u64,
    pub flags: u64,
    hash: &'a [u8],
    /// What a profile said, with the ways out by their blocks' ids.
    counts: &'a [u8],
}

impl Entry<'_> {
    /// Whether it tells of its ranges alone.
    pub fn is_without_blocks(&self) -> bool {
        self.features & NO_BLOCKS != 0
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        let several = if self.ranges.len() > 1 { SEVERAL_RANGES } else { 0 };
        let features = (self.features & !SEVERAL_RANGES | several).to_le_bytes();
        out.push(self.version);
        out.extend_from_slice(&features[..feature_size(self.version)]);
        if several != 0 {
            write_unsigned(out, self.ranges.len() as u64);
        }
        for range in &self.ranges {
            out.extend_from_slice(&range.base.to_le_bytes());
            write_unsigned(out, range.blocks.len() as u64);
            let mut at = range.base;
            for block in &range.blocks {
                self.write_block(block, at, out);
                at = block.end;
            }
        }
        out.extend_from_slice(self.entry_count);
        let blocks = self.ranges.iter().flat_map(|range| &range.blocks);
        blocks.for_each(|block| out.extend_from_slice(block.counts));
    }

    fn write_block(&self, block: &Block, behind: u64, out: &mut Vec<u8>) {
        write_unsigned(out, block.id);
        write_unsigned(out, block.start - behind);
        let mut at = block.start;
        if self.features & CALLS != 0 {
            write_unsigned(out, block.calls.len() as u64);
            for &call in &block.calls {
                write_unsigned(out, call - at);
                at = call;
            }
        }
        write_unsigned(out, block.end - at);
        write_unsigned(out, block.flags);
        out.extend_from_slice(block.hash);
    }
}

fn feature_size(version: u8) -> usize {
    if version < 5 { 1 } else { 2 }
}

/// All entries. `None` if any is not understood: where it ends is not known then.
pub fn read(bytes: &[u8]) -> Option<Vec<Entry<'_>>> {
    let mut reader = Reader::new(bytes);
    let mut entries = Vec::new();
    while reader.remaining() > 0 {
        let start = bytes.len() - reader.remaining();
        let mut entry = entry(bytes, &mut reader)?;
        entry.bytes = &bytes[start..bytes.len() - reader.remaining()];
        entries.push(entry);
    }
    Some(entries)
}

fn entry<'a>(bytes: &'a [u8], reader: &mut Reader<'a>) -> Option<Entry<'a>> {
    let version = *reader.take(1)?.first()?;
    if !(2..=5).contains(&version) {
        return None;
    }
    let features = reader.take(feature_size(version))?;
    let features = features.iter().rev().fold(0, |n, &byte| n << 8 | u16::from(byte));
    let is_early = |(feature, since): &(u16, u8)| features & feature != 0 && version < *since;
    if features & !KNOWN != 0 || SINCE.iter().any(is_early) {
        return None;
    }
    let has = |feature: u16| features & feature != 0;
    let count = if has(SEVERAL_RANGES) { reader.unsigned()? } else { 1 };
    let mut ranges = Vec::new();
    for _ in 0..count {
        let base = u64::from_le_bytes(*reader.take(8)?.first_chunk()?);
        let count = reader.unsigned()?;
        let mut range = Range { base, blocks: Vec::new() };
        for _ in 0..if has(NO_BLOCKS) { 0 } else { count } {
            let behind = range.blocks.last().map_or(base, |last| last.end);
            range.blocks.push(block(features, behind, reader)?);
        }
        ranges.push(range);
    }
    let mut skipped = |count: &mut dyn FnMut(&mut Reader<'a>) -> Option<()>| {
        let start = bytes.len() - reader.remaining();
        count(reader)?;
        bytes.get(start..bytes.len() - reader.remaining())
    };
    let entry_count =
        skipped(&mut |reader| if has(ENTRY_COUNT) { reader.unsigned().map(|_| ()) } else { Some(()) })?;
    for block in ranges.iter_mut().flat_map(|range| &mut range.blocks) {
        block.counts = skipped(&mut |reader| skip_counts(features, reader))?;
    }
    (!ranges.is_empty()).then_some(Entry { version, features, ranges, entry_count, bytes: &[] })
}

fn block<'a>(features: u16, behind: u64, reader: &mut Reader<'a>) -> Option<Block<'a>> {
    let id = reader.unsigned()?;
    let start = behind.checked_add(reader.unsigned()?)?;
    let (mut at, mut calls) = (start, Vec::new());
    let count = if features & CALLS != 0 { reader.unsigned()? } else { 0 };
    for _ in 0..count {
        at = at.checked_add(reader.unsigned()?)?;
        calls.push(at);
    }
    let end = at.checked_add(reader.unsigned()?)?;
    let flags = reader.unsigned()?;
    let hash = reader.take(if features & HASHES != 0 { 8 } else { 0 })?;
    Some(Block { id, start, calls, end, flags, hash, counts: &[] })
}

/// Passes over what a profile said of a block.
fn skip_counts(features: u16, reader: &mut Reader) -> Option<()> {
    if features & (FREQUENCIES | PROBABILITIES) == 0 {
        return Some(());
    }
    let later = u64::from(features & LATER_COUNTS != 0);
    let frequencies = u64::from(features & FREQUENCIES != 0) + later;
    let ways = |reader: &mut Reader| if features & PROBABILITIES != 0 { reader.unsigned() } else { Some(0) };
    (0..frequencies).try_for_each(|_| reader.unsigned().map(|_| ()))?;
    let ways = ways(reader)?;
    // Each number takes a byte at least.
    let numbers = ways.checked_mul(2 + later).filter(|&numbers| numbers <= reader.remaining() as u64)?;
    (0..numbers).try_for_each(|_| reader.unsigned().map(|_| ()))
}
