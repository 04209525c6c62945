//! The passes, in one ordered table: what the command line, the report and `bisect` know of them stands here.

use crate::pass::{BlockPlaces, CodeJob, OrderJob, Pass, PlaceJob, Run};
use crate::{
    LayoutOptions, Parts, adjacent_functions, block_order, branches, check, code_prefetch, entry_marks,
    function_alignment, function_order, hot_inlining, identical_functions, inlining, plt_calls,
    reserved_sets, splitting, tail_duplication,
};
use afterlink_program::{FuncId, Placement, Program};
use afterlink_weigh::Weights;
use std::borrow::Cow;
use std::time::Instant;

/// All passes, in the order in which they run: those that change code first.
pub const PASSES: [&Pass; 15] = [
    &identical_functions::PASS,
    &inlining::PASS,
    &hot_inlining::PROMOTION,
    &hot_inlining::PASS,
    &plt_calls::PASS,
    &entry_marks::PASS,
    &branches::PASS,
    &tail_duplication::PASS,
    &code_prefetch::PASS,
    &block_order::PASS,
    &splitting::PASS,
    &function_order::PASS,
    &adjacent_functions::PASS,
    &reserved_sets::PASS,
    &function_alignment::PASS,
];

/// The pass of that name.
pub fn named(name: &str) -> Option<&'static Pass> {
    PASSES.into_iter().find(|pass| pass.name == name)
}

/// A pass that ran.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct PassRun {
    pub name: &'static str,
    /// Places in code that it changed; absent of one that decides the order.
    pub changes: Option<usize>,
    /// Wall time.
    pub seconds: f64,
}

/// Runs all passes that are on over the functions that move, which [`moved`](crate::moved) has named.
///
/// # Panics
/// If the checker runs ([`LayoutOptions::check_passes`]) and finds that a pass has broken something.
pub fn run<'a>(
    program: &mut Program<'a>,
    weights: &mut Weights,
    mut moved: Vec<FuncId>,
    options: &LayoutOptions,
    block_places: &BlockPlaces,
) -> (Placement, Vec<PassRun>) {
    let mut ran = Vec::new();
    let mut checker = options.check_passes.then(|| check::Checker::new(program, weights, &moved));
    let (mut parts, mut placement): (Option<Vec<Parts>>, Option<Placement>) = (None, None);
    for pass in PASSES.into_iter().filter(|pass| pass.is_on(options)) {
        let started = Instant::now();
        let mut changes = None;
        match pass.run {
            Run::Code(run) => {
                // Invariant: passes over code come first in the table.
                assert!(parts.is_none(), "{} comes too late", pass.name);
                changes = Some(run(&mut CodeJob { program, weights, options, moved: &mut moved }));
            }
            Run::Order(run) => {
                // Invariant: and those over places last.
                assert!(placement.is_none(), "{} comes too late", pass.name);
                let parts = parts.get_or_insert_with(|| Parts::of_input(program, &moved));
                run(&OrderJob { program, weights, options }, parts);
            }
            Run::Place(run) => {
                let placement =
                    placement.get_or_insert_with(|| placed(program, &moved, parts.as_deref(), options));
                run(&PlaceJob { program, weights, options, block_places }, placement);
            }
        }
        ran.push(PassRun { name: pass.name, changes, seconds: started.elapsed().as_secs_f64() });
        if let Some(checker) = &mut checker {
            let so_far = match &placement {
                Some(placement) => Cow::Borrowed(placement),
                None => Cow::Owned(placed(program, &moved, parts.as_deref(), options)),
            };
            checker.check(pass.name, program, weights, &so_far);
        }
    }
    (placement.unwrap_or_else(|| placed(program, &moved, parts.as_deref(), options)), ran)
}

fn placed(
    program: &Program,
    moved: &[FuncId],
    parts: Option<&[Parts]>,
    options: &LayoutOptions,
) -> Placement {
    parts.map_or_else(
        || Parts::place(&Parts::of_input(program, moved), options),
        |parts| Parts::place(parts, options),
    )
}

/// Lets those passes that decide where things stand do so once more, after gaps have been put between them.
pub fn place_again(
    program: &Program,
    weights: &Weights,
    placement: &mut Placement,
    options: &LayoutOptions,
    block_places: &BlockPlaces,
) {
    for pass in PASSES.into_iter().filter(|pass| pass.is_on(options)) {
        if let Run::Place(run) = pass.run {
            run(&PlaceJob { program, weights, options, block_places }, placement);
        }
    }
}
