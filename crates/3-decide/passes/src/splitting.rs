//! Which blocks leave the hot part of their function.

use crate::LayoutOptions;
use afterlink_layout::random;
use afterlink_program::{BlockId, FuncId, Program};
use afterlink_weigh::Weights;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    None,
    /// What never ran goes to the cold section.
    HotCold,
    /// A random half of each function; for tests.
    Random,
}

/// A function in its two parts, each in order; the cold one may be empty.
pub(crate) struct Parts {
    pub function: FuncId,
    pub hot: Vec<BlockId>,
    pub cold: Vec<BlockId>,
}

pub(crate) fn split(
    program: &Program,
    weights: &Weights,
    moved: &[FuncId],
    orders: Vec<Vec<BlockId>>,
    options: &LayoutOptions,
) -> Vec<Parts> {
    let parts = moved.iter().zip(orders).map(|(&function, order)| {
        let weights = weights.functions.get(function).filter(|w| w.is_hot());
        let coin = |block: BlockId| {
            let key = random::key_of(options.seed, program.functions[function].name.as_bytes());
            let at = program.functions[function].entry().get() ^ u64::from(block.0);
            random::key_of(key, &at.to_le_bytes()) & 1 == 1
        };
        let is_hot = |block: BlockId| {
            block == BlockId(0)
                || match (options.split, weights) {
                    (Split::None, _) => true,
                    (Split::HotCold, weights) => weights.is_some_and(|w| w.block(block) > 0),
                    (Split::Random, _) => coin(block),
                }
        };
        // A function that never ran is not split: all of it is cold, and stays together.
        let whole = options.split == Split::HotCold && weights.is_none();
        let (hot, cold) = order.into_iter().partition(|&b| whole || is_hot(b));
        Parts { function, hot, cold }
    });
    parts.collect()
}
