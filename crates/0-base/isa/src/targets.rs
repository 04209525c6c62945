//! How the target of an indirect call or jump is counted without being noticed: code in front of it hands the target and the number of
//! the site to a routine, of which each program has one, and which leaves everything but flags as it was.

use crate::{Arch, x86_64};

/// Targets that are counted apart at each site.
pub const TARGETS: usize = 8;

/// The code in front of an indirect call or jump, by the sizes of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetCode {
    /// Whether it is for a jump. What stands below the stack pointer is needed across no call (System V ABI, 3.2.2), but it may be where
    /// a jump leads.
    pub is_jump: bool,
    /// Bytes of an instruction that reads the word that holds the target and changes nothing but flags: so that, if it cannot be read,
    /// everything is still as the call or jump would have found it. 0 if the target is in a register, or in a word that is there.
    pub touch: u8,
    /// Bytes of the instruction that loads the target.
    pub load: u8,
}

/// Where the code for a call, and what it names, stand.
#[derive(Clone, Copy, Debug)]
pub struct TargetSite<'b> {
    /// The call or jump.
    pub call: &'b [u8],
    /// Where its counts stand, in bytes from what targets are counted from.
    pub place: u32,
}

/// Everything that the routine needs to know. Addresses are those of the output.
#[derive(Clone, Copy, Debug)]
pub struct TargetRoutine {
    /// Where the routine will stand.
    pub code: u64,
    /// What targets are counted from, and how far from there they may be.
    pub base: u64,
    pub span: u32,
    /// Whether no count may be lost.
    pub is_exact: bool,
}

impl Arch {
    /// The code in front of the indirect call or jump that `bytes` start with; `None` if its target cannot be counted.
    pub fn target_code(self, bytes: &[u8]) -> Option<TargetCode> {
        match self {
            Self::X86_64 => x86_64::target_code(bytes),
            Self::Aarch64 => None,
        }
    }

    /// Bytes from the start of an indirect call or jump to the field that holds an address, if it has one.
    pub fn target_field(self, bytes: &[u8]) -> Option<u32> {
        match self {
            Self::X86_64 => x86_64::target_field(bytes),
            Self::Aarch64 => None,
        }
    }

    /// Appends that code; `displacement(end)` is the routine's distance from `end` bytes behind the first one written. Gives where
    /// fields stand that hold the address that the call has in its own, as bytes from the first one written.
    pub fn write_target_code(
        self,
        out: &mut Vec<u8>,
        site: TargetSite,
        displacement: impl Fn(u32) -> i32,
    ) -> Vec<u32> {
        match self {
            Self::X86_64 => x86_64::write_target_code(out, site, displacement),
            Self::Aarch64 => unreachable!("programs for AArch64 are not written"),
        }
    }
}

impl TargetRoutine {
    /// The routine; `None` if there is none yet for that instruction set.
    ///
    /// # Panics
    /// If a place is out of reach of the code.
    pub fn assemble(&self, arch: Arch) -> Option<Vec<u8>> {
        match arch {
            Arch::X86_64 => Some(x86_64::assemble_target_routine(self)),
            Arch::Aarch64 => None,
        }
    }

    /// How many registers the routine has saved, from where on, as bytes from its start.
    pub fn saved(arch: Arch, code: &[u8]) -> Vec<(u32, usize)> {
        match arch {
            Arch::X86_64 => x86_64::saved_by_routine(code),
            Arch::Aarch64 => Vec::new(),
        }
    }
}
