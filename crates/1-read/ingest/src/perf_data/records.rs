//! The records of a recording, one behind the other, compressed ones unpacked.
//!
//! A compressed record is a part of one long zstd stream, which never ends, and its contents may end in the middle of a record that the
//! next compressed record goes on with. What the unpacker still holds back comes at the end, when it is told that the stream is over.

use super::fields::{Fields, damaged};
use afterlink_core::{Error, Result, Viewed};
use ruzstd::decoding::FrameDecoder;
use std::ops::Range;

/// Types of records (`enum perf_event_type` of the kernel, and of perf's `event.h` those from 64 on).
pub mod kind {
    pub const MMAP: u32 = 1;
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const THROTTLE: u32 = 5;
    pub const FORK: u32 = 7;
    pub const SAMPLE: u32 = 9;
    pub const MMAP2: u32 = 10;
    pub const LOST_SAMPLES: u32 = 13;
    pub const HEADER_ATTR: u32 = 64;
    pub const TRACING_DATA: u32 = 66;
    pub const BUILD_ID: u32 = 67;
    pub const AUXTRACE: u32 = 71;
    pub const FEATURE: u32 = 80;
    pub const COMPRESSED: u32 = 81;
    pub const COMPRESSED2: u32 = 83;
}

/// How many bytes of the file are looked at before they are given back.
const AT_ONCE: usize = 64 << 20;

/// The longest header of a zstd stream.
const LONGEST_HEADER: usize = 18;
/// Bytes that the unpacker may hold back: what `perf record -z19` asks for.
const MOST_HELD_BACK: u64 = 8 << 20;
/// A last block without contents.
pub const END_OF_STREAM: [u8; 3] = [1, 0, 0];

/// A record.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    pub kind: u32,
    pub misc: u16,
    pub body: &'a [u8],
}

/// Hands each record of `range` to `visit`, in the order of the file. Gives whether the file ends in the middle of one.
///
/// # Errors
/// The file is damaged, or `visit` says that it is.
pub fn for_each(
    file: Viewed,
    range: Range<usize>,
    visit: &mut dyn FnMut(Record) -> Result<()>,
) -> Result<bool> {
    let bytes = &file.bytes()[..range.end];
    let mut packed = Packed::default();
    let mut at = range.start;
    let mut given_back = at;
    while at < bytes.len() {
        let failed = |error: Error| error.at(format!("record at file offset {at:#x}"));
        let Some((record, size)) = first(&bytes[at..]).map_err(failed)? else { break };
        match record.kind {
            kind::COMPRESSED => packed.add(record.body, visit).map_err(failed)?,
            kind::COMPRESSED2 => packed.add_sized(record.body, visit).map_err(failed)?,
            _ => visit(record).map_err(failed)?,
        }
        let Some(next) =
            data_behind(&record).map_err(failed)?.and_then(|data| at.checked_add(size)?.checked_add(data))
        else {
            return Err(failed(damaged("it announces more data than there can be")));
        };
        at = next;
        if at - given_back >= AT_ONCE {
            file.give_back();
            given_back = at;
        }
    }
    packed.finish(visit).map_err(|error| error.at("compressed records"))?;
    Ok(at != bytes.len())
}

/// Whether a run of whole records holds compressed ones.
pub fn has_compressed(mut bytes: &[u8]) -> bool {
    while let Ok(Some((record, size))) = first(bytes) {
        if matches!(record.kind, kind::COMPRESSED | kind::COMPRESSED2) {
            return true;
        }
        let data = data_behind(&record).ok().flatten().unwrap_or(0);
        bytes = bytes.get(size.saturating_add(data)..).unwrap_or_default();
    }
    false
}

/// The first record and its size; `None` if it is not all there.
fn first(bytes: &[u8]) -> Result<Option<(Record<'_>, usize)>> {
    let mut fields = Fields::new(bytes);
    let (Ok(kind), Ok(sizes)) = (fields.half(), fields.half()) else { return Ok(None) };
    let (misc, size) = (sizes as u16, (sizes >> 16) as usize);
    if size < 8 {
        return Err(damaged(format!("a record of {size} bytes")));
    }
    Ok(bytes.get(8..size).map(|body| (Record { kind, misc, body }, size)))
}

/// Bytes that stand behind a record without being a part of it.
fn data_behind(record: &Record) -> Result<Option<usize>> {
    let mut fields = Fields::new(record.body);
    Ok(match record.kind {
        kind::AUXTRACE => usize::try_from(fields.word()?).ok(),
        kind::TRACING_DATA => Some((fields.half()? as usize).next_multiple_of(8)),
        _ => Some(0),
    })
}

/// A zstd stream in parts.
#[derive(Default)]
struct Packed {
    decoder: Option<Box<FrameDecoder>>,
    /// What is not unpacked yet: the start of a block.
    waiting: Vec<u8>,
    /// What is unpacked, but for the records that were handed on.
    unpacked: Vec<u8>,
}

impl Packed {
    fn add_sized(&mut self, body: &[u8], visit: &mut dyn FnMut(Record) -> Result<()>) -> Result<()> {
        let mut fields = Fields::new(body);
        let size = usize::try_from(fields.word()?).unwrap_or(usize::MAX);
        self.add(fields.take(size)?, visit)
    }

    fn add(&mut self, part: &[u8], visit: &mut dyn FnMut(Record) -> Result<()>) -> Result<()> {
        self.waiting.extend_from_slice(part);
        self.unpack(visit)
    }

    /// Unpacks all whole blocks, one at a time: a few bytes may stand for very many.
    fn unpack(&mut self, visit: &mut dyn FnMut(Record) -> Result<()>) -> Result<()> {
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut rest = &waiting[..];
        loop {
            let Some(decoder) = &mut self.decoder else {
                // The header of a stream, which starts its first part, has to be there as a whole.
                if rest.len() < LONGEST_HEADER {
                    break;
                }
                let mut decoder = Box::new(FrameDecoder::new());
                decoder.set_max_window_size(MOST_HELD_BACK);
                decoder.init(&mut rest).map_err(unreadable)?;
                self.decoder = Some(decoder);
                continue;
            };
            let Some((block, behind)) = block_size(rest).and_then(|size| rest.split_at_checked(size)) else {
                break;
            };
            decoder.decode_from_to(block, &mut []).map_err(unreadable)?;
            rest = behind;
            decoder.collect_to_writer(&mut self.unpacked).map_err(unreadable)?;
            if decoder.is_finished() {
                self.decoder = None;
            }
            self.hand_on(visit)?;
        }
        let done = waiting.len() - rest.len();
        waiting.drain(..done);
        self.waiting = waiting;
        Ok(())
    }

    /// Hands on all whole records.
    fn hand_on(&mut self, visit: &mut dyn FnMut(Record) -> Result<()>) -> Result<()> {
        let mut at = 0;
        while let Some((record, size)) = first(&self.unpacked[at..])? {
            if matches!(record.kind, kind::COMPRESSED | kind::COMPRESSED2 | kind::AUXTRACE) {
                return Err(damaged("a compressed record inside of compressed records"));
            }
            visit(record)?;
            at += size;
        }
        self.unpacked.drain(..at);
        Ok(())
    }

    /// The stream is over: what was held back comes out.
    fn finish(mut self, visit: &mut dyn FnMut(Record) -> Result<()>) -> Result<()> {
        if self.decoder.is_some() {
            // What waits is a block that was cut off.
            self.waiting.clear();
            self.waiting.extend_from_slice(&END_OF_STREAM);
            self.unpack(visit)?;
        }
        Ok(())
    }
}

/// Bytes of the block that `bytes` start with, its header included (RFC 8878, 3.1.1.2).
fn block_size(bytes: &[u8]) -> Option<usize> {
    const REPEATED_BYTE: u32 = 1;
    let header = u32::from_le_bytes([*bytes.first()?, *bytes.get(1)?, *bytes.get(2)?, 0]);
    let contents = if header >> 1 & 3 == REPEATED_BYTE { 1 } else { header >> 3 };
    Some(3 + contents as usize)
}

fn unreadable(error: impl std::fmt::Display) -> Error {
    damaged(format!("compressed records cannot be unpacked: {error}"))
}
