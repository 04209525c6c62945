//! Which of many ascending addresses is the last one that another does not come before: what function, entry or section
//! an address lies in is asked millions of times.

/// Ascending addresses with a table that says for each stretch where to begin to look. A search by halves would miss
/// the cache at most of its steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartTable {
    starts: Vec<u64>,
    /// For each stretch of 2^`shift` bytes from the first address on, how many addresses stand before it; one more row ends it.
    rows: Vec<u32>,
    shift: u32,
}

impl StartTable {
    /// `starts` must ascend, and be fewer than 2^32.
    pub fn of(starts: impl Iterator<Item = u64>) -> Self {
        let starts: Vec<u64> = starts.collect();
        debug_assert!(starts.is_sorted());
        let (Some(&first), Some(&last)) = (starts.first(), starts.last()) else { return Self::default() };
        // As many rows as addresses: about one in each stretch.
        let shift = ((last - first) / starts.len() as u64).checked_ilog2().map_or(0, |log| log + 1);
        let mut rows = Vec::with_capacity(((last - first) >> shift) as usize + 2);
        for (index, start) in starts.iter().enumerate() {
            let row = ((start - first) >> shift) as usize;
            if rows.len() <= row {
                rows.resize(row + 1, index as u32);
            }
        }
        rows.push(starts.len() as u32);
        Self { starts, rows, shift }
    }

    /// The index of the last one that is `address` or less.
    #[inline]
    pub fn last_up_to(&self, address: u64) -> Option<usize> {
        let offset = address.checked_sub(*self.starts.first()?)?;
        let row = usize::try_from(offset >> self.shift).unwrap_or(usize::MAX).min(self.rows.len() - 2);
        let (from, to) = (self.rows[row] as usize, self.rows[row + 1] as usize);
        let here = self.starts[from..to].partition_point(|&start| start <= address);
        // None of this stretch: the last one before it.
        Some(from + here - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::StartTable;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_same_as_a_search_by_halves(
            mut starts in proptest::collection::vec(prop_oneof![0..2000u64, any::<u64>()], 0..200),
            asked in proptest::collection::vec(prop_oneof![0..2100u64, any::<u64>()], 1..100),
        ) {
            starts.sort_unstable();
            let table = StartTable::of(starts.iter().copied());
            for address in asked.into_iter().chain(starts.iter().copied()).chain([0, u64::MAX]) {
                let expected = starts.partition_point(|&s| s <= address).checked_sub(1);
                prop_assert_eq!(table.last_up_to(address), expected);
            }
        }
    }
}
