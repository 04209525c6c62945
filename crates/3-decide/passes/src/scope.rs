//! Which functions move.

use crate::LayoutOptions;
use afterlink_core::index::Id;
use afterlink_isa::Encoding;
use afterlink_program::{BlockId, FuncId, Program, Target};
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
        let behind_tables = program.table_ends.iter().filter(|(owner, _)| !moves[owner.index()]);
        let held: Vec<FuncId> = program
            .functions
            .iter()
            .filter(|(id, _)| !moves[id.index()])
            .flat_map(|(_, f)| &f.placed_operands)
            .filter(|p| p.encoding == Encoding::Relative8)
            .filter_map(|p| match p.target {
                Target::Code(to, block) if block != BlockId(0) => Some(to),
                _ => None,
            })
            .chain(behind_tables.map(|(_, behind)| *behind))
            .filter(|to| moves[to.index()])
            .collect();
        if held.is_empty() {
            break;
        }
        held.iter().for_each(|id| moves[id.index()] = false);
    }
    program.functions.ids().filter(|id| moves[id.index()]).collect()
}
