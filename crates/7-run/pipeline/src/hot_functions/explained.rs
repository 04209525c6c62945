//! What was done to a function, as far as program and placement tell it.

use super::footprint::padding;
use super::{Hot, Now, Piece};
use afterlink_core::index::Id;
use afterlink_passes::dyno_stats::DynoStats;
use afterlink_program::{BlockId, Chunk, Fragment, FuncId, Function, Program, Role, Target, Terminator};
use afterlink_weigh::FunctionWeights;
use std::collections::BTreeMap;

/// One thing that the passes did to a function.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Change {
    /// It stands in several pieces: the one with the entry, and others by their kind.
    Split { main: Part, others: BTreeMap<String, Part> },
    /// So many blocks stand behind another one than in the input.
    Reordered { blocks: usize },
    /// So many conditional branches go on into another block than in the input, and ran so often.
    TurnedOver { branches: usize, executions: u64 },
    /// So many blocks that led to a bare jump lead past it.
    Threaded { blocks: usize },
    /// Jumps to elsewhere in the function behind blocks that ran, and how often they run.
    Jumps { before: u64, after: u64, runs_before: u64, runs_after: u64 },
    /// Callees' code stands in place of so many calls, which ran so often.
    Inlined { calls: usize, executions: u64 },
    /// So many calls of other objects' functions lead past the linker's stubs.
    DirectCalls { calls: usize, executions: u64 },
    /// Control runs on into this function, so often, instead of jumping there.
    RunsOn { function: String, executions: u64 },
    /// The mark for indirect branches at its entry is gone.
    Unmarked,
    /// Bytes of padding inside of it that are left out.
    Padding { bytes: u64 },
    /// These functions do the same, and are this one now.
    Folded { functions: Vec<String> },
    /// This one stands for it.
    FoldedInto { function: String },
    /// Its entry stands at a multiple of so many bytes.
    Aligned { bytes: u64 },
    /// So many bytes stand free in front of it, so that control crosses fewer cache lines.
    FewerLines { bytes: u64 },
}

/// Blocks that stand together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Part {
    pub blocks: usize,
    pub bytes: u64,
}

/// What was done to the function that was `before`, and stands in these pieces, where it does what `stats` says.
pub(super) fn changes(now: &Now, before: &Hot, stats: &DynoStats, pieces: &[Piece]) -> Vec<Change> {
    let (program, id) = (now.program, before.function);
    let function = &program.functions[id];
    if let Some(into) = function.folded_into {
        return vec![Change::FoldedInto { function: program.functions[into].name.to_owned() }];
    }
    let fragments: Vec<&Fragment> = pieces.iter().map(|piece| piece.fragment).collect();
    let unknown = FunctionWeights::default();
    let weights = now.weights.functions.get(id).unwrap_or(&unknown);
    let [inlined, direct] = replaced_calls(function, weights);
    let counted = |(calls, executions): (usize, u64), change: fn(usize, u64) -> Change| {
        (calls > 0).then(|| change(calls, executions))
    };
    let more_than_none = |count: usize, change: fn(usize) -> Change| (count > 0).then(|| change(count));
    let entry = fragments.iter().find(|fragment| fragment.starts_function());
    let aligned = entry.map_or(1, |entry| u64::from(entry.alignment)).max(function.alignment);
    let inside: u64 = fragments.iter().map(|fragment| free_inside(program, fragment)).sum();
    let free = entry.map_or(0, |entry| u64::from(entry.padding)) + inside;
    let padding = padding_inside(program, function);
    [
        split(now, pieces),
        more_than_none(reordered(function, &fragments), |blocks| Change::Reordered { blocks }),
        counted(turned_over(function, weights, &fragments), |branches, executions| Change::TurnedOver {
            branches,
            executions,
        }),
        more_than_none(threaded(function, before), |blocks| Change::Threaded { blocks }),
        jumps(&before.stats, stats),
        counted(inlined, |calls, executions| Change::Inlined { calls, executions }),
        counted(direct, |calls, executions| Change::DirectCalls { calls, executions }),
        runs_on(now, id, weights, pieces),
        lacks_mark(function).then_some(Change::Unmarked),
        (padding > 0).then_some(Change::Padding { bytes: padding }),
        folded(program, id),
        // Of an even address nobody has to be told: all have one.
        (aligned > 2).then_some(Change::Aligned { bytes: aligned }),
        (free > 0).then_some(Change::FewerLines { bytes: free }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Bytes that are left free between blocks.
fn free_inside(program: &Program, fragment: &Fragment) -> u64 {
    if fragment.places.is_empty() {
        return 0;
    }
    let places = afterlink_emit::block_places(program, fragment);
    places.windows(2).map(|pair| u64::from(pair[1].start - pair[0].end)).sum()
}

fn runs_on(now: &Now, id: FuncId, weights: &FunctionWeights, pieces: &[Piece]) -> Option<Change> {
    let piece = pieces.iter().find(|piece| piece.fragment.runs_on)?;
    // The jump is there all the same where the next function's alignment asks for too much.
    let with_jump = afterlink_emit::block_places(now.program, piece.fragment).last()?.end;
    if piece.bytes >= u64::from(with_jump) {
        return None;
    }
    let next = now.placement.fragments.get(piece.rank + 1)?;
    let function = now.program.functions[next.function].name.to_owned();
    let last = *piece.fragment.blocks.last()?;
    let executions = weights.leaving(last, now.program.functions[id].blocks[last].terminator);
    Some(Change::RunsOn { function, executions })
}

fn split(now: &Now, pieces: &[Piece]) -> Option<Change> {
    let mut main = Part::default();
    let mut others: BTreeMap<String, Part> = BTreeMap::new();
    for piece in pieces {
        let part = match piece.fragment.starts_function() {
            true => &mut main,
            false => others.entry(now.placement.sections[piece.fragment.section].suffix.clone()).or_default(),
        };
        part.blocks += piece.fragment.blocks.len();
        part.bytes += piece.bytes;
    }
    (!others.is_empty()).then_some(Change::Split { main, others })
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

/// Branches behind which a block stands that they lead to, and that is not the one of the input; and how often they ran.
fn turned_over(function: &Function, weights: &FunctionWeights, fragments: &[&Fragment]) -> (usize, u64) {
    let pairs = fragments.iter().flat_map(|f| f.blocks.windows(2));
    let is_turned = |pair: &&[BlockId]| match function.blocks[pair[0]].terminator {
        Terminator::Branch { taken, next, .. } => {
            let led_on = follows_in_input(function, pair[0], pair[1]);
            let goes_on = taken == Target::Block(pair[1]) || next == pair[1];
            goes_on && !led_on
        }
        _ => false,
    };
    let turned = pairs.filter(is_turned).map(|pair| weights.block(pair[0]));
    turned.fold((0, 0), |(branches, runs), count| (branches + 1, runs + count))
}

/// Blocks of the input that lead elsewhere than they did, but for what runs in place of a call.
fn threaded(function: &Function, before: &Hot) -> usize {
    let ways = |terminator: Terminator| match terminator {
        Terminator::FallThrough(next) => [Some(Target::Block(next)), None],
        Terminator::Jump(to) => [Some(to), None],
        Terminator::Branch { taken, next, .. } | Terminator::ShortBranch { taken, next, .. } => {
            [Some(taken), Some(Target::Block(next))]
        }
        Terminator::Indirect { .. } | Terminator::Stop(_) | Terminator::LastCall(_) => [None, None],
    };
    let is_added = |way: &Option<Target>| match way {
        Some(Target::Block(block)) => block.index() >= before.terminators.len(),
        _ => false,
    };
    let leads_elsewhere = |(old, new): &([Option<Target>; 2], [Option<Target>; 2])| {
        let is_same = old == new || (old[0] == new[1] && old[1] == new[0]);
        !is_same && !new.iter().any(is_added)
    };
    let old = before.terminators.iter().map(|&terminator| ways(terminator));
    let new = function.blocks.iter().map(|(_, block)| ways(block.terminator));
    old.zip(new).filter(leads_elsewhere).count()
}

fn jumps(before: &DynoStats, after: &DynoStats) -> Option<Change> {
    let change = Change::Jumps {
        before: before.unconditional_places,
        after: after.unconditional_places,
        runs_before: before.unconditional,
        runs_after: after.unconditional,
    };
    let is_changed = (before.unconditional_places, before.unconditional)
        != (after.unconditional_places, after.unconditional);
    is_changed.then_some(change)
}

/// Bytes of padding between its blocks, or behind the last of them.
fn padding_inside(program: &Program, function: &Function) -> u64 {
    let of_input = function.blocks.iter().take(function.input_blocks as usize);
    of_input.map(|(_, block)| u64::from(padding(program, block))).sum()
}

fn folded(program: &Program, id: FuncId) -> Option<Change> {
    let same = program.functions.iter().filter(|(_, f)| f.folded_into == Some(id));
    let functions: Vec<String> = same.map(|(_, f)| f.name.to_owned()).collect();
    (!functions.is_empty()).then_some(Change::Folded { functions })
}

/// Whether the mark for indirect branches at the entry is gone: nothing stands for it.
fn lacks_mark(function: &Function) -> bool {
    let first = function.blocks.iter().next().and_then(|(_, entry)| function.chunks_of(entry).next());
    matches!(first, Some(chunk @ Chunk::New(_)) if function.chunk_size(chunk) == 0)
}

/// Calls with the callee's code in their place, and calls through the word behind a stub, each with their executions.
fn replaced_calls(function: &Function, weights: &FunctionWeights) -> [(usize, u64); 2] {
    let mut found = [(0, 0); 2];
    for (id, block) in function.blocks.iter() {
        for chunk in &function.chunks[block.chunks.range()] {
            let kind = match chunk {
                Chunk::Inlined(_) => 0,
                // One that leads in stands for the call.
                Chunk::InPlace(row) if function.in_place[*row as usize].leads_in() => 0,
                Chunk::New(row) => {
                    let operands = &function.operands[function.new_code[*row as usize].operands.range()];
                    if !operands.iter().any(|o| o.role == Role::Memory) {
                        continue;
                    }
                    1
                }
                Chunk::Input(_)
                | Chunk::Counter { .. }
                | Chunk::Targets { .. }
                | Chunk::Prefetch(_)
                | Chunk::InPlace(_)
                | Chunk::Back(_) => continue,
            };
            found[kind].0 += 1;
            found[kind].1 += weights.block(id);
        }
    }
    found
}
