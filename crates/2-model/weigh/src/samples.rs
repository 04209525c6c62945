//! Weights from samples of single addresses, as any machine can take them.
//!
//! A sample says where time passed, not what ran. How long instructions take is [learned](pace) from the samples themselves, which
//! also handles that a sample names the instruction behind the one that took the time. A function is a graph in which each branch goes
//! either way with a [chance](chances) that is unknown, but not quite; its [most likely](likelihood) chances and entries give the weights. They
//! are a flow by construction: as often as control comes to a block, it leaves.
//!
//! Functions know of each other by [calls](calls): who was seen was called from somewhere, and a block that calls what was never seen
//! hardly ran. So all are fitted again with what their callers and callees said the time before.

mod calls;
mod chances;
mod elimination;
mod likelihood;
mod pace;

use afterlink_analyze::flow::FlowGraph;
use afterlink_core::InputAddr;
use afterlink_core::index::Id;
use afterlink_program::{
    Basis, BlockId, CallWeight, EdgeWeight, FuncId, Function, FunctionWeights, Program, Role, Target,
    Terminator, Weights,
};
use calls::{Calls, Known};
use likelihood::{Fitted, Model};
use pace::{Pace, Timed};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// Executions of what takes as long as the mean instruction, for each sample of it. Only relations between counts matter; this keeps
/// those of long blocks from being rounded away.
const EXECUTIONS_PER_SAMPLE: f64 = 1000.0;
/// More executions than this are not told apart, so that sums over any function stay numbers.
const MOST: f64 = (1u64 << 40) as f64;
/// How often functions are fitted again with what is known from others. A third time changes little.
const ROUNDS: usize = 2;

/// Samples by instruction, in any order; of functions that have some.
pub(crate) type Sampled = FxHashMap<FuncId, Vec<(InputAddr, u64)>>;

/// Weights of all functions.
pub(crate) fn weigh(program: &Program, sampled: &Sampled) -> Weights {
    let ids: Vec<FuncId> = program.functions.ids().collect();
    let (pace, mut own) = seen(program, sampled);
    let calls = Calls::find(program);
    let fit = |id: FuncId, known: &Known| fit(program, &program.functions[id], known);
    let mut fits: Vec<Option<Fitted>> =
        ids.par_iter().map(|&id| sampled.contains_key(&id).then(|| fit(id, &own[id.index()]))).collect();
    for _ in 0..ROUNDS {
        let said = calls.exchange(&own, &fits);
        own.par_iter_mut().zip(&ids).filter(|(own, id)| own.is_empty() && said.is_called(**id)).for_each(
            |(own, &id)| *own = Known::of(&pace::timed(program, &program.functions[id], &[]), &pace),
        );
        fits = ids
            .par_iter()
            .map(|&id| {
                let known = said.to(id, &own, &fits)?;
                Some(fit(id, &known))
            })
            .collect();
    }
    let functions: Vec<FunctionWeights> = ids
        .par_iter()
        .zip(&fits)
        .map(|(&id, fit)| fit.as_ref().map(|fit| weights(&program.functions[id], fit)).unwrap_or_default())
        .collect();
    Weights { functions: functions.into(), basis: Basis::Estimated }
}

/// How long instructions take, and what is known of each function that has samples; of the others nothing.
fn seen(program: &Program, sampled: &Sampled) -> (Pace, Vec<Known>) {
    let mut samples: Vec<(&FuncId, &Vec<(InputAddr, u64)>)> = sampled.iter().collect();
    samples.sort_unstable_by_key(|row| row.0);
    let timed: Vec<Vec<Timed>> =
        samples.par_iter().map(|(id, of)| pace::timed(program, &program.functions[**id], of)).collect();
    let pace = Pace::learn(timed.iter().flatten());
    let mut own = vec![Known::default(); program.functions.len()];
    for ((id, _), blocks) in samples.iter().zip(&timed) {
        own[id.index()] = Known::of(blocks, &pace);
    }
    (pace, own)
}

fn fit(program: &Program, function: &Function, known: &Known) -> Fitted {
    let graph = FlowGraph::of(function, |_| false);
    let chances = chances::of(program, function, &graph);
    let model = Model {
        successors: &graph.successors,
        samples: &known.samples,
        time: &known.time,
        chances: &chances.ways,
        leaving: &chances.leaving,
        called: known.called,
    };
    likelihood::fit(&model)
}

fn weights(function: &Function, fitted: &Fitted) -> FunctionWeights {
    let count = |executions: f64| (executions * EXECUTIONS_PER_SAMPLE).round().min(MOST) as u64;
    let mut edges: Vec<EdgeWeight> = Vec::new();
    for (from, ways) in (0..).zip(&fitted.ways) {
        let of = |&(to, times): &(u32, f64)| EdgeWeight {
            from: BlockId(from),
            to: BlockId(to),
            count: count(times),
        };
        edges.extend(ways.iter().map(of));
    }
    edges.sort_unstable();
    let blocks: Vec<u64> = fitted.blocks.iter().map(|&times| count(times)).collect();
    let calls = call_weights(function, &blocks);
    FunctionWeights { entries: count(fitted.entries), blocks, edges, calls, ..FunctionWeights::default() }
}

/// The direct calls and tail calls of blocks that ran. How often a conditional one is made is not known: half of the times.
fn call_weights(function: &Function, counts: &[u64]) -> Vec<CallWeight> {
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
