//! What all jumps that may lead to the same places have passed on to them.
//!
//! Each computed goto of an interpreter may lead to each label, and nearly all leave what another has left already. What adds nothing to what
//! was passed on adds nothing at any of the places either, because each has all of that, and joining does not ask for the order
//! ([`Own::join`]): it stops here, so that time goes by jumps and labels and not by their product.

use super::body::Body;
use super::values::{Own, Value};

/// The places that a jump may lead to.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Targets {
    /// All labels of the function.
    Labels,
    /// Those that its own instructions name.
    Made,
    /// The words of the table at this address.
    Table(u64),
}

pub(super) struct Hub {
    /// Cuts that the places start, each once.
    pub cuts: Vec<usize>,
    /// The first of the places that lies between two instructions.
    pub between: Option<u64>,
    /// All states that were passed on, joined.
    state: Option<Box<[Value]>>,
    /// The definitions that were passed on.
    kept: u64,
}

impl Hub {
    pub fn new(body: &Body, places: &[u64]) -> Self {
        let inside = || places.iter().copied().filter(|&place| body.own.holds(place));
        let mut cuts: Vec<usize> = inside().filter_map(|place| body.at(place)).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let between = inside().find(|&place| body.at(place).is_none());
        Self { cuts, between, state: None, kept: 0 }
    }

    /// Whether a state with these definitions is more than was passed on before; then it counts as passed on.
    pub fn adds(&mut self, own: &Own, state: &[Value], kept: u64) -> bool {
        let defines_more = kept & !self.kept != 0;
        self.kept |= kept;
        own.join_states(&mut self.state, state) || defines_more
    }
}
