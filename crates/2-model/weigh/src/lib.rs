//! How often each block, edge and call of the program ran ([`Weights`]), worked out from a profile.

mod apply;
mod conservation;
#[cfg(test)]
mod example;
mod flows;
mod inference;
mod names;
mod repair;
mod samples;
mod seen;
mod stale;
mod sums;
mod uncounted;

pub use afterlink_program::{Basis, CallWeight, EdgeWeight, FunctionWeights, Weights};
pub use apply::{Fit, weigh};
pub use names::names_of_code;
pub use stale::{Build, Matched, of_other_build};
