//! The order in which the program's pieces are written. Order is kept apart from contents: laying out never
//! touches a block.

use crate::{BlockId, FuncId};

/// Which of the two new code sections a fragment goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    Hot,
    Cold,
}

/// A run of blocks of one function that are written one behind the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    pub function: FuncId,
    pub part: Part,
    pub blocks: Vec<BlockId>,
    /// Alignment of the start, a power of two.
    pub alignment: u32,
    /// Bytes to leave free before the fragment, on top of what its alignment needs.
    pub padding: u32,
}

impl Fragment {
    /// Whether it starts with the function's entry.
    pub fn starts_function(&self) -> bool {
        self.blocks.first() == Some(&BlockId(0))
    }
}

/// Everything that moves, in order; hot fragments before cold ones.
///
/// Invariant: each block of a function occurs exactly once or the function does not occur at all, and block 0
/// starts a fragment of [`Part::Hot`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    pub fragments: Vec<Fragment>,
    /// Counters, for an instrumented program; by function and place.
    pub counters: Vec<Counter>,
}

/// Code that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    pub function: FuncId,
    pub block: BlockId,
    /// Where in the block's body it stands: before the byte at this offset.
    pub offset: u32,
    /// Which counter it adds to.
    pub index: u32,
    pub form: CounterForm,
}

/// How a counter is incremented without being noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterForm {
    /// One instruction; needs the flags to be dead.
    Increment,
    /// Load, add by `lea`, store, through a general register (its number, 0 to 15) that is dead.
    Register(u8),
    /// As `Register` with `rax`, which is saved on the stack below the red zone.
    Spill,
}
