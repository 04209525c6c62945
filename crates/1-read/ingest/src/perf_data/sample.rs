//! A sample: its fields stand one behind the other, those that its event has (`PERF_RECORD_SAMPLE` of `perf_event.h`).

use super::attributes::{Attribute, field};
use super::fields::{Fields, damaged};
use crate::recording::Entry;
use afterlink_core::Result;

/// What is used of a sample.
#[derive(Default)]
pub struct Sample<'a> {
    pub address: Option<u64>,
    pub process: Option<u32>,
    pub time: Option<u64>,
    stack: &'a [u8],
}

/// Bytes of an entry of a branch stack.
const ENTRY: usize = 24;

impl<'a> Sample<'a> {
    pub fn read(body: &'a [u8], event: &Attribute) -> Result<Self> {
        let mut fields = Fields::new(body);
        let mut sample = Self::default();
        let mut word = |bit: u64| if event.has(bit) { fields.word().map(Some) } else { Ok(None) };
        word(field::IDENTIFIER)?;
        sample.address = word(field::IP)?;
        sample.process = word(field::TID)?.map(|ids| ids as u32);
        sample.time = word(field::TIME)?;
        for bit in [field::ADDR, field::ID, field::STREAM_ID, field::CPU, field::PERIOD] {
            word(bit)?;
        }
        if event.has(field::READ) {
            skip_values(&mut fields, event.read_format)?;
        }
        if event.has(field::CALLCHAIN) {
            let callers = fields.word()?;
            fields.skip_words(callers)?;
        }
        if event.has(field::RAW) {
            let size = fields.half()? as usize;
            fields.take(size)?;
        }
        if event.has(field::BRANCH_STACK) {
            let count = usize::try_from(fields.word()?).unwrap_or(usize::MAX);
            if event.has_hardware_index() {
                fields.word()?;
            }
            let size = count.checked_mul(ENTRY).filter(|&size| size <= fields.rest().len());
            let size = size.ok_or_else(|| {
                damaged(format!("a stack of {count} branches in a sample of {} bytes", body.len()))
            })?;
            sample.stack = fields.take(size)?;
        }
        Ok(sample)
    }

    /// The branches last taken, the newest first.
    pub fn branches(&self) -> impl Iterator<Item = Entry> {
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let entry = move |e: &[u8]| Entry { from: word(&e[..8]), to: word(&e[8..16]), flags: word(&e[16..]) };
        self.stack.chunks_exact(ENTRY).map(entry)
    }
}

/// Values of counters: `read_format` says which.
fn skip_values(fields: &mut Fields, format: u64) -> Result<()> {
    const ENABLED: u64 = 1;
    const RUNNING: u64 = 1 << 1;
    const ID: u64 = 1 << 2;
    const GROUP: u64 = 1 << 3;
    const LOST: u64 = 1 << 4;
    let has = |bit: u64| u64::from(format & bit != 0);
    let each = 1 + has(ID) + has(LOST);
    let times = has(ENABLED) + has(RUNNING);
    if format & GROUP == 0 {
        return fields.skip_words(each + times);
    }
    let count = fields.word()?;
    fields.skip_words(times)?;
    fields.skip_words(count.saturating_mul(each))
}
