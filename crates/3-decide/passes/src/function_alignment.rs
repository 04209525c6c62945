//! Hot functions start where control crosses the fewest cache lines.
//!
//! A processor fetches code by lines, from its op cache as from its instruction cache: each branch that is taken begins with a new line, and so does
//! each step from the last byte of a line to the first of the next. Where a function starts in its line decides between which of its bytes those
//! steps are. A loop that lies in one line has none of them; so a function may leave some bytes free in front of it, where that saves as many steps as
//! the bytes cost (`docs/decisions/0020-cache-lines-that-are-crossed.md`).

use crate::adjacent_functions::falls_into;
use crate::growth::mean_count;
use crate::pass::{Pass, PlaceJob, Run};
use afterlink_core::limits::CACHE_LINE;
use afterlink_program::{Fragment, FuncId, Placement, Program, SectionId, Terminator};
use afterlink_weigh::{FunctionWeights, Weights};

pub(crate) const PASS: Pass = Pass {
    name: "function-alignment",
    what: "starts hot functions where control crosses the fewest cache lines",
    by_default: true,
    off: None,
    has_work: |options| options.function_alignment.is_none(),
    run: Run::Place(align),
};

/// A line of bytes that are left free must save so many steps for each time that a byte of the code that ran does so on average.
const LINE_COST: u128 = 4;

const LINE: usize = CACHE_LINE as usize;

fn align(job: &PlaceJob, placement: &mut Placement) {
    let PlaceJob { program, weights, offsets } = *job;
    let is_hot = |fragment: &Fragment| fragment.section == SectionId::HOT;
    // Invariant: fragments are in the order of their sections, and this one is the first.
    let hot = placement.fragments.partition_point(is_hot);
    let fragments = &mut placement.fragments[..hot];
    let mut functions: Vec<FuncId> = fragments.iter().map(|fragment| fragment.function).collect();
    functions.sort_unstable();
    functions.dedup();
    functions.retain(|function| weights.functions.get(*function).is_some());
    let byte_cost = LINE_COST * u128::from(mean_count(program, weights, &functions));
    if byte_cost == 0 {
        return;
    }
    let offsets = offsets(program, fragments);
    let mut end = 0;
    let mut first = 0;
    while first < fragments.len() {
        let behind = first + beside(program, &fragments[first..]);
        let mut steps = Steps::default();
        for (fragment, offsets) in fragments[first..behind].iter().zip(&offsets[first..behind]) {
            steps.add(program, weights, fragment, offsets);
        }
        let group = &mut fragments[first];
        let alignment = group.alignment_in(program);
        let start = (end + group.gap_before(program)).next_multiple_of(alignment);
        // Of a line, each place once.
        let starts = (start..start + CACHE_LINE).step_by(alignment as usize);
        let cost = |at: &u64| steps.at(*at) * LINE as u128 + byte_cost * u128::from(at - start);
        let best = starts.min_by_key(cost).unwrap_or(start);
        if best > start {
            group.padding = (best - end) as u32;
        }
        end = best + steps.size;
        first = behind;
    }
}

/// How many of these fragments stand side by side, as control runs on from each to the next.
fn beside(program: &Program, fragments: &[Fragment]) -> usize {
    let runs_on = |pair: &&[Fragment]| pair[0].runs_on && pair[0].stands_beside(&pair[1], program);
    fragments.windows(2).take_while(runs_on).count() + 1
}

/// How often control steps from a byte to the next, in fragments that stand side by side.
struct Steps {
    /// By the place of the second byte, from the start, in a line.
    by_place: [u128; LINE],
    /// Bytes so far.
    size: u64,
    /// How often control runs on from there.
    runs_on: u64,
}

impl Default for Steps {
    fn default() -> Self {
        Self { by_place: [0; LINE], size: 0, runs_on: 0 }
    }
}

impl Steps {
    fn add(&mut self, program: &Program, weights: &Weights, fragment: &Fragment, offsets: &[u32]) {
        let function = &program.functions[fragment.function];
        let unknown = FunctionWeights::default();
        let own = weights.functions.get(fragment.function).unwrap_or(&unknown);
        let start = self.size;
        let mut into = self.runs_on;
        for (i, (&block, place)) in fragment.blocks.iter().zip(offsets.windows(2)).enumerate() {
            let (from, to) = (start + u64::from(place[0]), start + u64::from(place[1]));
            self.step(from, into);
            let count = own.block(block);
            (from + 1..to).for_each(|at| self.step(at, count));
            let terminator = function.blocks[block].terminator;
            into = match (fragment.blocks.get(i + 1), terminator) {
                (None, _) => own.leaving(block, terminator),
                (Some(&behind), _) if !falls_into(function, block, behind) => 0,
                (Some(&behind), Terminator::Branch { .. } | Terminator::ShortBranch { .. }) => {
                    own.edge(block, behind)
                }
                (Some(_), _) => count,
            };
        }
        self.size = start + u64::from(*offsets.last().expect("one more offset than blocks"));
        self.runs_on = into;
    }

    fn step(&mut self, at: u64, count: u64) {
        self.by_place[at as usize % LINE] += u128::from(count);
    }

    /// How many lines control crosses, if the first byte stands there.
    fn at(&self, start: u64) -> u128 {
        self.by_place[(LINE - start as usize % LINE) % LINE]
    }
}
