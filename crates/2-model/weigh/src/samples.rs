//! Weights from samples of single addresses, as any machine can take them.
//!
//! A sample says where time passed, not what ran: a block of many instructions is seen more often than a short one that runs as
//! often. So a block has run about as often as its [typical instruction](instructions) was seen, and the evidence against another number is
//! counted in samples: ten executions more of a long block would have been seen, of a short one hardly. The rest is
//! [inferred](crate::inference), and what may have run [without being seen](unseen) is added.
//!
//! Short functions may have no sample at all and run all the time. Those that sampled code calls get as many executions as their
//! callers give them, spread over their blocks by what their graphs suggest, but no more than would probably have been seen.

mod instructions;
mod unseen;

use crate::inference::{Evidence, Flow, Observed, infer};
use afterlink_analyze::flow::FlowGraph;
use afterlink_analyze::frequency;
use afterlink_core::index::Id;
use afterlink_core::{IdVec, InputAddr};
use afterlink_program::{
    Block, BlockId, CallWeight, EdgeWeight, FuncId, Function, FunctionWeights, Program, Role, Stop, Target,
    Terminator, Weights,
};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// Executions of one instruction for each sample of it. Only relations between counts matter; this keeps those of long blocks from
/// being rounded away.
const EXECUTIONS_PER_SAMPLE: f64 = 1000.0;

/// Cost of an execution more than was seen, and of one fewer, by instruction (He et al., POPL 2022, have 10 and 20 for blocks). Evidence of
/// many samples is the dearer the more there are, but not in proportion: what slows an instruction is in all of them.
const MORE: f64 = 10_000.0;
const FEWER: f64 = 20_000.0;
const SAMPLES_COUNT: f64 = 0.75;
/// More samples than this make evidence no cheaper.
const MANY: u64 = 1_000_000;
/// More executions than this are not told apart, so that sums over any function stay numbers.
const MOST: f64 = (1u64 << 40) as f64;
/// More instructions than this make a block's evidence no stronger.
const LONG: u64 = 1000;
/// Cost of an execution that the graph makes less likely by a factor of e, and the least that a way can be likely.
const UNLIKELY: f64 = 10_000.0;
const LEAST: f64 = 1e-4;
/// How often a forward branch falls through, where nothing else is known: compilers put there what they think is likelier.
const FALLS_THROUGH: f64 = 0.7;

/// How far executions are passed on to functions without samples: from callers to callees, to their callees, and so on.
const ROUNDS: usize = 4;
/// Samples that a function without one would have had at most: with as many expected, one of twenty has none.
const UNSEEN: f64 = 3.0;

/// Samples by instruction, in any order; of functions that have some.
pub(crate) type Sampled = FxHashMap<FuncId, Vec<(InputAddr, u64)>>;

/// Weights of all functions.
pub(crate) fn weigh(program: &Program, sampled: &Sampled) -> Weights {
    let ids: Vec<FuncId> = program.functions.ids().collect();
    let functions: Vec<FunctionWeights> = ids
        .par_iter()
        .map(|id| match sampled.get(id) {
            Some(samples) => from_samples(program, &program.functions[*id], samples),
            None => FunctionWeights::default(),
        })
        .collect();
    let mut weights = Weights { functions: functions.into() };
    let mut known: IdVec<FuncId, bool> = ids.iter().map(|id| sampled.contains_key(id)).collect();
    let mut callers: Vec<FuncId> = ids.iter().copied().filter(|&id| known[id]).collect();
    for _ in 0..ROUNDS {
        let entries = calls_of_unknown(&weights, &callers, &known);
        let mut found: Vec<(FuncId, u64)> = entries.into_iter().collect();
        found.sort_unstable();
        let estimated: Vec<FunctionWeights> = found
            .par_iter()
            .map(|&(id, entries)| from_entries(program, &program.functions[id], entries))
            .collect();
        callers = found.iter().map(|row| row.0).collect();
        for (&id, own) in callers.iter().zip(estimated) {
            weights.functions[id] = own;
            known[id] = true;
        }
    }
    weights
}

/// How often `callers` call functions of which nothing is known yet.
fn calls_of_unknown(
    weights: &Weights,
    callers: &[FuncId],
    known: &IdVec<FuncId, bool>,
) -> FxHashMap<FuncId, u64> {
    let mut entries = FxHashMap::default();
    for call in callers.iter().flat_map(|&id| &weights.functions[id].calls) {
        if !known[call.callee] && call.count > 0 {
            let entries: &mut u64 = entries.entry(call.callee).or_default();
            *entries = entries.saturating_add(call.count);
        }
    }
    entries
}

/// A function's blocks as the inference and the estimate want them.
struct Shape {
    graph: FlowGraph,
    sampled: Vec<instructions::Sampled>,
    /// What the compiler does not expect to run, by block.
    aside: Vec<bool>,
}

impl Shape {
    fn of(program: &Program, function: &Function, samples: &[(InputAddr, u64)]) -> Self {
        // What names a block otherwise than by a jump is a label or a landing pad, which have their edges.
        let graph = FlowGraph::of(function, |_| false);
        let sampled = instructions::sampled(program, function, samples);
        let aside = function.blocks.iter().map(|(_, block)| is_aside(function, block)).collect();
        Self { graph, sampled, aside }
    }
}

fn is_aside(function: &Function, block: &Block) -> bool {
    let ends = matches!(block.terminator, Terminator::Stop(Stop::Trap) | Terminator::LastCall(_));
    ends || !function.ranges[0].contains(block.input)
}

fn from_samples(program: &Program, function: &Function, samples: &[(InputAddr, u64)]) -> FunctionWeights {
    let shape = Shape::of(program, function, samples);
    let chances = chances(function, &shape);
    let blocks: Vec<Evidence> = shape.sampled.iter().map(seen).collect();
    let ids = || function.blocks.ids();
    // What is likely must not outdo what was seen.
    let unlikely = UNLIKELY * cheaper(shape.sampled.iter().map(|s| s.all).max().unwrap_or(0));
    let edges: Vec<Vec<Evidence>> =
        ids().map(|block| edges(function, &shape, &chances[block.index()], unlikely, block)).collect();
    let entries: Vec<_> = ids().map(|block| (block.index() == 0).then(Evidence::default)).collect();
    let exits: Vec<_> = function.blocks.iter().map(|(_, block)| exit(block, unlikely)).collect();
    let observed = Observed {
        successors: &shape.graph.successors,
        blocks: &blocks,
        edges: &edges,
        entries: &entries,
        exits: &exits,
    };
    let mut flow = infer(&observed);
    unseen::add(&mut flow, &shape, &chances);
    weights(function, &shape.graph, flow)
}

fn seen(sampled: &instructions::Sampled) -> Evidence {
    let weight = LONG.min(sampled.number) as f64 * cheaper(sampled.all);
    Evidence {
        count: (sampled.typical * EXECUTIONS_PER_SAMPLE).round().min(MOST) as u64,
        more: (MORE * weight).round() as i64,
        fewer: (FEWER * weight).round() as i64,
    }
}

/// What a contradiction to one of so many samples costs, of what it costs to the only one.
fn cheaper(samples: u64) -> f64 {
    (samples.min(MANY) as f64 + 1.0).powf(SAMPLES_COUNT - 1.0)
}

/// How likely control takes each way out of a block, from the graph and the order of the blocks alone.
fn chances(function: &Function, shape: &Shape) -> Vec<Vec<f64>> {
    let estimate = frequency::estimate(&shape.graph, &shape.aside);
    let mut chances = estimate.edges;
    for ((id, block), of) in function.blocks.iter().zip(&mut chances) {
        if let Terminator::Branch { taken: Target::Block(taken), next, .. }
        | Terminator::ShortBranch { taken: Target::Block(taken), next, .. } = block.terminator
            && taken > id
        {
            for (chance, &to) in of.iter_mut().zip(&shape.graph.successors[id.index()]) {
                *chance *= if to == next.0 { FALLS_THROUGH } else { 1.0 - FALLS_THROUGH };
            }
        }
        let all: f64 = of.iter().sum();
        of.iter_mut().for_each(|chance| *chance /= all.max(f64::MIN_POSITIVE));
    }
    chances
}

/// What is known of the ways out of a block: that they have these chances. `unlikely` is the cost of an execution that is less likely by a
/// factor of e.
fn edges(
    function: &Function,
    shape: &Shape,
    chances: &[f64],
    unlikely: f64,
    block: BlockId,
) -> Vec<Evidence> {
    let mut pads: Vec<u32> = Vec::new();
    function.for_each_landing_pad(block, |pad| pads.push(pad.0));
    let cost = |(to, chance): (&u32, &f64)| {
        let chance = if pads.contains(to) { LEAST } else { chance.max(LEAST) };
        (unlikely * -chance.ln()).round() as i64
    };
    let ways = shape.graph.successors[block.index()].iter().zip(chances);
    ways.map(|way| Evidence { more: cost(way), ..Evidence::default() }).collect()
}

/// Whether control may leave the function behind a block, and what it costs to think so.
fn exit(block: &Block, unlikely: f64) -> Option<Evidence> {
    let leaves = |target: Target| !matches!(target, Target::Block(_));
    let chance: f64 = match block.terminator {
        Terminator::Stop(Stop::Return | Stop::TailCall) => 1.0,
        Terminator::Jump(target) if leaves(target) => 1.0,
        Terminator::Branch { taken, .. } | Terminator::ShortBranch { taken, .. } if leaves(taken) => 0.5,
        // Its targets are known, as far as anybody knows.
        Terminator::Indirect { .. } => 0.1,
        Terminator::Stop(Stop::Trap | Stop::Unknown) | Terminator::LastCall(_) => LEAST,
        _ => return None,
    };
    Some(Evidence { more: (unlikely * -chance.ln()).round() as i64, ..Evidence::default() })
}

fn from_entries(program: &Program, function: &Function, entries: u64) -> FunctionWeights {
    let shape = Shape::of(program, function, &[]);
    let estimate = frequency::estimate(&shape.graph, &shape.aside);
    let per_entry: f64 = estimate.blocks.iter().zip(&shape.sampled).map(|(f, s)| f * s.number as f64).sum();
    let unseen = UNSEEN * EXECUTIONS_PER_SAMPLE / per_entry.max(1.0);
    let entries = (entries as f64).min(unseen);
    let times = |frequency: &f64| (frequency * entries).round() as u64;
    let flow = Flow {
        blocks: estimate.blocks.iter().map(times).collect(),
        edges: estimate.edges.iter().map(|edges| edges.iter().map(times).collect()).collect(),
        entries: vec![entries.round() as u64],
        exits: Vec::new(),
    };
    weights(function, &shape.graph, flow)
}

fn weights(function: &Function, graph: &FlowGraph, flow: Flow) -> FunctionWeights {
    let mut edges: Vec<EdgeWeight> = Vec::new();
    for (from, (to, counts)) in (0..).zip(graph.successors.iter().zip(&flow.edges)) {
        let of = |(&to, &count): (&u32, &u64)| EdgeWeight { from: BlockId(from), to: BlockId(to), count };
        edges.extend(to.iter().zip(counts).map(of));
    }
    edges.sort_unstable();
    let calls = calls(function, &flow.blocks);
    let entries = flow.entries.first().copied().unwrap_or(0);
    FunctionWeights { entries, blocks: flow.blocks, edges, calls, inside_unknown: false }
}

/// The direct calls and tail calls of blocks that ran. How often a conditional one is made is not known: half of the times.
fn calls(function: &Function, counts: &[u64]) -> Vec<CallWeight> {
    let mut calls = Vec::new();
    for (id, block) in function.blocks.iter() {
        let count = counts[id.index()];
        if count == 0 {
            continue;
        }
        let mut add = |offset: u32, target: Target, count: u64| {
            if let Target::Code(callee, BlockId(0)) = target {
                calls.push(CallWeight { block: id, offset, callee, count });
            }
        };
        for operand in function.operands_of(block).iter().filter(|o| o.role == Role::Call) {
            add(operand.at + u32::from(operand.encoding.size()), operand.target, count);
        }
        match block.terminator {
            Terminator::Jump(target) => add(block.size, target, count),
            Terminator::Branch { taken, .. } => add(block.size, taken, count / 2),
            _ => {}
        }
    }
    calls.sort_unstable();
    calls
}

#[cfg(test)]
mod tests;
