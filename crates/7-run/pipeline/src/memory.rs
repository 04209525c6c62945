//! Memory between two steps of a job.

use afterlink_core::Viewed;
use afterlink_program::Program;
use rayon::prelude::*;

/// Gives back what the step before has used: freed memory, and the pages of `input`, of which the next one asks little.
pub(crate) fn give_back(input: Viewed) {
    input.give_back();
    return_freed();
}

/// Drops a program, which takes a while where it is large, on all processors.
pub(crate) fn give_up(program: Program) {
    Vec::from(program.functions).into_par_iter().for_each(drop);
}

/// Gives memory that was freed back to the system. glibc keeps it for later, in pieces that fit what comes next badly, so
/// that a step which could use what the one before it left takes new memory instead.
#[cfg(target_env = "gnu")]
pub(crate) fn return_freed() {
    // SAFETY: `malloc_trim` may be called at any time; it touches nothing but free memory.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn return_freed() {}
