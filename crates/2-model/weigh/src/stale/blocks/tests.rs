use super::*;

/// A function of blocks with these instructions, each a number, that lead to these blocks.
fn content(blocks: &[(&[u32], &[u32])]) -> Content {
    let mut before = vec![Vec::new(); blocks.len()];
    for (from, (_, ways)) in (0..).zip(blocks) {
        ways.iter().for_each(|&to| before[to as usize].push(from));
    }
    let features = blocks.iter().map(|(code, _)| {
        let mut bag = code.to_vec();
        bag.sort_unstable();
        let hash = code.iter().fold(7u64, |hash, &one| hash.wrapping_mul(1009).wrapping_add(u64::from(one)));
        Features { exact: hash, shape: hash, operations: hash, bag, ..Features::default() }
    });
    Content { blocks: features.collect(), ways: blocks.iter().map(|b| b.1.to_vec()).collect(), before }
}

fn paired(old: &Content, new: &Content) -> Vec<Option<u32>> {
    pair(old, new).iter().map(|to| to.map(|to| to.0)).collect()
}

#[test]
fn the_same_is_found_wherever_it_stands() {
    let old = content(&[(&[1, 2], &[1, 2]), (&[3, 4], &[3]), (&[5, 6], &[3]), (&[9], &[])]);
    let new = content(&[(&[1, 2], &[3, 1]), (&[5, 6], &[2]), (&[9], &[]), (&[3, 4], &[2])]);
    assert_eq!(paired(&old, &new), [Some(0), Some(3), Some(1), Some(2)]);
    assert_eq!(paired(&old, &old), [Some(0), Some(1), Some(2), Some(3)]);
}

/// Two blocks with the same code are told apart by what is around them.
#[test]
fn twins_are_told_apart_by_their_neighbours() {
    let old = content(&[(&[1], &[1, 2]), (&[8], &[3]), (&[8], &[4]), (&[3], &[]), (&[4], &[])]);
    let new = content(&[(&[1], &[2, 1]), (&[8], &[4]), (&[8], &[3]), (&[3], &[]), (&[4], &[])]);
    assert_eq!(paired(&old, &new), [Some(0), Some(2), Some(1), Some(3), Some(4)]);
}

/// A block that was put between two, and one that changed a little: the ways, and the order, lead around the one and to the other.
#[test]
fn what_changed_is_found_between_what_did_not() {
    let old = content(&[(&[1, 2], &[1]), (&[10, 11, 12, 13], &[2]), (&[20, 21], &[])]);
    let new = content(&[(&[1, 2], &[1, 3]), (&[10, 11, 14, 13], &[2]), (&[20, 21], &[]), (&[99, 98], &[2])]);
    assert_eq!(paired(&old, &new), [Some(0), Some(1), Some(2)]);
    let nothing_alike = content(&[(&[50], &[1]), (&[51, 52], &[])]);
    assert_eq!(paired(&old, &nothing_alike), [Some(0), None, None]);
    assert_eq!(paired(&content(&[]), &new), []);
}
