//! Where indirect jumps and calls may lead: places whose address something has, and those that words of jump tables mean.

use crate::addresses::jump_tables;
use crate::addresses::jumps::Jumps;
use crate::addresses::relative_words::Named;
use crate::addresses::taken;
use crate::check::Check;
use crate::kept_bytes::expected::Layout;

/// All such places of the input, ascending.
pub(crate) fn all(check: &Check, layout: &Layout, named: &Named, jumps: &Jumps) -> Vec<u64> {
    let mut targets = jump_tables::targets(check, layout, named, jumps);
    targets.extend(&jumps.taken);
    taken::in_order(check, targets)
}
