//! The words of sites to how often each indirect call or jump led to which function.

use afterlink_core::counter_description::{Description, Entries, SITE_WORDS, TARGETS};
use rustc_hash::FxHashMap;

/// What a site counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Functions by the numbers of their names, ascending, and how often each was the target.
    pub functions: Vec<(u32, u64)>,
    /// How often anything else was.
    pub others: u64,
}

/// How many of the counters are words of sites.
pub(super) fn words(description: &Description) -> usize {
    let blocks = description.functions.iter().flat_map(|function| &function.blocks);
    blocks.map(|block| block.sites.len()).sum::<usize>().saturating_mul(SITE_WORDS)
}

/// What the sites counted, in their order.
pub(super) fn read(entries: &Entries, words: &[u64]) -> Vec<Counted> {
    let by_place = by_place(entries);
    words.chunks_exact(SITE_WORDS).map(|site| of_site(&by_place, site)).collect()
}

/// The names of functions by how far from the base they start. One that moved can still be called at its old place.
fn by_place(entries: &Entries) -> FxHashMap<u64, u32> {
    let old = entries.rows.iter().map(|row| (row.input.wrapping_sub(entries.base), row.name));
    let new = entries.rows.iter().map(|row| (u64::from(row.place), row.name));
    old.chain(new).collect()
}

fn of_site(by_place: &FxHashMap<u64, u32>, site: &[u64]) -> Counted {
    let mut counted = Counted { functions: Vec::new(), others: site[2 * TARGETS] };
    for pair in site[..2 * TARGETS].chunks_exact(2).filter(|pair| pair[1] > 0) {
        match by_place.get(&pair[0]).filter(|_| pair[0] > 0) {
            Some(&name) => counted.functions.push((name, pair[1])),
            None => counted.others = counted.others.saturating_add(pair[1]),
        }
    }
    counted.functions.sort_unstable();
    // A target may stand there twice, under its old and its new place, or if the words were reset in between.
    counted.functions.dedup_by(|next, last| {
        let same = next.0 == last.0;
        if same {
            last.1 = last.1.saturating_add(next.1);
        }
        same
    });
    counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use afterlink_core::counter_description::Entry;

    #[test]
    fn targets_are_known_by_their_old_and_their_new_place() {
        let rows = vec![
            Entry { name: 3, input: 0x1010, place: 0x5000 },
            Entry { name: 4, input: 0x1020, place: 0x5010 },
        ];
        let entries = Entries { base: 0x1000, rows };
        let mut words = vec![0; SITE_WORDS];
        words[..8].copy_from_slice(&[0x5010, 7, 0x10, 2, 0x5000, 5, 0x5001, 1]);
        words[SITE_WORDS - 1] = 20;
        words.extend(vec![0; SITE_WORDS]);
        let expected = Counted { functions: vec![(3, 7), (4, 7)], others: 21 };
        assert_eq!(read(&entries, &words), [expected, Counted::default()]);
    }

    #[test]
    fn what_has_no_target_yet_is_nobodys() {
        let entries = Entries { base: 0x1000, rows: vec![Entry { name: 0, input: 0x1000, place: 0 }] };
        let mut words = vec![0; SITE_WORDS];
        words[1] = 9;
        assert_eq!(read(&entries, &words), [Counted { functions: Vec::new(), others: 9 }]);
    }
}
