//! Orders that know nothing of a profile: input, reverse, and seeded random ones.
//!
//! They serve to test that a program survives any order, and to measure how much of a speed
//! difference is mere layout. All streams are fixed for good: the ChaCha8 generator by its
//! specification, everything else by the code below, so a seed names the same layout in every
//! version of the tool.
//!
//! The keyed shuffle orders things by a hash of seed and name. Two builds of a program that
//! share most functions get nearly the same order from the same seed: each function falls where
//! it falls, whatever the others are.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// `0..len`.
pub fn input_order(len: usize) -> Vec<u32> {
    (0..len as u32).collect()
}

/// `0..len` backwards.
pub fn reverse_order(len: usize) -> Vec<u32> {
    (0..len as u32).rev().collect()
}

/// 0, then the others backwards: for blocks, whose entry stays first.
pub fn reverse_order_after_first(len: usize) -> Vec<u32> {
    (0..len.min(1) as u32).chain((1..len as u32).rev()).collect()
}

/// A random permutation of `0..len`: each of the `len!` is as likely as the next. Different
/// `stream`s of one seed are independent.
pub fn random_order(len: usize, seed: u64, stream: u64) -> Vec<u32> {
    let mut order = input_order(len);
    shuffle(&mut order, seed, stream);
    order
}

/// A random permutation that leaves 0 where it is: for blocks, whose entry stays first.
pub fn random_order_after_first(len: usize, seed: u64, stream: u64) -> Vec<u32> {
    let mut order = input_order(len);
    if let Some((_, rest)) = order.split_first_mut() {
        shuffle(rest, seed, stream);
    }
    order
}

/// The indices of `names` by the hash of seed and name; equal hashes (equal names) in input order.
pub fn keyed_order<N: AsRef<[u8]>>(names: &[N], seed: u64) -> Vec<u32> {
    let keys: Vec<u64> = names.iter().map(|name| key_of(seed, name.as_ref())).collect();
    let mut order = input_order(names.len());
    order.sort_by_key(|&index| keys[index as usize]);
    order
}

/// A 64-bit key of a seed and a name: FNV-1a over the name, then twice the finalizer of
/// SplitMix64 around the seed. Also fit as a `stream` of its own for each function.
pub fn key_of(seed: u64, name: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for &byte in name {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    mix(mix(hash) ^ mix(seed ^ 0x9e37_79b9_7f4a_7c15))
}

/// The finalizer of SplitMix64.
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Fisher and Yates: from the end, each place takes one of the items up to it.
fn shuffle(items: &mut [u32], seed: u64, stream: u64) {
    let mut key = [0; 32];
    for (word, chunk) in (1u64..).zip(key.chunks_exact_mut(8)) {
        chunk
            .copy_from_slice(&mix(seed.wrapping_add(word.wrapping_mul(0x9e37_79b9_7f4a_7c15))).to_le_bytes());
    }
    let mut generator = ChaCha8Rng::from_seed(key);
    generator.set_stream(stream);
    for last in (1..items.len()).rev() {
        items.swap(last, below(&mut generator, last as u64 + 1) as usize);
    }
}

/// A number below `bound`, each equally likely: draws from the incomplete last stretch of the
/// 64-bit range are thrown away.
fn below(generator: &mut ChaCha8Rng, bound: u64) -> u64 {
    let whole = u64::MAX - u64::MAX % bound;
    loop {
        let draw = generator.next_u64();
        if draw < whole {
            return draw % bound;
        }
    }
}

#[cfg(test)]
mod tests;
