//! Whether an indirect call leads to a known function, asked in front of it.

use crate::{Arch, Condition, x86_64};

/// What asks whether an indirect call leads to a function. It changes flags and a register in which hardly anybody passes anything
/// ([`ScratchUse`]), and reads what the call reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallQuestion {
    /// Bytes of the call.
    pub size: u32,
    pub code: Vec<u8>,
    /// Where the field that names the function stands in it, as an [`Encoding::Relative32`](crate::Encoding::Relative32) that counts
    /// from its own end.
    pub field: u32,
    /// What holds behind it if the call leads elsewhere.
    pub other: Condition,
}

/// What a run of instructions does with the register that [`CallQuestion`] uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScratchUse {
    pub is_named: bool,
    /// It is read before it is written, and in front of all calls: what stood in it was passed to the code.
    pub takes: bool,
    /// It is written, or something is called: what stood in it is gone behind the run.
    pub ends: bool,
    /// Where calls start in front of which it was written, and not read since: it may be passed to them.
    pub hands_on: Vec<u32>,
    /// So it is behind the run.
    pub is_unread: bool,
}

impl Arch {
    /// The question whether the indirect call that `bytes` start with leads to a function; `None` if it cannot be asked, or they start with
    /// anything else.
    pub fn call_question(self, bytes: &[u8]) -> Option<CallQuestion> {
        match self {
            Self::X86_64 => x86_64::call_question(bytes),
            Self::Aarch64 => None,
        }
    }

    /// Where in `bytes`, which start an instruction, indirect calls start that can be asked, ascending, with the questions.
    pub fn call_questions(self, bytes: &[u8]) -> Vec<(u32, CallQuestion)> {
        let starts = match self {
            Self::X86_64 => x86_64::instruction_starts(bytes),
            Self::Aarch64 => Vec::new(),
        };
        let asked = |at: u32| Some((at, self.call_question(&bytes[at as usize..])?));
        starts.into_iter().filter_map(asked).collect()
    }

    /// What a run of instructions does with the register that [`CallQuestion`] uses, which was written and not read in front of it, or not.
    pub fn scratch_use(self, bytes: &[u8], is_unread: bool) -> ScratchUse {
        match self {
            Self::X86_64 => x86_64::scratch_use(bytes, is_unread),
            // There are no questions.
            Self::Aarch64 => ScratchUse { is_named: true, takes: true, ..ScratchUse::default() },
        }
    }

    /// Whether the first of these instructions that has to do with flags, or calls, reads some; `None` if there is none.
    pub fn reads_flags_first(self, bytes: &[u8]) -> Option<bool> {
        match self {
            Self::X86_64 => x86_64::reads_flags_first(bytes),
            Self::Aarch64 => Some(true),
        }
    }
}
