//! Program and weights in, [`Placement`] out: decides what moves and in which order. No address is given out
//! here, and no block is changed but in how it branches ([`branches`]).
//!
//! The passes are that one and those of [`place`], in that order; each has a file of its own.

mod block_order;
pub mod branches;
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
    /// Alignment of hot functions in bytes, a power of two. Packing them costs the fetch unit a little at each entry
    /// and saves more in the instruction cache (`docs/decisions/`).
    pub function_alignment: u32,
    /// Share of all executed bytes, 0 to 1, that the hot part is to cover; what runs more seldom is warm and stands
    /// behind it.
    pub hot_share: f64,
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
            function_alignment: 1,
            hot_share: 0.999,
        }
    }
}

impl LayoutOptions {
    /// Everything that can move, as it is.
    pub fn whole_in_input_order() -> Self {
        Self {
            scope: Scope::All,
            order_blocks: BlockOrder::Input,
            order_functions: FunctionOrder::Input,
            split: Split::None,
            ..Self::default()
        }
    }
}

/// The functions that are to move, in input order.
pub fn moved(program: &Program, weights: &Weights, options: &LayoutOptions) -> Vec<FuncId> {
    scope::select(program, weights, options)
}

/// Decides the order of the functions that move, which [`moved`] has named.
pub fn place(program: &Program, weights: &Weights, moved: &[FuncId], options: &LayoutOptions) -> Placement {
    let orders = block_order::order(program, weights, moved, options);
    let parts = splitting::split(program, weights, moved, orders, options);
    function_order::arrange(program, weights, parts, options)
}
