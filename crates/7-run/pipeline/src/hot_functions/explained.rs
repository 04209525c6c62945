//! What was done to a function, as far as program and placement tell it.

use afterlink_core::index::Id;
use afterlink_program::{
    BlockId, Chunk, Fragment, FuncId, Function, Placement, Program, Role, Target, Terminator,
};
use afterlink_weigh::{FunctionWeights, Weights};
use std::collections::BTreeMap;
use std::fmt;

/// One thing that the passes did to a function.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Change {
    /// It stands in several pieces: blocks in the piece with the entry, and in the others by their kind.
    Split { hot: usize, others: BTreeMap<String, usize> },
    /// So many blocks stand behind another one than in the input.
    Reordered { blocks: usize },
    /// So many conditional branches go on into another block than in the input.
    OtherWay { branches: usize },
    /// Callees' code stands in place of so many calls, which ran so often.
    Inlined { calls: usize, executions: u64 },
    /// So many calls of other objects' functions lead past the linker's stubs.
    DirectCalls { calls: usize, executions: u64 },
    /// These functions do the same, and are this one now.
    Folded { functions: Vec<String> },
    /// Its entry stands at a multiple of so many bytes.
    Aligned { bytes: u64 },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Split { hot, others } => {
                write!(f, "split: {hot} blocks hot")?;
                others.iter().try_for_each(|(kind, blocks)| write!(f, ", {blocks} {kind}"))
            }
            Self::Reordered { blocks } => write!(f, "{blocks} blocks reordered"),
            Self::OtherWay { branches } => write!(f, "{branches} branches go on another way"),
            Self::Inlined { calls, executions } => {
                write!(f, "{calls} calls inlined, which ran {executions} times")
            }
            Self::DirectCalls { calls, executions } => {
                write!(f, "{calls} calls past the linker's stubs, which ran {executions} times")
            }
            Self::Folded { functions } => write!(f, "stands for {}, too", functions.join(", ")),
            Self::Aligned { bytes } => write!(f, "aligned to {bytes} bytes"),
        }
    }
}

/// What was done to function `id`, whose fragments these are, but for what was folded into it.
pub(super) fn changes(
    program: &Program,
    weights: &Weights,
    placement: &Placement,
    id: FuncId,
    fragments: &[&Fragment],
) -> Vec<Change> {
    let function = &program.functions[id];
    let unknown = FunctionWeights::default();
    let weights = weights.functions.get(id).unwrap_or(&unknown);
    let [inlined, direct] = replaced_calls(function, weights);
    let counted = |(calls, executions): (usize, u64), change: fn(usize, u64) -> Change| {
        (calls > 0).then(|| change(calls, executions))
    };
    let more_than_none = |count: usize, change: fn(usize) -> Change| (count > 0).then(|| change(count));
    let aligned = fragments.iter().find(|f| f.starts_function()).map_or(1, |f| u64::from(f.alignment));
    let aligned = aligned.max(function.alignment);
    [
        split(placement, fragments),
        more_than_none(reordered(function, fragments), |blocks| Change::Reordered { blocks }),
        more_than_none(other_way(function, fragments), |branches| Change::OtherWay { branches }),
        counted(inlined, |calls, executions| Change::Inlined { calls, executions }),
        counted(direct, |calls, executions| Change::DirectCalls { calls, executions }),
        // Of an even address nobody has to be told: all have one.
        (aligned > 2).then_some(Change::Aligned { bytes: aligned }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn split(placement: &Placement, fragments: &[&Fragment]) -> Option<Change> {
    let (main, others): (Vec<&Fragment>, Vec<&Fragment>) =
        fragments.iter().partition(|f| f.starts_function());
    let mut by_kind = BTreeMap::new();
    for fragment in &others {
        let kind = placement.sections[fragment.section].suffix.clone();
        *by_kind.entry(kind).or_insert(0) += fragment.blocks.len();
    }
    let hot = main.iter().map(|f| f.blocks.len()).sum();
    (!others.is_empty()).then_some(Change::Split { hot, others: by_kind })
}

/// Whether `behind` stands right behind `block` in the input.
pub(super) fn follows_in_input(function: &Function, block: BlockId, behind: BlockId) -> bool {
    let is_of_input = |id: BlockId| id.index() < function.input_blocks as usize;
    let blocks = &function.blocks;
    is_of_input(block) && is_of_input(behind) && blocks[block].input_end() == blocks[behind].input
}

fn reordered(function: &Function, fragments: &[&Fragment]) -> usize {
    let pairs = fragments.iter().flat_map(|f| f.blocks.windows(2));
    pairs.filter(|pair| !follows_in_input(function, pair[0], pair[1])).count()
}

/// Branches behind which a block stands that they lead to, and that is not the one of the input.
fn other_way(function: &Function, fragments: &[&Fragment]) -> usize {
    let pairs = fragments.iter().flat_map(|f| f.blocks.windows(2));
    let is_other = |pair: &&[BlockId]| match function.blocks[pair[0]].terminator {
        Terminator::Branch { taken, next, .. } => {
            let led_on = follows_in_input(function, pair[0], pair[1]);
            let goes_on = taken == Target::Block(pair[1]) || next == pair[1];
            goes_on && !led_on
        }
        _ => false,
    };
    pairs.filter(is_other).count()
}

/// Calls with the callee's code in their place, and calls through the word behind a stub, each with their executions.
fn replaced_calls(function: &Function, weights: &FunctionWeights) -> [(usize, u64); 2] {
    let mut found = [(0, 0); 2];
    for (id, block) in function.blocks.iter() {
        for chunk in &function.chunks[block.chunks.range()] {
            let kind = match chunk {
                Chunk::Inlined(_) => 0,
                // One that leads in stands for the call.
                Chunk::InPlace(row)
                    if function.in_place[*row as usize].start == function.in_place[*row as usize].call =>
                {
                    0
                }
                Chunk::New(row) => {
                    let operands = &function.operands[function.new_code[*row as usize].operands.range()];
                    if !operands.iter().any(|o| o.role == Role::Memory) {
                        continue;
                    }
                    1
                }
                Chunk::Input(_) | Chunk::Counter { .. } | Chunk::Targets { .. } | Chunk::InPlace(_) => {
                    continue;
                }
            };
            found[kind].0 += 1;
            found[kind].1 += weights.block(id);
        }
    }
    found
}
