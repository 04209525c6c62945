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
}
