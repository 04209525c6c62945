//! What blocks are made of, in numbers that can be compared with those of another build.

use super::Build;
use super::names::{Names, hash};
use afterlink_isa::Flow;
use afterlink_program::{Block, BlockId, FuncId, Function, Terminator};

/// A block's code.
#[derive(Clone, Debug, Default)]
pub(super) struct Features {
    /// All but where something stands; what it does and to which kinds of operands; what it does alone. Each with the functions and data that are named,
    /// but for the last.
    pub exact: u64,
    pub shape: u64,
    pub operations: u64,
    /// The instructions' shapes and what they name, ascending.
    pub bag: Vec<u32>,
    /// Where each instruction starts: bytes from the block's start.
    pub instructions: Vec<u32>,
    /// Those that call through a pointer.
    pub indirect_calls: Vec<u32>,
}

/// A function's code as a graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pub blocks: Vec<Features>,
    /// Where control may go, in an order that does not depend on how it is written; the same place perhaps more than once.
    pub ways: Vec<Vec<u32>>,
    pub before: Vec<Vec<u32>>,
}

/// Where each instruction of a block starts that does something: bytes from the block's start.
pub(super) fn instructions(build: Build, block: &Block) -> Vec<u32> {
    let bytes = build.program.code.at(block.input, block.size as usize).unwrap_or_default();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len()
        && let Some(inst) = build.program.arch.decode(&bytes[at..])
    {
        if !inst.nop {
            found.push(at as u32);
        }
        at += usize::from(inst.len);
    }
    found
}

/// How much two blocks, or functions, have in common, from 0 to 1.
pub(super) fn similarity(a: &[u32], b: &[u32]) -> f64 {
    if a.is_empty() && b.is_empty() {
        return 1.0;
    }
    let (mut i, mut j, mut both) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        both += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    2.0 * both as f64 / (a.len() + b.len()) as f64
}

/// The content of a function.
pub(super) fn contents(build: Build, id: FuncId, names: &Names) -> Content {
    let function = &build.program.functions[id];
    let blocks: Vec<Features> =
        function.blocks.iter().map(|(_, block)| features(build, function, block, names)).collect();
    let ways: Vec<Vec<u32>> = function.blocks.ids().map(|block| ways(function, block)).collect();
    let mut before = vec![Vec::new(); blocks.len()];
    for (from, to) in (0u32..).zip(&ways) {
        to.iter().for_each(|&to| before[to as usize].push(from));
    }
    before.iter_mut().for_each(|from| from.dedup());
    Content { blocks, ways, before }
}

/// A branch and its opposite lead the same ways in the same order.
fn ways(function: &Function, block: BlockId) -> Vec<u32> {
    let mut found = Vec::new();
    function.for_each_successor(block, |to| found.push(to.0));
    if let Terminator::Branch { condition, .. } = function.blocks[block].terminator
        && condition.0 & 1 == 1
    {
        found.reverse();
    }
    function.for_each_landing_pad(block, |to| found.push(to.0));
    found
}

fn features(build: Build, function: &Function, block: &Block, names: &Names) -> Features {
    let mut found = Features::default();
    let (mut exact, mut shape, mut operations) = (Vec::new(), Vec::new(), Vec::new());
    let bytes = build.program.code.at(block.input, block.size as usize).unwrap_or_default();
    let mut operands = function.operands_of(block).iter().peekable();
    let mut at = 0;
    while at < bytes.len() {
        let mut inside = None;
        let Some(inst) = build.program.arch.decode(&bytes[at..]) else { break };
        let end = at as u32 + u32::from(inst.len);
        while let Some(operand) = operands.next_if(|operand| operand.at < end) {
            inside = Some(operand);
        }
        let Some(like) = build.program.arch.likeness(&bytes[at..], inside.is_some()) else { break };
        // Padding is nobody's; where a block goes on is in its ways.
        if !inst.nop && !matches!(like.flow, Flow::Jump(_)) {
            let named = inside.and_then(|o| names.named(block.input + u64::from(o.at), o));
            exact.push((like.exact, named));
            shape.push((like.shape, named));
            operations.push(like.operation);
            found.bag.push(like.shape as u32);
            found.bag.extend(named.map(|name| name as u32));
            if like.flow == Flow::IndirectCall {
                found.indirect_calls.push(at as u32);
            }
        }
        if !inst.nop {
            found.instructions.push(at as u32);
        }
        at = end as usize;
    }
    found.bag.sort_unstable();
    let end = match block.terminator {
        Terminator::Stop(stop) => 1 + stop as u32,
        Terminator::Indirect { .. } => 16,
        Terminator::LastCall(_) => 17,
        _ => 0,
    };
    found.exact = hash((exact, end));
    found.shape = hash((shape, end));
    found.operations = hash((operations, end));
    found
}

impl Content {
    /// Everything that its blocks are made of.
    pub fn bag(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.blocks.iter().flat_map(|block| block.bag.iter().copied()).collect();
        all.sort_unstable();
        all
    }

    /// The same number for the same code.
    pub fn exact(&self) -> u64 {
        hash((self.blocks.iter().map(|block| block.exact).collect::<Vec<_>>(), &self.ways))
    }

    /// Number of instructions.
    pub fn size(&self) -> usize {
        self.blocks.iter().map(|block| block.instructions.len()).sum()
    }

    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// What of `kind` each block is, with that of its neighbours so many steps around it.
    pub fn hashes(&self, kind: impl Fn(&Features) -> u64, steps: usize) -> Vec<u64> {
        let mut now: Vec<u64> = self.blocks.iter().map(kind).collect();
        for _ in 0..steps {
            let around = |ids: &[u32]| -> Vec<u64> { ids.iter().map(|&id| now[id as usize]).collect() };
            let next = (0..now.len()).map(|block| {
                let (to, mut from) = (around(&self.ways[block]), around(&self.before[block]));
                from.sort_unstable();
                hash((now[block], to, from))
            });
            now = next.collect();
        }
        now
    }
}
