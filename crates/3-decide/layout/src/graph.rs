//! The two graphs that every algorithm of this crate takes: the flow graph of one function and
//! the call graph of a program. Nodes are numbers; what they stand for is the caller's affair.

/// A jump, or a fall-through, from one basic block to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowEdge {
    pub from: u32,
    pub to: u32,
    /// How often it was taken.
    pub count: u64,
}

/// The control flow of one function. Node 0 is the entry; the numbers follow the input's order,
/// so that `i + 1` is what `i` falls into today, if it falls through at all.
///
/// Edges with count 0 belong here too: a block with two successors, one never taken, still ends
/// in a conditional branch. Parallel edges (several cases of one jump table) are summed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowGraph {
    /// Bytes of each block; 0 is treated as 1.
    pub sizes: Vec<u32>,
    /// Executions of each block.
    pub counts: Vec<u64>,
    pub edges: Vec<FlowEdge>,
}

impl FlowGraph {
    /// The number of blocks.
    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    pub(crate) fn assert_well_formed(&self) {
        assert_eq!(self.sizes.len(), self.counts.len(), "flow graph: one count for each block");
        let blocks = self.sizes.len();
        for edge in &self.edges {
            assert!(
                (edge.from as usize) < blocks && (edge.to as usize) < blocks,
                "flow graph: edge {} -> {} leaves the {blocks} blocks",
                edge.from,
                edge.to
            );
        }
    }
}

/// Calls from one place of a node to one place of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallArc {
    pub caller: u32,
    pub callee: u32,
    /// How often the call was made.
    pub count: u64,
    /// Bytes from the start of the caller to the call.
    pub caller_offset: u32,
    /// Bytes from the start of the callee to the target: 0 for a call of a function; something
    /// else for a jump into the middle of another fragment.
    pub callee_offset: u32,
}

/// Who calls whom. Nodes are functions (or fragments of functions), numbered in the input's
/// order, which breaks ties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallGraph {
    /// Bytes of the hot part of each node; 0 is treated as 1.
    pub sizes: Vec<u32>,
    /// Executions, or samples, of each node.
    pub samples: Vec<u64>,
    pub arcs: Vec<CallArc>,
}

impl CallGraph {
    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    pub(crate) fn assert_well_formed(&self) {
        assert_eq!(self.sizes.len(), self.samples.len(), "call graph: one sample count for each node");
        let nodes = self.sizes.len();
        for arc in &self.arcs {
            assert!(
                (arc.caller as usize) < nodes && (arc.callee as usize) < nodes,
                "call graph: arc {} -> {} leaves the {nodes} nodes",
                arc.caller,
                arc.callee
            );
        }
    }
}
