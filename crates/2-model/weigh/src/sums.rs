//! What comes to each block, and what leaves it.

use afterlink_core::index::Id;
use afterlink_program::{CallWeight, EdgeWeight, Function};

/// By block, executions that came to it, from outside and from other blocks, and that left it to another one.
pub(crate) struct Sums {
    pub come: Vec<u64>,
    pub left: Vec<u64>,
}

impl Sums {
    pub fn of<'e>(
        function: &Function,
        entries: u64,
        edges: impl IntoIterator<Item = &'e EdgeWeight>,
    ) -> Self {
        let mut come = vec![0u64; function.blocks.len()];
        let mut left = come.clone();
        if let Some(entry) = come.first_mut() {
            *entry = entries;
        }
        for edge in edges {
            let (from, to) = (&mut left[edge.from.index()], &mut come[edge.to.index()]);
            (*from, *to) = (from.saturating_add(edge.count), to.saturating_add(edge.count));
        }
        Self { come, left }
    }
}

/// Raises what is known of each block to how often it called anything.
pub(crate) fn raise_to_calls(blocks: &mut [u64], calls: &[CallWeight]) {
    for call in calls {
        let count = &mut blocks[call.block.index()];
        *count = (*count).max(call.count);
    }
}
