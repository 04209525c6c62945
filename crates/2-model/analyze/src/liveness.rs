//! Which registers and flags are still needed where: a backward data-flow analysis over a function's blocks.
//!
//! New code may overwrite only what the function itself overwrites before anything reads it, so that nobody can tell.
//! Registers therefore all count as needed at returns, calls and jumps out of the function. The flags do not: no calling
//! convention passes them. Hand-written code may do so in spite of that; a function that has no unwind entry,
//! or after a call of which some caller looks at the flags, [passes flags](Convention::PassesFlags) too. (The carry flag, by
//! which such code mostly returns its result, is never changed anyway.)
//!
//! An access to memory may raise a signal, whose handler may leave it out or go on at a place that something names.

use crate::scan::Scan;
use afterlink_core::index::Id;
use afterlink_isa::{Arch, Places};
use afterlink_program::{BlockId, Function, Target, Terminator};

/// What passes between a function and others besides registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convention {
    /// Nothing.
    Regular,
    /// Perhaps flags.
    PassesFlags,
}

/// What is needed at the start of each block.
pub struct Liveness {
    arch: Arch,
    at_start: Vec<Places>,
    /// What is needed where something besides branches leads inside the function, but for flags.
    at_named: Places,
    convention: Convention,
}

impl Liveness {
    pub fn new(function: &Function, scan: &Scan, convention: Convention) -> Self {
        let at_start = vec![Places::NONE; function.blocks.len()];
        let mut liveness = Self { arch: scan.arch(), at_start, at_named: Places::NONE, convention };
        // Sets only grow, and there are 21 members, so this ends; backwards it mostly ends after three rounds.
        let mut changed = true;
        while changed {
            changed = false;
            liveness.at_named = liveness.named(function).without(liveness.arch.flags());
            for block in function.blocks.ids().rev() {
                let needed = liveness.before_steps(function, scan, block, |_, _| {});
                if liveness.at_start[block.index()] != needed {
                    liveness.at_start[block.index()] = needed;
                    changed = true;
                }
            }
        }
        liveness
    }

    /// What is needed at the start of a block.
    pub fn at_start(&self, block: BlockId) -> Places {
        self.at_start[block.index()]
    }

    /// Calls `visit` with the number of each step of a block and what is needed right before it, from the last to
    /// the first; the end of the body counts as a step. Gives what is needed at the block's start.
    pub fn before_steps(
        &self,
        function: &Function,
        scan: &Scan,
        block: BlockId,
        mut visit: impl FnMut(usize, Places),
    ) -> Places {
        let mut needed = self.at_end(function, block);
        let steps = scan.steps(block);
        visit(steps.len(), needed);
        let has_pads = function.has_landing_pads();
        for (i, step) in steps.iter().enumerate().rev() {
            let overwritten = match self.convention {
                Convention::PassesFlags if step.kind.is_call() => Places::NONE,
                _ => step.writes,
            };
            needed = needed.without(overwritten) | step.reads;
            if step.may_fault {
                // The handler of a signal may have a table of places where to go on.
                needed |= self.at_named;
            }
            let place = function.blocks[block].input + u64::from(step.at);
            if has_pads && let Some(pad) = function.landing_at(place).pad() {
                // Exceptions bring no flags.
                needed |= self.at_start(pad).without(self.arch.flags());
            }
            visit(i, needed);
        }
        needed
    }

    /// What is needed at any label or target of a table.
    fn named(&self, function: &Function) -> Places {
        let named = function.jump_tables.iter().flat_map(|t| &t.targets).chain(&function.labels);
        named.fold(Places::NONE, |needed, &id| needed | self.at_start(id))
    }

    /// What is needed at the end of a block's body.
    fn at_end(&self, function: &Function, block: BlockId) -> Places {
        let (registers, flags) = (self.arch.registers(), self.arch.flags());
        let outside = match self.convention {
            Convention::Regular => registers,
            Convention::PassesFlags => registers | flags,
        };
        let of = |target: Target| match target {
            Target::Block(id) => self.at_start(id),
            _ => outside,
        };
        let mut inside = Places::NONE;
        function.for_each_successor(block, |id| inside |= self.at_start(id));
        match function.blocks[block].terminator {
            Terminator::FallThrough(_) => inside,
            Terminator::Jump(target) => of(target),
            Terminator::Branch { taken, next, .. } => flags | of(taken) | self.at_start(next),
            Terminator::ShortBranch { taken, next, .. } => {
                self.arch.short_branch_reads() | of(taken) | self.at_start(next)
            }
            Terminator::Indirect { table } => {
                // The table is a good guess; nothing is staked on it but the layout.
                self.named(function)
                    | self.at_start(BlockId(0))
                    | if table.is_some() { registers } else { outside }
            }
            Terminator::Stop(_) | Terminator::LastCall(_) => outside,
        }
    }
}

#[cfg(test)]
mod tests;
