//! What an instruction reads, what it overwrites, and what else it may do: neutral words for any instruction set.

use crate::{Arch, x86_64};
use std::ops::{BitOr, BitOrAssign};

/// A set of general registers, by the instruction set's numbers, and of status flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Places(u64);

impl Places {
    pub const NONE: Self = Self(0);

    /// A general register.
    pub const fn register(number: u8) -> Self {
        debug_assert!(number < 32);
        Self(1 << number)
    }

    /// A status flag, by the number that the instruction set's module gives it.
    pub const fn flag(number: u8) -> Self {
        debug_assert!(number < 32);
        Self(1 << (32 + number))
    }

    /// The first so many general registers.
    pub const fn first_registers(count: u8) -> Self {
        Self((1 << count) - 1)
    }

    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that `other` lacks.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Those that `other` has, too.
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether any is in `other`, too.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The lowest number of a register in it.
    pub fn first_register(self) -> Option<u8> {
        let lowest = self.0.trailing_zeros();
        (lowest < 32).then_some(lowest as u8)
    }
}

impl BitOr for Places {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl BitOrAssign for Places {
    fn bitor_assign(&mut self, other: Self) {
        *self = self.union(other);
    }
}

/// What kind of step an instruction is to whoever puts code before or behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    Plain,
    /// A direct call.
    Call,
    IndirectCall,
    /// A system call: the kernel may look at everything, and may not come back.
    System,
    /// The same of a handler of the signal that it raises, to go on behind it.
    Breakpoint,
    /// Only raises a signal. Where a handler goes on, it may count on what stands behind it.
    Fault,
    Return,
    /// Must be where control arrives.
    Landing,
    /// First half of a general-dynamic TLS access, which is known by its bytes and so kept whole.
    TlsAddress,
}

impl StepKind {
    /// Whether other code runs before the next instruction.
    pub fn is_call(self) -> bool {
        matches!(self, Self::Call | Self::IndirectCall | Self::System | Self::Breakpoint | Self::Fault)
    }
}

/// What an instruction does to registers and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effects {
    /// Bytes of the instruction.
    pub len: u8,
    /// What it reads, or may leave as it was.
    pub reads: Places,
    /// What it overwrites whatever was there.
    pub writes: Places,
    pub kind: StepKind,
    /// It accesses memory at an address that is computed. A handler of the signal that this may raise can leave it out, so that
    /// no register is surely overwritten, or go on where the program says that it does.
    pub may_fault: bool,
    /// It may raise a signal, for that reason or another. Who handles the signal may know the instruction by its address.
    pub may_raise: bool,
    /// Of a direct call: where it leads, from the end of the instruction.
    pub callee: Option<i64>,
    pub stack: StackUse,
}

/// What an instruction has to do with where the stack is, but for stepping up and down on it. Registers by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackUse {
    None,
    /// A register becomes the stack pointer, or an address at a distance from it.
    Saved(u8),
    /// A register, the stack pointer maybe, is stored in the frame.
    Stored(u8),
    /// A register becomes what stands in the frame.
    Loaded(u8),
    /// The stack pointer becomes what that register says, or an address at a distance from it.
    Restored(u8),
    /// The stack pointer becomes what stands in the frame.
    RestoredFromFrame,
    /// The stack pointer becomes anything else.
    Replaced,
}

/// Reads effects, one instruction after the other.
pub enum EffectsReader {
    X86_64(Box<x86_64::EffectsReader>),
    /// Of an instruction set whose effects are not known yet.
    Unknown,
}

impl EffectsReader {
    pub fn new(arch: Arch) -> Self {
        match arch {
            Arch::X86_64 => Self::X86_64(Box::default()),
            Arch::Aarch64 => Self::Unknown,
        }
    }

    /// The effects of the instruction at the start of `bytes`; `None` if it is none or not known.
    pub fn read(&mut self, bytes: &[u8]) -> Option<Effects> {
        match self {
            Self::X86_64(reader) => reader.read(bytes),
            Self::Unknown => None,
        }
    }
}

impl Arch {
    /// All general registers.
    pub fn registers(self) -> Places {
        match self {
            Self::X86_64 => x86_64::REGISTERS,
            Self::Aarch64 => Places::first_registers(31),
        }
    }

    /// The stack pointer.
    pub fn stack_pointer(self) -> Places {
        match self {
            Self::X86_64 => x86_64::STACK_POINTER,
            Self::Aarch64 => Places::NONE,
        }
    }

    /// The flags that are followed: those that a counter changes.
    pub fn flags(self) -> Places {
        match self {
            Self::X86_64 => x86_64::FLAGS,
            Self::Aarch64 => Places::NONE,
        }
    }

    /// What a branch reads that has only a short form.
    pub fn short_branch_reads(self) -> Places {
        match self {
            Self::X86_64 => x86_64::SHORT_BRANCH_READS,
            Self::Aarch64 => self.registers(),
        }
    }

    /// The registers that a counter may borrow.
    pub fn counter_registers(self) -> Places {
        match self {
            Self::X86_64 => x86_64::COUNTER_REGISTERS,
            Self::Aarch64 => Places::NONE,
        }
    }
}
