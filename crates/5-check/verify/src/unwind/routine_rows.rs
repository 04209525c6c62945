//! The unwind entry of the routine that counts targets: a signal may come anywhere in it, and whoever then looks for its caller finds
//! the code that called it, with the registers that it saved.

use crate::check::Check;
use crate::unwind::rows::{self, Unwinding};
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_isa::judgement::Routine;

/// The routine, if the output has one.
pub(crate) fn routine(check: &Check) -> Option<Routine> {
    check.places.counters.and_then(|counters| counters.routine)
}

/// Where anything has an entry, the routine has one, and its rows say what it has saved.
pub(crate) fn check(check: &Check, unwinding: &Unwinding) -> Option<Finding> {
    let routine = routine(check).filter(|_| !unwinding.output.entries.is_empty())?;
    let steps = Routine::saved(check.output.arch);
    let mut hint = 0;
    let wrong = steps.iter().enumerate().find_map(|(i, step)| {
        let start = routine.start + step.at;
        let end = steps.get(i + 1).map_or(routine.end, |next| routine.start + next.at);
        let (found, found_end) = unwinding.output.of_moved(&mut hint, start);
        (found != Some(&rows::saving(step.registers)) || found_end < end).then_some(start)
    })?;
    let what = "unwinding from the routine that counts targets gives another caller or other registers";
    Some(Finding::new(FindingKind::Unwind, what).output(wrong))
}
