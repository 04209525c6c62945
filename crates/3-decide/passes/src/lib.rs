//! Program and weights in, [`Placement`] out: decides what moves and in which order. No address is given out
//! here.
//!
//! The passes stand in one ordered table ([`PASSES`]); each has a file of its own, with its row in it. Those that change code
//! come first, those that decide its order behind them. A checker ([`check`]) may look at the result of each.

mod adjacent_functions;
mod block_order;
mod branches;
pub mod check;
mod code_prefetch;
pub mod dyno_stats;
mod entries;
mod entry_marks;
mod function_alignment;
mod function_order;
mod growth;
mod hot_inlining;
mod identical_functions;
mod inlining;
pub mod jitter;
mod parts;
mod pass;
mod plt_calls;
mod reserved_sets;
mod scope;
pub mod shuffle;
mod splitting;
mod table;
mod tail_duplication;

use afterlink_core::InputAddr;
use afterlink_core::limits::SECTION_ALIGNMENT;
use afterlink_program::{FuncId, Placement, Program};
use afterlink_weigh::Weights;
use std::collections::BTreeSet;

pub use block_order::{BlockOrder, flow_graph};
pub use function_order::FunctionOrder;
pub use pass::{BlockPlaces, Pass, Switches, without_jumps};
pub use scope::Scope;
pub use splitting::Split;
pub use table::{PASSES, PassRun, named, place_again, run};

use parts::Parts;

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
    /// Alignment of hot functions in bytes, a power of two. `None`: each starts where the pass `function-alignment` puts it.
    pub function_alignment: Option<u32>,
    /// Leave no bytes free inside of fragments: something tells of their blocks that could not tell of these.
    pub packed_fragments: bool,
    /// Alignment of the hot section in bytes, a power of two: that of a huge page lets the system map the section as one.
    pub hot_alignment: u64,
    /// Share of all executed bytes, 0 to 1, that the hot part is to cover; what runs more seldom is warm and stands
    /// behind it. `None`: 0.98, and less of what was only estimated (`docs/decisions/`).
    pub hot_share: Option<f64>,
    /// The instruction cache that the pass `reserved-sets` lays code out for.
    pub cache: Cache,
    /// Passes that were turned on or off.
    pub switches: Switches,
    /// Hold the program and its order against [`check`] after every pass. Always so in builds with debug assertions.
    pub check_passes: bool,
}

/// The shape of an instruction cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// A power of two.
    pub sets: u64,
    /// Lines of a set.
    pub ways: u64,
}

impl Default for Cache {
    /// 32 KiB. Larger ones of x86-64 have 64 sets, too, and more ways.
    fn default() -> Self {
        Self { sets: 64, ways: 8 }
    }
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
            function_alignment: None,
            packed_fragments: false,
            hot_alignment: SECTION_ALIGNMENT,
            hot_share: None,
            cache: Cache::default(),
            switches: Switches::default(),
            check_passes: cfg!(debug_assertions),
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

/// The functions that move, which [`moved`] has named, as they stand in the input.
pub fn input_order(program: &Program, moved: &[FuncId]) -> Placement {
    Parts::place(&Parts::of_input(program, moved), &LayoutOptions::default())
}
