//! A function's network of control flow, as the counter file will describe it, still without counters.

use crate::context::Context;
use crate::sites::BlockSites;
use afterlink_analyze::scan::Scan;
use afterlink_core::counter_description::{Block, Call, Function as Network, Successor};
use afterlink_core::index::Id;
use afterlink_program::{BlockId, Function, Target, Terminator};

/// Draws the network of a function, of whose blocks these are the places for counters.
pub(crate) fn draw(function: &Function, scan: &Scan, sites: &[BlockSites], context: &Context) -> Network {
    let (names, entered) = (context.names, context.entered);
    let mut network = Network {
        fragments: function
            .ranges
            .iter()
            .map(|r| names.of(r.start).expect("every range has a name"))
            .collect(),
        ..Network::default()
    };
    let mut sets: Vec<(Option<u32>, u32)> = Vec::new();
    // Exceptions come out of the middle of blocks: no edge of the network says how often.
    let pads = function.landing_pads();
    for id in function.blocks.ids() {
        let mut own = draw_block(function, id, scan, context);
        // A label in front of which nothing may stand is there for who handles the signal, and control comes there by it only as a target of
        // the function's own jumps.
        let may_be_entered = sites[id.index()].start.is_some();
        own.entered = id.index() == 0 || may_be_entered && entered.contains(function.blocks[id].input);
        own.entered |= pads.binary_search(&id).is_ok();
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
fn draw_block(function: &Function, id: BlockId, scan: &Scan, context: &Context) -> Block {
    let (names, stops) = (context.names, context.stops);
    let block = &function.blocks[id];
    let fragment = function.ranges.iter().position(|r| r.contains(block.input)).unwrap_or(0);
    let steps = scan.steps(id);
    let mut own = Block {
        fragment: fragment as u32,
        offset: block.input.since(function.ranges[fragment].start) as u32,
        last: steps.last().map_or(0, |s| s.at),
        may_stop: steps.iter().any(stops),
        ..Block::default()
    };
    for step in steps {
        if let Some(callee) = step.callee.and_then(|address| names.of(address)) {
            own.calls.push(Call { offset: step.at, callee });
        }
    }
    let mut go = |target: Target| match target {
        Target::Block(to) if own.successors.iter().all(|s| s.block != to.0) => {
            own.successors.push(Successor { block: to.0, counted: false });
        }
        Target::Block(_) => {}
        _ => {
            own.leaves = true;
            own.exit = (context.address_of)(target).and_then(|address| names.of(address));
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
        Terminator::Indirect { .. } | Terminator::Stop(_) | Terminator::LastCall(_) => own.leaves = true,
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
