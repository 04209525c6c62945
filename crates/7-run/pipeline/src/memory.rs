//! Memory between two steps of a job.

use afterlink_core::{Output, Result, Viewed};
use afterlink_program::Program;
use rayon::prelude::*;

/// Gives back what the step before has used: freed memory, and the pages of `input`, of which the next one asks little.
pub(crate) fn give_back(input: Viewed) {
    input.give_back();
    return_freed();
}

/// Bytes that are written before the pages that they came from are given back.
const WRITTEN_AT_ONCE: usize = 16 << 20;

/// An output that mostly takes bytes of a mapped input: these are in memory a few at a time.
pub(crate) struct Copied<'o, 'i> {
    pub out: &'o mut dyn Output,
    pub input: Viewed<'i>,
}

impl Output for Copied<'_, '_> {
    fn clear(&mut self) -> Result<()> {
        self.out.clear()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        for some in bytes.chunks(WRITTEN_AT_ONCE) {
            self.out.append(some)?;
            if some.len() == WRITTEN_AT_ONCE {
                self.input.give_back();
            }
        }
        Ok(())
    }

    fn replace(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.out.replace(at, bytes)
    }

    fn size(&self) -> u64 {
        self.out.size()
    }

    fn bytes(&mut self) -> Result<Viewed<'_>> {
        self.out.bytes()
    }
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
