//! Mutants that nobody planned: outputs of afterlink are changed by something that knows ELF, DWARF and x86-64, but not the
//! checker. What `verify` still accepts is run, stripped and read by other tools, and must do what the output does: else the
//! checker has a hole. Those that do the same are counted by field; so one knows what the checker does not judge.
//!
//! ```text
//! Subject (original, output) ─► Structure (its fields) ─► mutate ─► verify ─► run, strip, readelf, eu-elflint, gdb ─► Fate
//! ```

pub mod campaign;
pub mod frames;
pub mod judge;
pub mod limits;
pub mod mutate;
pub mod structure;
pub mod subjects;
