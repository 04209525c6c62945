//! Small blocks behind which nothing runs, a return, a jump or an indirect jump at their end, stand in place of hot jumps to them: the jump is
//! gone, and the block is still there for whoever else leads to it.
//!
//! Which jumps there are depends on the order of the blocks, and that on what stands in place of jumps. So a function is laid out once as
//! it is, and the jumps that are left then are what may go; the order that counts is made later, with the duplicates in it. Jumps are taken by
//! what they save for their bytes, up to a share of the code that runs. Without a profile, they are drawn at random, for tests.
//!
//! Nobody may know a place inside of the function: what looks an instruction up by its place would not find a duplicate of it. Calls,
//! traps and landing pads stay single.

mod counts;

use crate::BlockOrder;
use crate::block_order;
use crate::entries::{Entries, free_inside};
use crate::growth::{self, Offer, hot_bytes};
use crate::pass::{CodeJob, OrderJob, Pass, Run};
use afterlink_isa::Flow;
use afterlink_layout::random;
use afterlink_program::{Block, BlockId, FuncId, Function, Program, Stop, Target, Terminator};
use afterlink_weigh::Weights;

/// Bytes of a block that stands in place of a jump.
const LARGEST: u32 = 32;
/// Bytes of one that is drawn at random.
const LARGEST_DRAWN: u32 = 256;
/// Bytes of the jump that is gone, and of one that a duplicate ends in.
const JUMP: u64 = 5;
/// Share of the code that ran, in a hundred thousand, by which it may grow.
const GROWTH: u64 = 55;

pub(crate) const PASS: Pass = Pass {
    name: "tail-duplication",
    what: "puts small blocks that end in a return or a jump in place of hot jumps to them",
    by_default: false,
    off: None,
    has_work: |_| true,
    run: Run::Code(run),
};

/// A way from a block to another, of which a duplicate may stand in the jump's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    function: FuncId,
    from: BlockId,
    /// Whether it is the one that a branch names.
    is_taken: bool,
    to: BlockId,
}

fn run(job: &mut CodeJob) -> usize {
    let has_counts = !job.weights.functions.is_empty();
    if !has_counts && job.options.order_blocks != BlockOrder::Random {
        return 0;
    }
    let functions = free_inside(job.program, &Entries::find(job.program), job.moved);
    let chosen = if has_counts { hot(job, &functions) } else { drawn(job, &functions) };
    for way in &chosen {
        duplicate(&mut job.program.functions[way.function], job.weights, *way);
    }
    chosen.len()
}

/// The jumps that are worth it.
fn hot(job: &CodeJob, functions: &[FuncId]) -> Vec<Way> {
    let order = OrderJob { program: job.program, weights: job.weights, options: job.options };
    let mut offers = Vec::new();
    for &id in functions {
        let (function, weights) = (&job.program.functions[id], &job.weights.functions[id]);
        if weights.is_hot() && !weights.inside_unknown {
            offers.extend(jumps(&order, id).into_iter().map(|(way, count)| {
                let cost = cost(&function.blocks[way.to]);
                Offer { what: way, count, cost }
            }));
        }
    }
    growth::best(offers, hot_bytes(job.program, job.weights, job.moved) * GROWTH / 100_000, |way| *way)
}

/// Bytes that a duplicate takes more than the jump.
fn cost(block: &Block) -> u64 {
    let jump = if matches!(block.terminator, Terminator::Jump(_)) { JUMP } else { 0 };
    (u64::from(block.body) + jump).saturating_sub(JUMP)
}

/// The jumps of a function that are left when it is laid out, to blocks that may stand in their place, and how often each runs.
fn jumps(job: &OrderJob, id: FuncId) -> Vec<(Way, u64)> {
    let (function, weights) = (&job.program.functions[id], &job.weights.functions[id]);
    let mut tails = function.blocks.ids().filter(|&block| weights.block(block) > 0);
    if !tails.any(|block| is_tail(job.program, function, block, LARGEST)) {
        return Vec::new();
    }
    let mut order = block_order::order(job, id);
    // What never runs is not in the way.
    order.retain(|&block| weights.block(block) > 0);
    let behind = order.iter().skip(1).copied().map(Some).chain([None]);
    let jumps = order.iter().zip(behind).filter_map(|(&from, behind)| {
        let to = jump_of(&function.blocks[from], behind)?;
        let count = weights.edge(from, to);
        let fits = count > 0 && count <= weights.block(to);
        let way = Way { function: id, from, is_taken: false, to };
        (fits && is_way(function, way) && is_tail(job.program, function, to, LARGEST)).then_some((way, count))
    });
    jumps.collect()
}

/// Where a block jumps to in the end, with another behind it.
fn jump_of(block: &Block, behind: Option<BlockId>) -> Option<BlockId> {
    let to = match block.terminator {
        Terminator::Branch { taken, next, .. } => {
            let is_behind = behind.is_some_and(|behind| taken == Target::Block(behind));
            // A duplicate is for one of its ways.
            Some(next).filter(|next| !is_behind && taken != Target::Block(*next))
        }
        Terminator::FallThrough(next) | Terminator::Jump(Target::Block(next)) => Some(next),
        _ => None,
    };
    to.filter(|to| behind != Some(*to))
}

/// Whether the block that a way comes from may lead to a duplicate: it stands for code of the input, outside of any call's place.
fn is_way(function: &Function, way: Way) -> bool {
    way.from != way.to && function.is_of_input(way.from)
}

/// Whether a block may stand twice: nothing runs behind it, and nothing in it can be told from its duplicate.
fn is_tail(program: &Program, function: &Function, id: BlockId, largest: u32) -> bool {
    let block = &function.blocks[id];
    let ends = matches!(
        block.terminator,
        Terminator::Jump(_) | Terminator::Indirect { .. } | Terminator::Stop(Stop::Return | Stop::TailCall)
    );
    // Others know the entry.
    let is_inside = id.0 > 0 && id.0 < function.input_blocks;
    let is_plain = ends && is_inside && block.chunks.is_empty() && (1..=largest).contains(&block.size);
    is_plain && only_computes(program, block) && function.landing_pads().binary_search(&id).is_err()
}

/// Whether a block calls nothing and raises no signal on purpose, and leaves by an instruction: what only goes on, into another function or, as jumps
/// were led around jumps, elsewhere, has none.
fn only_computes(program: &Program, block: &Block) -> bool {
    let bytes = program.code.at(block.input, block.size as usize).unwrap_or(&[]);
    let mut at = 0;
    while let Some(inst) = bytes.get(at..).and_then(|rest| program.arch.decode(rest)) {
        let end = at + usize::from(inst.len);
        match inst.flow {
            Flow::Next => {}
            Flow::Return | Flow::IndirectJump => return end == block.body as usize,
            Flow::Jump(_) => return at == block.body as usize,
            _ => return false,
        }
        at = end;
    }
    false
}

/// Any ways to blocks that may stand twice.
fn drawn(job: &CodeJob, functions: &[FuncId]) -> Vec<Way> {
    let seed = job.options.seed;
    let mut drawn = Vec::new();
    for &id in functions {
        let function = &job.program.functions[id];
        for (from, block) in function.blocks.iter() {
            let ways = match block.terminator {
                Terminator::FallThrough(next) | Terminator::Jump(Target::Block(next)) => [Some(next), None],
                Terminator::Branch { taken: Target::Block(taken), next, .. } => [Some(next), Some(taken)],
                Terminator::Branch { next, .. } => [Some(next), None],
                _ => [None, None],
            };
            for (to, is_taken) in ways.into_iter().zip([false, true]) {
                let Some(to) = to else { continue };
                let way = Way { function: id, from, is_taken, to };
                let place = (block.input.get() << 1 | u64::from(is_taken)).to_le_bytes();
                let is_drawn = random::key_of(seed, &place).is_multiple_of(3);
                if is_drawn && is_way(function, way) && is_tail(job.program, function, to, LARGEST_DRAWN) {
                    drawn.push(way);
                }
            }
        }
    }
    drawn
}

/// Puts a duplicate where a way leads.
fn duplicate(function: &mut Function, weights: &mut Weights, way: Way) {
    let new = function.add_duplicate(way.to);
    let target = Target::Block(new);
    let terminator = &mut function.blocks[way.from].terminator;
    match terminator {
        Terminator::FallThrough(next) => *next = new,
        Terminator::Jump(to) => *to = target,
        Terminator::Branch { taken, .. } if way.is_taken => *taken = target,
        Terminator::Branch { next, .. } => *next = new,
        // Invariant: no other way was taken.
        _ => unreachable!("{} leads on in one of these ways", way.from),
    }
    if let Some(weights) = weights.functions.as_mut_slice().get_mut(way.function.0 as usize) {
        counts::share(weights, (way.from, way.to), new);
    }
}
