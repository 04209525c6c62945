//! Where code stands that ran: the cache lines and pages that it takes.

use afterlink_core::limits::{CACHE_LINE, PAGE};
use afterlink_program::{Block, BlockId, FuncId, Program, Terminator};
use afterlink_weigh::Weights;
use std::collections::BTreeSet;
use std::ops::Range;

/// What code that ran takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Footprint {
    /// Bytes of blocks that ran.
    pub bytes: u64,
    /// Cache lines of 64 bytes, and pages of 4 KiB, that hold some of it.
    pub lines: usize,
    pub pages: usize,
}

/// Start and end of blocks that ran.
#[derive(Clone, Debug, Default)]
pub(super) struct Spans(Vec<Range<u64>>);

impl Spans {
    /// In the input.
    pub fn before(program: &Program, weights: &Weights, id: FuncId) -> Self {
        let function = &program.functions[id];
        let place = |block: &Block| {
            let padding = if runs_into_padding(block) { 0 } else { padding(program, block) };
            block.input.get()..block.input_end().get() - u64::from(padding)
        };
        let places = function.blocks.iter().map(|(_, block)| place(block));
        Self::after(weights, id, &places.collect::<Vec<_>>())
    }

    /// In the output, where the function's blocks stand at these places.
    pub fn after(weights: &Weights, id: FuncId, places: &[Range<u64>]) -> Self {
        let Some(weights) = weights.functions.get(id) else { return Self::default() };
        let ran = places.iter().enumerate().filter(|(block, _)| weights.block(BlockId(*block as u32)) > 0);
        Self(ran.map(|(_, place)| place.clone()).collect())
    }

    pub fn extend(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    pub fn footprint(&self) -> Footprint {
        let spans = || self.0.iter().filter(|span| !span.is_empty());
        let pieces = |size: u64| {
            let touched: BTreeSet<u64> =
                spans().flat_map(|span| span.start / size..=(span.end - 1) / size).collect();
            touched.len()
        };
        Footprint {
            bytes: spans().map(|span| span.end - span.start).sum(),
            lines: pieces(CACHE_LINE),
            pages: pieces(PAGE),
        }
    }
}

/// Whether control comes to the padding behind a block of the input.
fn runs_into_padding(block: &Block) -> bool {
    matches!(block.terminator, Terminator::FallThrough(_))
}

/// Bytes behind a block of the input that are no part of it, and are not written.
pub(super) fn padding(program: &Program, block: &Block) -> u32 {
    let has_instruction = matches!(
        block.terminator,
        Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::ShortBranch { .. }
    );
    let behind = block.size - block.body;
    let bytes = program.code.at(block.input + u64::from(block.body), behind as usize).unwrap_or(&[]);
    let own = program.arch.decode(bytes).filter(|_| has_instruction).map_or(0, |i| u32::from(i.len));
    behind.saturating_sub(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_takes_the_lines_and_pages_that_it_touches() {
        let spans =
            Spans(vec![0x1000..0x1001, 0x103f..0x1041, 0x1fff..0x2001, Range { start: 0x3000, end: 0x3000 }]);
        assert_eq!(spans.footprint(), Footprint { bytes: 5, lines: 4, pages: 2 });
        assert_eq!(Spans::default().footprint(), Footprint::default());
    }
}
