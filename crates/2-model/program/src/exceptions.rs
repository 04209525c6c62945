//! What becomes of exceptions that come out of a function's instructions.

use crate::{Block, BlockId, Function};
use afterlink_core::InputAddr;

/// What becomes of an exception that comes out of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landing {
    /// It goes on to the caller.
    Caller,
    /// Nothing is said of the place: the program ends.
    Nowhere,
    /// Control goes on at a landing pad, which is told what a row of [`ExceptionTable::actions`](afterlink_unwind::ExceptionTable)
    /// says; `None`: to clean up.
    Pad { block: BlockId, action: Option<u32> },
}

impl Landing {
    /// The landing pad, if there is one.
    pub fn pad(self) -> Option<BlockId> {
        match self {
            Self::Pad { block, .. } => Some(block),
            Self::Caller | Self::Nowhere => None,
        }
    }
}

impl Function<'_> {
    /// What becomes of an exception that comes out of the instruction at an input address.
    pub fn landing_at(&self, address: InputAddr) -> Landing {
        let span = self.unwind.iter().find(|s| s.range.contains(address));
        let landing = span.and_then(|span| span.landings.at(address.since(span.range.start) as u32));
        landing.unwrap_or(Landing::Caller)
    }

    /// Whether exceptions lead anywhere in the function.
    pub fn has_landing_pads(&self) -> bool {
        self.unwind.iter().any(|span| !span.landings.changes().is_empty())
    }

    /// Calls `visit` with each landing pad to which control may go from a block, the same one perhaps more than once.
    pub fn for_each_landing_pad(&self, block: BlockId, mut visit: impl FnMut(BlockId)) {
        let own = &self.blocks[block];
        if own.size == 0 || !self.has_landing_pads() {
            return;
        }
        self.for_each_landing(own, |landing| {
            if let Some(pad) = landing.pad() {
                visit(pad);
            }
        });
    }

    fn for_each_landing(&self, block: &Block, mut visit: impl FnMut(Landing)) {
        let spans =
            self.unwind.iter().filter(|s| s.range.start < block.input_end() && s.range.end() > block.input);
        for span in spans {
            let from = block.input.max(span.range.start).since(span.range.start) as u32;
            let to = block.input_end().min(span.range.end()).since(span.range.start) as u32;
            let first = span.landings.at(from).into_iter();
            first.chain(span.landings.between(from, to).iter().map(|change| change.1)).for_each(&mut visit);
        }
    }

    /// The landing pads, ascending.
    pub fn landing_pads(&self) -> Vec<BlockId> {
        let landings = self.unwind.iter().flat_map(|span| span.landings.changes());
        let mut pads: Vec<BlockId> = landings.filter_map(|(_, landing)| landing.pad()).collect();
        pads.sort_unstable();
        pads.dedup();
        pads
    }
}
