//! The shape of a fragment: which instructions end each block, how long each is, and so where every block
//! starts. Addresses are not needed for that: a branch inside the fragment is short if it can be, one that
//! leaves it is always long. Where control runs on into the fragment behind it there is none, and nops up to
//! where that one may start. Behind a block from which control does not go on, bytes may be left free.
//!
//! Branch lengths depend on distances and distances on lengths. As in a linker's relaxation, all branches start
//! short and grow until none is too short; a branch never shrinks, so this ends.

use afterlink_isa::{self as isa, Arch};
use afterlink_program::{Block, BlockId, Fragment, Function, Program, Target, Terminator};
use std::ops::Range;

/// How a block ends in the output: at most one conditional and one plain jump.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ending {
    pub branch: Option<Exit>,
    pub jump: Option<Exit>,
}

/// One jump that is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exit {
    pub kind: isa::Exit,
    way: Way,
    pub short: bool,
    /// Index of the target among the fragment's blocks; [`ELSEWHERE`] if it is not there.
    inside: u32,
}

const ELSEWHERE: u32 = u32::MAX;

/// Which of a terminator's two ways a jump leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Taken,
    Next,
}

impl Exit {
    /// Where it leads from `block`.
    pub fn target(&self, block: &Block) -> Target {
        match (block.terminator, self.way) {
            (Terminator::Jump(target) | Terminator::LastCall(target), _) => target,
            (Terminator::FallThrough(next), _) => Target::Block(next),
            (Terminator::Branch { taken, .. } | Terminator::ShortBranch { taken, .. }, Way::Taken) => taken,
            (Terminator::Branch { next, .. } | Terminator::ShortBranch { next, .. }, Way::Next) => {
                Target::Block(next)
            }
            (Terminator::Indirect { .. } | Terminator::Stop(_), _) => {
                unreachable!("nothing is written for it")
            }
        }
    }

    /// Bytes.
    pub fn size(&self, arch: Arch) -> u64 {
        arch.exit_size(self.kind, self.short)
    }
}

/// A fragment with all its lengths settled.
pub(crate) struct Shape {
    /// Where each block starts, from the fragment's start; one more for the end.
    pub offsets: Vec<u32>,
    /// Bytes that are left free behind each block; nothing if none are.
    gaps: Vec<u32>,
    /// For each block, which of its jumps are short: [`BRANCH`], [`JUMP`]. All else about them is worked out anew when they
    /// are written: a large program has millions.
    short: Vec<u8>,
    /// What starts right behind the fragment, if control runs on there.
    behind: Option<Target>,
    /// Bytes of nops at its end, which are run.
    pub nops: u32,
}

const BRANCH: u8 = 1;
const JUMP: u8 = 2;

impl Shape {
    /// Where the block at `at` ends.
    pub fn end_of(&self, at: usize) -> u32 {
        self.offsets[at + 1] - self.gaps.get(at).copied().unwrap_or(0)
    }

    /// Where each block stands, from the fragment's start.
    pub fn places(&self) -> Vec<Range<u32>> {
        (0..self.offsets.len() - 1).map(|at| self.offsets[at]..self.end_of(at)).collect()
    }

    pub fn size(&self) -> u64 {
        u64::from(*self.offsets.last().expect("one more offset than blocks"))
    }

    /// How the blocks of `fragment`, whose shape this is, end.
    pub fn endings(&self, function: &Function, fragment: &Fragment) -> Vec<Ending> {
        let mut endings = endings(function, fragment, self.behind);
        for (ending, short) in endings.iter_mut().zip(&self.short) {
            ending.branch.iter_mut().for_each(|exit| exit.short = short & BRANCH != 0);
            ending.jump.iter_mut().for_each(|exit| exit.short = short & JUMP != 0);
        }
        endings
    }
}

/// Settles the shape of `fragment`, behind which stands `next`.
pub(crate) fn settle(program: &Program, fragment: &Fragment, next: Option<&Fragment>) -> Shape {
    let function = &program.functions[fragment.function];
    let next = next.filter(|next| fragment.runs_on && fragment.stands_beside(next, program));
    let running_on = next.and_then(|next| {
        let behind = match next.blocks[0] {
            block if next.function == fragment.function => Target::Block(block),
            block => Target::Code(next.function, block),
        };
        let mut shape = settle_before(program.arch, function, fragment, Some(behind));
        // The last block has a byte at least: no two functions, nor blocks of two, have one address.
        let [.., last, size] = shape.offsets[..] else { return None };
        let nops =
            u64::from(size.max(last + 1)).next_multiple_of(next.alignment_in(program)) - u64::from(size);
        shape.nops = u32::try_from(nops).ok()?;
        *shape.offsets.last_mut()? += shape.nops;
        (nops < program.arch.exit_size(isa::Exit::Jump, false)).then_some(shape)
    });
    running_on.unwrap_or_else(|| settle_before(program.arch, function, fragment, None))
}

fn settle_before(arch: Arch, function: &Function, fragment: &Fragment, behind: Option<Target>) -> Shape {
    let mut endings = endings(function, fragment, behind);
    let bodies: Vec<u32> = fragment.blocks.iter().map(|&b| function.code_size(&function.blocks[b])).collect();
    let mut offsets = vec![0u32; bodies.len() + 1];
    let mut gaps = vec![0u32; fragment.places.len()];
    loop {
        for (i, (body, ending)) in bodies.iter().zip(&endings).enumerate() {
            let exits = ending.branch.iter().chain(&ending.jump).map(|e| e.size(arch) as u32).sum::<u32>();
            offsets[i + 1] = offsets[i] + body + exits;
            if i + 1 < gaps.len() && !goes_on(function, fragment.blocks[i], ending) {
                gaps[i] = fragment.gap_at(i + 1, offsets[i + 1]);
                offsets[i + 1] += gaps[i];
            }
        }
        let mut grown = false;
        for (i, ending) in endings.iter_mut().enumerate() {
            let mut end = offsets[i] + bodies[i];
            for exit in ending.branch.iter_mut().chain(&mut ending.jump) {
                end += exit.size(arch) as u32;
                if !exit.short {
                    continue;
                }
                // Invariant: only what is inside the fragment is short.
                let displacement = i64::from(offsets[exit.inside as usize]) - i64::from(end);
                if !arch.is_near(displacement) {
                    exit.short = false;
                    grown = true;
                }
            }
        }
        if !grown {
            let flag = |exit: Option<Exit>, flag: u8| if exit.is_some_and(|e| e.short) { flag } else { 0 };
            let short = endings.iter().map(|e| flag(e.branch, BRANCH) | flag(e.jump, JUMP)).collect();
            return Shape { offsets, gaps, short, behind, nops: 0 };
        }
    }
}

/// Whether control comes to what stands behind a block that ends so.
fn goes_on(function: &Function, block: BlockId, ending: &Ending) -> bool {
    let terminator = function.blocks[block].terminator;
    !matches!(terminator, Terminator::Stop(_) | Terminator::Indirect { .. }) && ending.jump.is_none()
}

fn endings(function: &Function, fragment: &Fragment, behind: Option<Target>) -> Vec<Ending> {
    // Position of each block in this fragment.
    let mut inside = vec![ELSEWHERE; function.blocks.len()];
    for (i, block) in fragment.blocks.iter().enumerate() {
        inside[block.0 as usize] = i as u32;
    }
    let exit = |kind, way, target: Target| {
        let inside = match target {
            Target::Block(block) => inside[block.0 as usize],
            _ => ELSEWHERE,
        };
        Exit { kind, way, inside, short: inside != ELSEWHERE }
    };
    let behind = fragment.blocks[1..].iter().map(|&next| Some(Target::Block(next))).chain([behind]);
    let blocks = fragment.blocks.iter().map(|&b| &function.blocks[b]);
    blocks.zip(behind).map(|(block, behind)| ending(block, behind, &exit)).collect()
}

fn ending(block: &Block, behind: Option<Target>, exit: &dyn Fn(isa::Exit, Way, Target) -> Exit) -> Ending {
    let is_behind = |target: Target| behind == Some(target);
    let jump = |way, target| (!is_behind(target)).then(|| exit(isa::Exit::Jump, way, target));
    match block.terminator {
        Terminator::FallThrough(next) => Ending { branch: None, jump: jump(Way::Next, Target::Block(next)) },
        Terminator::Jump(target) | Terminator::LastCall(target) => {
            Ending { branch: None, jump: jump(Way::Taken, target) }
        }
        Terminator::Branch { condition, taken, next } => {
            let next = Target::Block(next);
            if is_behind(taken) && !is_behind(next) {
                let branch = exit(isa::Exit::Branch(condition.inverse()), Way::Next, next);
                Ending { branch: Some(branch), jump: None }
            } else {
                let branch = exit(isa::Exit::Branch(condition), Way::Taken, taken);
                Ending { branch: Some(branch), jump: jump(Way::Next, next) }
            }
        }
        Terminator::ShortBranch { opcode, taken, next } => {
            let mut branch = exit(isa::Exit::ShortBranch(opcode), Way::Taken, taken);
            branch.short = false;
            Ending { branch: Some(branch), jump: jump(Way::Next, Target::Block(next)) }
        }
        Terminator::Indirect { .. } | Terminator::Stop(_) => Ending::default(),
    }
}
