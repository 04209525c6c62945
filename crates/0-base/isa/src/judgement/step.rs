//! Instructions reduced to what they do with values of 64 bits, and to what they read and overwrite. Registers have the machine's
//! numbers; vector registers follow the general ones.

/// Registers whose values are followed: general ones, then vectors.
pub const REGISTERS: usize = 48;
/// The general ones among them.
pub const GENERAL: usize = 16;

/// What functions and their callers may rely on: registers by their numbers, and sets of them.
#[derive(Clone, Copy, Debug)]
pub struct Convention {
    pub stack_pointer: u8,
    pub frame_pointer: u8,
    /// Where functions give their results.
    pub results: [u8; 2],
    /// In which a call may be given something.
    pub arguments: u64,
    /// Which a called function leaves alone.
    pub kept: u64,
    /// All general registers, as in [`Use`].
    pub general: u32,
    /// Changed by calls and not a result, as in [`Use`].
    pub scratch: u32,
    /// The flags that counter code changes where it says that it changes flags, as in [`Use`].
    pub counter_flags: u32,
    /// All that an addition or comparison changes, as in [`Use`].
    pub status_flags: u32,
}

/// What an instruction reads and surely overwrites: a bit for each general register, by its number, and for each flag, behind
/// these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    pub read: u32,
    pub written: u32,
    /// It may raise a signal instead, because of an address that it computes.
    pub may_fault: bool,
}

impl Use {
    /// Of an instruction of which nothing is known.
    pub const UNKNOWN: Self = Self { read: !0, written: 0, may_fault: true };
}

/// An operand in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The displacement, or all of the address if there is no register.
    pub address: i64,
    pub base: Option<u8>,
    pub index: Option<u8>,
    /// The index is not scaled.
    pub plain: bool,
}

/// Where a value comes from; `N` is what a number in the instruction stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source<N> {
    Register(u8),
    Memory(Memory),
    Number(N),
}

impl<N> Source<N> {
    fn map<M>(self, mean: impl Fn(N) -> M) -> Source<M> {
        match self {
            Self::Register(register) => Source::Register(register),
            Self::Memory(memory) => Source::Memory(memory),
            Self::Number(number) => Source::Number(mean(number)),
        }
    }
}

/// What an instruction does; `N` is what a number in it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<N> {
    Nothing,
    /// Eight bytes.
    Copy {
        to: u8,
        from: Source<N>,
    },
    /// Four bytes, filled up with zeroes or by their sign.
    Narrow {
        to: u8,
        from: Source<N>,
        signed: bool,
    },
    /// The address of an operand, not what stands there.
    Address {
        to: u8,
        memory: Memory,
    },
    Add {
        to: u8,
        from: Source<N>,
    },
    Offset {
        to: u8,
        by: i64,
    },
    /// The stack pointer made a multiple of something.
    Align,
    /// `to`, or what stands at `from`.
    Select {
        to: u8,
        from: Source<N>,
    },
    Exchange(u8, u8),
    /// Eight bytes.
    Store {
        memory: Memory,
        from: Source<N>,
    },
    Push(Source<N>),
    Pop(u8),
    /// The frame pointer becomes the stack pointer, and what stands there the frame pointer.
    Leave,
    /// Moves parts of registers, by the set of those read, to a register or to `size` bytes of memory.
    Gather {
        read: u64,
        to: Result<u8, Memory>,
        size: u8,
    },
    /// Reads without a result.
    Compare {
        read: u64,
    },
    /// A call, maybe through a register.
    Call {
        through: Option<u8>,
    },
    /// An indirect jump; a direct one has no operand.
    Jump(Option<Source<N>>),
    /// Anything else: registers read and changed.
    Mix {
        read: u64,
        written: u64,
        memory: Option<Memory>,
    },
}

impl<N> Step<N> {
    /// The same step with `mean` of the numbers in it.
    pub fn map<M>(self, mean: impl Fn(N) -> M) -> Step<M> {
        match self {
            Self::Nothing => Step::Nothing,
            Self::Copy { to, from } => Step::Copy { to, from: from.map(mean) },
            Self::Narrow { to, from, signed } => Step::Narrow { to, from: from.map(mean), signed },
            Self::Address { to, memory } => Step::Address { to, memory },
            Self::Add { to, from } => Step::Add { to, from: from.map(mean) },
            Self::Offset { to, by } => Step::Offset { to, by },
            Self::Align => Step::Align,
            Self::Select { to, from } => Step::Select { to, from: from.map(mean) },
            Self::Exchange(a, b) => Step::Exchange(a, b),
            Self::Store { memory, from } => Step::Store { memory, from: from.map(mean) },
            Self::Push(from) => Step::Push(from.map(mean)),
            Self::Pop(to) => Step::Pop(to),
            Self::Leave => Step::Leave,
            Self::Gather { read, to, size } => Step::Gather { read, to, size },
            Self::Compare { read } => Step::Compare { read },
            Self::Call { through } => Step::Call { through },
            Self::Jump(from) => Step::Jump(from.map(|from| from.map(mean))),
            Self::Mix { read, written, memory } => Step::Mix { read, written, memory },
        }
    }

    /// Whether it reads a word of memory that may be the frame's.
    pub fn loads(&self) -> bool {
        match self {
            Self::Copy { from, .. }
            | Self::Add { from, .. }
            | Self::Select { from, .. }
            | Self::Push(from)
            | Self::Store { from, .. } => matches!(from, Source::Memory(_)),
            Self::Jump(from) => matches!(from, Some(Source::Memory(_))),
            Self::Pop(_) | Self::Leave => true,
            _ => false,
        }
    }
}
