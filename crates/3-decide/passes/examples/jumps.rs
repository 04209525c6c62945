//! What jumps are left in the layout that a profile makes, and what would take them away: `jumps PROGRAM PROFILE`. By the profile's counts:
//!
//! - unconditional jumps by what they lead to: a copy of that in place of the jump would save it, for the bytes that it has more;
//! - conditional jumps around a bare jump to another function, which could be one jump;
//! - ends of functions that stand in the hot part more than once, byte for byte: a short jump in place of all but one would save bytes.

mod profiled;

use afterlink_passes::{LayoutOptions, dyno_stats, without_jumps};
use afterlink_program::{Block, BlockId, Function, Placement, Program, SectionId, Stop, Target, Terminator};
use afterlink_weigh::{FunctionWeights, Weights};
use std::collections::{BTreeMap, BTreeSet};

/// Sizes up to which blocks are told apart.
const SIZES: [u32; 5] = [8, 16, 32, 64, u32::MAX];
/// Bytes of the jump that a copy stands in place of: nearly all of these are near.
const JUMP: u32 = 5;
const SHORT_JUMP: u32 = 2;
/// Blocks up to this size are worth a copy, if nothing runs behind them: otherwise the copy needs the jump that it saves.
const COPIED: u32 = 32;
const ENDS: [&str; 4] = ["return", "indirect jump", "jump", "tail call"];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, profile] = &arguments[..] else { panic!("jumps PROGRAM PROFILE") };
    profiled::with_counts(program, profile, tell);
}

fn tell(mut program: Program, mut weights: Weights) {
    let options = LayoutOptions::default();
    let moved = afterlink_passes::moved(&program, &weights, &options);
    let (placement, _) = afterlink_passes::run(&mut program, &mut weights, moved, &options, &without_jumps);
    let stats = dyno_stats::after(&program, &weights, &placement);
    let mut census = Census::default();
    census.count(&program, &weights, &placement);
    println!(
        "taken inside functions {}, of them unconditional {}; calls {}, returns {}, indirect jumps {}; hot bytes {}",
        stats.taken_branches,
        stats.unconditional,
        stats.calls,
        census.returns,
        census.indirect,
        census.hot_bytes
    );
    let taken = stats.taken_branches + stats.calls + census.returns + census.indirect;
    census.print(taken);
}

/// Executions, places and bytes.
type Row = (u64, u64, u64);

#[derive(Default)]
struct Census {
    copies: BTreeMap<(&'static str, u32), Row>,
    tail_calls: Row,
    /// Ends that are there already.
    shared: Row,
    returns: u64,
    indirect: u64,
    hot_bytes: u64,
}

impl Census {
    fn count(&mut self, program: &Program, weights: &Weights, placement: &Placement) {
        for fragment in &placement.fragments {
            let function = &program.functions[fragment.function];
            let Some(weights) = weights.functions.get(fragment.function) else { continue };
            let behind = fragment.blocks[1..].iter().copied().map(Some).chain([None]);
            let is_hot = fragment.section == SectionId::HOT;
            let mut ends: BTreeSet<&[u8]> = BTreeSet::new();
            for (&id, behind) in fragment.blocks.iter().zip(behind) {
                self.block(function, weights, (id, behind));
                let block = &function.blocks[id];
                let bytes = program.code.at(block.input, block.size as usize).unwrap_or(&[]);
                if is_hot {
                    self.hot_bytes += u64::from(block.size);
                }
                if is_hot && block.terminator == Terminator::Stop(Stop::Return) && !ends.insert(bytes) {
                    let row = &mut self.shared;
                    let saved = u64::from(block.size.saturating_sub(SHORT_JUMP));
                    *row = (row.0 + weights.block(id), row.1 + 1, row.2 + saved);
                }
            }
        }
    }

    fn block(
        &mut self,
        function: &Function,
        weights: &FunctionWeights,
        (id, behind): (BlockId, Option<BlockId>),
    ) {
        let runs = weights.block(id);
        let edge = |to: BlockId| weights.edge(id, to);
        match function.blocks[id].terminator {
            Terminator::Stop(Stop::Return) => self.returns += runs,
            Terminator::Stop(Stop::TailCall) | Terminator::Indirect { .. } => self.indirect += runs,
            Terminator::FallThrough(next) if behind != Some(next) => self.jump(function, next, runs),
            Terminator::Jump(Target::Block(next)) if behind != Some(next) => self.jump(function, next, runs),
            Terminator::Branch { taken, next, .. } => {
                let follows = |to: Target| behind.is_some_and(|b| to == Target::Block(b));
                if !follows(taken) && !follows(Target::Block(next)) {
                    self.jump(function, next, edge(next));
                }
                let leaves = bare_tail_call(&function.blocks[next]);
                if let (true, Target::Block(other)) = (leaves, taken) {
                    // Two jumps, or one of the two and the other way's.
                    let now = if follows(Target::Block(next)) {
                        edge(next) + edge(other)
                    } else if follows(taken) {
                        2 * edge(next)
                    } else {
                        2 * edge(next) + edge(other)
                    };
                    let row = &mut self.tail_calls;
                    *row = (row.0 + now.saturating_sub(edge(next)), row.1 + 1, row.2 + u64::from(JUMP));
                }
            }
            _ => {}
        }
    }

    /// A jump that leads to `to`.
    fn jump(&mut self, function: &Function, to: BlockId, runs: u64) {
        if runs == 0 {
            return;
        }
        let block = &function.blocks[to];
        let kind = match block.terminator {
            Terminator::Stop(Stop::Return) => "return",
            Terminator::Stop(Stop::TailCall) | Terminator::Indirect { .. } => "indirect jump",
            Terminator::Jump(Target::Block(_)) => "jump",
            Terminator::Jump(_) => "tail call",
            Terminator::Branch { .. } => "branch",
            Terminator::FallThrough(_) => "next block",
            _ => "other",
        };
        let size = SIZES.into_iter().find(|size| block.size <= *size).unwrap_or(u32::MAX);
        let row = self.copies.entry((kind, size)).or_default();
        *row = (row.0 + runs, row.1 + 1, row.2 + u64::from(block.size.saturating_sub(JUMP)));
    }

    fn print(&self, taken: u64) {
        println!(
            "{:<14} {:>8} {:>12} {:>8} {:>10}",
            "jumps to a", "up to", "executed", "places", "bytes more"
        );
        for ((kind, size), (runs, places, bytes)) in &self.copies {
            let size = if *size == u32::MAX { "any".to_owned() } else { size.to_string() };
            println!("{kind:<14} {size:>8} {runs:>12} {places:>8} {bytes:>10}");
        }
        let share = |runs: u64| 100.0 * runs as f64 / taken as f64;
        let worth = self.copies.iter().filter(|((kind, size), _)| *size <= COPIED && ENDS.contains(kind));
        let (runs, places, bytes) =
            worth.fold((0, 0, 0), |sum, (_, row)| (sum.0 + row.0, sum.1 + row.1, sum.2 + row.2));
        println!(
            "copies of blocks of up to {COPIED} bytes behind which nothing runs: {:.2} % of all taken, {places} places, {bytes} bytes more",
            share(runs)
        );
        let (runs, places, bytes) = self.shared;
        println!(
            "ends that stand there already: {places} places, {bytes} bytes less, {:.2} % more taken",
            share(runs)
        );
        let (runs, places, bytes) = self.tail_calls;
        println!("branches around bare tail calls: {runs} jumps, {places} places, {bytes} bytes less");
    }
}

fn bare_tail_call(block: &Block) -> bool {
    let leaves = matches!(block.terminator, Terminator::Jump(Target::Code(..) | Target::Input(_)));
    leaves && block.body == 0 && block.chunks.is_empty()
}
