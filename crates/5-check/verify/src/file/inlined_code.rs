//! Runs of callees' blocks in place of calls: each has the callee's name, in the midst of another function's code.

use crate::check::Check;
use afterlink_image::Symbol;
use rustc_hash::FxHashSet;

/// A run.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub start: u64,
    pub end: u64,
    /// The callee's entry in the input.
    pub callee: u64,
}

/// All of them, ascending.
pub(super) fn runs(check: &Check) -> Vec<Run> {
    let places = &check.places;
    let mut runs: Vec<Run> = Vec::new();
    for context in &places.contexts.all {
        let Some(callee) = check.callee(context) else { continue };
        let parts = context.parts.iter().filter(|part| part.output_size > 0);
        let mut parts: Vec<(u64, u64)> = parts.map(|part| (part.output, part.output_end())).collect();
        parts.sort_unstable();
        let first = runs.len();
        for (start, end) in parts {
            let goes_on =
                |run: &Run| run.end == start && places.fragment_at(run.start) == places.fragment_at(start);
            match runs[first..].last_mut().filter(|run| goes_on(run)) {
                Some(run) => run.end = end,
                None => runs.push(Run { start, end, callee }),
            }
        }
    }
    runs.sort_unstable_by_key(|run| run.start);
    runs
}

/// What of a fragment has its own function's name: what is behind runs with which it begins.
pub(super) fn own(runs: &[Run], (mut start, end): (u64, u64)) -> (u64, u64) {
    let starts_at = |at: u64| {
        let next = runs.partition_point(|run| run.start < at);
        runs.get(next).filter(|run| run.start == at && at < end)
    };
    while let Some(run) = starts_at(start) {
        start = run.end;
    }
    (start, end)
}

/// What of a fragment stands behind runs, each up to the next one, and has its function's name, too: all but what [`own`] gives up to the first.
pub(super) fn rests(runs: &[Run], fragment: (u64, u64)) -> Vec<(u64, u64)> {
    let (start, end) = own(runs, fragment);
    let first = runs.partition_point(|run| run.start < start);
    let within = &runs[first..][..runs[first..].partition_point(|run| run.start < end)];
    let next = within.iter().skip(1).map(|run| run.start).chain([end]);
    within.iter().zip(next).map(|(run, next)| (run.end, next)).filter(|(start, end)| start < end).collect()
}

/// Those of whose name the dynamic symbols tell nothing: none of them may cover such a run, as the code would have another function's name.
pub(super) fn nameless(check: &Check, runs: &[Run]) -> Vec<Run> {
    let names = check.output.dynamic_symbols.iter().filter(Symbol::is_defined);
    let names: FxHashSet<(u64, u64)> = names.map(|s| (s.address.get(), s.size)).collect();
    let is_nameless = |run: &&Run| !names.contains(&(run.start, run.end - run.start));
    runs.iter().filter(is_nameless).copied().collect()
}

/// Where a symbol ends that starts at `start`, of what ends at `end`, if it must not reach into any of the runs.
pub(super) fn up_to(runs: &[Run], start: u64, end: u64) -> u64 {
    let next = runs.partition_point(|run| run.start < start);
    runs.get(next).map_or(end, |run| run.start.min(end))
}
