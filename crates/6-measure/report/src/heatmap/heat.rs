//! Samples, counted by time and place. Memory follows the number of cache lines in each hundredth of a second, not that of samples.

use afterlink_core::limits::CACHE_LINE;
use std::collections::BTreeMap;

/// Nanoseconds of a slot.
const SLOT: u64 = 10_000_000;

/// How often which line was seen when.
#[derive(Debug, Default)]
pub struct Heat {
    /// By line and slot.
    counts: BTreeMap<(u64, u64), u64>,
    samples: u64,
}

impl Heat {
    pub fn add(&mut self, nanoseconds: u64, address: u64) {
        *self.counts.entry((address / CACHE_LINE, nanoseconds / SLOT)).or_default() += 1;
        self.samples += 1;
    }

    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Address and nanoseconds of each line in each slot, with its samples, by ascending address.
    pub fn cells(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.counts.iter().map(|((line, slot), count)| (line * CACHE_LINE, slot * SLOT, *count))
    }

    /// The first nanosecond, and the one behind the last.
    pub fn time(&self) -> (u64, u64) {
        let slots = || self.counts.keys().map(|(_, slot)| *slot);
        (slots().min().unwrap_or(0) * SLOT, (slots().max().unwrap_or(0) + 1) * SLOT)
    }

    /// The samples between two addresses.
    pub fn samples_in(&self, start: u64, end: u64) -> u64 {
        self.counts
            .range((start / CACHE_LINE, 0)..(end.div_ceil(CACHE_LINE), 0))
            .map(|(_, count)| *count)
            .sum()
    }

    /// How many lines or pages of `bytes` are needed, the hottest first, to hold this share of the samples.
    pub fn units_that_hold(&self, share: f64, bytes: u64) -> usize {
        let mut units: BTreeMap<u64, u64> = BTreeMap::new();
        for ((line, _), count) in &self.counts {
            *units.entry(line * CACHE_LINE / bytes).or_default() += count;
        }
        let mut counts: Vec<u64> = units.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let wanted = share * self.samples as f64;
        let mut held = 0;
        let enough = counts.iter().position(|count| {
            held += count;
            held as f64 >= wanted - 1e-9
        });
        enough.map_or(counts.len(), |index| index + 1)
    }
}
