//! The way that a thread is about to take, worked out from its registers and its memory without letting it run: what processors record
//! as a branch stack, for processors that record none.
//!
//! A thread that is held is read, never changed: what its instructions would write is kept beside its memory. What cannot be worked out
//! (an instruction that is not understood, memory that cannot be read) is unknown, and so is what follows from it; the way ends
//! where it depends on something unknown, where the kernel is called, or where it is long enough.

use crate::{Arch, x86_64};

/// The memory of a thread that is held.
pub trait Memory {
    /// Reads as many bytes as `into` has from `address` on; gives whether all of them are there.
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool;
}

/// A branch that will be taken: a jump, a call or a return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    pub from: u64,
    pub to: u64,
}

/// Why a way ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is as long as it may become.
    Length,
    /// The kernel is called, or a fault or trap comes.
    Kernel,
    /// It goes on by something that is not known.
    Unknown,
    /// There is no code that can be read.
    NoCode,
}

/// The way that a thread is about to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Taken branches, in their order.
    pub jumps: Vec<Jump>,
    pub instructions: u32,
    /// The instruction at which it ends, which is not executed.
    pub at: u64,
    pub end: End,
}

impl Arch {
    /// That of the machine that this runs on.
    pub fn of_this_machine() -> Option<Self> {
        Self::ALL.into_iter().find(|arch| arch.machine_name() == std::env::consts::ARCH)
    }

    fn machine_name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// Whether [`Arch::way_ahead`] knows its instructions.
    pub fn is_followed(self) -> bool {
        self == Self::X86_64
    }

    /// Which sets of registers hold those of floating point and vectors, by their numbers in core files: the first that the kernel has is the
    /// fullest.
    pub fn float_register_sets(self) -> &'static [u32] {
        match self {
            Self::X86_64 => &x86_64::FLOAT_REGISTER_SETS,
            Self::Aarch64 => &[],
        }
    }

    /// What a thread will do in its next instructions, `most` at the most. Its registers are as the kernel gives them to a debugger:
    /// `NT_PRSTATUS`, and `NT_X86_XSTATE` of this machine's processor or `NT_PRFPREG`, which is the start of it. `None` if they are none of this instruction set, in its usual mode.
    pub fn way_ahead(
        self,
        registers: &[u8],
        float_registers: &[u8],
        memory: &mut dyn Memory,
        most: u32,
    ) -> Option<Way> {
        match self {
            Self::X86_64 => x86_64::way_ahead(registers, float_registers, memory, most),
            Self::Aarch64 => None,
        }
    }

    /// Of a thread that was stopped inside of a system call, which the kernel has given up for that (`EINTR`): the registers with
    /// which it calls again. `None` of any other.
    pub fn calling_again(self, registers: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::X86_64 => x86_64::calling_again(registers),
            Self::Aarch64 => None,
        }
    }

    /// Whether a thread with these registers is inside of a system call.
    pub fn is_in_system_call(self, registers: &[u8]) -> bool {
        match self {
            Self::X86_64 => x86_64::is_in_system_call(registers),
            Self::Aarch64 => true,
        }
    }
}
