use super::*;
use std::time::Instant;

/// A function of which nothing but samples is known; time of every block is 1.
fn fitted(successors: &[&[u32]], samples: &[f64]) -> Fitted {
    let successors: Vec<Vec<u32>> = successors.iter().map(|to| to.to_vec()).collect();
    let chances: Vec<Vec<f64>> = successors.iter().map(|to| vec![1.0 / to.len() as f64; to.len()]).collect();
    let time = vec![1.0; samples.len()];
    let leaving = vec![0.0; samples.len()];
    let model = Model {
        successors: &successors,
        samples,
        time: &time,
        chances: &chances,
        leaving: &leaving,
        called: None,
    };
    fit(&model)
}

#[test]
fn samples_that_fit_are_taken() {
    let fitted = fitted(&[&[1, 2], &[3], &[3], &[]], &[100.0, 30.0, 70.0, 100.0]);
    for (found, samples) in fitted.blocks.iter().zip([100.0, 30.0, 70.0, 100.0]) {
        assert!((found / samples - 1.0).abs() < 0.05, "{fitted:?}");
    }
}

#[test]
fn an_arm_that_was_not_seen_gets_a_fraction_of_a_sample() {
    let fitted = fitted(&[&[1, 2], &[3], &[3], &[]], &[20.0, 0.0, 20.0, 20.0]);
    assert!((0.01..0.5).contains(&fitted.blocks[1]), "{fitted:?}");
}

#[test]
fn what_comes_in_goes_out() {
    let fitted = fitted(&[&[1], &[2, 3], &[1], &[]], &[0.0, 90.0, 70.0, 0.0]);
    let mut come = [0.0; 4];
    come[0] = fitted.entries;
    fitted.ways.iter().flatten().for_each(|&(to, times)| come[to as usize] += times);
    for (come, times) in come.iter().zip(&fitted.blocks) {
        assert!((come / times - 1.0).abs() < 1e-6, "{fitted:?}");
    }
    assert!(fitted.blocks[1] > 20.0 * fitted.blocks[0], "{fitted:?}");
}

#[test]
fn one_block_far_too_slow_moves_the_others_little() {
    let fitted = fitted(&[&[1], &[2], &[3], &[4], &[]], &[10.0, 10.0, 3000.0, 10.0, 10.0]);
    assert!((5.0..60.0).contains(&fitted.blocks[0]), "{fitted:?}");
}

#[test]
fn a_thousand_blocks_take_a_tenth_of_a_second() {
    // Diamonds in loops, and samples that contradict each other.
    let successors: Vec<Vec<u32>> = (0..1000u32)
        .map(|b| match b % 4 {
            _ if b >= 997 => Vec::new(),
            0 => vec![b + 1, b + 2],
            1 | 2 => vec![b + 3 - b % 4],
            _ => vec![b + 1, b - 3, (b / 2) & !3],
        })
        .collect();
    let successors: Vec<&[u32]> = successors.iter().map(Vec::as_slice).collect();
    let samples: Vec<f64> = (0..1000u32).map(|b| f64::from(b.wrapping_mul(2_654_435_761) >> 26)).collect();
    let started = Instant::now();
    let fitted = fitted(&successors, &samples);
    let seconds = started.elapsed().as_secs_f64();
    assert!(fitted.blocks.iter().all(|times| times.is_finite()));
    let limit = if cfg!(debug_assertions) { 5.0 } else { 0.1 };
    // Other jobs may have the processor now and then.
    assert!(seconds < limit || fastest(&successors, &samples) < limit, "{seconds} s");
}

fn fastest(successors: &[&[u32]], samples: &[f64]) -> f64 {
    let time = || {
        let started = Instant::now();
        fitted(successors, samples);
        started.elapsed().as_secs_f64()
    };
    (0..10).map(|_| time()).fold(f64::INFINITY, f64::min)
}
