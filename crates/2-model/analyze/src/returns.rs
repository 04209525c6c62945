//! Which functions surely come back to their caller, once: those that call only such functions, none through a
//! pointer, make no system call, and end in returns. The rest may end the program or jump out by `longjmp`.

use crate::scan::Scan;
use afterlink_core::index::Id;
use afterlink_core::{IdVec, InputAddr};
use afterlink_isa::StepKind;
use afterlink_program::{FuncId, Program, Target, Terminator};

/// Whether each function surely returns, by its [`callees`]; `None` for functions that are not understood.
pub fn surely(callees: &IdVec<FuncId, Option<Vec<FuncId>>>) -> IdVec<FuncId, bool> {
    let mut returns = IdVec::filled(false, callees.len());
    // Functions that call each other in a circle stay in doubt.
    let mut waiting: Vec<FuncId> = callees.ids().filter(|&id| callees[id].is_some()).collect();
    loop {
        let before = waiting.len();
        waiting.retain(|&id| {
            let sure = callees[id].iter().flatten().all(|&callee| returns[callee]);
            returns[id] = sure;
            !sure
        });
        if waiting.len() == before {
            return returns;
        }
    }
}

/// The functions that one calls or goes on to; `None` if it does what may not come back.
pub fn callees(program: &Program, id: FuncId, scan: &Scan) -> Option<Vec<FuncId>> {
    let function = &program.functions[id];
    let mut found = Vec::new();
    let mut add = |address: InputAddr| {
        let callee = function_starting_at(program, address)?;
        found.push(callee);
        Some(())
    };
    for step in scan.all() {
        match step.kind {
            StepKind::Call => add(step.callee?)?,
            StepKind::IndirectCall | StepKind::System | StepKind::Breakpoint | StepKind::Fault => {
                return None;
            }
            _ => {}
        }
    }
    for (block, own) in function.blocks.iter() {
        match own.terminator {
            Terminator::Jump(target)
            | Terminator::Branch { taken: target, .. }
            | Terminator::ShortBranch { taken: target, .. }
                if !matches!(target, Target::Block(_)) =>
            {
                add(program.input_of(target, id)?)?;
            }
            Terminator::Indirect { table: None } | Terminator::LastCall(_) => return None,
            Terminator::Stop(_) if scan.steps(block).last().is_none_or(|s| s.kind != StepKind::Return) => {
                return None;
            }
            _ => {}
        }
    }
    found.sort_unstable_by_key(|id| id.index());
    found.dedup();
    Some(found)
}

/// The function whose entry is at `address`.
pub fn function_starting_at(program: &Program, address: InputAddr) -> Option<FuncId> {
    program.function_at(address).filter(|&id| program.functions[id].entry() == address)
}
