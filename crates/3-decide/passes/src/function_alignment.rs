//! Hot code starts where control crosses the fewest cache lines.
//!
//! A processor fetches code by lines, from its op cache as from its instruction cache: each branch that is taken begins with a new line, and so does
//! each step from the last byte of a line to the first of the next. Where code starts in its line decides between which of its bytes those
//! steps are. A loop that lies in one line has none of them; so some bytes may be left free in front of a function, or of a block that nothing runs
//! into, where that saves as many steps as the bytes cost (`docs/decisions/0020-cache-lines-that-are-crossed.md`).

mod places;

use crate::adjacent_functions::falls_into;
use crate::growth::mean_count;
use crate::pass::{Pass, PlaceJob, Run};
use afterlink_program::{
    BlockId, Fragment, FuncId, Function, Placement, Program, SectionId, Terminator, to_place,
};
use afterlink_weigh::{FunctionWeights, Weights};
use places::{Places, Steps};
use std::ops::Range;

pub(crate) const PASS: Pass = Pass {
    name: "function-alignment",
    what: "starts hot functions, and blocks that nothing runs into, where control crosses the fewest cache lines",
    by_default: true,
    off: None,
    has_work: |options| options.function_alignment.is_none(),
    run: Run::Place(align),
};

/// A line of bytes that are left free must save so many steps for each time that a byte of the code that ran does so on average.
const LINE_COST: u64 = 4;

/// How often places are looked for: bytes that are left free may make a jump longer.
const ROUNDS: usize = 2;

pub(crate) fn align(job: &PlaceJob, placement: &mut Placement) {
    let PlaceJob { program, weights, options, block_places } = *job;
    let packed = options.packed_fragments;
    let is_hot = |fragment: &Fragment| fragment.section == SectionId::HOT;
    // Invariant: fragments are in the order of their sections, and this one is the first.
    let hot = placement.fragments.partition_point(is_hot);
    let fragments = &mut placement.fragments[..hot];
    let mut functions = functions_of(fragments);
    functions.retain(|function| weights.functions.get(*function).is_some());
    let byte_cost = LINE_COST * mean_count(program, weights, &functions);
    if byte_cost == 0 {
        return;
    }
    fragments.iter_mut().for_each(|fragment| fragment.places.clear());
    let mut sizes = sizes(&block_places(program, fragments));
    for round in 1.. {
        let pieces = Code { program, weights, fragments, sizes: &sizes, packed }.pieces(byte_cost);
        let starts = place_inside(fragments, &pieces, &sizes);
        let found = block_places(program, fragments);
        let sizes_now = self::sizes(&found);
        if round == ROUNDS || sizes_now == sizes {
            place(program, fragments, &starts, &found);
            break;
        }
        sizes = sizes_now;
    }
}

/// The functions that these fragments are of, each once.
pub(crate) fn functions_of(fragments: &[Fragment]) -> Vec<FuncId> {
    let mut functions: Vec<FuncId> = fragments.iter().map(|fragment| fragment.function).collect();
    functions.sort_unstable();
    functions.dedup();
    functions
}

/// Bytes of each block, with its jumps.
fn sizes(places: &[Vec<Range<u32>>]) -> Vec<Vec<u32>> {
    let of_fragment = |places: &Vec<Range<u32>>| places.iter().map(|place| place.end - place.start).collect();
    places.iter().map(of_fragment).collect()
}

/// Whether bytes may be left free between two blocks, which stand one behind the other. Each byte of what runs in place of a call has unwind rows of
/// its own.
pub(crate) fn may_stand_apart(function: &Function, block: BlockId, behind: BlockId) -> bool {
    let block_itself = &function.blocks[block];
    !falls_into(function, block, behind)
        && !matches!(block_itself.terminator, Terminator::LastCall(_))
        && function.in_place_of(block_itself).is_none()
}

/// Code that stands packed; bytes can be left free in front of it only.
struct Piece {
    /// Where it starts: the fragment, and which of its blocks.
    fragment: usize,
    block: usize,
    /// Bytes.
    size: u64,
    /// Bytes that are left free in any case, and what it then starts at a multiple of.
    gap: u64,
    alignment: u64,
    /// Where it starts in a line, at best.
    place: u64,
}

struct Code<'c, 'a> {
    program: &'c Program<'a>,
    weights: &'c Weights,
    fragments: &'c [Fragment],
    sizes: &'c [Vec<u32>],
    /// Whether no bytes may be left free inside of fragments.
    packed: bool,
}

impl Code<'_, '_> {
    /// All that stands packed, and where each piece is to start.
    fn pieces(&self, byte_cost: u64) -> Vec<Piece> {
        let mut places = Places::new(byte_cost);
        let mut pieces = Vec::new();
        let mut first = 0;
        while first < self.fragments.len() {
            let behind = first + beside(self.program, &self.fragments[first..]);
            let mut steps = Steps::default();
            let mut start = (first, 0);
            let mut end = |start: (usize, usize), steps: &Steps| {
                let piece = self.piece(start, steps.size);
                places.add(&piece, steps);
                pieces.push(piece);
            };
            for at in first..behind {
                // Bytes inside of one that runs on would change how many are in front of the next.
                let may_have_gaps = at + 1 == behind && !self.packed;
                for block in 0..self.fragments[at].blocks.len() {
                    if may_have_gaps && block > 0 && self.may_start(at, block) {
                        end(std::mem::replace(&mut start, (at, block)), &std::mem::take(&mut steps));
                    }
                    self.add_block(&mut steps, at, block);
                }
            }
            end(start, &steps);
            first = behind;
        }
        for (piece, place) in pieces.iter_mut().zip(places.best()) {
            piece.place = place;
        }
        pieces
    }

    fn piece(&self, (fragment, block): (usize, usize), size: u64) -> Piece {
        let own = &self.fragments[fragment];
        let (gap, alignment) = match block {
            0 => (own.gap_before(self.program), own.alignment_in(self.program)),
            _ => (0, self.program.arch.alignment()),
        };
        Piece { fragment, block, size, gap, alignment, place: 0 }
    }

    /// Whether bytes may be left free in front of a block that ran.
    fn may_start(&self, fragment: usize, at: usize) -> bool {
        let Fragment { function, blocks, .. } = &self.fragments[fragment];
        let ran = self.weights.functions.get(*function).is_some_and(|own| own.block(blocks[at]) > 0);
        ran && may_stand_apart(&self.program.functions[*function], blocks[at - 1], blocks[at])
    }

    fn add_block(&self, steps: &mut Steps, fragment: usize, at: usize) {
        let Fragment { function: id, blocks, .. } = &self.fragments[fragment];
        let function = &self.program.functions[*id];
        let unknown = FunctionWeights::default();
        let own = self.weights.functions.get(*id).unwrap_or(&unknown);
        let block = blocks[at];
        let count = own.block(block);
        let terminator = function.blocks[block].terminator;
        let onward = match (blocks.get(at + 1), terminator) {
            (None, _) => own.leaving(block, terminator),
            (Some(&behind), _) if !falls_into(function, block, behind) => 0,
            (Some(&behind), Terminator::Branch { .. } | Terminator::ShortBranch { .. }) => {
                own.edge(block, behind)
            }
            (Some(_), _) => count,
        };
        steps.add(self.sizes[fragment][at], count, onward);
    }
}

/// Says of the blocks that pieces start with where they are to start; gives where in a line each fragment is to start that is not the one behind
/// another from which control runs on.
fn place_inside(fragments: &mut [Fragment], pieces: &[Piece], sizes: &[Vec<u32>]) -> Vec<(usize, u64)> {
    fragments.iter_mut().for_each(|fragment| fragment.places.clear());
    let mut starts: Vec<(usize, u64)> = Vec::new();
    for piece in pieces {
        let Some((first, place)) = starts.last().copied().filter(|_| piece.block > 0) else {
            starts.push((piece.fragment, piece.place));
            continue;
        };
        // What is in front of it in its group has no bytes left free.
        let in_front: u64 = sizes[first..piece.fragment].iter().flatten().map(|&size| u64::from(size)).sum();
        let fragment = &mut fragments[piece.fragment];
        fragment.places.resize(fragment.blocks.len(), None);
        // Smaller than a line.
        fragment.places[piece.block] = Some(to_place(place + in_front, piece.place) as u8);
    }
    starts
}

/// Leaves bytes free in front of fragments that are to start at these places of a line.
fn place(program: &Program, fragments: &mut [Fragment], starts: &[(usize, u64)], found: &[Vec<Range<u32>>]) {
    let mut end = 0;
    let mut starts = starts.iter().copied().peekable();
    for (at, (fragment, places)) in fragments.iter_mut().zip(found).enumerate() {
        let start = fragment.start_behind(end, program);
        let mut best = start;
        if let Some((_, place)) = starts.next_if(|(first, _)| *first == at) {
            best += to_place(start, place);
            if best > start {
                fragment.padding = (best - end) as u32;
            }
        }
        end = best + places.last().map_or(0, |place| u64::from(place.end));
    }
}

/// How many of these fragments stand side by side, as control runs on from each to the next.
pub(crate) fn beside(program: &Program, fragments: &[Fragment]) -> usize {
    let runs_on = |pair: &&[Fragment]| pair[0].runs_on && pair[0].stands_beside(&pair[1], program);
    fragments.windows(2).take_while(runs_on).count() + 1
}
