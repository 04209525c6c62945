//! Which functions move.

use crate::LayoutOptions;
use afterlink_core::index::Id;
use afterlink_program::{Field, FuncId, Program};
use afterlink_weigh::Weights;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those that ran under the profile.
    Hot,
    /// Every one that is not refused.
    All,
}

/// The functions that move, in input order.
pub(crate) fn select(program: &Program, weights: &Weights, options: &LayoutOptions) -> Vec<FuncId> {
    let mut moves: Vec<bool> = program
        .functions
        .iter()
        .map(|(id, function)| {
            let wanted = options.scope == Scope::All || weights.functions.get(id).is_some_and(|w| w.is_hot());
            let allowed = options.only_functions.as_ref().is_none_or(|only| only.contains(&function.entry()));
            wanted && allowed && function.refusal.is_none() && !function.blocks.is_empty()
        })
        .collect();
    // A one-byte branch of code that stays cannot follow what it leads to; if that is the middle of a
    // function, the function has to stay too, and then its own such branches count.
    loop {
        let held: Vec<FuncId> = program
            .functions
            .iter()
            .filter(|(id, _)| !moves[id.index()])
            .flat_map(|(_, f)| &f.terminator_references)
            .filter(|r| r.form == Field::Relative8)
            .filter_map(|r| {
                let to = program.function_at(r.target)?;
                (moves[to.index()] && program.functions[to].entry() != r.target).then_some(to)
            })
            .collect();
        if held.is_empty() {
            break;
        }
        held.iter().for_each(|id| moves[id.index()] = false);
    }
    program.functions.ids().filter(|id| moves[id.index()]).collect()
}
