//! BOLT's profile text, `.fdata`. One record a line, fields apart by spaces:
//!
//! ```text
//! branch   <kind> <name> <offset>    <kind> <name> <offset>     <mispredicts> <count>
//! samples  <kind> <name> <offset>    <count>                        below a line `no_lbr [event …]`
//! memory   <kind+3> <name> <offset>  <kind+3> <name> <address>  <count>
//! ```
//!
//! A kind is 0 for a name outside of the program (a file or `[unknown]`), 1 for a symbol, 2 for a local symbol with its
//! file (old tools). Offsets and addresses are hexadecimal without `0x`, counts decimal and below 2^63. In
//! names, a backslash stands before each space and backslash. Lines before the records: `no_lbr`, with the names
//! of the sampled events, and `boltedcollection`, for a profile taken on a program that BOLT had rewritten.
//!
//! Where BOLT 22's own tools disagree: llvm-bolt reads `no_lbr` before `boltedcollection` only, perf2bolt and
//! merge-fdata write (and merge-fdata reads) the other order only. Both are read here; the first is written.
//! llvm-bolt wants memory records behind all others; here they may stand anywhere, and are written last.
//! Several spaces between fields, spaces and a carriage return at the end of a line, and empty lines are accepted.
//!
//! The offset of a branch's or sample's location outside of the program is never used (perf2bolt and BOLT's
//! instrumentation write 0); it is read as 0 if it has more than 32 bits. A symbol's offset must fit in 32 bits.

mod read;
mod write;

pub use read::read;
pub use write::write;

#[cfg(test)]
mod tests;
