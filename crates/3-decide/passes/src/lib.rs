//! Program and weights in, [`Placement`] out: decides what moves and in which order. No address is given out
//! here and no block is changed.
//!
//! The passes are those of [`place`], in that order; each has a file of its own.

mod block_order;
pub mod dyno_stats;
mod function_order;
mod scope;
mod splitting;

use afterlink_core::InputAddr;
use afterlink_program::{FuncId, Placement, Program};
use afterlink_weigh::Weights;
use std::collections::BTreeSet;

pub use block_order::BlockOrder;
pub use function_order::FunctionOrder;
pub use scope::Scope;
pub use splitting::Split;

/// What the passes are asked to do.
#[derive(Clone, Debug)]
pub struct LayoutOptions {
    pub scope: Scope,
    /// Of these, only functions that start here move.
    pub only_functions: Option<BTreeSet<InputAddr>>,
    pub order_blocks: BlockOrder,
    pub order_functions: FunctionOrder,
    pub split: Split,
    /// Of everything random.
    pub seed: u64,
    /// Alignment of functions, a power of two.
    pub function_alignment: u32,
}

impl Default for LayoutOptions {
    fn default() -> Self {
        Self {
            scope: Scope::Hot,
            only_functions: None,
            order_blocks: BlockOrder::ExtTsp,
            order_functions: FunctionOrder::Cdsort,
            split: Split::HotCold,
            seed: 0,
            function_alignment: std::env::var("AL_ALIGN").ok().and_then(|v| v.parse().ok()).unwrap_or(16),
        }
    }
}

/// Decides the order of everything that moves.
pub fn place(program: &Program, weights: &Weights, options: &LayoutOptions) -> Placement {
    let moved: Vec<FuncId> = scope::select(program, weights, options);
    let orders = block_order::order(program, weights, &moved, options);
    let parts = splitting::split(program, weights, &moved, orders, options);
    function_order::arrange(program, weights, parts, options)
}
