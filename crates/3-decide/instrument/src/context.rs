//! What planning needs to know of the whole program.

use crate::Counting;
use crate::foreign::Foreign;
use crate::names::Names;
use afterlink_analyze::entered::Entered;
use afterlink_analyze::scan::Step;
use afterlink_core::InputAddr;
use afterlink_program::{Block, Target};

/// What planning needs to know of the whole program.
pub(crate) struct Context<'c> {
    pub counting: Counting,
    pub names: &'c Names,
    pub entered: &'c Entered,
    /// Whether somebody has the address of the function's entry.
    pub is_held: bool,
    /// Whether targets of indirect calls are counted.
    pub counts_targets: bool,
    pub foreign: &'c Foreign,
    /// The bytes of a block's body.
    pub body: &'c dyn Fn(&Block) -> Option<&'c [u8]>,
    /// Where a target stands in the input.
    pub address_of: &'c dyn Fn(Target) -> Option<InputAddr>,
    /// Which calls may not come back.
    pub stops: &'c (dyn Fn(&Step) -> bool + Sync),
}
