//! Machine code to instructions and back. One folder an instruction set; [`x86_64`] is the only one yet.
//!
//! An [`Inst`] knows no address: a branch and a RIP-relative operand are given by their displacement from
//! the end of the instruction, so the same type serves the input's and the output's address space.

pub mod x86_64;

/// What an instruction does to the flow of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Goes on with the next instruction.
    Next,
    /// Direct jump; the displacement counts from the end of the instruction.
    Jump(i64),
    /// Direct conditional jump.
    Branch(Condition, i64),
    /// A conditional jump that has only a one-byte displacement (`jrcxz`, `loop`).
    ShortBranch(i64),
    /// Direct call.
    Call(i64),
    /// Jump through a register or memory.
    IndirectJump,
    /// Call through a register or memory.
    IndirectCall,
    /// Return of any kind.
    Return,
    /// `int3`: raises a signal, and goes on with the next instruction if a handler returns. Also what linkers and
    /// compilers fill gaps with.
    Breakpoint,
    /// Only raises a signal (`ud2`, `hlt`): a handler says whether and where it goes on, mostly behind it.
    Fault,
    /// Goes on, or at the displacement if a hardware transaction aborts (`xbegin`).
    Transaction(i64),
}

impl Flow {
    /// Whether the instruction ends a basic block.
    pub fn ends_block(self) -> bool {
        !matches!(self, Self::Next | Self::Call(_) | Self::IndirectCall | Self::Breakpoint | Self::Fault)
    }

    /// Whether the next instruction can be reached from this one (calls are taken to return, handlers of signals to go on).
    pub fn falls_through(self) -> bool {
        !matches!(self, Self::Jump(_) | Self::IndirectJump | Self::Return)
    }

    /// Displacement of a direct jump, branch or call.
    pub fn displacement(self) -> Option<i64> {
        match self {
            Self::Jump(d)
            | Self::Branch(_, d)
            | Self::ShortBranch(d)
            | Self::Call(d)
            | Self::Transaction(d) => Some(d),
            _ => None,
        }
    }
}

/// A condition of the flags, in the machine's numbering: the lowest bit inverts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Condition(pub u8);

impl Condition {
    /// The condition that holds exactly when this one does not.
    pub fn inverse(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// A memory operand addressed relative to the next instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RipOperand {
    /// Where the four bytes of the displacement stand in the instruction.
    pub field: u8,
    /// Displacement from the end of the instruction.
    pub displacement: i64,
    /// The address itself is the result (`lea`), memory is not touched.
    pub address_only: bool,
}

/// One decoded instruction, reduced to what moving it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inst {
    /// Bytes.
    pub len: u8,
    pub flow: Flow,
    /// Where the displacement of a direct jump, branch or call stands in the instruction; it reaches to the
    /// instruction's end. 0 for all others.
    pub flow_field: u8,
    pub rip: Option<RipOperand>,
    /// Does nothing: padding, unless its address is noted somewhere.
    pub nop: bool,
}
