//! The code that asks for huge pages when a program starts.

use crate::{Arch, x86_64};

/// What differs between two programs.
#[derive(Clone, Copy)]
pub struct Asking {
    /// Where the code stands.
    pub code: u64,
    /// Where the program itself starts, or the function of a shared object that is called when it is loaded.
    pub entry: u64,
    /// Address and bytes of the pages.
    pub pages: (u64, u64),
}

/// What the code must be. `None` for an instruction set of which none is known, or where it could not reach that far.
pub fn expected(arch: Arch, asking: Asking) -> Option<Vec<u8>> {
    match arch {
        Arch::X86_64 => x86_64::judgement::huge_pages::code(asking),
        Arch::Aarch64 => None,
    }
}
