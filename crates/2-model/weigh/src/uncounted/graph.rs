//! A function's graph of control flow, without the ways of jumps that may lead to any label: thousands of jumps to thousands of labels would be millions of ways that
//! tell nothing.

use afterlink_analyze::flow::FlowGraph;
use afterlink_core::index::Id;
use afterlink_program::{BlockId, Function, Terminator};

fn leads_anywhere(function: &Function, block: BlockId) -> bool {
    matches!(function.blocks[block].terminator, Terminator::Indirect { table: None })
}

/// Where control may come by such jumps counts as entered.
pub(super) fn of(function: &Function) -> FlowGraph {
    let mut entered: Vec<bool> = function.blocks.ids().map(|block| block == BlockId(0)).collect();
    if function.blocks.ids().any(|block| leads_anywhere(function, block)) {
        let targets = function.jump_tables.iter().flat_map(|table| &table.targets);
        targets.chain(&function.labels).for_each(|block| entered[block.index()] = true);
    }
    let successors = |block: BlockId| {
        let mut found: Vec<u32> = Vec::new();
        if !leads_anywhere(function, block) {
            function.for_each_successor(block, |to| found.push(to.0));
        }
        function.for_each_landing_pad(block, |to| found.push(to.0));
        found.sort_unstable();
        found.dedup();
        found
    };
    FlowGraph { successors: function.blocks.ids().map(successors).collect(), entered }
}

/// By block: whether it may run more than once each time that the function is entered.
pub(super) fn may_run_again(function: &Function) -> Vec<bool> {
    if function.blocks.ids().any(|block| leads_anywhere(function, block)) {
        return vec![true; function.blocks.len()];
    }
    of(function).circles()
}
