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

/// An instruction that brings a line of code into the cache ahead of its run, and does nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePrefetch {
    pub code: &'static [u8],
    /// Where the field that names the line stands in it, as an [`Encoding::Relative32`](crate::Encoding::Relative32) that counts from the
    /// instruction's end.
    pub field: u32,
}

/// Where a function's return address stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameState {
    /// Bytes from the stack's top up to it.
    pub depth: u32,
    /// Bytes from where the frame pointer leads up to it, while that leads into the function's own frame.
    pub pointer: Option<u32>,
}

/// What an instruction does with the stack of its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameStep {
    /// Bytes of the instruction.
    pub len: u8,
    /// Behind the instruction.
    pub state: FrameState,
    /// It needs the stack's top to be where a call would have put it: it calls, or reaches for what is above the return address, or keeps
    /// the address of a place on the stack, or may count on its alignment.
    pub needs_place: bool,
}

/// What stands in place of a call's and a return's own steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InPlaceForms {
    /// Makes room for a return address.
    pub make_room: &'static [u8],
    pub give_room_back: &'static [u8],
    /// What stands behind the code where no room is made: unwinders look one byte in front of where a call comes back, and find what holds
    /// there.
    pub no_room: &'static [u8],
    /// A call, its field left zero.
    pub call: &'static [u8],
    /// Where the field that names the callee stands in it.
    pub call_field: u32,
}

impl Arch {
    /// How code is prefetched; `None` if passes do not know of it in the instruction set yet.
    pub fn code_prefetch(self) -> Option<CodePrefetch> {
        match self {
            Self::X86_64 => Some(x86_64::CODE_PREFETCH),
            Self::Aarch64 => None,
        }
    }

    /// Whether `bytes` start with an instruction that prefetches code, whoever wrote it.
    pub fn prefetches_code(self, bytes: &[u8]) -> bool {
        match self {
            Self::X86_64 => x86_64::prefetches_code(bytes),
            Self::Aarch64 => false,
        }
    }

    /// The instructions by which code runs in place of a call; `None` if passes do not know those of the instruction set yet.
    pub fn in_place_forms(self) -> Option<InPlaceForms> {
        match self {
            Self::X86_64 => Some(InPlaceForms {
                make_room: &x86_64::MAKE_ROOM,
                give_room_back: &x86_64::GIVE_ROOM_BACK,
                no_room: &[x86_64::NOP],
                call: &[0xe8, 0, 0, 0, 0],
                call_field: 1,
            }),
            Self::Aarch64 => None,
        }
    }

    /// The instruction that takes a return address from the stack's top and puts it to where it stands `depth` bytes above what is then the top.
    pub fn put_return_address(self, depth: u32) -> Vec<u8> {
        match self {
            Self::X86_64 => x86_64::put_return_address(depth),
            Self::Aarch64 => Vec::new(),
        }
    }

    /// The instructions that put the address of a place to where a return address stands `depth` bytes above the stack's top, through the frame pointer, which
    /// is to be set behind them; and where in them the field stands that names the place, counted from the field's end.
    pub fn name_return_address(self, depth: u32) -> Option<(Vec<u8>, u32)> {
        match self {
            Self::X86_64 => Some(x86_64::name_return_address(depth)),
            Self::Aarch64 => None,
        }
    }

    /// What the instruction that `bytes` start with does with the stack; `None` if it may not run in place of a call.
    pub fn frame_step(self, bytes: &[u8], state: FrameState) -> Option<FrameStep> {
        match self {
            Self::X86_64 => x86_64::frame_step(bytes, state),
            Self::Aarch64 => None,
        }
    }

    /// Whether the last instruction of some code is a call, as far as is known: so it is of none, and of code that cannot be read.
    pub fn may_end_with_call(self, mut code: &[u8]) -> bool {
        let mut is_call = true;
        while let Some(inst) = self.decode(code) {
            is_call = inst.flow.is_call();
            code = &code[usize::from(inst.len)..];
        }
        is_call || !code.is_empty()
    }

    /// Bytes of the plain return that `bytes` are, and of the mark for indirect branches that they start with.
    pub fn is_plain_return(self, bytes: &[u8]) -> bool {
        match self {
            Self::X86_64 => matches!(bytes, [0xc3] | [0xf3, 0xc3]),
            Self::Aarch64 => false,
        }
    }

    /// Whether the return that `bytes` start with leaves the stack elsewhere than right behind the return address, as one that takes the
    /// function's arguments off it does (`ret $8`).
    pub fn return_moves_stack(self, bytes: &[u8]) -> bool {
        match self {
            Self::X86_64 => x86_64::return_moves_stack(bytes),
            Self::Aarch64 => false,
        }
    }

    /// Bytes of the mark for indirect branches that code starts with.
    pub fn mark_size(self, bytes: &[u8]) -> u32 {
        match self {
            Self::X86_64 if bytes.starts_with(&x86_64::ENDBR64) => x86_64::ENDBR64.len() as u32,
            _ => 0,
        }
    }

    /// The nop in place of a call that compilers write at entries, for tracers.
    pub fn room_for_call(self) -> Option<&'static [u8]> {
        match self {
            Self::X86_64 => Some(&x86_64::ROOM_FOR_CALL),
            Self::Aarch64 => None,
        }
    }

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
