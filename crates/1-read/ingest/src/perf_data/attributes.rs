//! The events of a recording: what each sampled, and which fields its samples have (`struct perf_event_attr` of the kernel's
//! `perf_event.h`).

use super::fields::{Fields, damaged};
use afterlink_core::Result;
use rustc_hash::FxHashMap;

/// Bits of `sample_type`: the fields of a sample.
pub mod field {
    pub const IP: u64 = 1;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const BRANCH_STACK: u64 = 1 << 11;
    pub const IDENTIFIER: u64 = 1 << 16;
}

/// Bits of `branch_sample_type`.
mod branch {
    /// Which branches the processor keeps: any, or some kinds.
    pub const ANY: u64 = 1 << 3;
    pub const KINDS: u64 = 0xff << 3 | 1 << 12 | 1 << 13;
    /// The calls that have not returned yet.
    pub const CALL_STACK: u64 = 1 << 11;
    pub const HARDWARE_INDEX: u64 = 1 << 17;
}

/// The first version of the structure, and the largest that is believed.
const SMALLEST: usize = 64;
const LARGEST: usize = 4096;

/// An event.
#[derive(Clone, Debug, Default)]
pub struct Attribute {
    /// `PERF_TYPE_*`, and which of these.
    pub kind: u32,
    pub config: u64,
    pub sample_type: u64,
    pub read_format: u64,
    pub branch_sample_type: u64,
    /// The bits behind `read_format`.
    pub flags: u64,
    /// As the recorder names it, if it does.
    pub name: Option<String>,
}

impl Attribute {
    /// Reads the structure, which may be of another version of the kernel.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let mut fields = Fields::new(bytes);
        let kind = fields.half()?;
        let _size = fields.half()?;
        let config = fields.word()?;
        let _period = fields.word()?;
        let (sample_type, read_format, flags) = (fields.word()?, fields.word()?, fields.word()?);
        fields.take(SMALLEST - 48)?;
        // Later versions have more behind.
        let mut later = || fields.word().unwrap_or(0);
        let _config2 = later();
        let branch_sample_type = later();
        Ok(Self { kind, config, sample_type, read_format, branch_sample_type, flags, name: None })
    }

    /// Bytes of the structure at the start of `bytes`, as it says itself.
    pub fn size(bytes: &[u8]) -> Result<usize> {
        let mut fields = Fields::new(bytes);
        fields.half()?;
        match fields.half()? as usize {
            0 => Ok(SMALLEST),
            size @ SMALLEST..=LARGEST => Ok(size),
            size => Err(damaged(format!("an event is described in {size} bytes"))),
        }
    }

    pub fn has(&self, field: u64) -> bool {
        self.sample_type & field != 0
    }

    /// Whether samples have a stack of branches as they were taken.
    pub fn has_branches(&self) -> bool {
        self.has(field::BRANCH_STACK) && self.branch_sample_type & branch::CALL_STACK == 0
    }

    /// Whether all taken branches are in it, so that what ran between them is known. `perf inject` names no kind at all.
    pub fn keeps_all_branches(&self) -> bool {
        let kinds = self.branch_sample_type & branch::KINDS;
        kinds == 0 || kinds & branch::ANY != 0
    }

    pub fn has_hardware_index(&self) -> bool {
        self.branch_sample_type & branch::HARDWARE_INDEX != 0
    }

    /// Whether records other than samples say when they were made (`sample_id_all`).
    fn marks_all(&self) -> bool {
        self.flags & 1 << 18 != 0
    }

    /// How good its samples are for telling where time goes: cycles first, then clocks.
    pub fn rank(&self) -> u8 {
        // The processor's kind of core stands in the upper half.
        match (self.kind, self.config & 0xffff_ffff) {
            (0, 0) => 0,
            (1, 0) => 1,
            (1, 1) => 2,
            (0, 9) => 3,
            _ => 4,
        }
    }

    /// Its name as `perf` writes it, with what it leaves out.
    pub fn title(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        let name = match (self.kind, self.config & 0xffff_ffff) {
            (0, 0) => "cycles".to_owned(),
            (0, 1) => "instructions".to_owned(),
            (0, 4) => "branches".to_owned(),
            (0, 5) => "branch-misses".to_owned(),
            (0, 9) => "ref-cycles".to_owned(),
            (1, 0) => "cpu-clock".to_owned(),
            (1, 1) => "task-clock".to_owned(),
            (4, _) => format!("r{:x}", self.config),
            (kind, _) => format!("event-{kind}-{:x}", self.config),
        };
        let excludes_kernel = self.flags & 1 << 5 != 0;
        if excludes_kernel { format!("{name}:u") } else { name }
    }
}

/// All events of a recording.
#[derive(Default)]
pub struct Attributes {
    pub list: Vec<Attribute>,
    /// Which of them a sample's number means.
    numbers: FxHashMap<u64, usize>,
}

impl Attributes {
    /// # Errors
    /// Its samples are laid out so that they can't be told from those of the events before.
    pub fn add(&mut self, attribute: Attribute, numbers: impl Iterator<Item = u64>) -> Result<()> {
        if let Some(first) = self.list.first()
            && number_of_sample(first) != number_of_sample(&attribute)
        {
            return Err(damaged("its events keep their numbers in different places"));
        }
        let index = self.list.len();
        self.numbers.extend(numbers.map(|number| (number, index)));
        self.list.push(attribute);
        Ok(())
    }

    /// Names the event that has this number, unless the name is empty.
    pub fn name_by_number(&mut self, number: u64, name: &[u8]) {
        if let Some(&index) = self.numbers.get(&number).filter(|_| !name.is_empty()) {
            self.list[index].name = Some(String::from_utf8_lossy(name).into_owned());
        }
    }

    /// The event that a sample is of; `None` if nobody says.
    pub fn of_sample(&self, body: &[u8]) -> Option<usize> {
        let first = self.list.first()?;
        if self.list.len() == 1 {
            return Some(0);
        }
        let at = number_of_sample(first)?;
        let number = u64::from_le_bytes(body.get(at..at + 8)?.try_into().ok()?);
        // What `perf` makes up itself has no number.
        if number == 0 { Some(0) } else { self.numbers.get(&number).copied() }
    }

    /// Whether all records say when they were made.
    pub fn are_timed(&self) -> bool {
        self.list.iter().all(|a| a.has(field::TIME) && a.marks_all())
    }

    /// When a record other than a sample was made, which stands near its end.
    pub fn time_of(&self, body: &[u8]) -> Option<u64> {
        let behind = [field::ID, field::STREAM_ID, field::CPU, field::IDENTIFIER];
        let first = self.list.first()?;
        let words = 1 + behind.iter().filter(|&&f| first.has(f)).count();
        let start = body.len().checked_sub(words * 8)?;
        Some(u64::from_le_bytes(body.get(start..start + 8)?.try_into().ok()?))
    }
}

/// Where in a sample the number of its event stands.
fn number_of_sample(attribute: &Attribute) -> Option<usize> {
    if attribute.has(field::IDENTIFIER) {
        return Some(0);
    }
    let before = [field::IP, field::TID, field::TIME, field::ADDR];
    attribute.has(field::ID).then(|| 8 * before.iter().filter(|&&f| attribute.has(f)).count())
}
