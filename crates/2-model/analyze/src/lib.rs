//! Program in, what any pass may want to know of it out. Nothing is changed or decided here.
//!
//! - [`scan`]: what each instruction reads and overwrites.
//! - [`liveness`]: which registers and flags are still needed where; [`conventions`]: what passes between functions.
//! - [`returns`]: which functions surely come back to their caller.
//! - [`entered`]: where control may come to from outside of a function; [`held`]: of which the address is held.
//! - [`flow`]: a function's blocks as a graph; [`dominators`] of it, and [`frequency`], how often each block probably runs.
//!
//! All but the first know no instruction set; what they ask of one, [`afterlink_isa::Arch`] answers.

pub mod conventions;
pub mod dominators;
pub mod entered;
pub mod flow;
pub mod frequency;
pub mod held;
pub mod liveness;
pub mod returns;
pub mod scan;
