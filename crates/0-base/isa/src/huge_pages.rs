//! Code that runs where a program starts and asks the kernel to keep its hot code on huge pages, then goes on to the program's own entry.
//!
//! It asks twice, because kernels differ in what they can do, and takes no notice of the answers: once that pages which are read from now on be
//! huge (`MADV_HUGEPAGE`: file systems with large folios), once that what is in memory already be put together now (`MADV_COLLAPSE`, Linux 6.1:
//! files with `CONFIG_READ_ONLY_THP_FOR_FS`, and tmpfs). Neither changes what stands there. Every register and the stack are as they were when it
//! ends, and flags are not touched.

use crate::{Arch, x86_64};

/// What the code needs to know. Addresses are those of the output.
#[derive(Clone, Copy, Debug)]
pub struct HugePages {
    /// Where the code itself will stand.
    pub code: u64,
    /// Where the program's own code starts, or that of the shared object (`DT_INIT`).
    pub entry: u64,
    /// Where the pages start, and their bytes.
    pub start: u64,
    pub size: u64,
}

impl HugePages {
    /// The code; `None` if there is none yet for that instruction set.
    ///
    /// # Panics
    /// If a place is out of reach of the code.
    pub fn assemble(&self, arch: Arch) -> Option<Vec<u8>> {
        match arch {
            Arch::X86_64 => Some(x86_64::assemble_huge_pages(self)),
            Arch::Aarch64 => None,
        }
    }
}
