//! Orders and cuts: which basic block follows which, which function stands beside which, and
//! where a function is split. Everything here works on plain weighted graphs whose nodes are the
//! numbers `0..n`; it sees no instruction, no file and no unordered map, so equal input gives
//! equal output on every machine.
//!
//! | module | question | method |
//! |---|---|---|
//! | [`ext_tsp`] | order of the blocks of one function | extended travelling-salesman score, greedy chains |
//! | [`cdsort`] | order of functions | cache-directed sort |
//! | [`hfsort`] | order of functions | call-chain clustering (C3) |
//! | [`split`] | which blocks leave the hot part | counts |
//! | [`random`] | orders for tests and for measuring | seeded shuffles, reverse, input |
//!
//! Graphs come from our own code, so a malformed one (an edge to a node that does not exist) is
//! a fault of ours and panics; no function here has an error to return.

pub mod cdsort;
pub mod ext_tsp;
pub mod graph;
pub mod hfsort;
mod links;
mod power_law;
pub mod random;
pub mod split;

pub use cdsort::{CdSortParams, order_functions};
pub use ext_tsp::{ExtTspParams, ext_tsp_score, ext_tsp_score_at, order_blocks};
pub use graph::{CallArc, CallGraph, FlowEdge, FlowGraph};
