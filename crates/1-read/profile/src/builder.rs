//! Collects records in any order and makes a canonical [`Profile`] of them: sorted, and summed where several
//! records are about the same thing.

use crate::name_table::{NameId, NameIndex};
use crate::profile::{
    BranchRecord, DataLocation, Kind, Location, MAX_COUNT, MemoryRecord, Profile, SampleRecord,
};
use afterlink_core::{Error, Result};

/// Makes a [`Profile`]. Counts are summed and stop at [`MAX_COUNT`].
#[derive(Debug, Default)]
pub struct ProfileBuilder {
    kind: Kind,
    bolted: bool,
    events: Vec<Box<[u8]>>,
    names: NameIndex,
    branches: Pile<BranchRecord>,
    samples: Pile<SampleRecord>,
    memory: Pile<MemoryRecord>,
}

/// A record whose count can be added to another's.
trait Record: Copy {
    type Key: Ord;
    fn key(&self) -> Self::Key;
    fn absorb(&mut self, other: &Self);
}

impl Record for BranchRecord {
    type Key = u128;
    fn key(&self) -> Self::Key {
        u128::from(self.from.key()) << 64 | u128::from(self.to.key())
    }
    fn absorb(&mut self, other: &Self) {
        self.count = sum(self.count, other.count);
        self.mispredicts = sum(self.mispredicts, other.mispredicts);
    }
}

impl Record for SampleRecord {
    type Key = u64;
    fn key(&self) -> Self::Key {
        self.at.key()
    }
    fn absorb(&mut self, other: &Self) {
        self.count = sum(self.count, other.count);
    }
}

impl Record for MemoryRecord {
    type Key = (Location, DataLocation);
    fn key(&self) -> Self::Key {
        (self.at, self.data)
    }
    fn absorb(&mut self, other: &Self) {
        self.count = sum(self.count, other.count);
    }
}

fn sum(a: u64, b: u64) -> u64 {
    a.saturating_add(b).min(MAX_COUNT)
}

/// Sorts records and sums those with one key.
fn settle<R: Record>(records: &mut Vec<R>) {
    if !records.is_sorted_by(|a, b| a.key() < b.key()) {
        records.sort_unstable_by_key(R::key);
        // `dedup_by` hands over the later one first, and drops it.
        records.dedup_by(|later, first| {
            let same = later.key() == first.key();
            if same {
                first.absorb(later);
            }
            same
        });
    }
}

/// Records on their way into a profile, summed now and then, so that memory follows the number of distinct records
/// and not that of lines: thousands of merged files mostly repeat each other.
#[derive(Debug)]
struct Pile<R> {
    records: Vec<R>,
    /// How many records to wait for before summing again.
    limit: usize,
}

impl<R> Default for Pile<R> {
    fn default() -> Self {
        Self { records: Vec::new(), limit: Self::FIRST_LIMIT }
    }
}

impl<R> Pile<R> {
    const FIRST_LIMIT: usize = 1 << 16;
}

impl<R: Record> Pile<R> {
    #[inline]
    fn push(&mut self, record: R) {
        if self.records.len() >= self.limit {
            self.sum();
        }
        self.records.push(record);
    }

    /// Wait longer where little was repeated: then the sort at the end does most of the work anyway.
    #[cold]
    fn sum(&mut self) {
        let before = self.records.len();
        settle(&mut self.records);
        let left = self.records.len();
        self.limit = (left * if left > before / 2 { 8 } else { 2 }).max(Self::FIRST_LIMIT);
    }
}

impl ProfileBuilder {
    pub fn new(kind: Kind) -> Self {
        Self { kind, ..Self::default() }
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether the program had already been rewritten by BOLT.
    pub fn set_bolted(&mut self, bolted: bool) {
        self.bolted = bolted;
    }

    /// Notes the name of a sampled event.
    pub fn add_event(&mut self, event: &[u8]) {
        if let Err(at) = self.events.binary_search_by(|e| (**e).cmp(event)) {
            self.events.insert(at, event.into());
        }
    }

    /// The id of a name, to make locations of; it is valid in this builder only.
    ///
    /// # Errors
    /// There are 2^30 names already.
    pub fn intern(&mut self, name: &[u8]) -> Result<NameId> {
        self.names.intern(name).ok_or_else(|| {
            Error::new("the profile holds more than 1,073,741,824 names").next("merge fewer files at once")
        })
    }

    pub(crate) fn name(&self, id: NameId) -> &[u8] {
        self.names.table().get(id)
    }

    /// Counts a branch.
    ///
    /// # Panics
    /// The profile is not of [`Kind::Branches`].
    pub fn add_branch(&mut self, record: BranchRecord) {
        assert_eq!(self.kind, Kind::Branches, "only a profile of branches holds branches");
        self.branches.push(capped(record));
    }

    /// Counts samples.
    ///
    /// # Panics
    /// The profile is not of [`Kind::Samples`].
    pub fn add_samples(&mut self, record: SampleRecord) {
        assert_eq!(self.kind, Kind::Samples, "only a profile of samples holds samples");
        self.samples.push(SampleRecord { count: record.count.min(MAX_COUNT), ..record });
    }

    /// Counts accesses to memory; belongs in either kind.
    pub fn add_memory(&mut self, record: MemoryRecord) {
        self.memory.push(MemoryRecord { count: record.count.min(MAX_COUNT), ..record });
    }

    /// Adds all that `profile` counts. Its kind must be this one's.
    pub(crate) fn absorb(&mut self, profile: &Profile) -> Result<()> {
        for event in profile.events() {
            self.add_event(event);
        }
        let mut ids = Vec::with_capacity(profile.names.len());
        for (_, name) in profile.names.iter() {
            ids.push(self.intern(name)?);
        }
        for record in &profile.branches {
            self.add_branch(BranchRecord {
                from: record.from.renamed(&ids),
                to: record.to.renamed(&ids),
                ..*record
            });
        }
        for record in &profile.samples {
            self.add_samples(SampleRecord { at: record.at.renamed(&ids), ..*record });
        }
        for record in &profile.memory {
            let data = DataLocation { name: ids[record.data.name.0 as usize], ..record.data };
            self.add_memory(MemoryRecord { at: record.at.renamed(&ids), data, ..*record });
        }
        Ok(())
    }

    /// The profile in its canonical form.
    pub fn finish(self) -> Profile {
        let (names, ids) = self.names.into_table().into_sorted();
        let (mut branches, mut samples, mut memory) =
            (self.branches.records, self.samples.records, self.memory.records);
        for record in &mut branches {
            (record.from, record.to) = (record.from.renamed(&ids), record.to.renamed(&ids));
        }
        for record in &mut samples {
            record.at = record.at.renamed(&ids);
        }
        for record in &mut memory {
            record.at = record.at.renamed(&ids);
            record.data.name = ids[record.data.name.0 as usize];
        }
        settle(&mut branches);
        settle(&mut samples);
        settle(&mut memory);
        Profile {
            kind: self.kind,
            bolted: self.bolted,
            events: self.events,
            names,
            branches,
            samples,
            memory,
        }
    }
}

fn capped(record: BranchRecord) -> BranchRecord {
    BranchRecord {
        mispredicts: record.mispredicts.min(MAX_COUNT),
        count: record.count.min(MAX_COUNT),
        ..record
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LocationKind;

    /// Far more records than are kept unsummed, first all different (so that summing waits longer), then again.
    #[test]
    fn records_summed_on_the_way_keep_their_counts() {
        const DISTINCT: u32 = 100_000;
        let mut builder = ProfileBuilder::new(Kind::Samples);
        let name = builder.intern(b"f").unwrap();
        for round in 0..20u32 {
            // 7919 is prime and no divisor of DISTINCT, so each round has every offset once, in another order.
            for i in 0..DISTINCT {
                let offset = (i * 7919 + round) % DISTINCT;
                let at = Location::new(LocationKind::Symbol, name, offset);
                builder.add_samples(SampleRecord { at, count: u64::from(offset % 7) });
            }
        }
        let kept = builder.samples.records.len();
        assert!(kept < 9 * DISTINCT as usize, "{kept} records wait to be summed");
        let profile = builder.finish();
        assert_eq!(profile.samples().len(), DISTINCT as usize);
        for (offset, sample) in (0u32..).zip(profile.samples()) {
            assert_eq!((sample.at.offset(), sample.count), (offset, u64::from(offset % 7) * 20));
        }
    }
}
