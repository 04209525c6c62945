//! How a counter is incremented without being noticed.

/// The code of a counter. None of the forms changes a register, a flag or memory that the program could look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterForm {
    /// One instruction; needs the flags to be dead.
    Increment,
    /// Load, add without the flags, store, through a general register (its number) that is dead.
    Register(u8),
    /// As `Register`, with a register that is saved on the stack below the red zone.
    Spill,
    /// One instruction that no other processor interrupts; needs the flags to be dead.
    Locked,
    /// As `Locked`, with the flags saved on the stack below the red zone.
    LockedSaved,
}

impl CounterForm {
    /// The form that loses no count where several threads or processes count, for the same place as this one.
    pub fn exact(self) -> Self {
        match self {
            Self::Increment | Self::Locked => Self::Locked,
            Self::Register(_) | Self::Spill | Self::LockedSaved => Self::LockedSaved,
        }
    }

    /// Whether it writes below the stack pointer, which must be one.
    pub fn uses_stack(self) -> bool {
        matches!(self, Self::Spill | Self::LockedSaved)
    }
}
