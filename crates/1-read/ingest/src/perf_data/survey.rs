//! The first look at a recording: what was mapped where, how many samples each event has, what was lost.

use super::attributes::{Attribute, field};
use super::fields::Fields;
use super::header::Header;
use super::records::{Record, kind};
use crate::recording::{Candidate, Change, Files, Moment, Processes, RecordedFile, padded};
use afterlink_core::Result;

/// Bits of a record's `misc`.
mod misc {
    /// Whose record it is: 1 is the kernel.
    pub const MODE: u16 = 7;
    pub const KERNEL: u16 = 1;
    /// A mapping that is not to be run; or, of a name, that another program is run from now on.
    pub const DATA_OR_EXEC: u16 = 1 << 13;
    pub const HAS_BUILD_ID: u16 = 1 << 14;
}

/// What a recording holds.
#[derive(Default)]
pub struct Survey {
    pub header: Header,
    pub processes: Processes,
    /// Files that were mapped, by their number.
    pub files: Files,
    /// Samples by event.
    pub samples: Vec<u64>,
    /// Samples of events that nothing describes.
    pub strange_samples: u64,
    pub lost: u64,
    pub throttled: u64,
    /// Bytes of traces that a processor wrote by itself (Intel PT, Arm SPE and ETM).
    pub has_traces: bool,
    order: u64,
}

impl Survey {
    pub fn new(header: Header) -> Self {
        Self { header, ..Self::default() }
    }

    pub fn add(&mut self, record: Record) -> Result<()> {
        self.order += 1;
        let body = record.body;
        match record.kind {
            kind::SAMPLE => self.sample(body),
            kind::MMAP | kind::MMAP2 => self.mapping(record)?,
            kind::COMM => self.name(record)?,
            kind::FORK => self.fork(body)?,
            kind::LOST => {
                let mut fields = Fields::new(body);
                fields.word()?;
                self.lost = self.lost.saturating_add(fields.word()?);
            }
            kind::LOST_SAMPLES => self.lost = self.lost.saturating_add(Fields::new(body).word()?),
            kind::THROTTLE => self.throttled += 1,
            kind::AUXTRACE => self.has_traces = true,
            kind::HEADER_ATTR => self.header.add_event(body)?,
            kind::BUILD_ID => self.header.build_id(record.misc, body)?,
            kind::FEATURE => {
                let mut fields = Fields::new(body);
                let number = u32::try_from(fields.word()?).unwrap_or(u32::MAX);
                self.header.feature(number, fields.rest())?;
            }
            _ => {}
        }
        Ok(())
    }

    fn sample(&mut self, body: &[u8]) {
        match self.header.attributes.of_sample(body) {
            Some(event) => {
                self.samples.resize(self.samples.len().max(event + 1), 0);
                self.samples[event] += 1;
            }
            None => self.strange_samples += 1,
        }
    }

    fn mapping(&mut self, record: Record) -> Result<()> {
        let is_kernel = record.misc & misc::MODE == misc::KERNEL;
        if is_kernel || record.misc & misc::DATA_OR_EXEC != 0 {
            return Ok(());
        }
        let mut fields = Fields::new(record.body);
        let (process, _) = (fields.half()?, fields.half()?);
        let (start, size, offset) = (fields.word()?, fields.word()?, fields.word()?);
        let mut build_id = None;
        if record.kind == kind::MMAP2 {
            let identity = fields.take(24)?;
            if record.misc & misc::HAS_BUILD_ID != 0 {
                let length = usize::from(identity[0]).min(20);
                build_id = Some(padded(&identity[4..4 + length]));
            }
            // Rights and kind of the mapping.
            fields.word()?;
        }
        let name = fields.text().to_vec();
        let file = self.files.number(RecordedFile { name, build_id });
        let end = start.saturating_add(size);
        self.processes.add(process, self.moment(record.body), Change::Map { start, end, offset, file });
        Ok(())
    }

    fn name(&mut self, record: Record) -> Result<()> {
        if record.misc & misc::DATA_OR_EXEC != 0 {
            let process = Fields::new(record.body).half()?;
            self.processes.add(process, self.moment(record.body), Change::Exec);
        }
        Ok(())
    }

    fn fork(&mut self, body: &[u8]) -> Result<()> {
        let mut fields = Fields::new(body);
        let (process, parent) = (fields.half()?, fields.half()?);
        // A new thread changes nothing.
        if process != parent {
            self.processes.add(process, self.moment(body), Change::Fork { parent });
        }
        Ok(())
    }

    /// When a record was made: its time, or its place in the file where not all have one.
    fn moment(&self, body: &[u8]) -> Moment {
        let attributes = &self.header.attributes;
        let time = attributes.are_timed().then(|| attributes.time_of(body)).flatten();
        (time.unwrap_or(0), self.order)
    }
}

/// The samples of some events in the order of the file, with the moment of each.
pub struct Moments {
    order: u64,
    timed: bool,
}

impl Moments {
    pub fn new(header: &Header) -> Self {
        Self { order: 0, timed: header.attributes.are_timed() }
    }

    /// Counts a record: all are to be counted as [`Survey::add`] counts them.
    pub fn next(&mut self) {
        self.order += 1;
    }

    /// When the last record, a sample of this time, was made.
    pub fn of_sample(&self, time: Option<u64>) -> Moment {
        (if self.timed { time.unwrap_or(0) } else { 0 }, self.order)
    }
}

/// Whether a sample is of the program and not of the kernel or a guest.
pub fn is_of_user(bits: u16) -> bool {
    const USER: u16 = 2;
    bits & misc::MODE == USER
}

/// The events as something to choose from.
pub fn candidates(survey: &Survey) -> Vec<Candidate> {
    let list = &survey.header.attributes.list;
    let candidate = |(event, attribute): (usize, &Attribute)| Candidate {
        samples: match attribute.has(field::IP | field::BRANCH_STACK) {
            true => survey.samples.get(event).copied().unwrap_or(0),
            false => 0,
        },
        rank: attribute.rank(),
        has_branches: attribute.has_branches(),
        title: attribute.title(),
    };
    list.iter().enumerate().map(candidate).collect()
}
