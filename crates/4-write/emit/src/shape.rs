//! The shape of a fragment: which instructions end each block, how long each is, and so where every block
//! starts. Addresses are not needed for that: a branch inside the fragment is short if it can be, one that
//! leaves it is always long.
//!
//! Branch lengths depend on distances and distances on lengths. As in a linker's relaxation, all branches start
//! short and grow until none is too short; a branch never shrinks, so this ends.

use crate::counters::counter_size;
use afterlink_isa::Condition;
use afterlink_isa::x86_64::{BRANCH_LONG, BRANCH_SHORT, JUMP_LONG, JUMP_SHORT, SHORT_BRANCH};
use afterlink_program::{Block, BlockId, Counter, Fragment, Function, Target, Terminator};

/// How a block ends in the output: at most one conditional and one plain jump.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ending {
    pub branch: Option<Exit>,
    pub jump: Option<Exit>,
}

/// One jump that is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exit {
    pub kind: ExitKind,
    pub target: Target,
    /// Index of the target among the fragment's blocks, if it is there.
    inside: Option<u32>,
    pub short: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitKind {
    Jump,
    Branch(Condition),
    /// With that many bytes of opcode, taken from the input.
    ShortBranch(u8),
}

impl Exit {
    /// Bytes.
    pub fn size(&self) -> u64 {
        match (self.kind, self.short) {
            (ExitKind::Jump, true) => JUMP_SHORT,
            (ExitKind::Jump, false) => JUMP_LONG,
            (ExitKind::Branch(_), true) => BRANCH_SHORT,
            (ExitKind::Branch(_), false) => BRANCH_LONG,
            (ExitKind::ShortBranch(opcode), _) => u64::from(opcode) + 1 + SHORT_BRANCH,
        }
    }
}

/// A fragment with all its lengths settled.
pub(crate) struct Shape {
    /// Where each block starts, from the fragment's start; one more for the end.
    pub offsets: Vec<u32>,
    pub endings: Vec<Ending>,
}

impl Shape {
    pub fn size(&self) -> u64 {
        u64::from(*self.offsets.last().expect("one more offset than blocks"))
    }
}

/// Settles the shape of `fragment`. `counters` are those of its function, by block and offset.
pub(crate) fn settle(function: &Function, fragment: &Fragment, counters: &[Counter]) -> Shape {
    let mut endings = endings(function, fragment);
    let bodies: Vec<u32> = fragment
        .blocks
        .iter()
        .map(|&b| {
            function.blocks[b].body
                + counters_of(counters, b).iter().map(|c| counter_size(c.form)).sum::<u32>()
        })
        .collect();
    let mut offsets = vec![0u32; bodies.len() + 1];
    loop {
        for (i, (body, ending)) in bodies.iter().zip(&endings).enumerate() {
            let exits = ending.branch.iter().chain(&ending.jump).map(|e| e.size() as u32).sum::<u32>();
            offsets[i + 1] = offsets[i] + body + exits;
        }
        let mut grown = false;
        for (i, ending) in endings.iter_mut().enumerate() {
            let mut end = offsets[i] + bodies[i];
            for exit in ending.branch.iter_mut().chain(&mut ending.jump) {
                end += exit.size() as u32;
                let Some(target) = exit.inside.filter(|_| exit.short) else { continue };
                let displacement = i64::from(offsets[target as usize]) - i64::from(end);
                if i8::try_from(displacement).is_err() {
                    exit.short = false;
                    grown = true;
                }
            }
        }
        if !grown {
            return Shape { offsets, endings };
        }
    }
}

/// The counters that stand in `block`.
pub(crate) fn counters_of(counters: &[Counter], block: BlockId) -> &[Counter] {
    let from = counters.partition_point(|c| c.block < block);
    let to = counters.partition_point(|c| c.block <= block);
    &counters[from..to]
}

fn endings(function: &Function, fragment: &Fragment) -> Vec<Ending> {
    // Position of each block in this fragment.
    let mut inside = vec![u32::MAX; function.blocks.len()];
    for (i, block) in fragment.blocks.iter().enumerate() {
        inside[block.0 as usize] = i as u32;
    }
    let position = |target: Target| match target {
        Target::Block(b) => Some(inside[b.0 as usize]).filter(|&i| i != u32::MAX),
        Target::Code(_) => None,
    };
    let exit = |kind, target| {
        let inside = position(target);
        Exit { kind, target, inside, short: inside.is_some() }
    };
    let behind = fragment.blocks[1..].iter().copied().map(Some).chain([None]);
    let blocks = fragment.blocks.iter().map(|&b| &function.blocks[b]);
    blocks.zip(behind).map(|(block, behind)| ending(block, behind, &exit)).collect()
}

fn ending(block: &Block, behind: Option<BlockId>, exit: &dyn Fn(ExitKind, Target) -> Exit) -> Ending {
    let is_behind = |target: Target| behind.is_some_and(|b| target == Target::Block(b));
    let jump = |target| (!is_behind(target)).then(|| exit(ExitKind::Jump, target));
    match block.terminator {
        Terminator::FallThrough(next) => Ending { branch: None, jump: jump(Target::Block(next)) },
        Terminator::Jump(target) => Ending { branch: None, jump: jump(target) },
        Terminator::LastCall(behind) => Ending { branch: None, jump: jump(Target::Code(behind)) },
        Terminator::Branch { condition, taken, next } => {
            let next = Target::Block(next);
            if is_behind(taken) && !is_behind(next) {
                Ending { branch: Some(exit(ExitKind::Branch(condition.inverse()), next)), jump: None }
            } else {
                Ending { branch: Some(exit(ExitKind::Branch(condition), taken)), jump: jump(next) }
            }
        }
        Terminator::ShortBranch { opcode, taken, next } => {
            let mut branch = exit(ExitKind::ShortBranch(opcode), taken);
            branch.short = false;
            Ending { branch: Some(branch), jump: jump(Target::Block(next)) }
        }
        Terminator::Indirect { .. } | Terminator::Stop => Ending::default(),
    }
}
