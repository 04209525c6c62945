//! Questions to the map, both ways.

use super::{AddressMap, BlockMap, Reason};
use crate::{InputAddr, OutputAddr};

/// The map, ready for questions. What the map does not hold stayed where it was.
pub struct Lookup {
    chains: Vec<Vec<InputAddr>>,
    /// Pieces with their output range, by ascending start.
    by_output: Vec<Piece>,
    /// Indices into `by_output` of those that come from the input, by ascending input address.
    by_input: Vec<u32>,
    /// One past the last byte of the input that any of those up to each stands for: a block of a callee in place of a call may be only the
    /// end of one elsewhere, or more than one.
    reach: Vec<InputAddr>,
    /// Where each fragment starts and ends, ascending.
    fragments: Vec<(OutputAddr, OutputAddr)>,
    /// A function that was folded, and the one that it became.
    folded: Vec<(InputAddr, InputAddr)>,
}

#[derive(Clone, Copy)]
struct Piece {
    start: OutputAddr,
    end: OutputAddr,
    block: BlockMap,
    function: InputAddr,
}

impl Piece {
    /// One past the last byte of the input that it stands for, or the next, if it stands for none.
    fn input_end(&self) -> Option<InputAddr> {
        Some(self.block.input? + u64::from(self.block.input_size.max(1)))
    }
}

/// Where output code comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source<'m> {
    /// Input address of what the piece starts with; `None` for inserted code.
    pub input: Option<InputAddr>,
    /// Bytes of the input that it stands for.
    pub input_size: u32,
    /// Where the piece ends in the output.
    pub end: OutputAddr,
    /// Bytes from the start of the piece in the output. Counters among copied code count.
    pub offset: u64,
    pub reason: Reason,
    /// Entry of the function that the code was written for.
    pub function: InputAddr,
    /// The calls that were replaced by their callees' code, from the innermost outwards.
    pub calls: &'m [InputAddr],
}

impl Lookup {
    pub fn new(map: AddressMap) -> Self {
        let mut by_output = Vec::new();
        for function in &map.functions {
            for fragment in &function.fragments {
                let ends = fragment.blocks.iter().skip(1).map(|b| u64::from(b.output_offset));
                for (block, end) in fragment.blocks.iter().zip(ends.chain([fragment.size])) {
                    let start = fragment.output + u64::from(block.output_offset);
                    let end = fragment.output + end;
                    by_output.push(Piece { start, end, block: *block, function: function.entry });
                }
            }
        }
        by_output.sort_by_key(|p| p.start);
        let input = |i: &u32| by_output[*i as usize].block.input;
        let mut by_input: Vec<u32> = (0..by_output.len() as u32).filter(|i| input(i).is_some()).collect();
        by_input.sort_by_key(input);
        let ends = by_input.iter().filter_map(|i| by_output[*i as usize].input_end());
        let reach = ends.scan(InputAddr(0), |last, end| {
            *last = end.max(*last);
            Some(*last)
        });
        let reach = reach.collect();
        let folded = map.functions.iter().filter_map(|f| Some((f.entry, f.folded_into?)));
        let mut folded: Vec<(InputAddr, InputAddr)> = folded.collect();
        folded.sort_unstable();
        let all = map.functions.iter().flat_map(|f| &f.fragments);
        let mut fragments: Vec<_> = all.map(|f| (f.output, f.output + f.size)).collect();
        fragments.sort_unstable();
        Self { chains: map.chains, by_output, by_input, reach, fragments, folded }
    }

    /// Where the fragment around the output's `address` starts and ends.
    pub fn fragment(&self, address: OutputAddr) -> Option<(OutputAddr, OutputAddr)> {
        let next = self.fragments.partition_point(|f| f.0 <= address);
        self.fragments[..next].last().copied().filter(|f| address < f.1)
    }

    /// Where each piece that has code starts in the output, ascending.
    pub fn pieces(&self) -> impl Iterator<Item = OutputAddr> {
        self.by_output.iter().filter(|piece| piece.start < piece.end).map(|piece| piece.start)
    }

    /// What the output's code at `address` comes from; `None` if it was not written anew.
    pub fn source(&self, address: OutputAddr) -> Option<Source<'_>> {
        let next = self.by_output.partition_point(|p| p.start <= address);
        let piece = self.by_output[..next].last().filter(|p| address < p.end)?;
        Some(self.source_in(piece, address))
    }

    /// What each piece stands for that starts at the output's `address`, also if it has no code.
    pub fn starting_at(&self, address: OutputAddr) -> impl Iterator<Item = Source<'_>> {
        let first = self.by_output.partition_point(|p| p.start < address);
        let pieces = self.by_output[first..].iter().take_while(move |p| p.start == address);
        pieces.map(move |piece| self.source_in(piece, address))
    }

    fn source_in(&self, piece: &Piece, address: OutputAddr) -> Source<'_> {
        let calls = match piece.block.reason {
            Reason::Inlined(chain) => self.chains.get(chain.0 as usize).map_or(&[][..], Vec::as_slice),
            _ => &[],
        };
        Source {
            input: piece.block.input,
            input_size: piece.block.input_size,
            end: piece.end,
            offset: address.since(piece.start),
            reason: piece.block.reason,
            function: piece.function,
            calls,
        }
    }

    /// Everywhere that the input's code around `address` stands in the output, by start of the piece, with its reason.
    pub fn places(&self, address: InputAddr) -> Vec<(OutputAddr, Reason)> {
        let mut places: Vec<(OutputAddr, Reason)> =
            self.holding(address).map(|piece| (piece.start, piece.block.reason)).collect();
        places.sort_unstable();
        places
    }

    /// The pieces that stand for the input's code around `address`.
    fn holding(&self, address: InputAddr) -> impl Iterator<Item = &Piece> {
        let piece = |i: &u32| &self.by_output[*i as usize];
        let next = self.by_input.partition_point(|i| piece(i).block.input.is_some_and(|a| a <= address));
        let before = self.by_input[..next].iter().zip(&self.reach).rev();
        let near = before.take_while(move |(_, reach)| **reach > address).map(move |(i, _)| piece(i));
        near.filter(move |piece| piece.input_end().is_some_and(|end| address < end))
    }

    /// Where the input's code at `address` was copied to: the first place, if there are several; none if it stayed, or was written anew.
    pub fn copy_of(&self, address: InputAddr) -> Option<OutputAddr> {
        let copies = self.holding(address).filter(|piece| piece.block.reason == Reason::Copied);
        copies.filter_map(|piece| Some(piece.start + address.since(piece.block.input?))).min()
    }

    /// Whether any function was folded into another.
    pub fn has_folded(&self) -> bool {
        !self.folded.is_empty()
    }

    /// The function that the one at `entry` was folded into.
    pub fn folded_into(&self, entry: InputAddr) -> Option<InputAddr> {
        let found = self.folded.binary_search_by_key(&entry, |f| f.0).ok()?;
        Some(self.folded[found].1)
    }

    /// The functions that were folded into the one at `entry`.
    pub fn folded_from(&self, entry: InputAddr) -> impl Iterator<Item = InputAddr> {
        self.folded.iter().filter(move |(_, into)| *into == entry).map(|(from, _)| *from)
    }
}
