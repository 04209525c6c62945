//! Code in front of an indirect call or jump that counts where it leads, and the routine that it calls.

use crate::{Arch, x86_64};

/// The routine, and where what it counts in is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routine {
    pub start: u64,
    pub end: u64,
    /// What places of sites are counted from.
    pub base: u64,
}

/// The code of one call, by the sizes of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handed {
    /// Whether it stands in front of a jump, and steps over what may be in use below the stack pointer.
    pub is_jump: bool,
    /// Bytes that read the word that holds the target and change nothing but flags.
    pub touch: u8,
    /// Bytes that load the target.
    pub load: u8,
}

/// What holds in the routine from a place on, which is so many bytes behind its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    pub at: u64,
    /// Registers that it has pushed so far, by the numbers of unwind tables.
    pub registers: &'static [u16],
}

impl Routine {
    /// The routine that `code` at `start` is.
    pub fn read(arch: Arch, code: &[u8], start: u64) -> Option<Self> {
        match arch {
            Arch::X86_64 => x86_64::judgement::targets::read_routine(code, start),
            Arch::Aarch64 => None,
        }
    }

    /// What holds where in the routine, from its start on.
    pub fn saved(arch: Arch) -> Vec<Saved> {
        match arch {
            Arch::X86_64 => x86_64::judgement::targets::saved(),
            Arch::Aarch64 => Vec::new(),
        }
    }
}
