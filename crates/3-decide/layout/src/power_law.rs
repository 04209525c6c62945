//! `x` to a negative power, the same on every machine.
//!
//! The C library's `pow` may differ in the last bit between machines, and one bit can turn a tie
//! and with it a layout. This one uses only operations that IEEE 754 rounds exactly: a table over
//! the mantissa with linear interpolation, times a table over the exponent. Its relative error
//! stays below 10^-6 for powers up to 1.

/// Steps of the table between one power of two and the next.
const STEPS: usize = 1024;

/// The function `x` to the power `-exponent` on whole numbers from 1.
pub(crate) struct PowerLaw {
    /// `(1 + i / STEPS)` to the power, for `i` up to and with `STEPS`.
    mantissa: Vec<f64>,
    /// `2^e` to the power.
    octave: Vec<f64>,
}

impl PowerLaw {
    pub(crate) fn new(exponent: f64) -> Self {
        let mantissa = (0..=STEPS).map(|i| inverse_power(1.0 + i as f64 / STEPS as f64, exponent)).collect();
        let step = inverse_power(2.0, exponent);
        let octave = std::iter::successors(Some(1.0), |value| Some(value * step)).take(64).collect();
        Self { mantissa, octave }
    }

    /// `x` to the power; 0 counts as 1.
    #[inline]
    pub(crate) fn of(&self, x: u64) -> f64 {
        let octave = x.max(1).ilog2();
        // The mantissa as 64 bits behind the point: the leading one shifted out.
        let fraction = if octave == 0 { 0 } else { x << (64 - octave) };
        let step = (fraction >> 54) as usize;
        let within = (fraction << 10) as f64 / 2f64.powi(64);
        let low = self.mantissa[step];
        (low + (self.mantissa[step + 1] - low) * within) * self.octave[octave as usize]
    }

    /// One tenth to the power: what a distance of nothing counts as in cdsort.
    pub(crate) fn of_one_tenth(exponent: f64) -> f64 {
        1.0 / inverse_power(10.0, exponent)
    }
}

/// `1 / x^exponent` for `x >= 1` by repeated square roots: one for each bit of the exponent.
fn inverse_power(x: f64, exponent: f64) -> f64 {
    let mut power = 1.0;
    for _ in 0..exponent as u32 {
        power *= x;
    }
    let mut bits = exponent.fract();
    let mut root = x;
    for _ in 0..50 {
        root = root.sqrt();
        bits *= 2.0;
        if bits >= 1.0 {
            bits -= 1.0;
            power *= root;
        }
    }
    1.0 / power
}

#[cfg(test)]
mod tests {
    use super::PowerLaw;

    #[test]
    fn agrees_with_the_c_library() {
        for exponent in [0.05, 0.15, 0.25, 0.5, 1.0] {
            let law = PowerLaw::new(exponent);
            let numbers = (1..5000).chain((0..64).map(|e| 1 << e)).chain([u64::MAX, 123_456_789_123]);
            for x in numbers {
                let expected = (x as f64).powf(-exponent);
                let error = (law.of(x) - expected).abs() / expected;
                assert!(error < 1e-6, "{x}^-{exponent}: {} is not {expected}", law.of(x));
            }
            assert!((PowerLaw::of_one_tenth(exponent) - 0.1f64.powf(-exponent)).abs() < 1e-12);
        }
    }

    #[test]
    fn never_rises() {
        let law = PowerLaw::new(0.25);
        for x in 1..100_000 {
            assert!(law.of(x + 1) <= law.of(x), "at {x}");
        }
    }
}
