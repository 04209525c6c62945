//! Holds a program, its order and its counts against what must be true of them after every pass. What is found is a fault of
//! ours, and the pass that ran last has made it.

mod code;
mod counts;
mod order;
#[cfg(test)]
mod tests;

use afterlink_core::index::Id;
use afterlink_program::{FuncId, Placement, Program};
use afterlink_weigh::Weights;
use std::collections::BTreeSet;
use std::fmt;

/// Something that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub function: FuncId,
    /// What is wrong with it, as a sentence without its subject.
    pub what: String,
}

/// What is wrong with a program that is to be written in this order.
pub fn faults(program: &Program, weights: &Weights, placement: &Placement) -> Vec<Fault> {
    let mut faults = order::faults(program, placement);
    for id in program.functions.ids() {
        let before = faults.len();
        faults.extend(code::faults(program, id));
        // Counts are of ways: nobody can follow those that lead nowhere.
        if faults.len() == before && weights.functions.get(id).is_some() {
            faults.extend(counts::faults(program, weights, id));
        }
    }
    faults
}

/// Looks at a program after each pass.
pub(crate) struct Checker {
    /// Functions whose counts were exact, as what flows into each block makes up its count: no pass may lose any of it.
    exact: BTreeSet<FuncId>,
    /// Functions that were found folded into others.
    folded: BTreeSet<FuncId>,
}

impl Checker {
    /// Looks at the program before the first pass.
    pub fn new(program: &Program, weights: &Weights, moved: &[FuncId]) -> Self {
        let counted = moved.iter().copied().filter(|id| id.index() < weights.functions.len());
        let is_exact = |id: &FuncId| counts::is_conserved(&program.functions[*id], &weights.functions[*id]);
        Self { exact: counted.filter(is_exact).collect(), folded: BTreeSet::new() }
    }

    /// # Panics
    /// If the pass has broken something.
    pub fn check(&mut self, pass: &str, program: &Program, weights: &Weights, placement: &Placement) {
        let mut found = faults(program, weights, placement);
        // What is folded into another has no counts of its own any more, and if it was sampled, that one is so now.
        let folded = program.functions.iter().filter_map(|(id, f)| Some((id, f.folded_into?)));
        let new = folded.filter(|(id, _)| self.folded.insert(*id));
        let gone: BTreeSet<FuncId> = new
            .flat_map(|(id, into)| if self.exact.contains(&id) { vec![id] } else { vec![id, into] })
            .collect();
        self.exact.retain(|id| !gone.contains(id));
        self.forget_estimated(program);
        let lost = |id: &&FuncId| !counts::is_conserved(&program.functions[**id], &weights.functions[**id]);
        found.extend(self.exact.iter().filter(lost).map(|&function| Fault {
            function,
            what: "has counts that no longer make up what flows through it".into(),
        }));
        if let Some(first) = found.first() {
            let name = program.functions[first.function].name;
            panic!("after the pass {pass}, {name} {first}, and {} more faults", found.len() - 1);
        }
    }

    /// How often a callee's blocks run in place of one of its calls is worked out from chances, and rounded; and the callee is entered inside from there, which no
    /// edge tells.
    fn forget_estimated(&mut self, program: &Program) {
        for (id, function) in program.functions.iter().filter(|(_, function)| !function.in_place.is_empty()) {
            self.exact.remove(&id);
            for callee in function.in_place.iter().filter_map(|code| program.function_at(code.start)) {
                self.exact.remove(&callee);
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}
