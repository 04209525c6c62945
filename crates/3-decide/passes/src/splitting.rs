//! Which blocks leave the hot part of their function.

use crate::Parts;
use crate::pass::{OrderJob, Pass, Run};
use afterlink_layout::random;
use afterlink_layout::split::count_covering;
use afterlink_program::{BlockId, FuncId, Function, Program};
use afterlink_weigh::{Basis, FunctionWeights, Weights};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    None,
    /// What never ran goes to the cold section. Of a function of which no profile tells the inside: what the compiler split off, and what cannot have run.
    HotCold,
    /// A random half of each function; for tests.
    Random,
}

/// Share of what runs that the hot part covers unless options say otherwise: of what was counted, and of what was estimated, whose last
/// hundredths are mostly code that might have run.
const HOT_SHARE: f64 = 0.98;
const ESTIMATED_SHARE: f64 = 0.97;

/// Of what was sampled, what seems to run as often as once in so many executed bytes is hot, whatever the hot part covers: where much runs equally
/// often, half of it is seen more seldom than the rest by chance.
const OFTEN: u128 = 1_000_000;

pub(crate) const PASS: Pass = Pass {
    name: "splitting",
    what: "takes blocks out of the hot part of their function (--split)",
    by_default: true,
    off: Some("--split none"),
    has_work: |options| options.split != Split::None,
    run: Run::Order(split),
};

fn split(job: &OrderJob, parts: &mut Vec<Parts>) {
    let OrderJob { program, weights, options } = job;
    let moved: Vec<FuncId> = parts.iter().map(|p| p.function).collect();
    let warm_limit = warm_limit(program, weights, &moved, options.hot_share);
    for parts in parts {
        let (function, order) = (parts.function, std::mem::take(&mut parts.hot));
        let weights = weights.functions.get(function).filter(|w| w.is_hot() || !w.elsewhere.is_empty());
        *parts = match (options.split, weights) {
            (Split::Random, _) => random_halves(program, function, order, options.seed),
            (Split::HotCold, Some(weights)) if weights.inside_unknown => {
                as_compiled(function, &program.functions[function], order, weights, warm_limit)
            }
            (Split::HotCold, Some(weights)) => {
                by_heat(function, order, weights, |block| weights.block(block), warm_limit)
            }
            // Without a profile nothing tells the parts apart.
            _ => Parts { hot: order, ..Parts::empty(function) },
        };
    }
}

/// The count up to which executed blocks are warm: those above make up nearly all of what runs.
pub(crate) fn warm_limit(
    program: &Program,
    weights: &Weights,
    moved: &[FuncId],
    hot_share: Option<f64>,
) -> u64 {
    let usual = if weights.basis == Basis::Estimated { ESTIMATED_SHARE } else { HOT_SHARE };
    let (mut counts, mut sizes) = (Vec::new(), Vec::new());
    for &id in moved {
        let Some(weights) = weights.functions.get(id) else { continue };
        for (block, b) in program.functions[id].blocks.iter() {
            counts.push(weights.block(block));
            sizes.push(b.size);
        }
    }
    let limit = count_covering(&counts, &sizes, hot_share.unwrap_or(usual));
    if weights.basis != Basis::Sampled || hot_share.is_some() {
        return limit;
    }
    let executed: u128 =
        counts.iter().zip(&sizes).map(|(&count, &size)| u128::from(count) * u128::from(size)).sum();
    limit.min(u64::try_from(executed.div_ceil(OFTEN)).unwrap_or(u64::MAX))
}

fn by_heat(
    function: FuncId,
    order: Vec<BlockId>,
    weights: &FunctionWeights,
    heat: impl Fn(BlockId) -> u64,
    warm_limit: u64,
) -> Parts {
    let mut parts = Parts::empty(function);
    let any_hot = order.iter().any(|&b| heat(b) >= warm_limit);
    for block in order {
        let count = heat(block);
        let is_entry = block == BlockId(0);
        let ran = count > 0 || weights.elsewhere.contains(&block);
        let part = match (count >= warm_limit || is_entry && any_hot, ran || is_entry) {
            (true, _) => &mut parts.hot,
            (false, true) => &mut parts.warm,
            (false, false) => &mut parts.cold,
        };
        part.push(block);
    }
    parts
}

/// What the compiler left together stays so, but for blocks that cannot have run so often: the function ran, and any other of it may be as hot as all that is known of it.
fn as_compiled(
    id: FuncId,
    function: &Function,
    order: Vec<BlockId>,
    weights: &FunctionWeights,
    warm_limit: u64,
) -> Parts {
    let hottest = weights.blocks.iter().copied().max().unwrap_or(0);
    let is_main = |block| function.ranges[0].contains(function.blocks[block].input);
    let heat = |block| if is_main(block) { weights.at_most(block).min(hottest) } else { 0 };
    by_heat(id, order, weights, heat, warm_limit)
}

fn random_halves(program: &Program, function: FuncId, order: Vec<BlockId>, seed: u64) -> Parts {
    let key = random::key_of(seed, program.functions[function].name.as_bytes());
    let entry = program.functions[function].entry().get();
    let coin = |block: BlockId| random::key_of(key, &(entry ^ u64::from(block.0)).to_le_bytes()) & 1 == 1;
    let (hot, cold) = order.into_iter().partition(|&b| b == BlockId(0) || coin(b));
    Parts { hot, cold, ..Parts::empty(function) }
}

#[cfg(test)]
mod tests;
