//! How much passes may copy that take away what costs time: by what each copy saves for its bytes, up to a share of the code that runs.

use afterlink_program::{FuncId, Program};
use afterlink_weigh::Weights;

/// Bytes of code that ran up to which it may take more lines of cache: some more than instruction caches hold. There jumps, calls and short first fetches
/// cost more than misses do (`docs/decisions/0016-what-a-zen-5-says.md`).
pub(crate) const LITTLE: u64 = 128 << 10;

/// Bytes that any copy takes besides its own: what stands around it.
const AROUND: u64 = 4;

/// What might be copied.
pub(crate) struct Offer<T> {
    pub what: T,
    /// How often it would save something.
    pub count: u64,
    /// Bytes that it takes.
    pub cost: u64,
}

/// What saves something once for each byte.
pub(crate) const WHOLE: u64 = 1 << 16;

/// What saves so often is worth so much for so many bytes.
pub(crate) fn worth(count: u64, cost: u64) -> u64 {
    count.saturating_mul(WHOLE) / (cost + AROUND)
}

/// The best of what might be copied, the first of equal ones by `place`, as far as so many bytes go.
pub(crate) fn best<T, P: Ord>(mut offers: Vec<Offer<T>>, bytes: u64, place: impl Fn(&T) -> P) -> Vec<T> {
    let worth = |offer: &Offer<T>| worth(offer.count, offer.cost);
    offers.sort_by(|a, b| worth(b).cmp(&worth(a)).then_with(|| place(&a.what).cmp(&place(&b.what))));
    let mut left = bytes;
    let taken = offers.into_iter().filter_map(|offer| {
        left = left.checked_sub(offer.cost)?;
        Some(offer.what)
    });
    taken.collect()
}

/// Bytes of the blocks of these functions that ran.
pub(crate) fn hot_bytes(program: &Program, weights: &Weights, functions: &[FuncId]) -> u64 {
    hot_blocks(program, weights, functions).map(|(_, size)| size).sum()
}

/// How often a byte of the blocks that ran does so, on average.
pub(crate) fn mean_count(program: &Program, weights: &Weights, functions: &[FuncId]) -> u64 {
    let (mut executed, mut bytes) = (0u128, 0u128);
    for (count, size) in hot_blocks(program, weights, functions) {
        executed += u128::from(count) * u128::from(size);
        bytes += u128::from(size);
    }
    (executed / bytes.max(1)) as u64
}

/// How often the blocks of these functions ran that did, and their bytes.
fn hot_blocks<'w>(
    program: &'w Program,
    weights: &'w Weights,
    functions: &'w [FuncId],
) -> impl Iterator<Item = (u64, u64)> + 'w {
    functions.iter().flat_map(|&id| {
        let own = &weights.functions[id];
        let blocks = program.functions[id].blocks.iter();
        let counted = blocks.map(|(id, block)| (own.block(id), u64::from(block.size)));
        counted.filter(|(count, _)| *count > 0)
    })
}
