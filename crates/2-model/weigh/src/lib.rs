//! How often each block, edge and call of the program ran ([`Weights`]), worked out from a profile.

mod weights;

pub use weights::{CallWeight, EdgeWeight, FunctionWeights, Weights};
