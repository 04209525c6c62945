//! What passes between functions besides registers.

use crate::liveness::{Convention, Liveness};
use crate::returns::function_starting_at;
use crate::scan::Scan;
use afterlink_core::Refusal;
use afterlink_program::{BlockId, FuncId, Function, Program, Target, Terminator};

/// What passes between a function and others, by itself: hand-written ones without an unwind entry, and those that jump into
/// the middle of another, may pass flags. So may those that [`flags_expected`] tells of.
pub fn of_function(program: &Program, function: &Function) -> Convention {
    let passes = function.unwind.is_empty() || jumps_into_another(program, function);
    if passes { Convention::PassesFlags } else { Convention::Regular }
}

/// Functions after calls of which this one looks at the flags.
pub fn flags_expected(program: &Program, function: &Function, scan: &Scan) -> Vec<FuncId> {
    let liveness = Liveness::new(function, scan, of_function(program, function));
    let mut found = Vec::new();
    for block in function.blocks.ids() {
        let steps = scan.steps(block);
        if steps.iter().all(|step| step.callee.is_none()) {
            continue;
        }
        liveness.before_steps(function, scan, block, |i, needed| {
            let behind = i.checked_sub(1).and_then(|i| steps[i].callee);
            if let Some(callee) = behind.filter(|_| needed.meets(scan.arch().flags())) {
                found.extend(function_starting_at(program, callee));
            }
        });
    }
    found
}

/// Whether the function jumps to where another neither starts nor is called.
fn jumps_into_another(program: &Program, function: &Function) -> bool {
    let into = |id: FuncId, is_entry: bool| {
        // The linker's stubs have no names of their own.
        let refusal = program.functions[id].refusal;
        let is_own = is_entry || refusal == Some(Refusal::SpecialSection);
        !is_own || refusal == Some(Refusal::OrphanFragment)
    };
    let is_inside = |target: Target| match target {
        Target::Code(id, block) => into(id, block == BlockId(0)),
        Target::Input(address) => {
            program.function_at(address).is_some_and(|id| into(id, program.functions[id].entry() == address))
        }
        _ => false,
    };
    function.blocks.iter().any(|(_, block)| match block.terminator {
        Terminator::Jump(target)
        | Terminator::Branch { taken: target, .. }
        | Terminator::ShortBranch { taken: target, .. } => is_inside(target),
        _ => false,
    })
}
