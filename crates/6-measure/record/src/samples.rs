//! Samples as they come out of the rings, with the ways ahead of their threads in place of branch stacks.

use crate::follow::Follower;
use crate::recording::SAMPLE;
use afterlink_core::Result;
use afterlink_isa::ahead::Jump;
use std::collections::BTreeMap;

/// Bytes in front of a record's body: type, further bits, and size.
const HEAD: usize = 8;
/// Where a sample says whose it is, behind its address: the process and the thread.
const THREAD: std::ops::Range<usize> = HEAD + 12..HEAD + 16;

/// Records that have come since the last look, whole ones, as the kernel shows no others.
#[derive(Default)]
pub struct Samples(Vec<u8>);

impl Samples {
    /// Adds what is new of a ring, which its end may have cut in two.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Asks the threads to stop of which there are samples, and gives all other records, and samples that nobody is asked for. Of several samples of a thread it
    /// is asked for the last, as it is where it is now.
    pub fn ask(&self, follower: &mut Follower, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let records = self.records();
        let mut last: BTreeMap<u32, usize> = BTreeMap::new();
        for (i, record) in records.iter().enumerate() {
            if let Some(thread) = thread(record) {
                last.insert(thread, i);
            }
        }
        for (i, record) in records.into_iter().enumerate() {
            match thread(record) {
                Some(thread) if last[&thread] == i && follower.ask(thread, record).is_ok() => {}
                Some(_) => put(&with_stack(record, &[]))?,
                None => put(record)?,
            }
        }
        Ok(())
    }

    fn records(&self) -> Vec<&[u8]> {
        let mut rest = self.0.as_slice();
        let mut records = Vec::new();
        while let Some(size) =
            rest.get(6..HEAD).map(|size| usize::from(u16::from_le_bytes([size[0], size[1]])))
        {
            let Some((record, later)) = rest.split_at_checked(size.max(HEAD)) else { break };
            records.push(record);
            rest = later;
        }
        records
    }
}

/// The thread of a sample; `None` for other records.
fn thread(record: &[u8]) -> Option<u32> {
    let number = |bytes: &[u8]| Some(u32::from_le_bytes(bytes.try_into().ok()?));
    let is_sample = number(&record[..4]) == Some(SAMPLE);
    number(record.get(THREAD)?).filter(|_| is_sample)
}

/// A sample with a branch stack at its end, the last branch first (`struct perf_branch_entry`).
pub fn with_stack(sample: &[u8], jumps: &[Jump]) -> Vec<u8> {
    let mut record = sample.to_vec();
    record.extend((jumps.len() as u64).to_le_bytes());
    for jump in jumps.iter().rev() {
        const FLAGS: u64 = 0;
        [jump.from, jump.to, FLAGS].iter().for_each(|word| record.extend(word.to_le_bytes()));
    }
    let size = u16::try_from(record.len()).unwrap_or(u16::MAX);
    record[6..HEAD].copy_from_slice(&size.to_le_bytes());
    record
}
