//! Whether an indirect call leads to a known function, asked in front of it.

use crate::judgement::{Judgement, Reader};
use crate::{Arch, x86_64};

/// A question whether an indirect call leads to a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Where that one is called.
    pub function: u64,
    /// Bytes.
    pub size: usize,
}

impl Judgement {
    /// The question that `code`, which stands at `address`, starts with: whether `call`, an indirect call, leads to a function.
    pub fn asks(self, code: &[u8], address: u64, call: &[u8]) -> Option<Asked> {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::parse_question(code, address, call),
            Arch::Aarch64 => None,
        }
    }

    /// Whether what a branch tests, by its number, holds behind a question exactly if the call leads to the function that was asked for.
    pub fn is_yes(self, condition: u16) -> bool {
        self.arch == Arch::X86_64 && condition == 4
    }

    /// Whether the instruction that `code` starts with reads flags, and whether it changes any.
    pub fn flags(self, code: &[u8]) -> Option<(bool, bool)> {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::flags(code),
            Arch::Aarch64 => None,
        }
    }
}

impl Reader {
    /// Whether an instruction names the register that a [question](Judgement::asks) uses to read it, and to write it.
    pub fn touches_scratch(&mut self, bytes: &[u8]) -> Option<(bool, bool)> {
        match self.arch {
            Arch::X86_64 => self.x86_64.touches_scratch(bytes),
            Arch::Aarch64 => None,
        }
    }
}
