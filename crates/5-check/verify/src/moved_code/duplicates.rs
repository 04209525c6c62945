//! Rule for a block that stands in two places.
//!
//! Control that comes to either does the same: both have the input's instructions, with operands that mean the same, and leave for corresponding places.
//! So a jump, a branch or control that goes straight on may come to a duplicate where the input comes to its block, if it comes from the
//! same function; that is all that ever does, as whatever has an address of the block has that of the copied one.
//!
//! What is left to ask is that nobody can tell by where control stands which of the two it is. A call would put one of two return addresses on the
//! stack, so there is none. Who holds a place inside of the function (a table of where accesses may fault, a label that a handler goes on
//! at, a probe) may look for its code there, instruction by instruction, so nobody holds any.

use crate::address_map::places::{Block, Reason, Shape};
use crate::addresses::jumps::Jumps;
use crate::check::Check;
use crate::input::code::Kind;
use crate::kept_bytes::expected::Layout;
use crate::moved_code::callees::{held, held_inside};
use crate::moved_code::walk::Walk;
use crate::verdict::finding::{Finding, FindingKind};

/// Where the duplicates among a function's blocks stand: of which input, and where; ascending.
pub(super) fn places(blocks: &[Block]) -> Vec<(u64, u64)> {
    let duplicates = blocks.iter().filter(|block| block.reason == Reason::Duplicated);
    let mut places: Vec<(u64, u64)> = duplicates.map(|block| (block.input, block.output)).collect();
    places.sort_unstable();
    places
}

impl Walk<'_, '_, '_> {
    /// A duplicate of a block of the function that starts at `entry`.
    pub(super) fn duplicate(self, block: &Block, entry: u64) -> Result<(), Box<Finding>> {
        let code = &self.check.code;
        if self.check.places.counters.is_some() {
            let what = "a block stands twice where something is counted";
            return Err(self.finding(FindingKind::Counter, what));
        }
        if block.input == entry {
            return Err(self.finding(FindingKind::Map, "the block with the function's entry stands twice"));
        }
        let insts = &code.insts[code.range(block.input, block.input_end())];
        let shape = Shape::of(insts);
        let only_computes = insts[..shape.body].iter().all(|i| i.kind == Kind::Next && !i.is_prefix());
        let leaves = insts
            .get(shape.body)
            .filter(|_| shape.ends)
            .is_some_and(|inst| matches!(inst.kind, Kind::Jump | Kind::IndirectJump | Kind::Return));
        if !only_computes || !leaves {
            let what = "a block stands twice that does more than compute and leave";
            return Err(self.finding(FindingKind::Instruction, what));
        }
        if self.check.pads.within(&[(block.input, block.input_end())]).next().is_some() {
            return Err(self.finding(FindingKind::Unwind, "a landing pad stands twice"));
        }
        self.block(block)
    }
}

/// Looks for places inside of functions with duplicates that somebody holds.
pub(crate) fn check(check: &Check, layout: &Layout, jumps: &Jumps) -> Vec<Finding> {
    let places = &check.places;
    let has_any = |blocks: &[Block]| blocks.iter().any(|block| block.reason == Reason::Duplicated);
    let functions = places.functions.iter().filter(|f| has_any(&places.blocks[f.blocks.clone()]));
    let functions: Vec<_> = functions.collect();
    if functions.is_empty() {
        return Vec::new();
    }
    let held = held(check, layout, jumps);
    let what = "a block of the function stands twice, inside of which somebody knows a place";
    let found = functions.iter().filter_map(|function| {
        let place = held_inside(check, &held, function)?;
        Some(Finding::new(FindingKind::Pointer, what).input(function.entry).names(place))
    });
    found.collect()
}
