//! The order of a few blocks with the best fall-throughs there are.
//!
//! Fall-throughs earn nearly all of a score. Without the short jumps the problem is the travelling salesman's, whose
//! best path through few blocks is found by going through all sets of blocks: M. Held and R. Karp, "A Dynamic
//! Programming Approach to Sequencing Problems", 1962. Merging chains misses it now and then, because it never takes
//! back what it has joined.

use super::jumps::Flow;

/// More executed blocks than this would take too long: time and memory grow by more than twofold with each.
pub const MOST_BLOCKS: usize = 12;

/// The best path from `blocks[0]` through all of `blocks`, by fall-throughs alone. `None` if there are too many.
pub fn best_fall_throughs(flow: &Flow, blocks: &[u32]) -> Option<Vec<u32>> {
    if !(3..=MOST_BLOCKS).contains(&blocks.len()) {
        return None;
    }
    let len = blocks.len();
    let mut index = vec![usize::MAX; flow.sizes.len()];
    for (i, &block) in blocks.iter().enumerate() {
        index[block as usize] = i;
    }
    let mut worth = vec![0i64; len * len];
    for jump in &flow.jumps {
        let [from, to] = [jump.from, jump.to].map(|block| index[block as usize]);
        if from != usize::MAX && to != usize::MAX {
            worth[from * len + to] = flow.most_earned(jump).fallthroughs();
        }
    }
    Some(best_path(&worth, len).into_iter().map(|i| blocks[i]).collect())
}

/// The path over `0..len` from 0 that earns most; `worth[a * len + b]` is earned by `b` right behind `a`.
fn best_path(worth: &[i64], len: usize) -> Vec<usize> {
    // A set has a bit for each place but 0, which is in all of them.
    let bit = |place: usize| 1usize << (place - 1);
    let sets = 1usize << (len - 1);
    // What the best path through a set earns that ends at a block of it, and the block before that end.
    let mut earned = vec![i64::MIN; sets * len];
    let mut before = vec![0u8; sets * len];
    earned[0] = 0;
    for set in 0..sets {
        let starts = (set == 0).then_some(0);
        for last in starts.into_iter().chain(places(set)) {
            let so_far = earned[set * len + last];
            for next in places(!set & (sets - 1)) {
                let place = (set | bit(next)) * len + next;
                let sum = so_far + worth[last * len + next];
                if sum > earned[place] {
                    earned[place] = sum;
                    before[place] = last as u8;
                }
            }
        }
    }
    let mut set = sets - 1;
    let mut last = (1..len).rev().max_by_key(|&last| earned[set * len + last]).unwrap_or(0);
    let mut path = vec![last];
    while last != 0 {
        let previous = usize::from(before[set * len + last]);
        set &= !bit(last);
        last = previous;
        path.push(last);
    }
    path.reverse();
    path
}

/// The places of a set, ascending.
fn places(mut set: usize) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = (set != 0).then(|| set.trailing_zeros() as usize + 1);
        set &= set.wrapping_sub(1);
        first
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most that any order earns, by trying them all.
    fn by_trying(worth: &[i64], len: usize, path: &mut Vec<usize>) -> i64 {
        let last = *path.last().unwrap();
        let mut best = 0;
        for next in (0..len).filter(|next| !path.contains(next)).collect::<Vec<_>>() {
            path.push(next);
            best = best.max(worth[last * len + next] + by_trying(worth, len, path));
            path.pop();
        }
        best
    }

    #[test]
    fn no_order_earns_more() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for round in 0..300 {
            let len = 3 + round % 5;
            let worth: Vec<i64> =
                (0..len * len).map(|_| if random(3) == 0 { random(100) as i64 } else { 0 }).collect();
            let path = best_path(&worth, len);
            let earned: i64 = path.windows(2).map(|pair| worth[pair[0] * len + pair[1]]).sum();
            assert_eq!(earned, by_trying(&worth, len, &mut vec![0]), "{worth:?}: {path:?}");
            let mut all = path.clone();
            all.sort_unstable();
            assert_eq!((path[0], all), (0, (0..len).collect()));
        }
    }
}
