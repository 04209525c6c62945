//! Where a hot function stood, where it stands now, and which calls lead between it and those beside it.

use super::{Now, Piece};
use crate::names;
use afterlink_core::InputAddr;
use afterlink_core::index::Id;
use afterlink_program::{BlockId, CallWeight, Fragment, FuncId, Program};
use afterlink_weigh::Weights;
use std::collections::BTreeMap;

/// Where a function is among the others.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Position {
    /// Among the program's functions, by address.
    pub before: Rank,
    /// Among the pieces of new code, by address; absent if it is not written.
    pub after: Option<Rank>,
    /// The calls between it and one other function that were made most often: from whom it is called, and whom it calls.
    pub called_by: Option<CallPath>,
    pub calls: Option<CallPath>,
}

#[derive(Clone, Debug, serde::Serialize)]
pub struct Rank {
    /// From 1 on.
    pub rank: usize,
    pub of: usize,
    /// What stands in front of it, and behind it.
    pub in_front: Option<Neighbour>,
    pub behind: Option<Neighbour>,
}

/// A function that stands beside it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Neighbour {
    pub name: String,
    /// How often it calls this function, and this function calls it.
    pub calls_it: u64,
    pub is_called: u64,
}

/// Calls between this function and another one.
#[derive(Clone, Debug, serde::Serialize)]
pub struct CallPath {
    pub name: String,
    /// How often, by the profile.
    pub calls: u64,
    /// Bytes from the call that was made most often to the function that is called; absent of calls in code that was inlined.
    pub bytes_before: Option<u64>,
    pub bytes_after: u64,
}

/// All calls that start or end in one of the functions that are told, by caller and callee.
#[derive(Default)]
pub(super) struct Calls {
    between: BTreeMap<(FuncId, FuncId), Path>,
}

struct Path {
    calls: u64,
    /// The one that was made most often.
    most: CallWeight,
}

impl Calls {
    pub fn of(program: &Program, weights: &Weights, told: &[FuncId]) -> Self {
        let mut is_told = vec![false; program.functions.len()];
        told.iter().for_each(|id| is_told[id.index()] = true);
        let mut between: BTreeMap<(FuncId, FuncId), Path> = BTreeMap::new();
        for (caller, own) in weights.functions.iter() {
            for call in own.calls.iter().filter(|call| call.count > 0) {
                let callee = program.functions[call.callee].folded_into.unwrap_or(call.callee);
                if caller == callee || !(is_told[caller.index()] || is_told[callee.index()]) {
                    continue;
                }
                let path = between.entry((caller, callee)).or_insert(Path { calls: 0, most: *call });
                path.calls += call.count;
                if call.count > path.most.count {
                    path.most = *call;
                }
            }
        }
        Self { between }
    }

    fn count(&self, caller: FuncId, callee: FuncId) -> u64 {
        self.between.get(&(caller, callee)).map_or(0, |path| path.calls)
    }

    /// The path of those that `is_wanted` takes with most calls; of equal ones the first.
    fn most(&self, is_wanted: impl Fn(FuncId, FuncId) -> bool) -> Option<(FuncId, FuncId)> {
        let wanted = self.between.iter().filter(|((caller, callee), _)| is_wanted(*caller, *callee));
        wanted.min_by_key(|(_, path)| std::cmp::Reverse(path.calls)).map(|(pair, _)| *pair)
    }
}

pub(super) fn of(now: &Now, id: FuncId, calls: &Calls) -> Position {
    let program = now.program;
    let neighbour = |other: FuncId, suffix: Option<&str>| Neighbour {
        name: named(program, other) + &suffix.map_or_else(String::new, |suffix| format!(".{suffix}")),
        calls_it: calls.count(other, id),
        is_called: calls.count(id, other),
    };
    let rank = id.index();
    // Not all of what stands beside it starts a function.
    let piece_of = |fragment: &Fragment| {
        let suffix = &*now.placement.sections[fragment.section].suffix;
        neighbour(fragment.function, (!fragment.starts_function()).then_some(suffix))
    };
    let before = Rank {
        rank: rank + 1,
        of: program.functions.len(),
        in_front: rank.checked_sub(1).map(|i| neighbour(FuncId(i as u32), None)),
        behind: (rank + 1 < program.functions.len()).then(|| neighbour(FuncId(rank as u32 + 1), None)),
    };
    let after = main_piece(now, id).map(|piece| {
        let fragments = &now.placement.fragments;
        let beside = |i: usize| fragments.get(i).filter(|f| f.section == piece.fragment.section);
        let own = fragments.iter().filter(|f| f.section == piece.fragment.section).count();
        let first = fragments.iter().position(|f| f.section == piece.fragment.section).unwrap_or(0);
        Rank {
            rank: piece.rank - first + 1,
            of: own,
            in_front: piece.rank.checked_sub(1).and_then(beside).map(piece_of),
            behind: beside(piece.rank + 1).map(piece_of),
        }
    });
    let path = |(caller, callee): (FuncId, FuncId)| {
        let path = &calls.between[&(caller, callee)];
        let other = if caller == id { callee } else { caller };
        CallPath {
            name: named(program, other),
            calls: path.calls,
            bytes_before: bytes_before(program, caller, callee, &path.most),
            bytes_after: bytes_after(now, caller, callee, &path.most),
        }
    };
    Position {
        before,
        after,
        called_by: calls.most(|_, callee| callee == id).map(path),
        calls: calls.most(|caller, _| caller == id).map(path),
    }
}

fn named(program: &Program, id: FuncId) -> String {
    names::shown(program.functions[id].name).to_owned()
}

/// The piece that starts with the function's entry.
fn main_piece<'n>(now: &'n Now, id: FuncId) -> Option<&'n Piece<'n>> {
    now.pieces.get(&id)?.iter().find(|piece| piece.fragment.starts_function())
}

fn bytes_before(program: &Program, caller: FuncId, callee: FuncId, call: &CallWeight) -> Option<u64> {
    let function = &program.functions[caller];
    let is_of_input = call.block.0 < function.input_blocks;
    let site = is_of_input.then(|| place_in_input(program, caller, call))?;
    Some(site.get().abs_diff(program.functions[callee].entry().get()))
}

fn place_in_input(program: &Program, caller: FuncId, call: &CallWeight) -> InputAddr {
    program.functions[caller].blocks[call.block].input + u64::from(call.offset)
}

/// What did not move is where it was.
fn bytes_after(now: &Now, caller: FuncId, callee: FuncId, call: &CallWeight) -> u64 {
    let entry = main_piece(now, callee)
        .map_or(now.program.functions[callee].entry().get(), |piece| piece.address.get());
    let pieces = now.pieces.get(&caller);
    let holding = pieces.into_iter().flatten().find_map(|piece| {
        let at = piece.fragment.blocks.iter().position(|block: &BlockId| *block == call.block)?;
        let places = afterlink_emit::block_places(now.program, piece.fragment);
        Some(piece.address.get() + u64::from(places[at].start + call.offset))
    });
    holding.unwrap_or_else(|| place_in_input(now.program, caller, call).get()).abs_diff(entry)
}
