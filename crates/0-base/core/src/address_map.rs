//! The address map: where each piece of the input stands in the output, and why. `emit` writes it into the output's section
//! [`SECTION`]; `verify` reads it back as a hint that it checks, and profiles taken on an optimized program are led back
//! through it.
//!
//! It is a relation, many to many: a piece of the input may stand in several places (code that was inlined), and a place may
//! stand for several pieces of the input (functions that were folded into one). Each edge has its [`Reason`].

mod format;
mod lookup;

use crate::{InputAddr, OutputAddr, define_index};

pub use format::{MapReader, MapWriter, is_plain};
pub use lookup::{Lookup, Source};

/// The output's section that holds the map.
pub const SECTION: &str = ".afterlink.map";

define_index!(
    /// Index of a chain in [`AddressMap::chains`].
    ChainId,
    "chain"
);

/// Every function that was written anew, in input order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressMap {
    pub functions: Vec<FunctionMap>,
    /// Input addresses of calls that were replaced by their callees' code, from the innermost outwards.
    pub chains: Vec<Vec<InputAddr>>,
}

/// One function and the fragments it was written as; the first fragment starts with the entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionMap {
    /// Input address of the function's entry.
    pub entry: InputAddr,
    pub fragments: Vec<FragmentMap>,
    /// The entry of another function that does the same; this one was not written, and has no fragments.
    pub folded_into: Option<InputAddr>,
}

/// A run of consecutive pieces in the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FragmentMap {
    pub output: OutputAddr,
    /// Bytes in the output.
    pub size: u64,
    /// Pieces by ascending output offset; one ends where the next starts.
    pub blocks: Vec<BlockMap>,
}

/// A basic block, or the part of one that corresponds for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockMap {
    /// Start, from the start of the fragment.
    pub output_offset: u32,
    /// Start in the input; `None` for [`Reason::Inserted`] alone.
    pub input: Option<InputAddr>,
    /// Bytes in the input, with its branch and the padding behind it; 0 for added code.
    pub input_size: u32,
    pub reason: Reason,
}

/// Why a piece of the output stands for one of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The same instructions, with their operands worked out anew; counters may stand among them.
    Copied,
    /// Nothing of the input: a counter on an edge.
    Inserted,
    /// Other instructions that do the same.
    Replaced,
    /// The callee's instructions, in place of the innermost call of the chain.
    Inlined(ChainId),
    /// The same instructions as stand elsewhere, too.
    Duplicated,
}

#[cfg(test)]
mod tests;
