//! Execution counts as side tables over the program's indices.

use crate::{BlockId, FuncId, Terminator};
use afterlink_core::IdVec;

/// Counts for every function of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    pub functions: IdVec<FuncId, FunctionWeights>,
    pub basis: Basis,
}

/// What counts are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Basis {
    /// All that ran was counted, or nearly.
    #[default]
    Counted,
    /// A part of what ran was seen, as in branch stacks: small counts are uncertain.
    Sampled,
    /// Nothing was counted: the counts are estimates, from samples of single addresses.
    Estimated,
}

/// Counts for one function. All empty if it never ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionWeights {
    /// Calls of the function.
    pub entries: u64,
    /// Executions, by block.
    pub blocks: Vec<u64>,
    /// Flow inside the function, by source, then target; each pair once. Edges that never ran are there too.
    pub edges: Vec<EdgeWeight>,
    /// Direct calls of other functions that ran.
    pub calls: Vec<CallWeight>,
    /// Blocks all of whose runs are in copies of them in other functions now. Another workload may come to these all the same.
    pub elsewhere: Vec<BlockId>,
    /// The function ran, but nothing was counted of the ways that it took: neither what is hot in it nor what is cold is
    /// known. BOLT counts no branch of a function with computed gotos, and offsets of another build may fit nowhere.
    pub inside_unknown: bool,
    /// Where that is so: how often each block ran at most, by whom it calls. Empty if nothing is known.
    pub at_most: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EdgeWeight {
    pub from: BlockId,
    pub to: BlockId,
    pub count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallWeight {
    pub block: BlockId,
    /// Bytes from the block's start to where the call comes back, or, as some profiles have it, to the call.
    pub offset: u32,
    pub callee: FuncId,
    pub count: u64,
}

impl CallWeight {
    /// By function, of `functions`, how often these callers call it.
    pub fn by_callee<'w>(
        callers: impl Iterator<Item = &'w FunctionWeights>,
        functions: usize,
    ) -> IdVec<FuncId, u64> {
        let mut called: IdVec<FuncId, u64> = IdVec::filled(0, functions);
        for call in callers.flat_map(|weights| &weights.calls) {
            called[call.callee] = called[call.callee].saturating_add(call.count);
        }
        called
    }
}

impl FunctionWeights {
    /// How often control went from one block to another; 0 if that is not known.
    pub fn edge(&self, from: BlockId, to: BlockId) -> u64 {
        let found = self.edges.binary_search_by_key(&(from, to), |e| (e.from, e.to));
        found.map_or(0, |i| self.edges[i].count)
    }

    /// How often control leaves the function behind a block that ends in a jump, or a branch, to another one.
    pub fn leaving(&self, block: BlockId, terminator: Terminator) -> u64 {
        let stays = match terminator {
            Terminator::Branch { next, .. } | Terminator::ShortBranch { next, .. } => self.edge(block, next),
            _ => 0,
        };
        self.block(block).saturating_sub(stays)
    }

    /// Whether anything of the function ran.
    pub fn is_hot(&self) -> bool {
        self.entries > 0 || self.blocks.iter().any(|&c| c > 0)
    }

    /// Executions of a block.
    pub fn block(&self, block: BlockId) -> u64 {
        self.blocks.get(block.0 as usize).copied().unwrap_or(0)
    }

    /// The most executions that a block can have, of a function inside of which nothing was counted.
    pub fn at_most(&self, block: BlockId) -> u64 {
        self.at_most.get(block.0 as usize).copied().unwrap_or(u64::MAX)
    }
}
