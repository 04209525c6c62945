//! Counts of entries, edges and calls, to the weights of a program.

use crate::conservation::{self, Counts};
use crate::repair;
use crate::seen;
use crate::uncounted::{self, callees};
use afterlink_program::{
    Basis, Block, BlockId, CallWeight, EdgeWeight, FuncId, Function, FunctionWeights, Program, Weights,
};
use rayon::prelude::*;

/// Counts by function, not yet summed.
#[derive(Default)]
pub(crate) struct Flows {
    pub entries: Vec<(FuncId, u64)>,
    pub edges: Vec<(FuncId, EdgeWeight)>,
    pub calls: Vec<(FuncId, CallWeight)>,
}

/// What was counted of a function, and the same without gaps.
struct Weighed {
    counted: FunctionWeights,
    whole: FunctionWeights,
    /// Whether the counts fit together.
    fits: bool,
}

impl Flows {
    pub fn add_way(&mut self, function: FuncId, from: BlockId, way: &[BlockId], count: u64) {
        let mut from = from;
        for &to in way {
            self.edges.push((function, EdgeWeight { from, to, count }));
            from = to;
        }
    }

    pub fn into_weights(mut self, program: &Program) -> Weights {
        self.entries.sort_unstable();
        self.edges.sort_unstable();
        self.calls.sort_unstable();
        let functions: Vec<(FuncId, &Function)> = program.functions.iter().collect();
        let mut weighed: Vec<Option<Weighed>> =
            functions.par_iter().map(|&(id, function)| self.weighed(id, function)).collect();
        let is_sampled = is_sampled(program, &weighed);
        let whole: Vec<_> = weighed.iter().map(|weighed| weighed.as_ref().map(|w| &w.whole)).collect();
        let never_ran = uncounted::never_ran(program, &whole);
        weighed.par_iter_mut().zip(&functions).for_each(|(weighed, &(id, function))| {
            let Some(Weighed { counted, whole, fits }) = weighed else { return };
            if is_sampled && !counted.inside_unknown {
                whole.blocks = seen::blocks(function, counted);
            } else if !is_sampled && !*fits {
                // Of counters nothing is missing but what did not come back.
                whole.clone_from(counted);
                repair::complete(function, whole);
                let never = |block: &Block| callees(id, function, block).any(|c| never_ran[c.function]);
                conservation::restore(function, whole, Counts::Counters { never: &never });
            }
        });
        let partly: Vec<bool> = weighed.iter().map(|w| w.as_ref().is_some_and(|w| !w.fits)).collect();
        let whole = weighed.into_iter().map(|weighed| weighed.map(|w| w.whole).unwrap_or_default());
        let mut functions: Vec<FunctionWeights> = whole.collect();
        let basis = if is_sampled { Basis::Sampled } else { Basis::Counted };
        if basis == Basis::Counted {
            uncounted::find(program, &mut functions, &partly.into(), &never_ran);
        }
        Weights { functions: functions.into(), basis }
    }

    fn weighed(&self, id: FuncId, function: &Function) -> Option<Weighed> {
        let entries = part(&self.entries, id, |e| e.0);
        let edges = part(&self.edges, id, |e| e.0);
        let calls = part(&self.calls, id, |c| c.0);
        let ran = !(entries.is_empty() && edges.is_empty() && calls.is_empty());
        ran.then(|| made_whole(function, summed(function, entries, edges, calls)))
    }
}

/// Of counters, less than a hundredth of what ran is in functions whose counts do not fit together, of BOLT's, which leaves functions out, a twelfth; of a
/// processor's branch stacks a third, and of stacks as long as those of threads that are followed a tenth (`docs/decisions/0008-samples.md`).
const UNFIT: f64 = 0.03;
/// But of counters these are at most one function in eighty, of BOLT's one in nineteen, where it is one in five and more of branch stacks.
const UNFIT_FUNCTIONS: f64 = 0.125;

/// Whether what was counted is a part of what ran, as in branch stacks. Where no branch is known that was not taken, nothing tells what was
/// not seen from what is not recorded.
fn is_sampled(program: &Program, weighed: &[Option<Weighed>]) -> bool {
    let (mut unfit, mut all, mut not_taken) = ((0usize, 0.0), (0usize, 0.0), false);
    for ((_, function), weighed) in program.functions.iter().zip(weighed) {
        let Some(Weighed { counted, whole, fits }) = weighed else { continue };
        let has_branches = counted.edges.iter().any(|edge| edge.count > 0);
        let ran: f64 = whole.blocks.iter().map(|&count| count as f64).sum();
        let own = (usize::from(has_branches), ran);
        all = (all.0 + own.0, all.1 + own.1);
        if !*fits {
            unfit = (unfit.0 + own.0, unfit.1 + own.1);
        }
        not_taken |= counted.edges.iter().any(|edge| edge.count > 0 && seen::is_not_taken(function, edge));
    }
    not_taken && unfit.0 as f64 > UNFIT_FUNCTIONS * all.0 as f64 && unfit.1 > UNFIT * all.1
}

fn part<T>(rows: &[T], id: FuncId, key: impl Fn(&T) -> FuncId) -> &[T] {
    let from = rows.partition_point(|r| key(r) < id);
    let to = rows.partition_point(|r| key(r) <= id);
    &rows[from..to]
}

/// The counts alone, with all edges that there are.
fn summed(
    function: &Function,
    entries: &[(FuncId, u64)],
    counted: &[(FuncId, EdgeWeight)],
    calls: &[(FuncId, CallWeight)],
) -> FunctionWeights {
    let entries = entries.iter().fold(0u64, |sum, e| sum.saturating_add(e.1));
    let mut edges: Vec<EdgeWeight> = counted.iter().map(|(_, e)| *e).collect();
    for block in function.blocks.ids() {
        function.for_each_successor(block, |to| edges.push(EdgeWeight { from: block, to, count: 0 }));
    }
    edges.sort_unstable();
    let mut summed: Vec<EdgeWeight> = Vec::with_capacity(edges.len());
    for edge in edges {
        match summed.last_mut().filter(|last| (last.from, last.to) == (edge.from, edge.to)) {
            Some(last) => last.count = last.count.saturating_add(edge.count),
            None => summed.push(edge),
        }
    }
    let mut summed_calls: Vec<CallWeight> = Vec::new();
    for (_, call) in calls {
        let same =
            |l: &&mut CallWeight| (l.block, l.offset, l.callee) == (call.block, call.offset, call.callee);
        match summed_calls.last_mut().filter(same) {
            Some(last) => last.count = last.count.saturating_add(call.count),
            None => summed_calls.push(*call),
        }
    }
    FunctionWeights {
        entries,
        blocks: Vec::new(),
        edges: summed,
        calls: summed_calls,
        inside_unknown: counted.is_empty() && has_choice(function),
        ..FunctionWeights::default()
    }
}

fn made_whole(function: &Function, counted: FunctionWeights) -> Weighed {
    let mut whole = counted.clone();
    repair::complete(function, &mut whole);
    let fits = conservation::fits(function, &whole);
    if !fits {
        conservation::restore(function, &mut whole, Counts::Samples);
    }
    Weighed { counted, whole, fits }
}

/// Whether some block may go on in more than one way, so that the entries alone don't tell what runs.
fn has_choice(function: &Function) -> bool {
    function.blocks.ids().any(|block| {
        let mut ways = 0;
        function.for_each_successor(block, |_| ways += 1);
        ways > 1
    })
}

#[cfg(test)]
pub(crate) mod tests;
