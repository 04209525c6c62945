//! What kinds of relocations mean.

/// What the linker fills a field with, as a relocation that it kept says. Linkers change instructions and leave the relocation,
/// so the bytes may say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relocation {
    /// An address.
    Absolute { size: u8 },
    /// The distance of an address from the field.
    Relative { size: u8 },
    /// The distance of a call's or a jump's target.
    Branch,
    /// The distance of an address from the global offset table.
    FromOffsetTable,
    /// The place of an entry of the global offset table; linkers may put the address itself there if it `may_be_relaxed`.
    OffsetTableEntry { may_be_relaxed: bool },
}

/// What the dynamic linker fills a word with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartUpRelocation {
    /// An address of the program itself.
    FromBase,
    /// What a function of the program returns.
    Resolved,
    /// The address of a symbol.
    Symbol,
}
