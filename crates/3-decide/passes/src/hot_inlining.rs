//! The hot part of a function stands where it is called: without call, return and a line of cache.
//!
//! Of a callee only those blocks are written that ran; where control leaves them, it goes on in the callee itself, as if it had been called
//! (`rewrite.rs`). So no cold code is written twice, and of what a function does seldom nothing has to be known. The stack is what it would
//! have been, but for the return address (`body.rs`), and unwinders find the callee's frame all the same (`rows.rs`).
//!
//! Calls are taken by what they save for their bytes, up to a share of the code that runs. Without a profile, calls and blocks are
//! drawn at random, for tests.

mod body;
mod choice;
mod counts;
mod flow;
mod promotion;
mod rewrite;
mod rows;
mod scratch;

use crate::BlockOrder;
use crate::entries::shared;
use crate::growth::{LITTLE, Offer, hot_bytes};
use crate::pass::{CodeJob, Pass, Run};
use afterlink_isa::PlainCall;
use afterlink_layout::random;
use afterlink_program::{BlockId, FuncId, Program, Role, Target, Terminator};
use afterlink_weigh::Weights;
use body::{Body, candidates, has_language_data};
pub(crate) use promotion::PASS as PROMOTION;
use rayon::prelude::*;
use rewrite::Rewritten;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Bytes of a body that is written in place of one call of several, and the share of the code that ran, in percent, by which that may grow
/// (`docs/decisions/0012-hot-parts-in-place-of-calls.md`).
const LARGEST: u32 = 32;
const GROWTH: u64 = 2;
/// The same [where little code runs](LITTLE), as long as it stays little.
const LARGEST_OF_LITTLE: u32 = 96;
const GROWTH_OF_LITTLE: u64 = 10;
/// Bytes of a body whose function has no other hot call.
const LARGEST_OF_ONE: u32 = 480;
/// A block belongs to the hot part if it runs at least once in so many calls.
const SELDOM: u64 = 32;
/// Bytes that make room for a return address, and give it back.
const STEPS: u64 = 6;

pub(crate) const PASS: Pass = Pass {
    name: "hot-inlining",
    what: "puts the hot part of functions in place of hot calls of them",
    by_default: true,
    off: None,
    has_work: |_| true,
    run: Run::Code(run),
};

/// A call that may go.
#[derive(Clone, Copy, Debug)]
struct Call {
    caller: FuncId,
    block: BlockId,
    /// From the block's start, and its bytes.
    at: u32,
    size: u32,
    /// Whom it calls; of an indirect call, in whose place the callee's code runs if it leads there.
    callee: FuncId,
    /// How often it calls that one.
    count: u64,
}

fn run(job: &mut CodeJob) -> usize {
    let Some(form) = job.program.arch.plain_call() else { return 0 };
    if job.program.arch.in_place_forms().is_none() {
        return 0;
    }
    let has_counts = !job.weights.functions.is_empty();
    if has_counts {
        return run_hot(job, form);
    }
    // Layouts at random are of the program as it is, unless somebody wants more.
    let is_random = job.options.order_blocks == BlockOrder::Random && job.options.switches.asks_for(&PASS);
    if is_random { run_random(job, form) } else { 0 }
}

/// The plain calls of functions' entries in a block that is still copied as it was, in order.
fn calls_in(program: &Program, form: PlainCall, caller: FuncId, block: BlockId) -> Vec<Call> {
    let function = &program.functions[caller];
    let own = &function.blocks[block];
    if !own.chunks.is_empty() || own.size == 0 {
        return Vec::new();
    }
    let calls = function.operands_of(own).iter().filter(|operand| operand.role == Role::Call);
    let mut found: Vec<Call> = calls
        .filter_map(|operand| match operand.target {
            Target::Code(callee, BlockId(0)) if callee != caller => {
                // Others may lead to where a block begins, and do not see what runs in place of a call there.
                let at = operand.at.checked_sub(form.field).filter(|at| *at > 0)?;
                Some(Call { caller, block, at, size: form.size, callee, count: 0 })
            }
            _ => None,
        })
        .collect();
    if !found.is_empty() {
        let bytes = program.code.at(own.input, own.body as usize).unwrap_or(&[]);
        let plain = program.arch.plain_calls(bytes);
        found.retain(|call| plain.binary_search(&call.at).is_ok());
        // A last call, behind which the function ends.
        let is_last = |call: &Call| call.at + form.size == own.size;
        let ends = !matches!(own.terminator, Terminator::FallThrough(_));
        found.retain(|call| !(is_last(call) && ends));
    }
    found
}

/// Where profiles may have a call: some tell where it starts, some where it ends.
fn places(call: &Call) -> [(BlockId, u32, FuncId); 2] {
    [call.at, call.at + call.size].map(|at| (call.block, at, call.callee))
}

/// Whether code may stand in place of calls in a function.
fn may_take(program: &Program, shared: &[FuncId], caller: FuncId) -> bool {
    shared.binary_search(&caller).is_err() && !has_language_data(program, &program.functions[caller])
}

fn run_hot(job: &mut CodeJob, form: PlainCall) -> usize {
    let (program, weights) = (&*job.program, &*job.weights);
    let calls = hot_calls(program, weights, form, job.moved);
    let bodies = hot_bodies(program, weights, &calls, job.moved);
    let (largest, bytes) = limits(hot_bytes(program, weights, job.moved));
    let mut offers = Vec::new();
    for call in calls {
        let Some(body) = bodies.get(&call.callee) else { continue };
        if let Some(cost) = cost(weights, &call, body, largest) {
            let overhead = if body.needs_place { STEPS } else { 0 };
            offers.push(Offer { what: call, count: saved(&call, body), cost: cost + overhead });
        }
    }
    let mut chosen = choice::best(job, &offers, bytes);
    leave_what_goes(weights, &mut chosen);
    put_in_place(job.program, job.weights, chosen, |_, call| bodies.get(&call.callee).cloned())
}

/// Bytes of a body in place of one call of several, and bytes by which so much code may grow.
fn limits(ran: u64) -> (u32, u64) {
    let usual = ran * GROWTH / 100;
    let of_little = (ran * GROWTH_OF_LITTLE / 100).min(LITTLE.saturating_sub(ran));
    if of_little > usual { (LARGEST_OF_LITTLE, of_little) } else { (LARGEST, usual) }
}

/// How often a body saves call and return. Where control leaves it, it takes two more branches instead, there and back.
fn saved(call: &Call, body: &Body) -> u64 {
    (call.count as f64 * (1.0 - 2.0 * body.leaving)).max(0.0) as u64
}

/// What a body costs in place of a call, in bytes; `None` if it is longer than `largest`, or than a function may be that is hardly called from elsewhere.
/// That one only moves: the function itself becomes cold.
fn cost(weights: &Weights, call: &Call, body: &Body, largest: u32) -> Option<u64> {
    let (size, entries) = (body.size(), weights.functions[call.callee].entries);
    let is_only = call.count >= entries - entries / 16;
    let (largest, cost) = if is_only { (LARGEST_OF_ONE, 0) } else { (largest, size) };
    (size <= largest).then_some(cost.into())
}

/// What of the functions that are called here may stand in place of a call.
fn hot_bodies(
    program: &Program,
    weights: &Weights,
    calls: &[Call],
    moved: &[FuncId],
) -> FxHashMap<FuncId, Body> {
    let called: FxHashSet<FuncId> = calls.iter().map(|call| call.callee).collect();
    let mut callees: Vec<FuncId> = moved.iter().copied().filter(|id| called.contains(id)).collect();
    let candidates = candidates(program, &callees);
    callees.retain(|callee| candidates[*callee]);
    let bodies = callees.into_par_iter().filter_map(|callee| {
        let known = &weights.functions[callee];
        let often = |block| known.block(block) > 0 && known.block(block) >= known.entries / SELDOM;
        let mut body = Body::find(program, callee, often)?;
        body.leaving = flow::leaving(&body, known);
        Some((callee, body))
    });
    bodies.collect()
}

/// Takes out calls by functions that are hardly run themselves any more: what stands in their place calls what they called.
fn leave_what_goes(weights: &Weights, chosen: &mut Vec<Call>) {
    let mut gone: FxHashMap<FuncId, u64> = FxHashMap::default();
    for call in chosen.iter() {
        *gone.entry(call.callee).or_default() += call.count;
    }
    chosen.retain(|call| {
        let entries = weights.functions[call.caller].entries;
        gone.get(&call.caller).is_none_or(|gone| *gone < entries - entries / 8)
    });
}

/// The calls that ran, of functions of which the inside is known.
fn hot_calls(program: &Program, weights: &Weights, form: PlainCall, moved: &[FuncId]) -> Vec<Call> {
    let shared = shared(program);
    let takes =
        |caller: &FuncId| !weights.functions[*caller].inside_unknown && may_take(program, &shared, *caller);
    let callers = moved.par_iter().copied().filter(takes);
    callers.flat_map_iter(|caller| hot_calls_of(program, weights, form, caller)).collect()
}

fn hot_calls_of(program: &Program, weights: &Weights, form: PlainCall, caller: FuncId) -> Vec<Call> {
    let own = &weights.functions[caller];
    let mut counts: BTreeMap<(BlockId, u32, FuncId), u64> = BTreeMap::new();
    for call in &own.calls {
        *counts.entry((call.block, call.offset, call.callee)).or_default() += call.count;
    }
    let mut blocks: Vec<BlockId> = own.calls.iter().map(|call| call.block).collect();
    blocks.dedup();
    let calls = blocks.into_iter().flat_map(|block| calls_in(program, form, caller, block));
    let ran = calls.filter_map(|call| {
        let count = places(&call).iter().filter_map(|place| counts.get(place)).sum::<u64>();
        (count > 0 && has_inside(weights, call.callee)).then_some(Call { count, ..call })
    });
    ran.collect()
}

/// Whether it is known what of a function ran.
fn has_inside(weights: &Weights, callee: FuncId) -> bool {
    let known = &weights.functions[callee];
    !known.inside_unknown && !known.blocks.is_empty()
}

fn run_random(job: &mut CodeJob, form: PlainCall) -> usize {
    let (program, weights) = (&mut *job.program, &mut *job.weights);
    let seed = job.options.seed;
    let (mut chosen, shared) = (Vec::new(), shared(program));
    let candidates = candidates(program, job.moved);
    for &caller in job.moved.iter().filter(|&&caller| may_take(program, &shared, caller)) {
        for block in program.functions[caller].blocks.ids() {
            let start = program.functions[caller].blocks[block].input.get();
            let calls = calls_in(program, form, caller, block);
            let drawn = |call: &Call| draw(seed, start + u64::from(call.at), 3) == 0;
            chosen.extend(calls.into_iter().filter(|call| candidates[call.callee] && drawn(call)));
        }
    }
    put_in_place(program, weights, chosen, |program, call| drawn_body(program, seed, call))
}

/// One of so many, drawn for a place.
fn draw(seed: u64, place: u64, of: u64) -> u64 {
    random::key_of(seed, &place.to_le_bytes()) % of
}

/// What runs in place of a call, of blocks that are drawn.
fn drawn_body(program: &Program, seed: u64, call: &Call) -> Option<Body> {
    let start = program.functions[call.callee].entry().get() ^ u64::from(call.at) << 40;
    let wanted = |block: BlockId| draw(seed, start ^ u64::from(block.0) << 20, 4) > 0;
    Body::find(program, call.callee, wanted).filter(|body| body.size() <= LARGEST_OF_ONE)
}

/// Rewrites these calls; gives the number of those that are gone.
fn put_in_place(
    program: &mut Program,
    weights: &mut Weights,
    mut calls: Vec<Call>,
    body: impl Fn(&Program, &Call) -> Option<Body>,
) -> usize {
    // Of a block, the last call first: the others stay where they are in it. No callee changes by it, as all bodies are the input's.
    calls.sort_by_key(|call| (call.caller, call.block, std::cmp::Reverse(call.at)));
    let mut plans = Vec::new();
    for call in calls {
        if let Some(body) = body(program, &call) {
            plans.push((call, body));
        }
    }
    let rewritten = plans.into_iter().filter_map(|(call, body)| {
        let new = rewrite::rewrite(program, call.caller, (call.block, call.at, call.size), &body)?;
        Some((call, body, new))
    });
    let rewritten: Vec<(Call, Body, Rewritten)> = rewritten.collect();
    counts::lead_all(program, weights, &rewritten);
    rewritten.len()
}

#[cfg(test)]
mod tests {
    use super::{LITTLE, limits};

    #[test]
    fn little_code_takes_longer_bodies_as_long_as_it_stays_little() {
        assert_eq!(limits(50_000), (96, 5_000));
        assert_eq!(limits(LITTLE - 5_000), (96, 5_000));
        assert_eq!(limits(LITTLE - 2_000), (32, 2_581));
        assert_eq!(limits(LITTLE + 50_000), (32, 3_621));
    }
}
