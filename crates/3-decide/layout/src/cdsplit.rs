//! Where to part a function's hot blocks in hot and warm, once the order of functions is known.
//!
//! Takes the hot blocks of all functions in their final order, gives for each function how many
//! of them stay; the rest goes to a warm part behind all hot ones. Moving blocks away makes the
//! jumps to them longer, but every call that leads over the function gets shorter. A jump is
//! worth count / (length + 1)^0.15 and a call 0.95 * count / (length + 1)^0.05; each function
//! takes the split with the highest sum. Functions are judged one by one against the original
//! addresses, so their order of treatment does not matter.
//!
//! The "CDSplit" strategy of BOLT, by S. Pupyrev and others (2023). One thing differs: the calls
//! that lead over a function are kept in buckets by length while sweeping over the functions,
//! eight to an octave, each standing for its mean length; so a function costs a few hundred
//! steps, not as many as the program has calls.

mod cover_calls;
#[cfg(test)]
mod tests;

use crate::graph::FlowEdge;
use crate::power_law::PowerLaw;
use cover_calls::CoverCalls;

/// The published constants; sizes in bytes, for x86-64.
#[derive(Clone, Debug, PartialEq)]
pub struct CdSplitParams {
    /// The weight of a call against a jump.
    pub call_scale: f64,
    /// How fast the worth of a call, and of a jump, falls with its length.
    pub call_power: f64,
    pub jump_power: f64,
    /// A new jump where a fall-through is cut.
    pub new_jump: u32,
    /// What an unconditional, and a conditional, jump grows by when its target moves away.
    pub jump_growth: u32,
    pub conditional_growth: u32,
}

impl Default for CdSplitParams {
    fn default() -> Self {
        Self {
            call_scale: 0.95,
            call_power: 0.05,
            jump_power: 0.15,
            new_jump: 5,
            jump_growth: 3,
            conditional_growth: 4,
        }
    }
}

/// The hot part of one function. Blocks are named by their position in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HotFunction {
    /// Bytes of each hot block, in layout order.
    pub sizes: Vec<u32>,
    /// Distinct jumps and fall-throughs between hot blocks; those with count 0 too.
    pub jumps: Vec<FlowEdge>,
    pub calls: Vec<HotCall>,
    /// Whether the function may be split at all.
    pub can_split: bool,
}

/// A call from the end of a hot block to the start of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotCall {
    /// The position of the calling block.
    pub block: u32,
    /// The callee's index in the order of functions.
    pub callee: u32,
    pub count: u64,
}

/// For each function the number of blocks, from its first, that stay hot. All of them means: do
/// not split. Functions of one or two blocks are never split.
pub fn split_points(functions: &[HotFunction], params: &CdSplitParams) -> Vec<u32> {
    let splitter = Splitter::new(functions, params);
    let mut cover = CoverCalls::new(functions, &splitter.starts);
    let mut points = Vec::with_capacity(functions.len());
    for (function, index) in functions.iter().zip(0..) {
        let calls = cover.over(index);
        points.push(if function.can_split && function.sizes.len() > 2 {
            splitter.split_point(index, calls)
        } else {
            function.sizes.len() as u32
        });
    }
    points
}

/// What all functions share.
struct Splitter<'a> {
    functions: &'a [HotFunction],
    params: &'a CdSplitParams,
    /// Where each hot part starts, in bytes; one more for the end of the last.
    starts: Vec<u64>,
    call_worth: PowerLaw,
    jump_worth: PowerLaw,
}

/// One function and what does not change from split to split.
struct Candidate<'a> {
    function: &'a HotFunction,
    index: u32,
    /// Where each block starts, from the function's start; one more for the end.
    address: Vec<u64>,
    /// Bytes saved by each split; `None` where it would save none.
    saved: Vec<Option<u64>>,
    /// Where the warm part would start, from the function's start.
    warm_start: u64,
}

impl Candidate<'_> {
    /// The distance from the function's start to a place `address` of block `block`, when the
    /// blocks behind `last` are warm.
    fn moved(&self, block: u32, address: u64, last: usize) -> u64 {
        if block as usize <= last { address } else { self.warm_start + address - self.address[last + 1] }
    }
}

impl<'a> Splitter<'a> {
    fn new(functions: &'a [HotFunction], params: &'a CdSplitParams) -> Self {
        Self {
            functions,
            params,
            starts: running_sum(
                functions.iter().map(|function| function.sizes.iter().map(|&size| u64::from(size)).sum()),
            ),
            call_worth: PowerLaw::new(params.call_power),
            jump_worth: PowerLaw::new(params.jump_power),
        }
    }

    fn split_point(&self, index: u32, cover: &[(u64, f64)]) -> u32 {
        let function = &self.functions[index as usize];
        let address = running_sum(function.sizes.iter().map(|&size| u64::from(size)));
        let candidate = Candidate {
            function,
            index,
            saved: self.saved_bytes(function, &address),
            address,
            warm_start: self.starts[self.functions.len()] - self.starts[index as usize],
        };
        let mut scores = vec![0.0; function.sizes.len()];
        self.add_jumps(&candidate, &mut scores);
        self.add_calls(&candidate, &mut scores);
        let keeps_likely = likely_fallthroughs(function);
        let mut best = (0.0, function.sizes.len() as u32);
        for (last, (score, saved)) in scores.iter().zip(&candidate.saved).enumerate() {
            let Some(saved) = *saved else { continue };
            if keeps_likely[last] {
                continue;
            }
            let over = cover.iter().map(|&(length, count)| self.call(count, length.saturating_sub(saved)));
            let score = score + over.sum::<f64>();
            if score > best.0 {
                best = (score, last as u32 + 1);
            }
        }
        best.1
    }

    fn call(&self, count: f64, length: u64) -> f64 {
        self.params.call_scale * count * self.call_worth.of(length + 1)
    }

    /// What the hot part loses in size when block `last` is its last one: the blocks behind it,
    /// less what the branches to them grow by.
    fn saved_bytes(&self, function: &HotFunction, address: &[u64]) -> Vec<Option<u64>> {
        let blocks = function.sizes.len();
        let mut out_degree = vec![0u32; blocks];
        for jump in &function.jumps {
            out_degree[jump.from as usize] += 1;
        }
        let mut growth = vec![0u64; blocks];
        for jump in &function.jumps {
            for last in jump.from..jump.to {
                growth[last as usize] += u64::from(if jump.from == last && jump.to == last + 1 {
                    self.params.new_jump
                } else if out_degree[jump.from as usize] > 1 {
                    self.params.conditional_growth
                } else {
                    self.params.jump_growth
                });
            }
        }
        let size = address[blocks];
        (0..blocks).map(|last| size.checked_sub(address[last + 1] + growth[last])).collect()
    }

    /// Adds what the function's own jumps are worth in each split.
    fn add_jumps(&self, candidate: &Candidate, scores: &mut [f64]) {
        for jump in candidate.function.jumps.iter().filter(|jump| jump.count > 0) {
            let from = candidate.address[jump.from as usize + 1];
            let to = candidate.address[jump.to as usize];
            let worth = |length: u64| jump.count as f64 * self.jump_worth.of(length + 1);
            let unmoved = worth(from.abs_diff(to));
            let crossed = jump.from.min(jump.to) as usize..jump.from.max(jump.to) as usize;
            for (last, score) in scores.iter_mut().enumerate() {
                *score += if crossed.contains(&last) {
                    let from = candidate.moved(jump.from, from, last);
                    worth(from.abs_diff(candidate.moved(jump.to, to, last)))
                } else {
                    unmoved
                };
            }
        }
    }

    /// Adds what the calls out of the function are worth in each split.
    fn add_calls(&self, candidate: &Candidate, scores: &mut [f64]) {
        let start = self.starts[candidate.index as usize];
        for call in candidate.function.calls.iter().filter(|call| call.count > 0) {
            let from = candidate.address[call.block as usize + 1];
            let to = self.starts[call.callee as usize];
            for (last, score) in scores.iter_mut().enumerate() {
                let Some(saved) = candidate.saved[last] else { continue };
                let to = if call.callee > candidate.index { to - saved } else { to };
                let length = (start + candidate.moved(call.block, from, last)).abs_diff(to);
                *score += self.call(call.count as f64, length);
            }
        }
    }
}

/// For each block whether the next one is its likeliest successor, which no split may part from
/// it: its only one, or the more frequent of two.
fn likely_fallthroughs(function: &HotFunction) -> Vec<bool> {
    let mut successors: Vec<Vec<(u64, u32)>> = vec![Vec::new(); function.sizes.len()];
    for jump in &function.jumps {
        successors[jump.from as usize].push((jump.count, jump.to));
    }
    let likeliest = |out: &[(u64, u32)]| match *out {
        [(_, only)] => Some(only),
        [(a, to), (b, _)] if a > b => Some(to),
        [(a, _), (b, to)] if b > a => Some(to),
        _ => None,
    };
    successors.iter().zip(1..).map(|(out, next)| likeliest(out) == Some(next)).collect()
}

/// 0, the first, the first two together, and so on.
fn running_sum(sizes: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut sums = vec![0];
    let mut sum = 0;
    for size in sizes {
        sum += size;
        sums.push(sum);
    }
    sums
}
