//! Where an output has the blocks of a run.

use crate::LINE;
use crate::trace::Block;
use afterlink_core::address_map::{AddressMap, Reason, SECTION};
use afterlink_core::{InputAddr, OutputAddr};
use afterlink_image::Image;
use std::ops::Range;

/// A piece of the input and where it stands.
#[derive(Clone)]
pub struct Piece {
    pub input: Range<u64>,
    pub output: Range<u64>,
    pub is_replaced: bool,
    /// Which part of a function it stands in; parts are moved as wholes.
    pub part: usize,
}

/// The pieces of an output's address map, by where they stood.
pub struct Layout {
    pub pieces: Vec<Piece>,
}

/// A block in a layout.
#[derive(Default)]
pub struct Placed {
    pub lines: Vec<u64>,
    pub start: u64,
    pub end: u64,
    /// A stub of the linker's, or ends with a call that no longer leads through one.
    pub is_stub: bool,
    pub goes_around_stub: bool,
}

impl Placed {
    fn fetch(&mut self, bytes: Range<u64>) {
        if self.lines.is_empty() {
            self.start = bytes.start;
        }
        self.end = bytes.end;
        for line in bytes.start / LINE..bytes.end.div_ceil(LINE) {
            if self.lines.last() != Some(&line) {
                self.lines.push(line);
            }
        }
    }
}

impl Layout {
    pub fn of(output: &str) -> Self {
        let bytes = std::fs::read(output).expect("an output can be read");
        let image = Image::parse(&bytes).expect("an output is a program");
        let mut pieces = Vec::new();
        let Some(section) = image.section_named(SECTION) else { return Self { pieces } };
        let map = AddressMap::decode(image.section_bytes(section)).expect("the address map can be read");
        for (part, fragment) in map.functions.iter().flat_map(|function| &function.fragments).enumerate() {
            let ends = fragment.blocks.iter().skip(1).map(|block| u64::from(block.output_offset));
            for (block, end) in fragment.blocks.iter().zip(ends.chain([fragment.size])) {
                let Some(start) = block.input.map(InputAddr::get) else { continue };
                let at = |offset: u64| OutputAddr::get(fragment.output + offset);
                pieces.push(Piece {
                    input: start..start + u64::from(block.input_size),
                    output: at(block.output_offset.into())..at(end),
                    is_replaced: block.reason == Reason::Replaced,
                    part,
                });
            }
        }
        pieces.sort_by_key(|piece| piece.input.start);
        Self { pieces }
    }

    /// The same with each piece a part of its own.
    pub fn in_single_blocks(&self) -> Self {
        let single = |(part, piece): (usize, &Piece)| Piece { part, ..piece.clone() };
        Self { pieces: self.pieces.iter().enumerate().map(single).collect() }
    }

    pub fn place(&self, blocks: &[Block], stubs: &[Range<u64>]) -> Vec<Placed> {
        blocks.iter().map(|block| self.place_one(block, stubs)).collect()
    }

    fn place_one(&self, block: &Block, stubs: &[Range<u64>]) -> Placed {
        let mut placed = Placed::default();
        let Range { start: mut at, end } = block.range.clone();
        while at < end {
            let next = if block.is_own { self.pieces.partition_point(|p| p.input.start <= at) } else { 0 };
            let following = self.pieces.get(next).filter(|_| block.is_own);
            let stays_to = following.map_or(end, |p| p.input.start.min(end));
            match self.pieces[..next].last().filter(|p| at < p.input.end) {
                Some(piece) => {
                    let upto = end.min(piece.input.end);
                    let shifted =
                        |input: u64| (piece.output.start + (input - piece.input.start)).min(piece.output.end);
                    let stop = if upto == piece.input.end { piece.output.end } else { shifted(upto) };
                    placed.fetch(shifted(at)..stop);
                    placed.goes_around_stub = piece.is_replaced;
                    at = upto;
                }
                None => {
                    placed.fetch(at..stays_to);
                    at = stays_to;
                }
            }
        }
        placed.is_stub = block.is_own && stubs.iter().any(|stubs| stubs.contains(&block.range.start));
        placed
    }
}
