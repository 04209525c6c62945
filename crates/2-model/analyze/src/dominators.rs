//! Which blocks control must have passed to come to a block.
//!
//! After Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm" (2001): in reverse postorder, the immediate
//! dominator of a block is where the known dominators of its predecessors meet, and that is repeated until nothing changes.
//! A function may be entered in several blocks; a root stands before them all.

use crate::flow::{DepthFirst, FlowGraph};

/// The tree of immediate dominators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dominators {
    /// By block: its number in reverse postorder, from 1; 0 if control never comes there.
    number: Vec<u32>,
    /// By that number: that of the immediate dominator. 0 is the root before all that is entered.
    above: Vec<u32>,
    /// By that number, the root left out: the block.
    order: Vec<u32>,
}

/// Not known yet.
const UNKNOWN: u32 = u32::MAX;

impl Dominators {
    pub fn of(graph: &FlowGraph) -> Self {
        let roots = (0u32..).zip(&graph.entered).filter(|(_, entered)| **entered).map(|(block, _)| block);
        let order = DepthFirst::search(graph, roots).order;
        let mut number = vec![0; graph.len()];
        (1..).zip(&order).for_each(|(n, &block)| number[block as usize] = n);
        let before = graph.predecessors();
        let mut above = vec![UNKNOWN; order.len() + 1];
        above[0] = 0;
        let mut changed = true;
        while changed {
            changed = false;
            for (n, &block) in (1u32..).zip(&order) {
                let mut found = if graph.entered[block as usize] { 0 } else { UNKNOWN };
                let known = before[block as usize].iter().map(|&from| number[from as usize]);
                for from in known.filter(|&from| from != 0 && above[from as usize] != UNKNOWN) {
                    found = if found == UNKNOWN { from } else { meet(&above, found, from) };
                }
                changed |= std::mem::replace(&mut above[n as usize], found) != found;
            }
        }
        Self { number, above, order }
    }

    /// Whether control comes to a block at all.
    pub fn is_reached(&self, block: u32) -> bool {
        self.number[block as usize] != 0
    }

    /// The last block that control must pass before it comes to this one; `None` if there is none, or control never comes.
    pub fn immediate(&self, block: u32) -> Option<u32> {
        let above = *self.above.get(self.number[block as usize] as usize)?;
        Some(self.order[above.checked_sub(1)? as usize])
    }

    /// Whether control that comes to `block` has passed `dominator`. Each block dominates itself; where control never comes,
    /// nothing else is said to.
    pub fn dominates(&self, dominator: u32, block: u32) -> bool {
        let mut at = Some(block);
        while let Some(block) = at {
            if block == dominator {
                return true;
            }
            at = self.immediate(block);
        }
        false
    }
}

/// The first common ancestor: the higher number is never an ancestor of the lower one.
fn meet(above: &[u32], a: u32, b: u32) -> u32 {
    let (mut a, mut b) = (a, b);
    while a != b {
        if a > b {
            a = above[a as usize];
        } else {
            b = above[b as usize];
        }
    }
    a
}

#[cfg(test)]
mod tests;
