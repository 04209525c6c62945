//! What is known of code that a profile does not count, by whom it calls, and who calls it.
//!
//! BOLT counts no branch of a function with computed gotos, nor of most with a jump table and a part that the compiler split off, and only some of other functions with
//! such a part; nor does it count the calls out of all these. But it counts how often each function that it knows was entered, and by whom. What entered one beyond the
//! calls that were counted came from such code. So a block there that calls it ran no more often ([`bounds`]); where only one could have called it, that
//! one did; and a function in which only that one stands ran ([`callers`]). What it is worth stands in `docs/decisions/0002-hot-code-is-packed.md`.

mod bounds;
mod callees;
mod callers;
mod entries;
mod graph;

pub(crate) use callees::callees;
pub(crate) use entries::never_ran;

use afterlink_core::IdVec;
use afterlink_core::index::Id;
use afterlink_program::{FuncId, FunctionWeights, Program};
use callers::Sites;

/// Rounds of looking for functions that must have run: each may tell of others.
const ROUNDS: usize = 8;

/// Fills in what is known of functions inside of which nothing was counted, and calls out of those of which a part was (`partly`). `never_ran` says what the profile tells
/// of functions not to have run.
pub(crate) fn find(
    program: &Program,
    functions: &mut [FunctionWeights],
    partly: &IdVec<FuncId, bool>,
    never_ran: &IdVec<FuncId, bool>,
) {
    if !functions.iter().any(|weights| weights.inside_unknown) {
        return;
    }
    let sites = Sites::of(program, functions, partly);
    let mut unaccounted = entries::unaccounted(functions, never_ran);
    for _ in 0..ROUNDS {
        bounds::find(program, functions, &unaccounted);
        let ran = sites.must_have_run(functions, &unaccounted, never_ran);
        if ran.is_empty() {
            break;
        }
        for (id, entries) in ran {
            let mut blocks = vec![0; program.functions[id].blocks.len()];
            blocks[0] = entries;
            functions[id.index()] =
                FunctionWeights { entries, blocks, inside_unknown: true, ..FunctionWeights::default() };
        }
        unaccounted = entries::unaccounted(functions, never_ran);
    }
    for (caller, call) in sites.only_calls(functions, &unaccounted) {
        let weights = &mut functions[caller.index()];
        weights.calls.push(call);
        if weights.inside_unknown {
            let count = &mut weights.blocks[call.block.index()];
            *count = (*count).max(call.count);
        }
    }
    // In order, as all calls.
    functions.iter_mut().for_each(|weights| weights.calls.sort_unstable());
    callers::add_calls(program, functions, partly);
}

#[cfg(test)]
mod tests;
