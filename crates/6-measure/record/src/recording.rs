//! The file: a header, the event, the records, and at the end the event's name (`perf.data-file-format.txt` of Linux's tools/perf).

use crate::Recorded;
use crate::event::{ATTRIBUTE_SIZE, Attribute};
use crate::processes::mappings;
use afterlink_core::{Output, Result};

const HEADER: u64 = 104;
const ATTRIBUTE: u64 = ATTRIBUTE_SIZE as u64;
/// The event's description and where its numbers stand: it has none, as there is one event only.
const ROW: u64 = ATTRIBUTE + 16;
/// Where the records start.
const RECORDS: u64 = HEADER + ROW;
/// The table of events.
const EVENT_NAMES: u64 = 1 << 12;

/// What Linux's perf calls memory without a name.
const WITHOUT_NAME: &[u8] = b"//anon";

/// Types of records.
const MMAP2: u32 = 10;
const LOST: u32 = 2;
pub const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;

/// A file on its way.
pub struct Recording {
    attribute: Vec<u8>,
    counted: Recorded,
    /// The start of a record that goes on.
    begun: Vec<u8>,
    /// Bytes of it that are still to come and need not be looked at.
    to_skip: usize,
}

impl Recording {
    /// Writes what stands in front of the records.
    pub fn start(attribute: Attribute, out: &mut dyn Output) -> Result<Self> {
        // SAFETY: the structure is longer, and holds numbers only, without gaps between them, all of which are set.
        let bytes =
            unsafe { std::slice::from_raw_parts((&raw const attribute).cast::<u8>(), ATTRIBUTE_SIZE) };
        let recording =
            Self { attribute: bytes.to_vec(), counted: Recorded::default(), begun: Vec::new(), to_skip: 0 };
        out.append(&recording.header(0, 0))?;
        out.append(&recording.attribute)?;
        out.append(&words(&[RECORDS, 0]))?;
        Ok(recording)
    }

    /// Until the file is complete its records have no length, so that everybody can tell.
    fn header(&self, records: u64, tables: u64) -> Vec<u8> {
        let places = [HEADER, ROW, HEADER, ROW, RECORDS, records, 0, 0, tables, 0, 0, 0];
        [b"PERFILE2".to_vec(), words(&places)].concat()
    }

    /// Writes what a process had mapped before it was sampled.
    pub fn add_mappings(&mut self, process: u32, out: &mut dyn Output) -> Result<()> {
        for mapping in mappings(process) {
            let mut body = halves(&[process, process]);
            body.extend(words(&[mapping.start, mapping.end - mapping.start, mapping.offset]));
            // Device, inode and generation are not looked at. The rights to read and to run, not shared.
            body.extend(halves(&[0, 0, 0, 0, 0, 0, 5, 2]));
            let mut name =
                if mapping.name.is_empty() { WITHOUT_NAME.to_vec() } else { mapping.name.into_bytes() };
            name.resize((name.len() + 1).next_multiple_of(8), 0);
            body.extend(name);
            // Of which process and when it is: before all others.
            body.extend(halves(&[process, process, 0, 0]));
            const USER: u32 = 2;
            let size = body.len() as u32 + 8;
            let record = [halves(&[MMAP2, USER | size << 16]), body].concat();
            self.add(&record, out)?;
        }
        Ok(())
    }

    /// Writes a sample whose thread was asked to stop, with so many branches.
    pub fn add_followed(&mut self, bytes: &[u8], branches: usize, out: &mut dyn Output) -> Result<()> {
        self.counted.followed += u64::from(branches > 0);
        self.add(bytes, out)
    }

    /// Writes records as they come out of a ring, which may end in the middle of one at its end.
    pub fn add(&mut self, bytes: &[u8], out: &mut dyn Output) -> Result<()> {
        self.count(bytes);
        out.append(bytes)
    }

    fn count(&mut self, mut bytes: &[u8]) {
        // Enough of a record to count it: its header, and what was lost.
        const LOOKED_AT: usize = 24;
        while !bytes.is_empty() {
            let skipped = self.to_skip.min(bytes.len());
            self.to_skip -= skipped;
            bytes = &bytes[skipped..];
            if self.to_skip > 0 || bytes.is_empty() {
                return;
            }
            let size =
                |begun: &[u8]| begun.get(6..8).map(|b| usize::from(u16::from_le_bytes([b[0], b[1]])).max(8));
            let wanted = size(&self.begun).unwrap_or(8).min(LOOKED_AT);
            let more = (wanted - self.begun.len().min(wanted)).min(bytes.len());
            self.begun.extend(&bytes[..more]);
            bytes = &bytes[more..];
            if let Some(size) = size(&self.begun).filter(|size| self.begun.len() >= (*size).min(LOOKED_AT)) {
                self.to_skip = size - self.begun.len();
                self.count_one();
                self.begun.clear();
            }
        }
    }

    fn count_one(&mut self) {
        let word = |at: usize| {
            self.begun.get(at..at + 8).map_or(0, |b| u64::from_le_bytes(b.try_into().expect("eight")))
        };
        match word(0) as u32 {
            SAMPLE => self.counted.samples += 1,
            LOST => self.counted.lost += word(16),
            LOST_SAMPLES => self.counted.lost += word(8),
            _ => {}
        }
    }

    /// Writes the event's name, and where everything is.
    pub fn finish(self, name: &str, out: &mut dyn Output) -> Result<Recorded> {
        let end = out.size();
        let mut padded = name.as_bytes().to_vec();
        padded.resize((name.len() + 1).next_multiple_of(64), 0);
        let mut table = halves(&[1, ATTRIBUTE as u32]);
        table.extend(&self.attribute);
        table.extend(halves(&[0, padded.len() as u32]));
        table.extend(padded);
        out.append(&words(&[end + 16, table.len() as u64]))?;
        out.append(&table)?;
        out.replace(0, &self.header(end - RECORDS, EVENT_NAMES))?;
        Ok(self.counted)
    }
}

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn halves(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}
