//! Hot/cold splitting by counts: which blocks of a function leave its hot part.
//!
//! Takes a block order with counts, gives the hot and the cold blocks, each in that order. With
//! limit 0 this is the usual profile-guided split: what never ran is cold.

/// The two parts of a function, each in the order in which its blocks will stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HotCold {
    /// Never empty unless the function is: the entry is hot whatever its count.
    pub hot: Vec<u32>,
    pub cold: Vec<u32>,
}

/// Splits off the blocks with at most `cold_limit` executions. The first block of the order
/// stays hot.
pub fn split_hot_cold(order: &[u32], counts: &[u64], cold_limit: u64) -> HotCold {
    let entry = order.first().copied();
    let (hot, cold) = partition(order, |block| Some(block) == entry || counts[block as usize] > cold_limit);
    HotCold { hot, cold }
}

/// The largest count `c` such that the blocks with at least `c` executions together make up
/// `fraction` (0 to 1) of all executed bytes. Blocks below it hardly matter, wherever they
/// stand: code that ran once at start-up is as good as cold. 0 if nothing ran.
///
/// Use over the whole program: `counts` and `sizes` (bytes) name all its blocks.
pub fn count_covering(counts: &[u64], sizes: &[u32], fraction: f64) -> u64 {
    let mut executed: Vec<(u64, u128)> = counts
        .iter()
        .zip(sizes)
        .filter(|&(&count, &size)| count > 0 && size > 0)
        .map(|(&count, &size)| (count, u128::from(count) * u128::from(size)))
        .collect();
    executed.sort_unstable_by(|a, b| b.cmp(a));
    let total: u128 = executed.iter().map(|&(_, bytes)| bytes).sum();
    let wanted = total as f64 * fraction;
    let mut sum = 0;
    for (count, bytes) in executed {
        sum += bytes;
        if sum as f64 >= wanted {
            return count;
        }
    }
    0
}

/// The members of `order` for which `keep` holds, and the others, both in order.
pub(crate) fn partition(order: &[u32], keep: impl Fn(u32) -> bool) -> (Vec<u32>, Vec<u32>) {
    order.iter().copied().partition(|&node| keep(node))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ran_is_cold_but_the_entry_is_hot() {
        let split = split_hot_cold(&[0, 3, 1, 2, 4], &[0, 7, 0, 9, 1], 0);
        assert_eq!(split, HotCold { hot: vec![0, 3, 1, 4], cold: vec![2] });
        let split = split_hot_cold(&[0, 3, 1, 2, 4], &[0, 7, 0, 9, 1], 7);
        assert_eq!(split, HotCold { hot: vec![0, 3], cold: vec![1, 2, 4] });
        assert_eq!(split_hot_cold(&[], &[], 0), HotCold::default());
    }

    #[test]
    fn coverage_counts_bytes() {
        // 90 % of the executed bytes are in the block with count 9.
        let (counts, sizes) = ([9, 1, 0], [100, 100, 100]);
        assert_eq!(count_covering(&counts, &sizes, 0.5), 9);
        assert_eq!(count_covering(&counts, &sizes, 0.9), 9);
        assert_eq!(count_covering(&counts, &sizes, 0.91), 1);
        assert_eq!(count_covering(&counts, &sizes, 1.0), 1);
        assert_eq!(count_covering(&[0, 0], &[8, 8], 0.9), 0);
        assert_eq!(count_covering(&[u64::MAX; 2], &[u32::MAX; 2], 1.0), u64::MAX);
    }
}
