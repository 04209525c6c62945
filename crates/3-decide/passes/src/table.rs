//! The passes, in one ordered table: what the command line, the report and `bisect` know of them stands here.

use crate::pass::{CodeJob, OrderJob, Pass, Run};
use crate::{
    LayoutOptions, Parts, adjacent_functions, block_order, branches, check, code_prefetch, entry_marks,
    function_alignment, function_order, hot_inlining, identical_functions, inlining, plt_calls, splitting,
    tail_duplication,
};
use afterlink_program::{FuncId, Placement, Program};
use afterlink_weigh::Weights;
use std::time::Instant;

/// All passes, in the order in which they run: those that change code first.
pub const PASSES: [&Pass; 14] = [
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
) -> (Placement, Vec<PassRun>) {
    let mut ran = Vec::new();
    let mut checker = options.check_passes.then(|| check::Checker::new(program, weights, &moved));
    let mut parts: Option<Vec<Parts>> = None;
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
                let parts = parts.get_or_insert_with(|| Parts::of_input(program, &moved));
                run(&OrderJob { program, weights, options }, parts);
            }
        }
        ran.push(PassRun { name: pass.name, changes, seconds: started.elapsed().as_secs_f64() });
        if let Some(checker) = &mut checker {
            let placement = match &parts {
                Some(parts) => Parts::place(parts, options),
                None => Parts::place(&Parts::of_input(program, &moved), options),
            };
            checker.check(pass.name, program, weights, &placement);
        }
    }
    let parts = parts.unwrap_or_else(|| Parts::of_input(program, &moved));
    (Parts::place(&parts, options), ran)
}
