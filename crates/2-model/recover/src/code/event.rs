//! What single instructions tell whoever moves code: branches, position-dependent operands, padding, traps.

use afterlink_core::InputAddr;
use afterlink_isa::Access;

/// What an instruction does that matters. One instruction may have two events: an operand's, then its flow's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Jump,
    Branch,
    ShortBranch,
    Call,
    Transaction,
    IndirectJump,
    Return,
    Breakpoint,
    Fault,
    /// An operand relative to its place that touches memory.
    Memory,
    /// An operand relative to its place that asks for code.
    Prefetch,
    /// The address of such a place (`lea`, `adr`, `adrp` and `add`).
    Lea,
    /// An operand that means data, though its number lies in code.
    Data,
    /// The page of what another instruction names (`adrp`).
    Page,
    /// The address that a jump table's entries count from.
    TableBase,
    Absolute32,
    Absolute64,
    Nop,
    /// Data among the code, as the linker's symbols tell.
    Word,
}

impl EventKind {
    /// What an instruction does with an operand that depends on its place.
    pub fn of_operand(access: Access, means_data: bool) -> Self {
        match access {
            _ if means_data => Self::Data,
            Access::Address => Self::Lea,
            Access::Prefetch => Self::Prefetch,
            _ => Self::Memory,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    /// Start of the instruction, from the piece's start.
    pub offset: u32,
    /// Bytes of the instruction.
    pub len: u8,
    /// Where the displacement or address stands in it.
    pub field: u8,
    pub kind: EventKind,
    pub target: InputAddr,
}

impl Event {
    pub fn end(&self) -> u32 {
        self.offset + u32::from(self.len)
    }

    pub fn is_flow(&self) -> bool {
        use EventKind as K;
        matches!(
            self.kind,
            K::Jump | K::Branch | K::ShortBranch | K::Transaction | K::IndirectJump | K::Return
        )
    }

    pub fn falls_through(&self) -> bool {
        use EventKind as K;
        !matches!(self.kind, K::Jump | K::IndirectJump | K::Return)
    }

    /// Whether it has a field whose value depends on its place, or on that of what it names.
    pub fn has_operand(&self) -> bool {
        use EventKind as K;
        !matches!(self.kind, K::Nop | K::Word | K::IndirectJump | K::Return | K::Breakpoint | K::Fault)
    }

    /// Whether it is padding where control does not come.
    pub fn is_filler(&self) -> bool {
        matches!(self.kind, EventKind::Nop | EventKind::Breakpoint | EventKind::Word)
    }

    /// Whether it names an address in a way that could be kept (not a jump or call).
    pub fn takes_address(&self) -> bool {
        matches!(self.kind, EventKind::Lea | EventKind::Absolute32 | EventKind::Absolute64)
    }

    pub fn is_trap(&self) -> bool {
        matches!(self.kind, EventKind::Breakpoint | EventKind::Fault)
    }

    /// Whether it is a direct jump or branch, whose target must be the start of a block.
    pub fn is_direct_jump(&self) -> bool {
        use EventKind as K;
        matches!(self.kind, K::Jump | K::Branch | K::ShortBranch | K::Transaction)
    }
}
