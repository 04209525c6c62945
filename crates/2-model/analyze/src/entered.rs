//! Places inside functions that control may come to from outside of them.

use afterlink_core::InputAddr;
use afterlink_program::{BlockId, FuncId, Program, Target, Terminator};

/// Places inside functions that control may come to from outside of them.
#[derive(Default)]
pub struct Entered {
    /// Ascending.
    addresses: Vec<InputAddr>,
}

impl Entered {
    /// Everything that any pointer or instruction names and that does not start a function.
    pub fn find(program: &Program) -> Self {
        let mut addresses = Vec::new();
        let mut add = |target: Target, function: FuncId| match target {
            Target::Code(_, BlockId(0)) | Target::Data(..) | Target::Table(_) => {}
            _ => addresses.extend(program.input_of(target, function)),
        };
        // Pointers in data name no block as their own.
        program.pointers.iter().for_each(|p| add(p.target, FuncId(0)));
        for (id, function) in program.functions.iter() {
            let blocks = function.jump_tables.iter().flat_map(|t| &t.targets);
            blocks.for_each(|&block| add(Target::Block(block), id));
            function.operands.iter().for_each(|o| add(o.target, id));
            // A function's jumps inside itself are edges of its network, unless it has none.
            let is_edge = |target: Target| {
                let inside = match target {
                    Target::Block(_) => true,
                    Target::Input(address) => function.ranges.iter().any(|r| r.contains(address)),
                    _ => false,
                };
                function.refusal.is_none() && inside
            };
            let jumps = function.placed_operands.iter().map(|o| o.target);
            jumps.filter(|&target| !is_edge(target)).for_each(|target| add(target, id));
            for (_, block) in function.blocks.iter() {
                if let Terminator::Jump(target)
                | Terminator::Branch { taken: target, .. }
                | Terminator::ShortBranch { taken: target, .. } = block.terminator
                    && !matches!(target, Target::Block(_))
                {
                    add(target, id);
                }
            }
        }
        let starts_inside = |&address: &InputAddr| {
            program.function_at(address).is_some_and(|id| program.functions[id].entry() != address)
        };
        addresses.retain(starts_inside);
        addresses.sort_unstable();
        addresses.dedup();
        Self { addresses }
    }

    pub fn contains(&self, address: InputAddr) -> bool {
        self.addresses.binary_search(&address).is_ok()
    }
}
