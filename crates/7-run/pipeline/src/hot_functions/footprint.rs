//! Where code stands that ran: the cache lines and pages that it takes, and how often control goes on without a jump.

use super::Piece;
use super::explained::follows_in_input;
use afterlink_program::{Block, BlockId, Fragment, FuncId, Program, Terminator};
use afterlink_weigh::{FunctionWeights, Weights};
use std::collections::BTreeSet;

const LINE: u64 = 64;
const PAGE: u64 = 4096;
/// A jump is no longer; what the input has behind it is padding.
const LONGEST_JUMP: u32 = 5;

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
pub(super) struct Spans(Vec<(u64, u64)>);

impl Spans {
    /// In the input.
    pub fn before(program: &Program, weights: &Weights, id: FuncId) -> Self {
        let (function, Some(weights)) = (&program.functions[id], weights.functions.get(id)) else {
            return Self::default();
        };
        let blocks = function.blocks.iter().take(function.input_blocks as usize);
        let ran = blocks.filter(|(id, _)| weights.block(*id) > 0);
        Self(ran.map(|(_, b)| (b.input.get(), b.input.get() + u64::from(size_in_input(b)))).collect())
    }

    /// In the output.
    pub fn after(program: &Program, weights: &Weights, pieces: &[Piece]) -> Self {
        let mut spans = Vec::new();
        for piece in pieces {
            let Some(weights) = weights.functions.get(piece.fragment.function) else { continue };
            let starts = afterlink_emit::block_offsets(program, piece.fragment);
            for (block, ends) in piece.fragment.blocks.iter().zip(starts.windows(2)) {
                if weights.block(*block) > 0 {
                    let [start, end] =
                        [ends[0], ends[1]].map(|offset| piece.address.get() + u64::from(offset));
                    spans.push((start, end));
                }
            }
        }
        Self(spans)
    }

    pub fn extend(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    pub fn footprint(&self) -> Footprint {
        let spans = || self.0.iter().filter(|(start, end)| start < end);
        let pieces = |size: u64| {
            let touched: BTreeSet<u64> =
                spans().flat_map(|(start, end)| start / size..=(end - 1) / size).collect();
            touched.len()
        };
        Footprint {
            bytes: spans().map(|(start, end)| end - start).sum(),
            lines: pieces(LINE),
            pages: pieces(PAGE),
        }
    }
}

fn size_in_input(block: &Block) -> u32 {
    match block.terminator {
        Terminator::Jump(_) => block.size.min(block.body + LONGEST_JUMP),
        Terminator::Indirect { .. } | Terminator::Stop(_) | Terminator::LastCall(_) => block.body,
        _ => block.size,
    }
}

/// Executions of edges between blocks of which one follows the other in the input.
pub(super) fn fall_throughs_before(program: &Program, weights: &Weights, id: FuncId) -> u64 {
    let function = &program.functions[id];
    let Some(weights) = weights.functions.get(id) else { return 0 };
    weights.edges.iter().filter(|e| follows_in_input(function, e.from, e.to)).map(|e| e.count).sum()
}

/// The same in these fragments.
pub(super) fn fall_throughs_after(weights: &Weights, id: FuncId, fragments: &[&Fragment]) -> u64 {
    let Some(weights) = weights.functions.get(id) else { return 0 };
    let pairs = fragments.iter().flat_map(|f| f.blocks.windows(2));
    pairs.map(|pair| edge(weights, pair)).sum()
}

fn edge(weights: &FunctionWeights, pair: &[BlockId]) -> u64 {
    let found = weights.edges.binary_search_by_key(&(pair[0], pair[1]), |e| (e.from, e.to));
    found.map_or(0, |i| weights.edges[i].count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_takes_the_lines_and_pages_that_it_touches() {
        let spans = Spans(vec![(0x1000, 0x1001), (0x103f, 0x1041), (0x1fff, 0x2001), (0x3000, 0x3000)]);
        assert_eq!(spans.footprint(), Footprint { bytes: 5, lines: 4, pages: 2 });
        assert_eq!(Spans::default().footprint(), Footprint::default());
    }
}
