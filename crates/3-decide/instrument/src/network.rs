//! A function's network of control flow, as the counter file will describe it, still without counters.

use crate::names::Names;
use crate::scan::{Scan, StepKind};
use afterlink_core::InputAddr;
use afterlink_core::counter_description::{Block, Call, Function as Network, Successor};
use afterlink_core::index::Id;
use afterlink_program::{BlockId, Function, Program, Target, Terminator};

/// Draws the network of a function. `entered` says which addresses control may come to from outside of the
/// function's direct jumps, `stops` which steps are calls that may not come back.
pub(crate) fn draw(
    function: &Function,
    scan: &Scan,
    names: &Names,
    entered: &Entered,
    stops: &dyn Fn(StepKind) -> bool,
) -> Network {
    let mut network = Network {
        fragments: function
            .ranges
            .iter()
            .map(|r| names.of(r.start).expect("every range has a name"))
            .collect(),
        ..Network::default()
    };
    let mut sets: Vec<(Option<u32>, u32)> = Vec::new();
    for id in function.blocks.ids() {
        let mut own = draw_block(function, id, scan, names, stops);
        own.entered = id.index() == 0 || entered.contains(function.blocks[id].input);
        if let Terminator::Indirect { table } = function.blocks[id].terminator {
            own.targets = Some(target_set(function, id, table, &mut sets, &mut network));
        }
        network.blocks.push(own);
    }
    for set in &network.target_sets {
        set.iter().for_each(|&target| network.blocks[target as usize].entered = true);
    }
    network
}

/// A block but for what enters it and where its indirect jump leads.
fn draw_block(
    function: &Function,
    id: BlockId,
    scan: &Scan,
    names: &Names,
    stops: &dyn Fn(StepKind) -> bool,
) -> Block {
    let block = &function.blocks[id];
    let fragment = function.ranges.iter().position(|r| r.contains(block.input)).unwrap_or(0);
    let steps = scan.steps(id);
    let mut own = Block {
        fragment: fragment as u32,
        offset: block.input.since(function.ranges[fragment].start) as u32,
        last: steps.last().map_or(0, |s| s.at),
        may_stop: steps.iter().any(|s| stops(s.kind)),
        ..Block::default()
    };
    for step in steps {
        if let StepKind::Call(address) = step.kind
            && let Some(callee) = names.of(address)
        {
            own.calls.push(Call { offset: step.at, callee });
        }
    }
    let mut go = |target: Target| match target {
        Target::Block(to) if own.successors.iter().all(|s| s.block != to.0) => {
            own.successors.push(Successor { block: to.0, counted: false });
        }
        Target::Block(_) => {}
        Target::Code(address) => {
            own.leaves = true;
            own.exit = names.of(address);
        }
    };
    match block.terminator {
        Terminator::FallThrough(next) => go(Target::Block(next)),
        Terminator::Jump(target) => {
            go(target);
            own.last = block.body;
        }
        Terminator::Branch { taken, next, .. } | Terminator::ShortBranch { taken, next, .. } => {
            go(taken);
            go(Target::Block(next));
            own.last = block.body;
        }
        Terminator::Indirect { .. } | Terminator::Stop | Terminator::LastCall(_) => own.leaves = true,
    }
    own
}

/// The number of the set of blocks that an indirect jump through `table` leads to.
fn target_set(
    function: &Function,
    block: BlockId,
    table: Option<u32>,
    sets: &mut Vec<(Option<u32>, u32)>,
    network: &mut Network,
) -> u32 {
    if let Some((_, set)) = sets.iter().find(|(of, _)| *of == table) {
        return *set;
    }
    let mut targets = Vec::new();
    function.for_each_successor(block, |to| targets.push(to.0));
    targets.sort_unstable();
    targets.dedup();
    network.target_sets.push(targets);
    let set = network.target_sets.len() as u32 - 1;
    sets.push((table, set));
    set
}

/// Places inside functions that control may come to from outside of them.
#[derive(Default)]
pub(crate) struct Entered {
    /// Ascending.
    addresses: Vec<InputAddr>,
}

impl Entered {
    /// Everything that any pointer or instruction names and that does not start a function.
    pub fn find(program: &Program) -> Self {
        let mut addresses: Vec<InputAddr> = program.pointers.iter().map(|p| p.target).collect();
        for (_, function) in program.functions.iter() {
            let inside = |address: InputAddr| function.ranges.iter().any(|r| r.contains(address));
            addresses.extend(function.references.iter().map(|r| r.target));
            // A function's jumps inside itself are edges of its network, unless it has none.
            let jumps = function.terminator_references.iter().map(|r| r.target);
            addresses.extend(jumps.filter(|&target| function.refusal.is_some() || !inside(target)));
            for (_, block) in function.blocks.iter() {
                if let Terminator::Jump(Target::Code(target))
                | Terminator::Branch { taken: Target::Code(target), .. }
                | Terminator::ShortBranch { taken: Target::Code(target), .. } = block.terminator
                {
                    addresses.push(target);
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

    fn contains(&self, address: InputAddr) -> bool {
        self.addresses.binary_search(&address).is_ok()
    }
}
