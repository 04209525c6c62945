//! What a processor has to do for an instruction, as far as it tells how long the next one waits.

use crate::{Arch, Flow, x86_64};

/// Kinds of work; where two fit, the slower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Work {
    /// Arithmetic in registers.
    Plain,
    /// A register or a constant to a register.
    Move,
    /// Computes an address and does not go there.
    Address,
    /// Reads memory, and nothing else.
    Load,
    /// Compares with memory.
    Compare,
    /// Computes with memory.
    Operate,
    Store,
    /// Reads memory and writes it.
    Update,
    Push,
    Pop,
    Vector,
    Multiply,
    Divide,
    /// Repeats itself, waits for other processors, or asks the kernel.
    Slow,
    Branch,
    Jump,
    Call,
    Return,
}

impl Work {
    /// How many kinds there are.
    pub const KINDS: usize = Self::Return as usize + 1;
}

impl Arch {
    /// Length and work of the instruction at the start of `bytes`; `None` if it is none.
    pub fn work(self, bytes: &[u8]) -> Option<(u8, Work)> {
        match self {
            Self::X86_64 => x86_64::work(bytes),
            Self::Aarch64 => self.decode(bytes).map(|inst| {
                let work = match inst.flow {
                    Flow::Jump(_) | Flow::IndirectJump => Work::Jump,
                    Flow::Branch(..) | Flow::ShortBranch(_) => Work::Branch,
                    Flow::Call(_) | Flow::IndirectCall => Work::Call,
                    Flow::Return => Work::Return,
                    _ => Work::Plain,
                };
                (inst.len, work)
            }),
        }
    }

    /// The logarithm of the odds that the branch at the end of `code` is taken, from what it asks alone.
    pub fn leaning(self, code: &[u8]) -> f64 {
        match self {
            Self::X86_64 => x86_64::leaning(code),
            Self::Aarch64 => 0.0,
        }
    }
}
