//! Calls that were not counted, but that must have been made.

use super::callees::callees;
use super::graph;
use afterlink_analyze::held;
use afterlink_core::IdVec;
use afterlink_core::index::Id;
use afterlink_program::{BlockId, CallWeight, FuncId, Function, FunctionWeights, Program};
use std::collections::BTreeMap;

/// A call in a function out of which not all calls were counted.
#[derive(Clone, Copy)]
struct Site {
    caller: FuncId,
    block: BlockId,
    offset: u32,
}

/// By callee, where it may have been called from without being counted.
pub(super) struct Sites<'p, 'a> {
    program: &'p Program<'a>,
    of: IdVec<FuncId, Vec<Site>>,
    /// Whether somebody has the function's address, and may have called it by that.
    address_taken: IdVec<FuncId, bool>,
}

impl<'p, 'a> Sites<'p, 'a> {
    pub fn of(program: &'p Program<'a>, functions: &[FunctionWeights], partly: &IdVec<FuncId, bool>) -> Self {
        let mut of: IdVec<FuncId, Vec<Site>> = IdVec::filled(Vec::new(), functions.len());
        for ((caller, function), weights) in program.functions.iter().zip(functions) {
            if weights.is_hot() && !weights.inside_unknown && !partly[caller] {
                continue;
            }
            for (block, callee, offset) in uncounted_calls(caller, function, weights) {
                of[callee].push(Site { caller, block, offset });
            }
        }
        Self { program, of, address_taken: held::entries(program) }
    }

    /// Functions of which the profile says nothing, but which alone can have called what was entered more often than it was seen to be called; and how often they were
    /// entered at least.
    pub fn must_have_run(
        &self,
        functions: &[FunctionWeights],
        unaccounted: &IdVec<FuncId, u64>,
        never_ran: &IdVec<FuncId, bool>,
    ) -> BTreeMap<FuncId, u64> {
        let mut found: BTreeMap<FuncId, u64> = BTreeMap::new();
        let mut again: BTreeMap<FuncId, Vec<bool>> = BTreeMap::new();
        for callee in self.program.functions.ids() {
            let count = unaccounted[callee];
            let is_known = count > 0 && count < u64::MAX && !self.address_taken[callee];
            let sites = self.of[callee].iter();
            if !is_known || sites.clone().any(|site| may_have_run(functions, site)) {
                continue;
            }
            let may = |site: &&Site| {
                let refusal = self.program.functions[site.caller].refusal;
                !functions[site.caller.index()].is_hot() && !never_ran[site.caller] && refusal.is_none()
            };
            let sites: Vec<&Site> = sites.filter(may).collect();
            let Some(first) = sites.first() else { continue };
            if sites.iter().all(|site| site.caller == first.caller) {
                let function = &self.program.functions[first.caller];
                let again = again.entry(first.caller).or_insert_with(|| graph::may_run_again(function));
                let any_again = sites.iter().any(|site| again[site.block.index()]);
                let least = found.entry(first.caller).or_default();
                *least = (*least).max(if any_again { 1 } else { count.div_ceil(sites.len() as u64) });
            }
        }
        found
    }

    /// The calls that alone can have been made of all that may have been, with their callers.
    pub fn only_calls(
        &self,
        functions: &[FunctionWeights],
        unaccounted: &IdVec<FuncId, u64>,
    ) -> Vec<(FuncId, CallWeight)> {
        let only_call = |callee: FuncId| {
            let weights = &functions[callee.index()];
            let count = match unaccounted[callee] {
                u64::MAX if weights.inside_unknown => weights.entries,
                u64::MAX => 0,
                count => count,
            };
            let mut sites = self.of[callee].iter().filter(|site| may_have_run(functions, site));
            let site = sites.next().filter(|_| count > 0 && !self.address_taken[callee])?;
            let call = CallWeight { block: site.block, offset: site.offset, callee, count };
            sites.next().is_none().then_some((site.caller, call))
        };
        self.program.functions.ids().filter_map(only_call).collect()
    }
}

fn may_have_run(functions: &[FunctionWeights], site: &Site) -> bool {
    let weights = &functions[site.caller.index()];
    weights.is_hot() && weights.at_most(site.block) > 0
}

/// Calls of blocks that ran, in functions of which a part was counted and no such call: an order of functions should know of them.
pub(super) fn add_calls(program: &Program, functions: &mut [FunctionWeights], partly: &IdVec<FuncId, bool>) {
    for (id, function) in program.functions.iter() {
        let weights = &mut functions[id.index()];
        if partly[id] && !weights.inside_unknown {
            let calls = uncounted_calls(id, function, weights);
            let calls = calls.map(|(block, callee, offset)| CallWeight {
                block,
                offset,
                callee,
                count: weights.block(block),
            });
            let ran: Vec<CallWeight> = calls.filter(|call| call.count > 0).collect();
            weights.calls.extend(ran);
            weights.calls.sort_unstable();
        }
    }
}

/// Calls of which the profile has no count: the block, the callee, and where in the block.
fn uncounted_calls<'f>(
    id: FuncId,
    function: &'f Function,
    weights: &'f FunctionWeights,
) -> impl Iterator<Item = (BlockId, FuncId, u32)> + 'f {
    let of_block = move |(block, own)| {
        callees(id, function, own).map(move |callee| (block, callee.function, callee.offset))
    };
    let is_counted = |block: BlockId, callee: FuncId| {
        let of_block = weights.calls.partition_point(|call| call.block < block);
        let mut of_block = weights.calls[of_block..].iter().take_while(|call| call.block == block);
        of_block.any(|call| call.callee == callee)
    };
    function.blocks.iter().flat_map(of_block).filter(move |&(block, callee, _)| !is_counted(block, callee))
}
