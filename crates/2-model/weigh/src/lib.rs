//! How often each block, edge and call of the program ran ([`Weights`]), worked out from a profile.

mod apply;
mod conservation;
mod inference;
mod names;
mod repair;
mod samples;
mod stale;

pub use afterlink_program::{CallWeight, EdgeWeight, FunctionWeights, Weights};
pub use apply::{Fit, weigh};
pub use stale::{Build, Matched, of_other_build};
