//! What passes between functions besides registers.

use crate::liveness::{Convention, Liveness};
use crate::returns::function_starting_at;
use crate::scan::Scan;
use afterlink_core::{IdVec, Refusal};
use afterlink_program::{BlockId, FuncId, Function, Program, Target, Terminator};
use rayon::prelude::*;

/// Which functions may pass flags: hand-written ones without an unwind entry, those that jump into the middle of another,
/// and those after a call of which some of `callers` looks at the flags.
pub fn find(
    program: &Program,
    scans: &IdVec<FuncId, Option<Scan>>,
    callers: &[FuncId],
) -> IdVec<FuncId, Convention> {
    let mut conventions: IdVec<FuncId, Convention> = program
        .functions
        .iter()
        .map(|(_, f)| {
            let passes = f.unwind.is_empty() || jumps_into_another(program, f);
            if passes { Convention::PassesFlags } else { Convention::Regular }
        })
        .collect();
    let looked_at: Vec<FuncId> = callers
        .par_iter()
        .filter_map(|&id| Some((id, scans[id].as_ref()?)))
        .flat_map_iter(|(id, scan)| {
            let function = &program.functions[id];
            let liveness = Liveness::new(function, scan, conventions[id]);
            let mut found = Vec::new();
            for block in function.blocks.ids() {
                let steps = scan.steps(block);
                liveness.before_steps(function, scan, block, |i, needed| {
                    let behind = i.checked_sub(1).and_then(|i| steps[i].callee);
                    if let Some(callee) = behind.filter(|_| needed.meets(scan.arch().flags())) {
                        found.extend(function_starting_at(program, callee));
                    }
                });
            }
            found
        })
        .collect();
    for id in looked_at {
        conventions[id] = Convention::PassesFlags;
    }
    conventions
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
