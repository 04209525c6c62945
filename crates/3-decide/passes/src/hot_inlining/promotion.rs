//! Indirect calls that mostly lead to one function have its hot part in their place, behind a question whether this is one of those times.
//!
//! The question costs four instructions, the call and return that go away cost two taken branches, one of which a processor has to guess the
//! target of. A question with a direct call behind it saves nothing, so there is none (`docs/decisions/0019-indirect-calls.md`).
//!
//! It needs a register that nobody passes anything in ([`super::scratch`]).

use super::choice;
use super::scratch::Scratch;
use super::{
    Call, candidates, cost, draw, drawn_body, has_inside, hot_bodies, may_take, put_in_place, saved,
};
use crate::BlockOrder;
use crate::entries::shared;
use crate::growth::{Offer, hot_bytes};
use crate::pass::{CodeJob, Pass, Run};
use afterlink_analyze::held;
use afterlink_isa::CallQuestion;
use afterlink_program::{BlockId, FuncId, Function, Program, Terminator};
use afterlink_weigh::Weights;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// One call of so many may lead elsewhere.
const ELSEWHERE: u64 = 16;
/// Bytes of a body that is written in place of one call of several.
const LARGEST: u32 = 48;
/// Bytes of a question, or a few less, with the branch behind it.
const QUESTION: u64 = 20;
/// Share of the code that ran, in percent, by which it may grow, or so many bytes.
const GROWTH: u64 = 2;
const LEAST_GROWTH: u64 = 512;

pub(crate) const PASS: Pass = Pass {
    name: "call-promotion",
    what: "puts the hot part of a function in place of indirect calls that mostly lead to it",
    by_default: false,
    off: None,
    has_work: |_| true,
    run: Run::Code(run),
};

fn run(job: &mut CodeJob) -> usize {
    if job.program.arch.in_place_forms().is_none() {
        return 0;
    }
    let Some(scratch) = Scratch::find(job.program) else { return 0 };
    if !job.weights.functions.is_empty() {
        run_hot(job, &scratch)
    } else if job.options.order_blocks == BlockOrder::Random {
        run_random(job, &scratch)
    } else {
        0
    }
}

/// An indirect call, by where it starts, that can be asked whom it calls; the callee is still to be named.
fn questions_in(program: &Program, caller: FuncId, block: BlockId) -> Vec<(u32, CallQuestion)> {
    let own = &program.functions[caller].blocks[block];
    if !own.chunks.is_empty() || own.size == 0 {
        return Vec::new();
    }
    let bytes = program.code.at(own.input, own.body as usize).unwrap_or(&[]);
    let mut found = program.arch.call_questions(bytes);
    let operands = program.functions[caller].operands_of(own);
    let ends = !matches!(own.terminator, Terminator::FallThrough(_));
    found.retain(|(at, asked)| {
        let end = at + asked.size;
        let within = |place: u32| (*at..end).contains(&place);
        let start = own.input + u64::from(*at);
        let known = program.known_places.partition_point(|place| *place < start);
        let is_known =
            program.known_places.get(known).is_some_and(|place| place.since(start) < asked.size.into());
        // Others may lead to where a block begins, and a last call has nothing behind it.
        let stays = *at == 0 || end == own.size && ends || is_known;
        !stays
            && !operands.iter().any(|operand| within(operand.at))
            && !reads_flags(program, &program.functions[caller], block, end)
    });
    found
}

/// Whether flags are read behind a place in a block, or in what it goes on to, before they are changed.
fn reads_flags(program: &Program, function: &Function, mut id: BlockId, mut from: u32) -> bool {
    for _ in 0..function.blocks.len() {
        let block = &function.blocks[id];
        let bytes = program.code.at(block.input, block.body as usize).unwrap_or(&[]);
        if let Some(reads) = program.arch.reads_flags_first(&bytes[from as usize..]) {
            return reads;
        }
        match block.terminator {
            Terminator::FallThrough(next) => (id, from) = (next, 0),
            Terminator::Branch { .. } | Terminator::ShortBranch { .. } => return true,
            _ => return false,
        }
    }
    false
}

/// The functions that move in which indirect calls may be asked.
fn callers(job: &CodeJob, scratch: &Scratch) -> Vec<FuncId> {
    let shared = shared(job.program);
    let may_ask = |id: &FuncId| may_take(job.program, &shared, *id) && scratch.is_free(*id);
    job.moved.iter().copied().filter(may_ask).collect()
}

fn run_hot(job: &mut CodeJob, scratch: &Scratch) -> usize {
    let callers = callers(job, scratch);
    let (program, weights) = (&*job.program, &*job.weights);
    let known = callers.into_par_iter().filter(|id| !weights.functions[*id].inside_unknown);
    let calls = known.flat_map_iter(|caller| hot_calls_of(program, weights, caller));
    let calls: Vec<Call> = calls.filter(|call| !scratch.takes(call.callee)).collect();
    let bodies = hot_bodies(program, weights, &calls, job.moved);
    let offers = calls.into_iter().filter_map(|call| {
        let body = bodies.get(&call.callee)?;
        let cost = cost(weights, &call, body, LARGEST)?;
        Some(Offer { what: call, count: saved(&call, body), cost: cost + QUESTION })
    });
    let offers: Vec<Offer<Call>> = offers.collect();
    let bytes = (hot_bytes(program, weights, job.moved) * GROWTH / 100).max(LEAST_GROWTH);
    let chosen = choice::best(job, &offers, bytes);
    put_in_place(job.program, job.weights, chosen, |_, call| bodies.get(&call.callee).cloned())
}

/// The indirect calls of a function that ran, and nearly always led to one function.
fn hot_calls_of(program: &Program, weights: &Weights, caller: FuncId) -> Vec<Call> {
    let own = &weights.functions[caller];
    let mut by_block: BTreeMap<BlockId, Vec<(u32, FuncId, u64)>> = BTreeMap::new();
    for call in own.calls.iter().filter(|call| call.count > 0) {
        by_block.entry(call.block).or_default().push((call.offset, call.callee, call.count));
    }
    let mut found = Vec::new();
    for (&block, counted) in &by_block {
        for (at, asked) in questions_in(program, caller, block) {
            let ran = own.block(block);
            let most = counted.iter().filter(|(offset, ..)| [at, at + asked.size].contains(offset));
            let most = most.max_by_key(|(_, callee, count)| (*count, std::cmp::Reverse(*callee)));
            let Some(&(_, callee, count)) = most else { continue };
            let call = Call { caller, block, at, size: asked.size, callee, count };
            let is_one = count >= ran - ran / ELSEWHERE;
            if is_one && callee != caller && has_inside(weights, callee) {
                found.push(call);
            }
        }
    }
    found
}

fn run_random(job: &mut CodeJob, scratch: &Scratch) -> usize {
    let callers = callers(job, scratch);
    let (program, weights) = (&mut *job.program, &mut *job.weights);
    let seed = job.options.seed;
    let mut chosen = Vec::new();
    let candidates = candidates(program, job.moved);
    // Pointers lead to those of which somebody has the address.
    let held = held::entries(program);
    let is_callee = |id: &FuncId| candidates[*id] && held[*id] && !scratch.takes(*id);
    let callees: Vec<FuncId> = job.moved.iter().copied().filter(is_callee).collect();
    if callees.is_empty() {
        return 0;
    }
    for caller in callers {
        for block in program.functions[caller].blocks.ids() {
            let start = program.functions[caller].blocks[block].input.get();
            for (at, asked) in questions_in(program, caller, block) {
                let place = start + u64::from(at);
                let callee = callees[draw(seed, place, callees.len() as u64) as usize];
                let call = Call { caller, block, at, size: asked.size, callee, count: 0 };
                if draw(seed, !place, 2) == 0 && callee != caller {
                    chosen.push(call);
                }
            }
        }
    }
    put_in_place(program, weights, chosen, |program, call| drawn_body(program, seed, call))
}
