//! What the checker says in the end: findings, the functions that they speak against, and the code at their places.

pub(crate) mod blame;
pub(crate) mod disassembly;
pub(crate) mod finding;
