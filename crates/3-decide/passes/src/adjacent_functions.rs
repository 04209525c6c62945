//! A function that ends by a jump to the one that stands right behind it needs no jump: control runs on.
//!
//! Compilers make a jump of a call behind which nothing is left to do (a tail call), and an order by calls often puts the two functions side by
//! side. The jump is five bytes, and a taken branch each time. Where it is not last among the hot blocks of its function, what stands behind it
//! moves in front of the blocks that lead to it.

use crate::Parts;
use crate::pass::{OrderJob, Pass, Run};
use afterlink_program::{Block, BlockId, Chunk, FuncId, Function, Program, Target, Terminator};

pub(crate) const PASS: Pass = Pass {
    name: "adjacent-functions",
    what: "leaves out last jumps to the function that stands right behind",
    by_default: true,
    off: None,
    has_work: |_| true,
    run: Run::Order(|job, parts| join(job, parts)),
};

fn join(job: &OrderJob, parts: &mut [Parts]) {
    let mut hot: Vec<&mut Parts> = parts.iter_mut().filter(|parts| !parts.hot.is_empty()).collect();
    for i in 1..hot.len() {
        let (next, parts) = (hot[i].function, &mut *hot[i - 1]);
        let function = &job.program.functions[parts.function];
        let weights = job.weights.functions.get(parts.function);
        let count = |block: BlockId| weights.map_or(0, |weights| weights.block(block));
        let leads = |at: usize| {
            leads_to(function, &parts.hot, at, next)
                && can_be_last(function, &parts.hot, at)
                && !ends_in_call(job.program, function, &function.blocks[parts.hot[at]])
        };
        let jumps = (0..parts.hot.len()).filter(|&at| leads(at));
        let Some(at) = jumps.max_by_key(|&at| (count(parts.hot[at]), at)) else { continue };
        put_last(function, &mut parts.hot, at);
        parts.runs_on = true;
    }
}

/// Whether the block at `at` leads to where `next` starts, and none behind it gains by standing there.
fn leads_to(function: &Function, order: &[BlockId], at: usize, next: FuncId) -> bool {
    let block = &function.blocks[order[at]];
    let is_next = |target: Target| target == Target::Code(next, BlockId(0));
    let leads = match block.terminator {
        Terminator::Jump(target) => is_next(target),
        Terminator::Branch { taken, next, .. } => is_next(taken) && order.get(at + 1) != Some(&next),
        _ => false,
    };
    // What runs in place of a call goes on below its callee's frame.
    leads && function.in_place_of(block).is_none()
}

/// Whether a call may come back where a block's own code ends: that place would have the next function's name.
fn ends_in_call(program: &Program, function: &Function, block: &Block) -> bool {
    let Some(last) = function.chunks_of(block).last() else { return false };
    let Chunk::Input(last) = last else { return true };
    let code = program.code.at(block.input + u64::from(last.from), last.size as usize);
    program.arch.may_end_with_call(code.unwrap_or(&[]))
}

/// Where the blocks start from which control runs through to the one at `at`.
fn start_of_way(function: &Function, order: &[BlockId], at: usize) -> usize {
    let runs_through = |&at: &usize| falls_into(function, order[at - 1], order[at]);
    at - (1..=at).rev().take_while(runs_through).count()
}

/// Whether the block at `at` is last, or can be, since no way runs through to it from the entry, which stays first.
fn can_be_last(function: &Function, order: &[BlockId], at: usize) -> bool {
    at + 1 == order.len() || start_of_way(function, order, at) > 0
}

/// Puts the block at `at` last, with those in front of it from which control runs through to it; all others keep their order.
fn put_last(function: &Function, order: &mut [BlockId], at: usize) {
    if at + 1 < order.len() {
        let first = start_of_way(function, order, at);
        order[first..].rotate_left(at + 1 - first);
    }
}

/// Whether control goes from one block to another that stands right behind it without a jump.
pub(crate) fn falls_into(function: &Function, block: BlockId, behind: BlockId) -> bool {
    match function.blocks[block].terminator {
        Terminator::FallThrough(next) | Terminator::ShortBranch { next, .. } => next == behind,
        Terminator::Jump(target) => target == Target::Block(behind),
        Terminator::Branch { taken, next, .. } => next == behind || taken == Target::Block(behind),
        Terminator::Indirect { .. } | Terminator::Stop(_) | Terminator::LastCall(_) => false,
    }
}
