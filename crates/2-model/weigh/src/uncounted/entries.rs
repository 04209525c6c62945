//! What a profile tells of functions by how often it says that they were entered.

use afterlink_core::IdVec;
use afterlink_core::index::Id;
use afterlink_program::{CallWeight, FuncId, Function, FunctionWeights, Program};

/// By function: whether the profile tells that it never ran. Of functions that could not be read nothing is known, nor of those of a kind that the profile hardly
/// counts: it need not know who calls them, either.
pub(crate) fn never_ran(program: &Program, weights: &[Option<&FunctionWeights>]) -> IdVec<FuncId, bool> {
    let of_kind = program.functions.iter().map(|(_, function)| is_hard_to_count(function));
    let (mut counted, mut uncounted) = (0usize, 0usize);
    for (_, weights) in of_kind.zip(weights).filter(|(is_hard, _)| *is_hard) {
        match weights {
            Some(weights) if weights.inside_unknown => uncounted += 1,
            Some(_) => counted += 1,
            None => {}
        }
    }
    let hardly_counts = uncounted > counted;
    let never = |((_, function), weights): ((FuncId, &Function), &Option<&FunctionWeights>)| {
        weights.is_none() && function.refusal.is_none() && !(hardly_counts && is_hard_to_count(function))
    };
    program.functions.iter().zip(weights).map(never).collect::<Vec<_>>().into()
}

/// A table leads from one part of such a function to the other, which the symbols call another function.
fn is_hard_to_count(function: &Function) -> bool {
    function.ranges.len() > 1 && !function.jump_tables.is_empty()
}

/// By function, how many of its entries no counted call accounts for. Nothing (all there can be) is known of those that nobody counts, as linkers' stubs, nor of one of which
/// no branch was: its entries are only the calls from where calls are counted.
pub(super) fn unaccounted(
    functions: &[FunctionWeights],
    never_ran: &IdVec<FuncId, bool>,
) -> IdVec<FuncId, u64> {
    let known = functions.iter().filter(|weights| !weights.inside_unknown);
    let called = CallWeight::by_callee(known, functions.len());
    let left = |(id, weights): (usize, &FunctionWeights)| {
        let id = FuncId::from_index(id);
        let is_counted = weights.edges.iter().any(|edge| edge.count > 0);
        let never_ran = never_ran[id] && !weights.is_hot();
        if is_counted || never_ran { weights.entries.saturating_sub(called[id]) } else { u64::MAX }
    };
    functions.iter().enumerate().map(left).collect::<Vec<_>>().into()
}
