use super::*;
use afterlink_core::Error;

/// Searches `0..count` for `culprits`, which fail only together; also says how many questions that took.
fn search(count: u32, culprits: &[u32]) -> (Found<u32>, u32) {
    let items: Vec<u32> = (0..count).collect();
    let mut asked = 0;
    let found = minimize(&items, &mut |part| {
        asked += 1;
        Ok(culprits.iter().all(|c| part.contains(c)))
    });
    (found.unwrap(), asked)
}

#[test]
fn one_culprit_anywhere_costs_twice_the_logarithm() {
    for count in [1, 2, 3, 7, 100, 1000] {
        for culprit in 0..count {
            let (found, asked) = search(count, &[culprit]);
            assert_eq!(found, Found::Culprits(vec![culprit]));
            let halvings = f64::from(count).log2().ceil() as u32;
            assert!(asked <= 2 * halvings + 1, "{asked} questions for {culprit} of {count}");
        }
    }
}

#[test]
fn two_that_only_fail_together() {
    for a in 0..40 {
        for b in a + 1..40 {
            let (found, asked) = search(40, &[a, b]);
            assert_eq!(found, Found::Culprits(vec![a, b]));
            assert!(asked < 80, "{asked} questions");
        }
    }
    let (found, asked) = search(10_000, &[17, 9_002]);
    assert_eq!(found, Found::Culprits(vec![17, 9_002]));
    assert!(asked < 150, "{asked} questions");
}

#[test]
fn several_and_all() {
    assert_eq!(search(64, &[3, 4, 40, 41, 63]).0, Found::Culprits(vec![3, 4, 40, 41, 63]));
    assert_eq!(search(9, &[0, 1, 2, 3, 4, 5, 6, 7, 8]).0, Found::Culprits((0..9).collect()));
}

/// Whatever monotone predicate there is, the answer fails and none of its items can be spared.
#[test]
fn the_answer_is_minimal_for_either_of_two_sets() {
    let sets: [&[u32]; 3] = [&[5, 20], &[20, 21, 22], &[31]];
    let fails = |part: &[u32]| sets.iter().any(|s| s.iter().all(|i| part.contains(i)));
    let items: Vec<u32> = (0..32).collect();
    let Found::Culprits(found) = minimize(&items, &mut |part| Ok(fails(part))).unwrap() else { panic!() };
    assert!(fails(&found));
    for spared in 0..found.len() {
        let mut rest = found.clone();
        rest.remove(spared);
        assert!(!fails(&rest), "{found:?} without {spared}");
    }
}

#[test]
fn nothing_that_fails_alone_is_unsteady() {
    // It failed as a whole once and never again.
    let found = minimize(&[1, 2, 3, 4, 5], &mut |_: &[i32]| Ok(false)).unwrap();
    assert_eq!(found, Found::Unsteady);
}

#[test]
fn the_same_part_is_asked_once_but_for_the_last() {
    let mut asked: Vec<Vec<u32>> = Vec::new();
    let items: Vec<u32> = (0..50).collect();
    minimize(&items, &mut |part| {
        asked.push(part.to_vec());
        Ok(part.contains(&7) && part.contains(&30))
    })
    .unwrap();
    let last = asked.pop().unwrap();
    assert_eq!(last, [7, 30]);
    let count = asked.len();
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), count);
}

#[test]
fn an_error_ends_the_search() {
    let mut left = 3;
    let result = minimize(&(0..100).collect::<Vec<u32>>(), &mut |_| {
        left -= 1;
        if left == 0 { Err(Error::new("no shell")) } else { Ok(false) }
    });
    assert_eq!(result.unwrap_err().what, "no shell");
    assert_eq!(left, 0);
}
