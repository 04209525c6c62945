//! Who knows where a function starts: what may be folded or inlined depends on it.

use afterlink_core::IdVec;
use afterlink_core::index::Id;
use afterlink_program::{FuncId, Program, Role, Target, Terminator};

/// For each function whether anything but direct calls and jumps to its entry knows a place in it.
pub(crate) struct Entries {
    known: IdVec<FuncId, bool>,
}

impl Entries {
    /// Looks through all pointers, operands and places that somebody outside knows.
    pub fn find(program: &Program) -> Self {
        let mut known = IdVec::filled(false, program.functions.len());
        let mut note = |id: Option<FuncId>| {
            if let Some(id) = id {
                known[id] = true;
            }
        };
        let of_target = |target: Target, own: FuncId| match target {
            Target::Code(id, _) => Some(id),
            Target::Block(_) => Some(own),
            Target::Input(address) => program.function_at(address),
            Target::Table(_) | Target::Data(..) => None,
        };
        for pointer in &program.pointers {
            // Pointers in data name no block as their own function's.
            note(of_target(pointer.target, FuncId(0)));
        }
        for (id, function) in program.functions.iter() {
            for operand in function.operands.iter().chain(&function.placed_operands) {
                let calls_entry = matches!(operand.role, Role::Call | Role::Jump);
                let inside = matches!(operand.target, Target::Code(_, block) if block.index() > 0)
                    || matches!(operand.target, Target::Input(_));
                if !calls_entry || inside {
                    note(of_target(operand.target, id).filter(|to| *to != id || !calls_entry));
                }
            }
            for (_, block) in function.blocks.iter() {
                // Falling out of one function into another needs that one to stand where it does, or a jump.
                if let Terminator::LastCall(target) = block.terminator {
                    note(of_target(target, id).filter(|to| *to != id));
                }
            }
        }
        program.known_places.iter().for_each(|&address| note(program.function_at(address)));
        Self { known }
    }

    /// Whether somebody may hold on to a place in the function.
    pub fn is_known(&self, id: FuncId) -> bool {
        self.known[id]
    }
}
