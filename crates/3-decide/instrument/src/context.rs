//! What planning needs to know of the whole program.

use crate::Counting;
use crate::names::Names;
use afterlink_analyze::entered::Entered;
use afterlink_analyze::scan::Step;
use afterlink_core::InputAddr;
use afterlink_program::Target;

/// What planning needs to know of the whole program.
pub(crate) struct Context<'c> {
    pub counting: Counting,
    pub names: &'c Names,
    pub entered: &'c Entered,
    /// Where a target stands in the input.
    pub address_of: &'c dyn Fn(Target) -> Option<InputAddr>,
    /// Which calls may not come back.
    pub stops: &'c (dyn Fn(&Step) -> bool + Sync),
}
