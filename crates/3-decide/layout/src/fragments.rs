//! Places parts of functions instead of whole functions.
//!
//! A function's hot part is seldom hot throughout: around the few blocks of each request stand
//! blocks of the odd one, or of start-up. Cut into fragments of like heat, each fragment can
//! stand where its own jumps and calls want it: the very hot ones of all functions side by side
//! and the lukewarm ones elsewhere, as many places as there are fragments rather than one hot
//! and one cold section. R. Lavaee, J. Criswell and C. Ding, "Codestitcher: Inter-Procedural
//! Basic Block Layout Optimization", CC 2019, place chains of blocks across functions.
//!
//! Use: order the blocks of each function ([`order_blocks`](crate::order_blocks)), cut the order
//! ([`partition_by_heat`] or [`partition_hot_chain`]), build the [`fragment_graph`] of all
//! functions, and give it to [`order_functions`](crate::order_functions): cdsort asks nothing of
//! its nodes but a size, a count and arcs with offsets.

use std::ops::Range;

use crate::graph::{CallArc, CallGraph, FlowGraph};

#[cfg(test)]
mod tests;

/// Runs shorter than this many bytes, one cache line, are not worth a fragment of their own.
const MIN_FRAGMENT: u64 = 64;

/// Sorts the blocks of an order into classes: class `k` has the blocks with at least `limits[k]`
/// executions that are in no earlier class, one more class has the rest. Each class keeps the
/// order; some may be empty. `limits` fall. Bringing like together only shortens the jumps
/// inside a class; [`count_covering`](crate::split::count_covering) gives sensible limits.
pub fn partition_by_heat(order: &[u32], counts: &[u64], limits: &[u64]) -> Vec<Vec<u32>> {
    let mut classes = vec![Vec::new(); limits.len() + 1];
    for &block in order {
        let class = limits.iter().position(|&limit| counts[block as usize] >= limit);
        classes[class.unwrap_or(limits.len())].push(block);
    }
    classes
}

/// Cuts an order into consecutive runs, very hot and lukewarm in turn: a block is very hot if it
/// runs at least `threshold` (0 to 1) times as often as the hottest of the order. Runs of less
/// than 64 bytes join the run before them (the first: the one behind). Gives index ranges of
/// `order` that cover it, one after the other.
pub fn partition_hot_chain(
    order: &[u32],
    counts: &[u64],
    sizes: &[u32],
    threshold: f64,
) -> Vec<Range<usize>> {
    let hottest = order.iter().map(|&block| counts[block as usize]).max().unwrap_or(0);
    let is_very_hot = |block: &u32| counts[*block as usize] as f64 >= threshold * hottest as f64;
    let bytes = |run: &Range<usize>| -> u64 {
        order[run.clone()].iter().map(|&block| u64::from(sizes[block as usize])).sum()
    };
    let mut runs: Vec<(Range<usize>, bool)> = Vec::new();
    let mut start = 0;
    for blocks in order.chunk_by(|a, b| is_very_hot(a) == is_very_hot(b)) {
        let (run, is_hot) = (start..start + blocks.len(), is_very_hot(&blocks[0]));
        start = run.end;
        match runs.last_mut() {
            // Only the first run can be short here; what joins it gives it its kind.
            Some((before, kind)) if bytes(before) < MIN_FRAGMENT => {
                (before.end, *kind) = (run.end, is_hot);
            }
            // The same kind follows where the run between them was too short to part them.
            Some((before, kind)) if *kind == is_hot || bytes(&run) < MIN_FRAGMENT => before.end = run.end,
            _ => runs.push((run, is_hot)),
        }
    }
    runs.into_iter().map(|(run, _)| run).collect()
}

/// One function, cut into fragments.
#[derive(Clone, Copy, Debug)]
pub struct FragmentedFunction<'a> {
    pub flow: &'a FlowGraph,
    /// The blocks of each fragment in their order. Blocks may be missing (the cold ones); none
    /// may be in two fragments.
    pub fragments: &'a [Vec<u32>],
    pub calls: &'a [CallSite],
}

/// A call of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSite {
    pub block: u32,
    /// Bytes from the start of the block.
    pub offset: u32,
    /// The called function: its index in the list given to [`fragment_graph`].
    pub callee: u32,
    pub count: u64,
}

/// All fragments of a program as one call graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FragmentGraph {
    pub graph: CallGraph,
    /// For each node the function, and which of its fragments.
    pub origin: Vec<(u32, u32)>,
}

/// Where a block stands: its node and the bytes from the node's start.
#[derive(Clone, Copy)]
struct Place {
    node: u32,
    offset: u32,
}

/// Makes each fragment that has a block a node. Arcs are the calls (to the callee's entry block)
/// and the jumps between fragments of one function; calls and jumps from or to a block that is in
/// no fragment are left out. A node's samples are how often it is entered.
pub fn fragment_graph(functions: &[FragmentedFunction]) -> FragmentGraph {
    let mut result = FragmentGraph::default();
    let mut places: Vec<Vec<Option<Place>>> = Vec::with_capacity(functions.len());
    for (function, index) in functions.iter().zip(0..) {
        places.push(add_nodes(&mut result, function, index));
    }
    for (function, places_here) in functions.iter().zip(&places) {
        for jump in &function.flow.edges {
            let (from, to) = (places_here[jump.from as usize], places_here[jump.to as usize]);
            if let (Some(from), Some(to)) = (from, to)
                && from.node != to.node
            {
                // The jump is the last thing in its block.
                let offset = from.offset + function.flow.sizes[jump.from as usize];
                add_arc(&mut result.graph, Place { offset, ..from }, to, jump.count);
                let samples = &mut result.graph.samples[to.node as usize];
                *samples = samples.saturating_add(jump.count);
            }
        }
        for call in function.calls {
            let entry = places[call.callee as usize].first().copied().flatten();
            if let (Some(from), Some(to)) = (places_here[call.block as usize], entry) {
                let offset = from.offset + call.offset;
                add_arc(&mut result.graph, Place { offset, ..from }, to, call.count);
            }
        }
    }
    result
}

/// Adds the fragments of one function; gives the place of each of its blocks.
fn add_nodes(result: &mut FragmentGraph, function: &FragmentedFunction, index: u32) -> Vec<Option<Place>> {
    let mut places = vec![None; function.flow.len()];
    for (fragment, number) in function.fragments.iter().zip(0..) {
        if fragment.is_empty() {
            continue;
        }
        let node = result.graph.sizes.len() as u32;
        let mut offset = 0;
        for &block in fragment {
            places[block as usize] = Some(Place { node, offset });
            offset += function.flow.sizes[block as usize];
        }
        let entered = if fragment.contains(&0) { function.flow.counts[0] } else { 0 };
        result.graph.sizes.push(offset);
        result.graph.samples.push(entered);
        result.origin.push((index, number));
    }
    places
}

fn add_arc(graph: &mut CallGraph, from: Place, to: Place, count: u64) {
    graph.arcs.push(CallArc {
        caller: from.node,
        callee: to.node,
        count,
        caller_offset: from.offset,
        callee_offset: to.offset,
    });
}
