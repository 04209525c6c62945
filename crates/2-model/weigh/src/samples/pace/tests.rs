use super::*;

/// Blocks that run 10 and 100 times with an instruction behind an addition, and one behind a load that takes so many times as long.
fn blocks(times: u64) -> Vec<Timed> {
    let kinds = vec![Work::Plain as u8, Work::Load as u8];
    (0..200)
        .map(|i| if i % 2 == 0 { 10 } else { 100 })
        .map(|n| Timed { kinds: kinds.clone(), samples: vec![n, n * times] })
        .collect()
}

#[test]
fn what_takes_longer_is_learned_from_samples_alone() {
    for times in [1, 5] {
        let pace = Pace::learn(blocks(times).iter());
        let ratio = pace.0[Work::Load as usize] / pace.0[Work::Plain as usize];
        assert!((ratio / times as f64 - 1.0).abs() < 0.1, "{ratio}");
    }
}

#[test]
fn what_was_not_seen_stays_as_usual() {
    let pace = Pace::learn(blocks(2).iter());
    assert_eq!(pace.0[Work::Divide as usize], usual(Work::Divide as u8));
}

#[test]
fn kinds_are_in_the_order_of_work() {
    assert!(usual(Work::Divide as u8) > usual(Work::Load as u8));
    assert!(usual(Work::KINDS as u8 + Work::Load as u8) <= AT_BLOCK);
    assert!((0..KINDS as u8).all(|kind| usual(kind) > 0.0));
}
