//! Who knows where a function starts, or a place inside of it: what may be folded or inlined depends on it.

use afterlink_core::index::Id;
use afterlink_core::{IdVec, InputAddr};
use afterlink_program::{BlockId, FuncId, Function, Program, Role, Target, Terminator};
use rayon::prelude::*;

/// For each function whether anything but direct calls and jumps to its entry knows a place in it.
pub(crate) struct Entries {
    known: IdVec<FuncId, bool>,
    held_inside: IdVec<FuncId, bool>,
    /// Those inside of which control would go on behind a call at another's end.
    fallen_into: IdVec<FuncId, bool>,
    /// Those to whose entry something may go by its address.
    entered: IdVec<FuncId, bool>,
}

impl Entries {
    /// Looks through all pointers, operands and places that somebody outside knows.
    pub fn find(program: &Program) -> Self {
        let at = |address: InputAddr| {
            let id = program.function_at(address)?;
            Some((id, program.functions[id].entry() != address))
        };
        let of_target = |target: Target, own: FuncId| match target {
            Target::Code(id, block) => Some((id, block.index() > 0)),
            Target::Block(block) => Some((own, block.index() > 0)),
            Target::Input(address) => at(address),
            Target::Table(_) | Target::Data(..) => None,
        };
        let named_by = |id: FuncId, function: &Function| {
            let operands = function.operands.iter().chain(&function.placed_operands);
            let by_operands = operands.filter_map(|operand| {
                let calls_entry = matches!(operand.role, Role::Call | Role::Jump);
                let inside = matches!(operand.target, Target::Code(_, block) if block.index() > 0)
                    || matches!(operand.target, Target::Input(_));
                let named = if calls_entry && !inside { None } else { of_target(operand.target, id) };
                named.filter(|(to, _)| *to != id || !calls_entry)
            });
            // Falling out of one function into another needs that one to stand where it does, or a jump.
            let by_ends = function.blocks.iter().filter_map(|(_, block)| match block.terminator {
                Terminator::LastCall(target) => of_target(target, id).filter(|(to, _)| *to != id),
                _ => None,
            });
            (by_operands.collect::<Vec<_>>(), by_ends.collect::<Vec<_>>())
        };
        // Pointers in data name no block as their own function's.
        let mut held: Vec<(FuncId, bool)> =
            program.pointers.par_iter().filter_map(|pointer| of_target(pointer.target, FuncId(0))).collect();
        held.extend(program.known_places.iter().filter_map(|&address| at(address)));
        let functions = program.functions.as_slice().par_iter().enumerate();
        let (by_operands, by_ends): (Vec<_>, Vec<_>) =
            functions.map(|(at, function)| named_by(FuncId(at as u32), function)).unzip();
        held.extend(by_operands.into_iter().flatten());
        let mut known = IdVec::filled(false, program.functions.len());
        let (mut held_inside, mut fallen_into, mut entered) = (known.clone(), known.clone(), known.clone());
        for (id, is_inside) in by_ends.into_iter().flatten() {
            known[id] = true;
            fallen_into[id] |= is_inside;
        }
        for (id, is_inside) in held {
            known[id] = true;
            entered[id] |= !is_inside;
            held_inside[id] |= is_inside;
        }
        for (id, function) in program.functions.iter() {
            held_inside[id] |= function.labels.iter().any(|label| label.index() > 0);
            entered[id] |= function.labels.contains(&BlockId(0));
            entered[id] |= function.jump_tables.iter().any(|table| table.targets.contains(&BlockId(0)));
        }
        Self { known, held_inside, fallen_into, entered }
    }

    /// Whether somebody may hold on to a place in the function.
    pub fn is_known(&self, id: FuncId) -> bool {
        self.known[id]
    }

    /// Whether something may go to the function's entry by its address.
    pub fn is_entered_by_address(&self, id: FuncId) -> bool {
        self.entered[id]
    }

    /// Whether somebody may hold the address of a place inside of the function.
    pub fn is_held_inside(&self, id: FuncId) -> bool {
        self.held_inside[id]
    }

    /// Whether somebody may hold on to a place inside of the function; or only go there, where a function in front ends in a call that its compiler
    /// took not to come back.
    pub fn is_known_inside(&self, id: FuncId) -> bool {
        self.held_inside[id] || self.fallen_into[id]
    }
}

/// Those of `moved` whose blocks may be written otherwise: nobody knows a place inside, nobody reads their bytes, and none stands for another.
pub(crate) fn free_inside(program: &Program, entries: &Entries, moved: &[FuncId]) -> Vec<FuncId> {
    let shared = shared(program);
    let is_free = |id: &FuncId| {
        let function = &program.functions[*id];
        let is_plain = function.folded_into.is_none() && !function.is_read;
        is_plain && !entries.is_known_inside(*id) && shared.binary_search(id).is_err()
    };
    moved.iter().copied().filter(is_free).collect()
}

/// Functions that stand for others, too, ascending: what is done to a block of theirs would be done to the others' as well.
pub(crate) fn shared(program: &Program) -> Vec<FuncId> {
    let mut shared: Vec<FuncId> = program.functions.iter().filter_map(|(_, f)| f.folded_into).collect();
    shared.sort_unstable();
    shared
}
