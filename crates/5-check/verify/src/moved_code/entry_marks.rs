//! Rule for a function's entry without the mark that indirect branches may land there.
//!
//! The mark does nothing; a processor that looks for marks faults where an indirect branch lands on anything else. So what is left to ask is that none
//! leads to the entry: nobody has got hold of its address, and no word of a jump table means it. At the old place the mark still stands, in
//! front of a jump.

use crate::address_map::places::{Block, MovedFunction, Reason};
use crate::addresses::jump_tables;
use crate::addresses::jumps::Jumps;
use crate::addresses::relative_words::Named;
use crate::check::Check;
use crate::kept_bytes::expected::Layout;
use crate::moved_code::callees::held;
use crate::moved_code::walk::Walk;
use crate::verdict::finding::{Finding, FindingKind};

/// Whether a piece of the map stands for such a mark.
pub(super) fn is_mark(check: &Check, block: &Block) -> bool {
    if block.reason != Reason::Replaced {
        return false;
    }
    let bytes = check.code.bytes(block.input, block.input_size as usize);
    let size = bytes.map_or(0, |bytes| check.code.judgement.mark_size(bytes));
    size > 0 && size == block.input_size as usize
}

impl Walk<'_, '_, '_> {
    /// Nothing stands for the mark of the function that starts at `entry`.
    pub(super) fn unmarked(mut self, block: &Block, entry: u64) -> Result<(), Box<Finding>> {
        if self.check.places.counters.is_some() {
            return Err(self.finding(FindingKind::Counter, "a mark is gone where something is counted"));
        }
        if block.input != entry {
            return Err(self.finding(FindingKind::Instruction, "a mark is gone that is at no entry"));
        }
        self.input = block.input_end();
        self.goes_on(self.input)?;
        self.padding(true)
    }
}

/// Looks for indirect branches that may lead to entries without their marks.
pub(crate) fn check(check: &Check, layout: &Layout, named: &Named, jumps: &Jumps) -> Vec<Finding> {
    let places = &check.places;
    let lacks_mark = |function: &&MovedFunction| {
        let blocks = &places.blocks[function.blocks.clone()];
        blocks.iter().any(|block| is_mark(check, block))
    };
    let functions: Vec<&MovedFunction> = places.functions.iter().filter(lacks_mark).collect();
    if functions.is_empty() {
        return Vec::new();
    }
    let mut targets = held(check, layout, jumps);
    targets.extend(jump_tables::targets(check, layout, named, jumps));
    targets.sort_unstable();
    let known = functions.into_iter().filter(|function| targets.binary_search(&function.entry).is_ok());
    let what = "an entry lacks its mark, to which an indirect branch may lead";
    known.map(|function| Finding::new(FindingKind::Pointer, what).input(function.entry)).collect()
}
