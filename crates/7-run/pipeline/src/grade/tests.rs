use super::evidence::median_of_hot;
use super::*;
use afterlink_profile::fdata;

fn graded(text: &str) -> Grade {
    grade(&fdata::read(text.as_bytes()).unwrap(), None).unwrap()
}

#[test]
fn the_worst_aspect_decides() {
    let dense: String = (0..10).map(|i| format!("1 a {i} 1 a {} 0 900\n", i + 1)).collect();
    assert_eq!(graded(&dense).grade, Mark::Good);
    assert_eq!(graded(&dense.replace("900", "20")).grade, Mark::Fair);
    assert_eq!(graded(&dense.replace("900", "2")).grade, Mark::Poor);
    assert_eq!(graded("").grade, Mark::Useless);
    let samples = graded("no_lbr cycles\n1 a 4 1000\n1 a 8 1000\n");
    assert_eq!(samples.grade, Mark::Fair);
    assert_eq!(samples.aspects[1].mark, Mark::Good);
    assert!(samples.to_string().contains("better kind: count with `afterlink instrument`"), "{samples}");
}

#[test]
fn hot_blocks_hold_nearly_all() {
    assert_eq!(median_of_hot(&[]), (0, 0));
    assert_eq!(median_of_hot(&[5]), (1, 5));
    // 990 of 1,000 are in the first two.
    assert_eq!(median_of_hot(&[1, 500, 4, 490, 5]), (2, 490));
}
