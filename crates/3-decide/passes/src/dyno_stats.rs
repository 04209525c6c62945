//! What a layout does while the program runs, counted by the profile: the figures by which layouts are
//! compared before anything is run.

use afterlink_program::{BlockId, FuncId, Placement, Program, Target, Terminator};
use afterlink_weigh::Weights;

/// Events during the profiled run, under one layout. Only functions that the placement holds count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct DynoStats {
    pub executed_blocks: u64,
    /// Conditional branches that jump, and that do not.
    pub taken_conditional: u64,
    pub not_taken_conditional: u64,
    /// Direct unconditional jumps inside functions.
    pub unconditional: u64,
    /// Places where one of these stands and runs.
    pub unconditional_places: u64,
    /// Taken conditional and unconditional ones together.
    pub taken_branches: u64,
    /// Direct calls, tail calls among them, conditional ones too.
    pub calls: u64,
}

impl DynoStats {
    fn jump(&mut self, count: u64) {
        self.unconditional += count;
        self.unconditional_places += u64::from(count > 0);
    }
}

/// Counts for the functions of `placement` as it lays them out.
pub fn after(program: &Program, weights: &Weights, placement: &Placement) -> DynoStats {
    let mut stats = DynoStats::default();
    for fragment in &placement.fragments {
        let behind = fragment.blocks[1..].iter().copied().map(Some).chain([None]);
        for (&block, behind) in fragment.blocks.iter().zip(behind) {
            add(program, weights, fragment.function, block, behind, &mut stats);
        }
    }
    stats.taken_branches = stats.taken_conditional + stats.unconditional;
    stats
}

/// Counts for the functions that are to move, as the input lays them out.
pub fn before(program: &Program, weights: &Weights, moved: &[FuncId]) -> DynoStats {
    let mut stats = DynoStats::default();
    for &id in moved {
        let function = &program.functions[id];
        for block in function.blocks.ids().take(function.input_blocks as usize) {
            // What the compiler split off has the next number, and stands elsewhere.
            let next = BlockId(block.0 + 1);
            let end = function.blocks[block].input_end();
            let behind = function.blocks.get(next).filter(|b| b.input == end).map(|_| next);
            add(program, weights, id, block, behind, &mut stats);
        }
    }
    stats.taken_branches = stats.taken_conditional + stats.unconditional;
    stats
}

fn add(
    program: &Program,
    weights: &Weights,
    id: FuncId,
    block: BlockId,
    behind: Option<BlockId>,
    stats: &mut DynoStats,
) {
    let Some(weights) = weights.functions.get(id) else { return };
    let count = weights.block(block);
    if count == 0 {
        return;
    }
    stats.executed_blocks += count;
    let edge = |to: BlockId| weights.edge(block, to);
    stats.calls += weights.calls.iter().filter(|c| c.block == block).map(|c| c.count).sum::<u64>();
    let goes_on = |to: Target| behind.is_some_and(|b| to == Target::Block(b));
    match program.functions[id].blocks[block].terminator {
        // A tail call, as other tools count it.
        Terminator::Jump(Target::Code(..) | Target::Input(_)) => stats.calls += count,
        Terminator::FallThrough(next) if !goes_on(Target::Block(next)) => stats.jump(count),
        Terminator::Jump(to) if !goes_on(to) => stats.jump(count),
        Terminator::Branch { taken, next, .. } | Terminator::ShortBranch { taken, next, .. } => {
            let on = edge(next);
            let jumps = match taken {
                Target::Block(to) if to == next => 0,
                Target::Block(to) => edge(to),
                _ => {
                    stats.calls += count.saturating_sub(on);
                    0
                }
            };
            let (taken_count, not_taken) =
                if goes_on(taken) && !goes_on(Target::Block(next)) { (on, jumps) } else { (jumps, on) };
            stats.taken_conditional += taken_count;
            stats.not_taken_conditional += not_taken;
            if !goes_on(taken) && !goes_on(Target::Block(next)) {
                stats.jump(on);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afterlink_program::text;

    /// A compiler has split the second block off.
    const TEXT: &str = "\
program x86-64 counted
function main 0x1000+0x6, 0x8000+0x1
block b0 0x1000:
  90
  jump b1 | e9 fa 6f 00 00
block b1 0x8000:
  c3
  return
ran 7: 7 7
edge b0 b1 7
";

    #[test]
    fn what_was_split_off_does_not_stand_behind_the_rest() {
        let text = text::read(TEXT).expect("a program");
        let stats = before(&text.program, &text.weights, &[FuncId(0)]);
        let jumps = DynoStats {
            executed_blocks: 14,
            unconditional: 7,
            unconditional_places: 1,
            taken_branches: 7,
            ..DynoStats::default()
        };
        assert_eq!(stats, jumps);
    }
}
