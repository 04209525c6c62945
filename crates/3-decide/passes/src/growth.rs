//! How much passes may copy that take away what costs time: by what each copy saves for its bytes, up to a share of the code that runs.

use afterlink_program::{FuncId, Program};
use afterlink_weigh::Weights;

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

/// The best of what might be copied, the first of equal ones by `place`, as far as so many bytes go.
pub(crate) fn best<T, P: Ord>(mut offers: Vec<Offer<T>>, bytes: u64, place: impl Fn(&T) -> P) -> Vec<T> {
    let worth = |offer: &Offer<T>| offer.count.saturating_mul(1 << 16) / (offer.cost + AROUND);
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
    let ran = functions.iter().flat_map(|&id| {
        let own = &weights.functions[id];
        program.functions[id].blocks.iter().filter(|(block, _)| own.block(*block) > 0)
    });
    ran.map(|(_, block)| u64::from(block.size)).sum()
}
