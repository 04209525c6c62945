//! Lines of code that are most likely missing in the cache are asked for before a call comes to them.
//!
//! Of each function that is called where the profile says, its first line; what stands behind it the processor fetches along. Which lines are
//! missing is estimated from how often each block runs (`residence.rs`). The instruction stands at the start of a block that control
//! comes through before the call and seldom without it, so many bytes of code ahead of it that the line has come, but no more. It changes nothing
//! but caches, and where a processor lacks it, it is a nop.
//!
//! Nobody may know a place inside of the function, so that no address of a block means what stands in front of it.

mod residence;

use crate::BlockOrder;
use crate::entries::{Entries, shared};
use crate::growth::{self, Offer, hot_bytes};
use crate::pass::{CodeJob, Pass, Run};
use afterlink_isa::CodePrefetch;
use afterlink_layout::random;
use afterlink_program::{BlockId, Chunk, FuncId, Function, Operand, Program, Role, Target};
use afterlink_weigh::FunctionWeights;
use residence::Residence;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// Code that a line of the second-level cache needs to come: some 15 cycles, at two or three instructions of four bytes in each.
const AHEAD: u32 = 128;
/// Less than this is not worth an instruction.
const LEAST_AHEAD: u32 = 48;
/// What a call on the way counts for, which runs code of its own.
const CALL_AHEAD: u32 = 64;
/// Blocks that are looked at before a call.
const BLOCKS_AHEAD: usize = 16;
/// Of runs that come by a prefetch, the least share, in percent, that comes to its call.
const LEAST_USE: u64 = 90;
/// The least probability that the line is missing.
const LEAST_MISSING: f64 = 0.25;
/// Of what misses, the part that is not worth an instruction: one in so many.
const NOTHING: u64 = 100;
/// Share of the code that ran, in percent, by which it may grow.
const GROWTH: u64 = 2;

pub(crate) const PASS: Pass = Pass {
    name: "code-prefetch",
    what: "asks for the first lines of functions ahead of hot calls (prefetchit0, on older processors a nop)",
    by_default: false,
    off: None,
    has_work: |_| true,
    run: Run::Code(run),
};

/// A line to ask for, at the start of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Prefetch {
    function: FuncId,
    block: BlockId,
    callee: FuncId,
}

fn run(job: &mut CodeJob) -> usize {
    let Some(form) = job.program.arch.code_prefetch() else { return 0 };
    let has_counts = !job.weights.functions.is_empty();
    if !has_counts && job.options.order_blocks != BlockOrder::Random {
        return 0;
    }
    let (entries, shared) = (Entries::find(job.program), shared(job.program));
    let may_have = |id: &FuncId| {
        let function = &job.program.functions[*id];
        let is_plain = function.folded_into.is_none() && !function.is_read;
        is_plain && !entries.is_known_inside(*id) && shared.binary_search(id).is_err()
    };
    let functions: Vec<FuncId> = job.moved.iter().copied().filter(may_have).collect();
    let blocks = Blocks { program: job.program, entries: &entries };
    let chosen = if has_counts { hot(job, &blocks, &functions) } else { drawn(job, &blocks, &functions) };
    for prefetch in &chosen {
        put(&mut job.program.functions[prefetch.function], form, *prefetch);
    }
    chosen.len()
}

fn put(function: &mut Function, form: CodePrefetch, prefetch: Prefetch) {
    let size = form.code.len() as u32;
    let operand = Operand {
        at: form.field,
        encoding: afterlink_isa::Encoding::Relative32 { end: (size - form.field) as u8 },
        role: Role::Address,
        target: Target::Code(prefetch.callee, BlockId(0)),
    };
    function.prefetch(prefetch.block, form.code, operand);
}

/// What may be known of blocks.
struct Blocks<'b, 'a> {
    program: &'b Program<'a>,
    entries: &'b Entries,
}

impl Blocks<'_, '_> {
    /// Whether an instruction may stand in front of all that a block does.
    fn may_have(&self, id: FuncId, block: BlockId) -> bool {
        let function = &self.program.functions[id];
        let own = &function.blocks[block];
        let chunks = &function.chunks[own.chunks.range()];
        let is_copied = matches!(chunks, [] | [Chunk::Input(_), ..]);
        if block.0 >= function.input_blocks || own.body == 0 || !is_copied {
            return false;
        }
        let is_entry = block == BlockId(0);
        let bytes = self.program.code.at(own.input, own.body as usize).unwrap_or(&[]);
        let arch = self.program.arch;
        let prefetches = (0..bytes.len()).any(|at| arch.prefetches_code(&bytes[at..]));
        // A handler of signals may know an instruction by the entry's address.
        let is_free = !is_entry || !self.entries.is_known(id);
        is_free
            && !prefetches
            && arch.mark_size(bytes) == 0
            && !function.labels.contains(&block)
            && function.landing_pads().binary_search(&block).is_err()
    }

    /// The functions that a block calls by their entries, and where: from the block's start.
    fn calls(&self, id: FuncId, block: BlockId) -> impl Iterator<Item = (u32, FuncId)> {
        let function = &self.program.functions[id];
        let operands = function.operands_of(&function.blocks[block]).iter();
        operands.filter(|operand| operand.role == Role::Call).filter_map(move |operand| {
            match operand.target {
                Target::Code(callee, BlockId(0)) if callee != id => Some((operand.at, callee)),
                _ => None,
            }
        })
    }
}

/// The prefetches that are worth it.
fn hot(job: &CodeJob, blocks: &Blocks, functions: &[FuncId]) -> Vec<Prefetch> {
    let residence = Residence::of(job.program, job.weights, job.moved);
    let moved: FxHashSet<FuncId> = job.moved.iter().copied().collect();
    let mut offers = Vec::new();
    let cost = job.program.arch.code_prefetch().map_or(0, |form| form.code.len() as u64);
    for &id in functions {
        let weights = &job.weights.functions[id];
        if !weights.is_hot() || weights.inside_unknown {
            continue;
        }
        let mut seen = FxHashSet::default();
        for block in blocks.program.functions[id].blocks.ids().filter(|&block| weights.block(block) > 0) {
            for (at, callee) in blocks.calls(id, block).filter(|(_, callee)| moved.contains(callee)) {
                let missing = residence.missing(job.weights.functions[callee].block(BlockId(0)));
                let place = Some(()).filter(|()| missing >= LEAST_MISSING);
                let place = place.and_then(|()| ahead(blocks, weights, id, (block, at)));
                if let Some(place) = place.filter(|place| seen.insert((*place, callee))) {
                    let count = (weights.block(block) as f64 * missing) as u64;
                    offers.push(Offer { what: Prefetch { function: id, block: place, callee }, count, cost });
                }
            }
        }
    }
    leave_seldom(&mut offers);
    growth::best(offers, hot_bytes(job.program, job.weights, job.moved) * GROWTH / 100, |prefetch| *prefetch)
}

/// Takes out what misses so seldom that all of it together is nothing: it would only take room.
fn leave_seldom(offers: &mut Vec<Offer<Prefetch>>) {
    offers.sort_by_key(|offer| offer.count);
    let nothing = offers.iter().map(|offer| offer.count).sum::<u64>() / NOTHING;
    let mut left = 0;
    offers.retain(|offer| {
        left += offer.count;
        left > nothing
    });
}

/// The block at whose start a line is asked for that the call `at` bytes into a block needs.
fn ahead(
    blocks: &Blocks,
    weights: &FunctionWeights,
    id: FuncId,
    (call_block, at): (BlockId, u32),
) -> Option<BlockId> {
    let function = &blocks.program.functions[id];
    let mut distance =
        at + CALL_AHEAD * blocks.calls(id, call_block).filter(|call| call.0 < at).count() as u32;
    let (mut here, mut best) = (call_block, None);
    for _ in 0..BLOCKS_AHEAD {
        if distance >= LEAST_AHEAD && blocks.may_have(id, here) {
            best = Some(here);
            if distance >= AHEAD {
                break;
            }
        }
        let into = weights.edges.iter().filter(|edge| edge.to == here && edge.from != here);
        let Some(edge) = into.max_by_key(|edge| (edge.count, std::cmp::Reverse(edge.from))) else { break };
        let is_way = |whole: u64| edge.count.saturating_mul(100) >= whole.saturating_mul(LEAST_USE);
        if !is_way(weights.block(here)) || !is_way(weights.block(edge.from)) || edge.from == call_block {
            break;
        }
        here = edge.from;
        let calls = blocks.calls(id, here).count() as u32;
        distance += function.code_size(&function.blocks[here]) + CALL_AHEAD * calls;
    }
    best
}

/// Any lines, for tests.
fn drawn(job: &CodeJob, blocks: &Blocks, functions: &[FuncId]) -> Vec<Prefetch> {
    let seed = job.options.seed;
    let moved: Vec<FuncId> =
        job.moved.iter().copied().filter(|id| job.program.functions[*id].folded_into.is_none()).collect();
    let mut drawn = BTreeSet::new();
    for &id in functions {
        for (block, own) in blocks.program.functions[id].blocks.iter() {
            let key = random::key_of(seed, &own.input.get().to_le_bytes());
            if key.is_multiple_of(4) && blocks.may_have(id, block) {
                let callee = moved[(key >> 8) as usize % moved.len()];
                drawn.insert(Prefetch { function: id, block, callee });
            }
        }
    }
    drawn.into_iter().collect()
}
