//! Which calls go: those that save most for their bytes, as far as so many go.
//!
//! What stands in place of a call calls what its function called. So a call saves only as often as its caller is not run in place of calls itself, and
//! takes away what calls inside of its callee save. Gains only fall while calls are chosen; the next best is found by looking again at the one that was
//! best (the lazy form of the greedy algorithm: Minoux, Accelerated greedy algorithms for maximizing submodular set functions, 1978).

use super::Call;
use crate::growth::{Offer, WHOLE, mean_count, worth};
use crate::pass::CodeJob;
use afterlink_program::FuncId;
use afterlink_weigh::Weights;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is chosen, by function.
struct Chosen<'w> {
    weights: &'w Weights,
    /// How often something runs in place of calls of it.
    gone: FxHashMap<FuncId, u64>,
    /// How often calls inside of it save something.
    inside: FxHashMap<FuncId, u64>,
}

impl Chosen<'_> {
    fn entries(&self, id: FuncId) -> u128 {
        self.weights.functions[id].entries.max(1).into()
    }

    /// What share `of` so many calls is, of all of the function.
    fn share(&self, count: u64, of: u64, function: FuncId) -> u64 {
        let share = u128::from(count) * u128::from(of) / self.entries(function);
        share.min(count.into()) as u64
    }

    /// How often a call would save something, and nothing else less.
    fn gain(&self, Offer { what: call, count: saved, .. }: &Offer<Call>) -> u64 {
        let of = |counts: &FxHashMap<FuncId, u64>, id| counts.get(&id).copied().unwrap_or(0);
        let lost = self.share(*saved, of(&self.gone, call.caller), call.caller);
        let inside = of(&self.inside, call.callee);
        (saved - lost).saturating_sub(self.share(inside, call.count, call.callee))
    }

    fn add(&mut self, Offer { what: call, count: saved, .. }: &Offer<Call>) {
        *self.gone.entry(call.callee).or_default() += call.count;
        *self.inside.entry(call.caller).or_default() += saved;
    }
}

/// A byte must save something once in so many times that one runs [on average](mean_count): all but a few hundredths of what can be saved is
/// (`docs/decisions/0012-hot-parts-in-place-of-calls.md`).
const SELDOM: u64 = 128;

/// The calls that go, of functions of the program that move; the first of equal ones by place.
pub(super) fn best(job: &CodeJob, offers: &[Offer<Call>], bytes: u64) -> Vec<Call> {
    let mean = mean_count(job.program, job.weights, job.moved);
    choose(job.weights, offers, bytes, mean)
}

fn choose(weights: &Weights, offers: &[Offer<Call>], bytes: u64, mean: u64) -> Vec<Call> {
    let least = (mean.saturating_mul(WHOLE) / SELDOM).max(1);
    let mut chosen = Chosen { weights, gone: FxHashMap::default(), inside: FxHashMap::default() };
    let key = |index: usize, gain: u64| {
        let call = &offers[index].what;
        (worth(gain, offers[index].cost), Reverse((call.caller, call.block, call.at)), index)
    };
    let mut open: BinaryHeap<_> = (0..offers.len()).map(|i| key(i, offers[i].count)).collect();
    let (mut calls, mut left) = (Vec::new(), bytes);
    while let Some(top) = open.pop() {
        let offer = &offers[top.2];
        let now = key(top.2, chosen.gain(offer));
        if now.0 < least || offer.cost > left {
            continue;
        }
        if now < top {
            open.push(now);
            continue;
        }
        left -= offer.cost;
        chosen.add(offer);
        calls.push(offer.what);
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::{Call, FuncId, Offer, Weights};
    use afterlink_program::BlockId;
    use afterlink_weigh::FunctionWeights;

    /// What is chosen of calls, as caller, callee, count and bytes, where functions are entered so often. Of how many bytes, and how often one runs on average.
    fn choose(entries: &[u64], calls: &[(u32, u32, u64, u64)], (bytes, mean): (u64, u64)) -> Vec<(u32, u32)> {
        let functions =
            entries.iter().map(|&entries| FunctionWeights { entries, ..FunctionWeights::default() });
        let weights = Weights { functions: functions.collect::<Vec<_>>().into(), ..Weights::default() };
        let offer = |&(caller, callee, count, cost): &(u32, u32, u64, u64)| {
            let (caller, callee) = (FuncId(caller), FuncId(callee));
            Offer {
                what: Call { caller, block: BlockId(0), at: callee.0, size: 5, callee, count },
                count,
                cost,
            }
        };
        let offers: Vec<_> = calls.iter().map(offer).collect();
        super::choose(&weights, &offers, bytes, mean)
            .iter()
            .map(|call| (call.caller.0, call.callee.0))
            .collect()
    }

    #[test]
    fn what_saves_most_for_its_bytes_goes_first() {
        let calls = [(0, 1, 900, 20), (0, 2, 800, 10), (0, 3, 700, 12)];
        assert_eq!(choose(&[1, 900, 800, 700], &calls, (30, 1)), [(0, 2), (0, 3)]);
        // A byte of the last saves 43 times.
        assert_eq!(choose(&[1, 900, 800, 700], &calls, (30, 128 * 43)), [(0, 2), (0, 3)]);
        assert_eq!(choose(&[1, 900, 800, 700], &calls, (30, 128 * 44)), [(0, 2)]);
    }

    #[test]
    fn what_calls_inside_of_a_callee_save_is_kept() {
        // In place of all calls of 1, its own call of 2 would be a call again.
        assert_eq!(choose(&[1, 100, 500], &[(0, 1, 100, 4), (1, 2, 500, 12)], (100, 1)), [(1, 2)]);
        // Half of what the call saves would be lost.
        assert_eq!(choose(&[1, 1000, 500], &[(0, 1, 100, 9), (1, 2, 500, 12)], (100, 1)), [(1, 2), (0, 1)]);
        // The callee that goes first takes its call's worth with it, all or a part of it.
        assert_eq!(choose(&[1, 100, 90], &[(0, 1, 100, 4), (1, 2, 90, 4)], (100, 1)), [(0, 1)]);
        assert_eq!(choose(&[1, 100, 40], &[(0, 1, 75, 4), (1, 2, 40, 16)], (100, 1)), [(0, 1), (1, 2)]);
    }
}
