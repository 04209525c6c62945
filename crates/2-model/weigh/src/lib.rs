//! How often each block, edge and call of the program ran ([`Weights`]), worked out from a profile.

mod apply;
mod names;
mod repair;
mod weights;

pub use apply::{Fit, weigh};
pub use names::primary_names;
pub use weights::{CallWeight, EdgeWeight, FunctionWeights, Weights};
