//! A small seeded generator: xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators").

/// The same stream for the same seed, everywhere and for good.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds give unlike streams; the state must not be zero.
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        random.number();
        random
    }

    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        ((self.number() >> 16) % end.max(1) as u64) as usize
    }

    /// One of `items`, which must not be empty.
    pub fn pick<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.below(items.len())]
    }
}
