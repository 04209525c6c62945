//! Functions whose entry somebody holds the address of, other than to call it by name.
//!
//! A handler of signals may compare the instruction pointer with such an address, and finds the function's first instruction by it.
//! That an address is exported does not count: who asks for it by name gets it to call it.

use afterlink_core::{IdVec, InputAddr};
use afterlink_program::{BlockId, FuncId, Program, Role, Target};

/// For each function whether a word holds the address of its entry, or an instruction names it that neither calls it nor jumps there.
pub fn entries(program: &Program) -> IdVec<FuncId, bool> {
    let mut held = IdVec::filled(false, program.functions.len());
    let starting_at = |address: InputAddr| {
        program.function_at(address).filter(|&id| program.functions[id].entry() == address)
    };
    let of_target = |target: Target, own: FuncId| match target {
        Target::Code(id, BlockId(0)) => Some(id),
        Target::Block(BlockId(0)) => Some(own),
        Target::Input(address) => starting_at(address),
        Target::Code(..) | Target::Block(_) | Target::Table(_) | Target::Data(..) => None,
    };
    // Pointers in data name no block as their own function's.
    let by_words = program.pointers.iter().filter_map(|pointer| of_target(pointer.target, FuncId(0)));
    let by_names = program.stored_places.iter().filter_map(|&place| starting_at(place));
    let by_code = program.functions.iter().flat_map(|(id, function)| {
        let operands = function.operands.iter().chain(&function.placed_operands);
        let named = operands.filter(|operand| !matches!(operand.role, Role::Call | Role::Jump));
        named.filter_map(move |operand| of_target(operand.target, id))
    });
    for id in by_words.chain(by_names).chain(by_code) {
        held[id] = true;
    }
    for (id, function) in program.functions.iter() {
        held[id] |= function.labels.contains(&BlockId(0));
    }
    held
}
