//! What passes may do with calls, in neutral words.

use crate::{Arch, x86_64};
use std::ops::Range;

/// A direct call as compilers write it, which may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainCall {
    /// Bytes.
    pub size: u32,
    /// Where the field that names the callee stands in it.
    pub field: u32,
}

/// A call of what a word of memory names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallThroughMemory {
    pub code: Vec<u8>,
    /// Where the field that names the word stands in it, as an [`Encoding::Relative32`](crate::Encoding::Relative32) that counts
    /// from the call's end.
    pub field: u8,
}

impl Arch {
    /// The form of direct calls; `None` if passes do not know those of the instruction set yet.
    pub fn plain_call(self) -> Option<PlainCall> {
        match self {
            Self::X86_64 => Some(PlainCall { size: x86_64::CALL as u32, field: 1 }),
            Self::Aarch64 => None,
        }
    }

    /// Where in `bytes`, which start an instruction, plain calls start, ascending.
    pub fn plain_calls(self, bytes: &[u8]) -> Vec<u32> {
        match self {
            Self::X86_64 => {
                let starts = x86_64::instruction_starts(bytes).into_iter();
                starts.filter(|&at| x86_64::is_plain_call(&bytes[at as usize..])).collect()
            }
            Self::Aarch64 => Vec::new(),
        }
    }

    /// A call that does what a call of a stub does that only jumps through a word.
    pub fn call_through_memory(self) -> Option<CallThroughMemory> {
        match self {
            Self::X86_64 => {
                let (code, field) = (x86_64::CALL_THROUGH_MEMORY, 2);
                Some(CallThroughMemory { code: code.to_vec(), field })
            }
            Self::Aarch64 => None,
        }
    }

    /// The word that such a stub, which stands at `address`, jumps through.
    pub fn slot_of_stub(self, bytes: &[u8], address: u64) -> Option<u64> {
        match self {
            Self::X86_64 => x86_64::slot_of_stub(bytes, address),
            Self::Aarch64 => None,
        }
    }

    /// The part of a function's `bytes` that can stand where the function is called; `None` if that would be another thing.
    pub fn leaf_body(self, bytes: &[u8]) -> Option<Range<usize>> {
        match self {
            Self::X86_64 => x86_64::leaf_body(bytes),
            Self::Aarch64 => None,
        }
    }
}
