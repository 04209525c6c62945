//! Pairs blocks in the order in which they stand, between those that have pairs already: the alignment of two sequences that has most in common (Needleman
//! and Wunsch).

use super::features::{Content, similarity};

/// Larger products of sequences are left out.
const MOST: usize = 4_000_000;

/// New pairs of blocks that have at least `least` in common.
pub(super) fn align(
    new_of: &[Option<u32>],
    old: &Content,
    new: &Content,
    least: f64,
    is_taken: impl Fn(u32) -> bool,
) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    let paired = (0u32..).zip(new_of).filter_map(|(old, new)| Some((old, (*new)?)));
    let mut kept = in_order(&paired.collect::<Vec<_>>());
    kept.push((old.len() as u32, new.len() as u32));
    let mut start = (0, 0);
    for end in kept {
        let from: Vec<u32> = (start.0..end.0).filter(|&block| new_of[block as usize].is_none()).collect();
        let to: Vec<u32> = (start.1..end.1).filter(|&block| !is_taken(block)).collect();
        align_gap(&from, &to, old, new, least, &mut found);
        start = (end.0 + 1, end.1 + 1);
    }
    found
}

/// The most pairs that are in the same order on both sides; they come by ascending first.
fn in_order(pairs: &[(u32, u32)]) -> Vec<(u32, u32)> {
    // For each length, the chain that ends lowest: its last pair.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; pairs.len()];
    for (i, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|&end| pairs[end].1 < pair.1);
        before[i] = length.checked_sub(1).map(|shorter| ends[shorter]);
        match ends.get_mut(length) {
            Some(end) => *end = i,
            None => ends.push(i),
        }
    }
    let mut chain = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied();
    while let Some(i) = at {
        chain.push(pairs[i]);
        at = before[i];
    }
    chain.reverse();
    chain
}

fn align_gap(
    from: &[u32],
    to: &[u32],
    old: &Content,
    new: &Content,
    least: f64,
    found: &mut Vec<(u32, u32)>,
) {
    if from.is_empty() || to.is_empty() || from.len() * to.len() > MOST {
        return;
    }
    let width = to.len() + 1;
    let mut best = vec![0f32; (from.len() + 1) * width];
    let mut pairs = vec![false; from.len() * to.len()];
    for (i, &a) in from.iter().enumerate().rev() {
        for (j, &b) in to.iter().enumerate().rev() {
            let (a, b) = (&old.blocks[a as usize].bag, &new.blocks[b as usize].bag);
            let alike = similarity(a, b);
            let skip = best[(i + 1) * width + j].max(best[i * width + j + 1]);
            let gain = if alike >= least { alike * (1.0 + a.len().min(b.len()) as f64) } else { 0.0 };
            let both = best[(i + 1) * width + j + 1] + gain as f32;
            pairs[i * to.len() + j] = gain > 0.0 && both > skip;
            best[i * width + j] = both.max(skip);
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < from.len() && j < to.len() {
        if pairs[i * to.len() + j] {
            found.push((from[i], to[j]));
            (i, j) = (i + 1, j + 1);
        } else if best[(i + 1) * width + j] >= best[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_chain_in_order_is_kept() {
        let pairs = [(0, 0), (1, 7), (2, 8), (3, 3), (4, 4), (6, 5), (7, 1), (8, 6)];
        assert_eq!(in_order(&pairs), [(0, 0), (3, 3), (4, 4), (6, 5), (8, 6)]);
        assert_eq!(in_order(&[]), []);
    }
}
