//! A function's blocks as a graph of control flow.

use afterlink_core::index::Id;
use afterlink_program::{BlockId, Function};

/// Blocks by number, and where control goes between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowGraph {
    /// Of each block, each once.
    pub successors: Vec<Vec<u32>>,
    /// Whether control may come to a block otherwise than from these: it is the entry, or something names it.
    pub entered: Vec<bool>,
}

impl FlowGraph {
    /// The graph of `function`, with every edge that is known, those of exceptions too; `is_entered` says which blocks besides the first may be
    /// come to from outside.
    pub fn of(function: &Function, is_entered: impl Fn(BlockId) -> bool) -> Self {
        let successors = |block: BlockId| {
            let mut found: Vec<u32> = Vec::new();
            let mut add = |to: BlockId| {
                if !found.contains(&to.0) {
                    found.push(to.0);
                }
            };
            function.for_each_successor(block, &mut add);
            function.for_each_landing_pad(block, &mut add);
            found
        };
        let ids = || function.blocks.ids();
        Self {
            successors: ids().map(successors).collect(),
            entered: ids().map(|block| block.index() == 0 || is_entered(block)).collect(),
        }
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.successors.len()
    }

    pub fn is_empty(&self) -> bool {
        self.successors.is_empty()
    }

    /// The blocks that the first one leads to, each in front of those that it leads to, but for edges back in loops.
    pub fn reverse_postorder(&self) -> Vec<u32> {
        DepthFirst::search(self, 0..u32::from(!self.is_empty())).order
    }

    /// By block: whether control may come to it from itself. After Kosaraju and Sharir (Sharir, "A strong-connectivity algorithm and its applications in data flow analysis",
    /// 1981): what can be come from, and not yet is of another, is one circle.
    pub fn circles(&self) -> Vec<bool> {
        let order = DepthFirst::search(self, 0..self.len() as u32).order;
        let before = self.predecessors();
        let mut found: Vec<bool> = (0u32..).zip(&self.successors).map(|(b, to)| to.contains(&b)).collect();
        let mut done = vec![false; self.len()];
        for root in order {
            let (mut circle, mut open) = (Vec::new(), vec![root]);
            while let Some(block) = open.pop() {
                if !std::mem::replace(&mut done[block as usize], true) {
                    circle.push(block);
                    open.extend(&before[block as usize]);
                }
            }
            if circle.len() > 1 {
                circle.into_iter().for_each(|block| found[block as usize] = true);
            }
        }
        found
    }

    /// Where control comes from, by block.
    pub fn predecessors(&self) -> Vec<Vec<u32>> {
        let mut before = vec![Vec::new(); self.len()];
        for (from, to) in (0u32..).zip(&self.successors) {
            to.iter().for_each(|&to| before[to as usize].push(from));
        }
        before
    }
}

/// The blocks that can be reached from some roots, in the order of a depth-first search.
pub(crate) struct DepthFirst {
    /// In reverse postorder.
    pub order: Vec<u32>,
    /// Edges that lead back to a block that is being visited: a block, and which of its successors; ascending.
    pub back: Vec<(u32, u32)>,
}

impl DepthFirst {
    /// Searches from one root after the other.
    pub fn search(graph: &FlowGraph, roots: impl Iterator<Item = u32>) -> Self {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done,
        }
        let mut state = vec![State::New; graph.len()];
        let (mut order, mut back) = (Vec::with_capacity(graph.len()), Vec::new());
        for root in roots {
            if state[root as usize] != State::New {
                continue;
            }
            state[root as usize] = State::Open;
            let mut stack = vec![(root, 0u32)];
            while let Some((block, next)) = stack.last_mut() {
                let (block, i) = (*block, *next);
                *next += 1;
                match graph.successors[block as usize].get(i as usize) {
                    Some(&to) if state[to as usize] == State::New => {
                        state[to as usize] = State::Open;
                        stack.push((to, 0));
                    }
                    Some(&to) if state[to as usize] == State::Open => back.push((block, i)),
                    Some(_) => {}
                    None => {
                        state[block as usize] = State::Done;
                        order.push(block);
                        stack.pop();
                    }
                }
            }
        }
        order.reverse();
        back.sort_unstable();
        Self { order, back }
    }
}

#[cfg(test)]
mod tests;
