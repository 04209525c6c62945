//! Random programs in C, C++ and assembly, for what no planned case has: made of pieces (`pieces/`), every one a way in which
//! control can go, with random code around it; of functions that throw and catch (`exceptions/`); or by Csmith. A program prints a checksum as it goes; built by any compiler in any way and
//! rewritten in any mode, it must print the same.
//!
//! ```text
//! seed ─► Settings (compiler, level, link) ─► Program (sources) ─► Built ─► rewritten in every mode ─► Findings
//! ```

pub mod build;
pub mod check;
pub mod exceptions;
pub mod pieces;
pub mod program;
pub mod record;
pub mod settings;
pub mod sheet;
