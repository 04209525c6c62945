use super::*;

#[test]
fn functions_start_anywhere_in_a_line_where_their_alignment_lets_them() {
    for (step, choices) in [(16, 4), (32, 2), (64, 1), (128, 1), (4096, 1)] {
        let mut found: Vec<u64> = (0..64).map(|seed| offset_in_line(seed, b"function", step)).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, (0..choices).map(|choice| choice * step).collect::<Vec<_>>());
    }
}
