//! What a recording says of itself: its events, where its records stand, and the build-ids of the files that ran. A file has tables of
//! that; one that came through a pipe has records instead.

use super::attributes::{Attribute, Attributes};
use super::fields::{Fields, damaged};
use crate::recording::{BuildId, padded};
use afterlink_core::{Error, Result};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Numbers of the tables behind the records (`HEADER_*` of perf's `util/header.h`).
const BUILD_IDS: u32 = 2;
const EVENTS: u32 = 12;
/// Says that a build-id's length stands behind it.
const HAS_LENGTH: u16 = 1 << 15;

/// What is known before, or besides, the records.
#[derive(Default)]
pub struct Header {
    pub attributes: Attributes,
    /// Build-ids by file.
    pub build_ids: FxHashMap<Vec<u8>, BuildId>,
    /// Where the records stand in the file.
    pub records: Range<usize>,
    /// Whoever wrote it was stopped before it could say how long it is.
    pub is_unfinished: bool,
}

impl Header {
    /// # Errors
    /// The file is damaged, or of a kind that is not read.
    pub fn read(file: &[u8]) -> Result<Self> {
        if file.starts_with(b"2ELIFREP") {
            return Err(Error::new("it was recorded on a machine of the other byte order (big-endian)")
                .next("record it where the program for this machine runs"));
        }
        let mut fields = Fields::new(file);
        fields.take(8)?;
        let size = fields.word()?;
        if size == 16 {
            return Ok(Self { records: 16..file.len(), ..Self::default() });
        }
        let attribute_size = usize::try_from(fields.word()?).unwrap_or(usize::MAX);
        let (attributes, data) = (section(&mut fields)?, section(&mut fields)?);
        section(&mut fields)?;
        let features = fields.take(32)?;
        let start = usize::try_from(data.start).unwrap_or(usize::MAX);
        if start > file.len() {
            return Err(cut_short(file));
        }
        let is_unfinished = data.start == data.end;
        let end = usize::try_from(data.end).unwrap_or(usize::MAX).min(file.len());
        let mut header = Self {
            records: start..if is_unfinished { file.len() } else { end },
            is_unfinished: is_unfinished || data.end > file.len() as u64,
            ..Self::default()
        };
        header.read_attributes(file, attributes, attribute_size)?;
        if !header.is_unfinished {
            header.read_features(file, features, end)?;
        }
        Ok(header)
    }

    fn read_attributes(&mut self, file: &[u8], table: Range<u64>, size: usize) -> Result<()> {
        let rows = part(file, table)?;
        if !(64 + 16..=4096).contains(&size) {
            return Err(damaged(format!("its events are described in {size} bytes each")).at("header"));
        }
        for row in rows.chunks_exact(size) {
            let (attribute, numbers) = row.split_at(size - 16);
            let numbers = part(file, section(&mut Fields::new(numbers))?)?;
            self.attributes.add(Attribute::read(attribute)?, words(numbers))?;
        }
        if self.attributes.list.is_empty() {
            return Err(damaged("it has no event").at("header"));
        }
        Ok(())
    }

    /// Tables behind the records, a section for each bit that is set.
    fn read_features(&mut self, file: &[u8], bits: &[u8], start: usize) -> Result<()> {
        let mut sections = Fields::new(&file[start..]);
        for number in (0..bits.len() as u32 * 8).filter(|n| bits[*n as usize / 8] & 1 << (n % 8) != 0) {
            let at = section(&mut sections)?;
            if matches!(number, BUILD_IDS | EVENTS) {
                self.feature(number, part(file, at)?)?;
            }
        }
        Ok(())
    }

    /// One of these tables; those that are not needed are not looked at.
    pub fn feature(&mut self, number: u32, bytes: &[u8]) -> Result<()> {
        match number {
            BUILD_IDS => self.build_id_table(bytes),
            // A name is no reason to give a recording up.
            EVENTS => {
                let _ = self.event_names(bytes);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn build_id_table(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rows = Fields::new(bytes);
        while rows.rest().len() >= 8 {
            rows.half()?;
            let sizes = rows.half()?;
            let (misc, size) = (sizes as u16, (sizes >> 16) as usize);
            let size = size.checked_sub(8).ok_or_else(|| damaged("a build-id has no length"))?;
            self.build_id(misc, rows.take(size)?)?;
        }
        Ok(())
    }

    /// A file's build-id, as a table or a record has it.
    pub fn build_id(&mut self, misc: u16, body: &[u8]) -> Result<()> {
        let mut fields = Fields::new(body);
        fields.half()?;
        let id = fields.take(24)?;
        let length = if misc & HAS_LENGTH != 0 { id[20].into() } else { 20 };
        let name = fields.text();
        self.build_ids.insert(name.to_vec(), padded(&id[..20.min(length)]));
        Ok(())
    }

    /// Events with their names: the structure, numbers, a name.
    fn event_names(&mut self, bytes: &[u8]) -> Result<()> {
        let mut fields = Fields::new(bytes);
        let (count, size) = (fields.half()?, fields.half()? as usize);
        for _ in 0..count {
            fields.take(size)?;
            let numbers = fields.half()?;
            let length = fields.half()? as usize;
            let name = Fields::new(fields.take(length)?).text();
            let numbers = fields.take((numbers as usize).saturating_mul(8))?;
            for number in words(numbers) {
                self.attributes.name_by_number(number, name);
            }
        }
        Ok(())
    }

    /// An event of a recording that came through a pipe.
    pub fn add_event(&mut self, body: &[u8]) -> Result<()> {
        let (attribute, numbers) = body
            .split_at_checked(Attribute::size(body)?)
            .ok_or_else(|| damaged("an event's description is cut short"))?;
        self.attributes.add(Attribute::read(attribute)?, words(numbers))
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
}

/// An offset and a size.
fn section(fields: &mut Fields) -> Result<Range<u64>> {
    let (offset, size) = (fields.word()?, fields.word()?);
    let end =
        offset.checked_add(size).ok_or_else(|| damaged("a section ends behind all files").at("header"))?;
    Ok(offset..end)
}

fn part(file: &[u8], at: Range<u64>) -> Result<&[u8]> {
    let start = usize::try_from(at.start).ok();
    let end = usize::try_from(at.end).ok();
    start.zip(end).and_then(|(start, end)| file.get(start..end)).ok_or_else(|| cut_short(file))
}

fn cut_short(file: &[u8]) -> Error {
    damaged(format!("the file is cut short: it ends at {:#x}", file.len()))
}
