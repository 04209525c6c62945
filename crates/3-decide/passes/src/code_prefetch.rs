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
use crate::entries::{Entries, free_inside};
use crate::growth::{self, Offer, hot_bytes};
use crate::pass::{CodeJob, Pass, Run};
use afterlink_core::IdVec;
use afterlink_isa::CodePrefetch;
use afterlink_layout::random;
use afterlink_program::{Block, BlockId, Chunk, FuncId, Function, Operand, Program, Role, Target};
use afterlink_weigh::{EdgeWeight, FunctionWeights};
use residence::Residence;
use rustc_hash::FxHashSet;
use std::cmp::Reverse;
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
    let entries = Entries::find(job.program);
    let functions = free_inside(job.program, &entries, job.moved);
    let chosen =
        if has_counts { hot(job, &entries, &functions, form) } else { drawn(job, &entries, &functions) };
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

/// For each block of a function whether an instruction may stand in front of all that it does.
fn may_have(program: &Program, entries: &Entries, id: FuncId) -> IdVec<BlockId, bool> {
    let (function, arch) = (&program.functions[id], program.arch);
    let pads = function.landing_pads();
    let may_have = |(block, own): (BlockId, &Block)| {
        let is_copied = matches!(function.chunks[own.chunks.range()], [] | [Chunk::Input(_), ..]);
        if block.0 >= function.input_blocks || own.body == 0 || !is_copied {
            return false;
        }
        let bytes = program.code.at(own.input, own.body as usize).unwrap_or(&[]);
        let asks_itself = || (0..bytes.len()).any(|at| arch.prefetches_code(&bytes[at..]));
        // A handler of signals may know an instruction by the entry's address.
        let is_free = block != BlockId(0) || !entries.is_known(id);
        is_free
            && arch.mark_size(bytes) == 0
            && !function.labels.contains(&block)
            && pads.binary_search(&block).is_err()
            && !asks_itself()
    };
    function.blocks.iter().map(may_have).collect()
}

/// The functions that a block calls by their entries, and where: from the block's start.
fn calls(program: &Program, id: FuncId, block: BlockId) -> impl Iterator<Item = (u32, FuncId)> {
    let function = &program.functions[id];
    let operands = function.operands_of(&function.blocks[block]).iter();
    operands.filter(|operand| operand.role == Role::Call).filter_map(move |operand| match operand.target {
        Target::Code(callee, BlockId(0)) if callee != id => Some((operand.at, callee)),
        _ => None,
    })
}

/// The prefetches that are worth it.
fn hot(job: &CodeJob, entries: &Entries, functions: &[FuncId], form: CodePrefetch) -> Vec<Prefetch> {
    let residence = Residence::of(job.program, job.weights, job.moved);
    let moved: FxHashSet<FuncId> = job.moved.iter().copied().collect();
    // How often the line of a callee is missing.
    let missing = |callee: FuncId| {
        let missing = residence.missing(job.weights.functions[callee].block(BlockId(0)));
        Some(missing).filter(|missing| moved.contains(&callee) && *missing >= LEAST_MISSING)
    };
    let mut offers = Vec::new();
    for &id in functions {
        let weights = &job.weights.functions[id];
        if weights.is_hot() && !weights.inside_unknown {
            let ways = Ways::of(job.program, weights, entries, id);
            for (what, count) in ways.prefetches(job.program, missing) {
                offers.push(Offer { what, count, cost: form.code.len() as u64 });
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

/// How control comes to the blocks of a function.
struct Ways<'w> {
    id: FuncId,
    weights: &'w FunctionWeights,
    may_have: IdVec<BlockId, bool>,
    /// Bytes of code that run in a block, with something for what it calls.
    lengths: IdVec<BlockId, u32>,
    /// By which edge from another block control comes most often.
    into: IdVec<BlockId, Option<EdgeWeight>>,
}

impl<'w> Ways<'w> {
    fn of(program: &Program, weights: &'w FunctionWeights, entries: &Entries, id: FuncId) -> Self {
        let function = &program.functions[id];
        let length = |(block, own): (BlockId, &Block)| {
            function.code_size(own) + CALL_AHEAD * calls(program, id, block).count() as u32
        };
        let mut into: IdVec<BlockId, Option<EdgeWeight>> = IdVec::filled(None, function.blocks.len());
        let often = |edge: &EdgeWeight| (edge.count, Reverse(edge.from));
        for edge in weights.edges.iter().filter(|edge| edge.from != edge.to) {
            let known = &mut into[edge.to];
            if known.as_ref().is_none_or(|known| often(known) < often(edge)) {
                *known = Some(*edge);
            }
        }
        let may_have = may_have(program, entries, id);
        Self { id, weights, may_have, lengths: function.blocks.iter().map(length).collect(), into }
    }

    /// What may be asked for, each line once in a block, and how often it is missing then; `missing` says how often a callee's is.
    fn prefetches(&self, program: &Program, missing: impl Fn(FuncId) -> Option<f64>) -> Vec<(Prefetch, u64)> {
        let (mut found, mut seen) = (Vec::new(), FxHashSet::default());
        for block in self.lengths.ids().filter(|&block| self.weights.block(block) > 0) {
            for (before, (at, callee)) in (0..).zip(calls(program, self.id, block)) {
                let Some(missing) = missing(callee) else { continue };
                let place = self.ahead(block, at + CALL_AHEAD * before);
                if let Some(place) = place.filter(|place| seen.insert((*place, callee))) {
                    let count = (self.weights.block(block) as f64 * missing) as u64;
                    found.push((Prefetch { function: self.id, block: place, callee }, count));
                }
            }
        }
        found
    }

    /// The block at whose start a line is asked for that a call needs, which is so far behind the start of its own block.
    fn ahead(&self, call_block: BlockId, mut distance: u32) -> Option<BlockId> {
        let (mut here, mut best) = (call_block, None);
        for _ in 0..BLOCKS_AHEAD {
            if distance >= LEAST_AHEAD && self.may_have[here] {
                best = Some(here);
                if distance >= AHEAD {
                    break;
                }
            }
            let Some(edge) = self.into[here] else { break };
            let is_way = |block| {
                let whole = self.weights.block(block);
                edge.count.saturating_mul(100) >= whole.saturating_mul(LEAST_USE)
            };
            if !is_way(here) || !is_way(edge.from) || edge.from == call_block {
                break;
            }
            here = edge.from;
            distance += self.lengths[here];
        }
        best
    }
}

/// Any lines, for tests.
fn drawn(job: &CodeJob, entries: &Entries, functions: &[FuncId]) -> Vec<Prefetch> {
    let seed = job.options.seed;
    let moved: Vec<FuncId> =
        job.moved.iter().copied().filter(|id| job.program.functions[*id].folded_into.is_none()).collect();
    let mut drawn = BTreeSet::new();
    for &id in functions {
        let may_have = may_have(job.program, entries, id);
        for (block, own) in job.program.functions[id].blocks.iter() {
            let key = random::key_of(seed, &own.input.get().to_le_bytes());
            if key.is_multiple_of(4) && may_have[block] {
                let callee = moved[(key >> 8) as usize % moved.len()];
                drawn.insert(Prefetch { function: id, block, callee });
            }
        }
    }
    drawn.into_iter().collect()
}
