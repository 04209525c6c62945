//! What an instruction does with which operands: neutral words for any instruction set, for whoever follows values through
//! registers and memory while a program is recovered. The checker has words of its own ([`crate::judgement`]).

use crate::{Arch, x86_64};

/// A register as a whole, whatever part of it an instruction names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(u8);

impl Register {
    /// A general register, by the instruction set's number, below 32.
    pub const fn general(number: u8) -> Self {
        assert!(number < 32);
        Self(number)
    }

    /// A vector register, by number, below 32.
    pub const fn vector(number: u8) -> Self {
        assert!(number < 32);
        Self(32 + number)
    }

    /// Any other, by a number below 64 that the instruction set's module gives it.
    pub const fn other(number: u8) -> Self {
        assert!(number < 64);
        Self(64 + number)
    }
}

/// A set of registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers(u128);

impl Registers {
    pub const EMPTY: Self = Self(0);

    pub const fn with(self, register: Register) -> Self {
        Self(self.0 | 1 << register.0)
    }

    pub const fn contains(self, register: Register) -> bool {
        self.0 >> register.0 & 1 == 1
    }
}

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Nothing,
    /// Must be where control arrives.
    LandingMark,
    /// Copies the second operand to the first.
    Move,
    /// As `Move`, with four bytes that are extended by their sign.
    MoveSigned,
    /// Extends the low half of the first operand, which is not written out, by its sign.
    ExtendSign,
    /// As `Move`, of one word from or to a vector register.
    MoveWord,
    /// Moves words to, from and between vector registers.
    MoveVector,
    /// As `Move`, or leaves the first operand as it was.
    Select,
    /// The first operand becomes the address that the memory operand names.
    Address,
    Add,
    Subtract,
    /// With what a comparison before has left over.
    SubtractBorrow,
    /// Takes its operand's complement.
    Negate,
    Compare,
    /// As `Compare`, bit by bit.
    Test,
    Exchange,
    Push,
    Pop,
    /// Gives up a stack frame.
    Leave,
    Call,
    SystemCall,
    Jump,
    Return,
    Other,
}

/// Where control may go behind an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// On.
    Next,
    /// On, or elsewhere.
    Branch,
    /// On, when the call comes back.
    Call,
    /// Anywhere else.
    Away,
}

/// What a condition asks of a comparison: which of two is the lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Unsigned,
    Signed,
    /// Whether the difference is below zero.
    OfDifference,
}

/// One of the first two operands as they are written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// That many bytes of a register.
    Register {
        register: Register,
        size: u8,
    },
    /// The instruction's memory operand.
    Memory,
    /// As a word, extended as the instruction does.
    Number(u64),
    None,
}

impl Operand {
    pub fn register(self) -> Option<Register> {
        if let Self::Register { register, .. } = self { Some(register) } else { None }
    }

    /// The register, if all of a word of it is meant.
    pub fn word(self) -> Option<Register> {
        if let Self::Register { register, size: 8 } = self { Some(register) } else { None }
    }

    pub fn number(self) -> Option<u64> {
        if let Self::Number(number) = self { Some(number) } else { None }
    }
}

/// A place in memory that an instruction names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub base: Option<Register>,
    pub index: Option<Register>,
    /// What the index is multiplied by.
    pub scale: u8,
    /// Added to both; of [`Self::is_relative`], the address itself.
    pub displacement: u64,
    /// The address counts from the instruction, and is known.
    pub is_relative: bool,
    /// Only the low halves of the registers are meant.
    pub is_narrow: bool,
    /// Bytes that are accessed, 0 if unknown.
    pub size: u8,
    /// The instruction may change it.
    pub is_written: bool,
}

impl Memory {
    /// The address, if it counts from the instruction.
    pub fn address(&self) -> Option<u64> {
        self.is_relative.then_some(self.displacement)
    }

    /// The base, if there is nothing else but a displacement.
    pub fn only_base(&self) -> Option<Register> {
        self.base.filter(|_| self.index.is_none() && !self.is_narrow)
    }
}

/// An instruction as whoever follows values sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Semantics {
    /// Where it stands.
    pub address: u64,
    /// Bytes.
    pub len: u8,
    pub operation: Operation,
    pub control: Control,
    /// What its condition asks for.
    pub asks: Option<Order>,
    pub operands: [Operand; 2],
    /// How many operands are written out; more than two are told by `reads` and `writes` only.
    pub operand_count: u8,
    pub memory: Option<Memory>,
    /// Those that it reads.
    pub reads: Registers,
    /// Those that it changes, be it by a condition.
    pub writes: Registers,
    /// Those that it changes or not, by what they hold.
    pub may_write: Registers,
    pub changes_flags: bool,
}

impl Semantics {
    /// Whether operand `i` is in memory.
    pub fn is_memory(&self, i: usize) -> bool {
        self.operands[i] == Operand::Memory
    }
}

/// What calls do to registers, by the platform's convention.
#[derive(Clone, Copy, Debug)]
pub struct Convention {
    pub stack_pointer: Register,
    pub frame_pointer: Register,
    /// Those that a called function leaves as they were.
    pub kept: Registers,
    /// Those in which it may be given something.
    pub arguments: Registers,
    /// Those in which it may give something back.
    pub results: Registers,
    /// The one in which it gives back a word.
    pub result: Register,
}

/// Reads semantics, one instruction after the other.
pub enum SemanticsReader {
    X86_64(Box<x86_64::SemanticsReader>),
    /// Of an instruction set that nobody follows values in yet.
    Unknown,
}

impl SemanticsReader {
    pub fn new(arch: Arch) -> Self {
        match arch {
            Arch::X86_64 => Self::X86_64(Box::default()),
            Arch::Aarch64 => Self::Unknown,
        }
    }

    /// The instruction at the start of `bytes`, as if it stood at `address`; `None` if it is none.
    pub fn read(&mut self, bytes: &[u8], address: u64) -> Option<Semantics> {
        match self {
            Self::X86_64(reader) => reader.read(bytes, address),
            Self::Unknown => None,
        }
    }

    /// All instructions of `bytes`, up to what is none.
    pub fn read_all(&mut self, bytes: &[u8], address: u64) -> Vec<Semantics> {
        let mut all = Vec::new();
        let mut at = 0;
        while let Some(inst) = self.read(&bytes[at..], address + at as u64) {
            at += usize::from(inst.len);
            all.push(inst);
        }
        all
    }
}

impl Arch {
    /// What calls do to registers.
    pub fn convention(self) -> &'static Convention {
        match self {
            Self::X86_64 => &x86_64::CONVENTION,
            Self::Aarch64 => &AARCH64,
        }
    }

    /// Whether `bytes` are a jump that is filled up with traps: no compiler counts padding to a function, but a row of a table of
    /// jumps that a check of indirect calls goes through is one.
    pub fn is_padded_jump(self, bytes: &[u8]) -> bool {
        match self {
            Self::X86_64 => x86_64::is_padded_jump(bytes),
            Self::Aarch64 => false,
        }
    }

    /// What stands in front of every place at which the kernel goes on when it has aborted a restartable sequence.
    pub fn restart_signature(self) -> Option<[u8; 4]> {
        match self {
            Self::X86_64 => Some(x86_64::RESTART_SIGNATURE),
            Self::Aarch64 => None,
        }
    }

    /// Bytes of an instruction at the start of `bytes` that only fills a gap, or marks a place where control must not come.
    pub fn filler(self, bytes: &[u8]) -> Option<u8> {
        match self {
            Self::X86_64 => x86_64::filler(bytes),
            Self::Aarch64 => self.padding(bytes),
        }
    }
}

/// Procedure Call Standard for the Arm 64-bit Architecture, 6.1.1.
const AARCH64: Convention = Convention {
    stack_pointer: Register::general(31),
    frame_pointer: Register::general(29),
    kept: range(19, 29),
    arguments: range(0, 8),
    results: range(0, 1),
    result: Register::general(0),
};

/// The general registers from one number to another.
const fn range(first: u8, last: u8) -> Registers {
    Registers(((1 << (last + 1)) - 1) & !((1 << first) - 1))
}
