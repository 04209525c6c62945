//! Memory between two steps of a job.

use afterlink_core::Viewed;

/// Gives back what the step before has used: freed memory, and the pages of `input`, of which the next one asks little.
pub(crate) fn give_back(input: Viewed) {
    input.give_back();
    return_freed();
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
