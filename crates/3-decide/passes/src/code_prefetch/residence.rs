//! Which code is most likely in the cache, told from counts alone.
//!
//! Each block is taken to run at random times, as often as it was counted, whatever ran before (the independent reference model). Then a cache that
//! throws out what was used least recently keeps just what ran within some time, nearly the same for all: the time in which as many bytes run as fit
//! (Che, Tung, Wang, "Hierarchical web caching systems: modeling, design and experimental results", 2002).

use afterlink_program::{FuncId, Program};
use afterlink_weigh::Weights;

/// Bytes of the first-level instruction cache of most processors: 32 KiB (Zen 1 to Zen 5, Intel's up to Raptor Lake).
const CACHE: f64 = 32768.0;
/// Halvings of an interval of powers of two, which leave less than a thousandth.
const STEPS: usize = 60;

/// How long code stays in the cache.
pub(super) struct Residence {
    /// In runs of the whole profile; infinite if everything fits.
    time: f64,
}

impl Residence {
    /// Of the blocks of these functions that ran.
    pub fn of(program: &Program, weights: &Weights, functions: &[FuncId]) -> Self {
        let ran = functions.iter().flat_map(|&id| {
            let own = &weights.functions[id];
            let blocks = program.functions[id].blocks.iter();
            blocks.map(|(block, code)| (f64::from(code.size), own.block(block)))
        });
        let ran: Vec<(f64, f64)> =
            ran.filter(|(_, count)| *count > 0).map(|(size, count)| (size, count as f64)).collect();
        Self::of_blocks(&ran, CACHE)
    }

    /// `blocks` are bytes, and how often they ran.
    fn of_blocks(blocks: &[(f64, f64)], cache: f64) -> Self {
        let kept =
            |time: f64| -> f64 { blocks.iter().map(|(size, count)| size * -(-count * time).exp_m1()).sum() };
        if blocks.iter().map(|(size, _)| size).sum::<f64>() <= cache {
            return Self { time: f64::INFINITY };
        }
        // What is kept grows with the time: no block ran more often than 2^64 times, and one that ran once is kept after a few runs.
        let (mut low, mut high) = (-64.0, 8.0);
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            if kept(middle.exp2()) < cache { low = middle } else { high = middle }
        }
        Self { time: low.exp2() }
    }

    /// The probability that code that ran so often is not there when control comes to it.
    pub fn missing(&self, count: u64) -> f64 {
        if count == 0 { 1.0 } else { (-(count as f64) * self.time).exp() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_never_missing() {
        let residence = Residence::of_blocks(&[(100.0, 5.0), (28.0, 1.0)], 128.0);
        assert_eq!((residence.missing(5), residence.missing(1)), (0.0, 0.0));
    }

    /// Of blocks that run alike, as many are there as fit: of four quarters of twice the cache, each is missing every other time.
    #[test]
    fn equal_blocks_share_the_cache() {
        let residence = Residence::of_blocks(&[(64.0, 7.0); 4], 128.0);
        assert!((residence.missing(7) - 0.5).abs() < 1e-6, "{}", residence.missing(7));
    }

    #[test]
    fn what_runs_often_stays() {
        let residence = Residence::of_blocks(&[(64.0, 1000.0), (1000.0, 10.0)], 128.0);
        assert!(residence.missing(1000) < 0.01 && residence.missing(10) > 0.9);
        // What is there in all is what fits.
        let there = 64.0 * (1.0 - residence.missing(1000)) + 1000.0 * (1.0 - residence.missing(10));
        assert!((there - 128.0).abs() < 0.01, "{there}");
    }

    #[test]
    fn extreme_counts_have_an_answer() {
        let residence = Residence::of_blocks(&[(200.0, u64::MAX as f64), (200.0, 1.0)], 128.0);
        assert!((0.0..=1.0).contains(&residence.missing(u64::MAX)));
        assert!(residence.missing(1) > 0.99);
    }
}
