//! What the block differences of a world are like, before the typical one is put where it is wanted.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use super::super::looks::standard_normal as normal;

/// One block's difference, given its number.
pub type Shape = fn(&mut ChaCha8Rng, usize) -> f64;

fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    ((rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

fn exponential(rng: &mut ChaCha8Rng) -> f64 {
    -uniform(rng).ln()
}

/// `by` with this chance.
fn sometimes(rng: &mut ChaCha8Rng, share: f64, by: f64) -> f64 {
    if uniform(rng) < share { by } else { 0.0 }
}

fn power_law(rng: &mut ChaCha8Rng, index: f64) -> f64 {
    uniform(rng).powf(-1.0 / index) - 1.0
}

fn student(rng: &mut ChaCha8Rng, df: u32) -> f64 {
    let squares: f64 = (0..df).map(|_| normal(rng).powi(2)).sum();
    normal(rng) / (squares / f64::from(df)).sqrt()
}

/// Only B's layouts have a shape; the first set that `compare` was held against.
pub const ONE_SIDED: [(&str, Shape); 8] = [
    ("exponential, mean 1 %", |r, _| 0.01 * exponential(r)),
    ("exponential, mean 3 %", |r, _| 0.03 * exponential(r)),
    ("log-normal, 1 %, sigma 1", |r, _| 0.01 * normal(r).exp()),
    ("log-normal, 2 %, sigma 0.5", |r, _| 0.02 * (0.5 * normal(r)).exp()),
    ("5 % of layouts 20 % off", |r, _| sometimes(r, 0.05, 0.20)),
    ("10 % of layouts 15 % off", |r, _| sometimes(r, 0.10, 0.15)),
    ("30 % of layouts 3 % off", |r, _| sometimes(r, 0.30, 0.03)),
    ("power law, 1 %, index 2", |r, _| 0.01 * power_law(r, 2.0)),
];

/// Held out: no constant of the procedure was chosen with one of these, or with their seeds.
pub const HELD_OUT: [(&str, Shape); 23] = [
    ("gamma, shape 2, mean 1.5 %", |r, _| 0.0075 * (exponential(r) + exponential(r))),
    ("Weibull, shape 0.7, 1 %", |r, _| 0.01 * exponential(r).powf(1.0 / 0.7)),
    ("Weibull, shape 3, 5 %, fast", |r, _| -0.05 * exponential(r).powf(1.0 / 3.0)),
    ("two values, 15 % at 4 %", |r, _| sometimes(r, 0.15, 0.04)),
    ("two values, 45 % at 1.5 %", |r, _| sometimes(r, 0.45, 0.015)),
    ("three values, 0, 1.5, 4 %", |r, _| match uniform(r) {
        u if u < 0.15 => 0.04,
        u if u < 0.40 => 0.015,
        _ => 0.0,
    }),
    ("Student t, 3 df, 0.5 %", |r, _| 0.005 * student(r, 3)),
    ("Cauchy, 0.3 %", |r, _| 0.003 * student(r, 1)),
    ("B in steps of 0.5 %", |r, _| (2.4 * exponential(r)).floor() * 0.005),
    ("scale only, 0.2 and 1.5 %", |r, _| 0.015 * normal(r) - 0.002 * normal(r)),
    ("A skewed slow, B fast", |r, _| -0.008 * exponential(r) - 0.008 * exponential(r)),
    ("both skewed, 2 and 0.5 %", |r, _| 0.02 * exponential(r) - 0.005 * exponential(r)),
    ("a tenth of blocks 12 times noisier", |r, _| normal(r) * (0.004 + sometimes(r, 0.1, 0.046))),
    ("8 % of layouts up to 25 % slow", |r, _| 0.25 * uniform(r) * sometimes(r, 0.08, 1.0)),
    ("a third of blocks ten times noisier", |r, _| normal(r) * (0.003 + sometimes(r, 0.33, 0.027))),
    ("the first 20 blocks five times noisier", |r, block| normal(r) * if block < 20 { 0.02 } else { 0.004 }),
    ("arcsine, 1.5 %", |r, _| 0.015 * (std::f64::consts::PI * uniform(r)).cos()),
    ("Gumbel, 1 %", |r, _| -0.01 * exponential(r).ln()),
    ("A power law, 0.8 %, index 1.5", |r, _| -0.008 * power_law(r, 1.5)),
    ("uniform, 4 % wide, 5 % far off", |r, _| 0.04 * uniform(r) + sometimes(r, 0.05, -0.3)),
    // Tails that are just as frequent as what ten, fifteen and sixty blocks can miss.
    ("33 % of layouts 5 % off", |r, _| sometimes(r, 0.33, 0.05)),
    ("23.5 % of layouts 3 % off", |r, _| sometimes(r, 0.235, 0.03)),
    ("6.4 % of layouts 30 % off", |r, _| sometimes(r, 0.064, 0.30)),
];
