//! Going on with an experiment that has ended: what it found is kept, and the promise with it
//! ([`Looks::go_on`](crate::stats::looks::Looks::go_on)).

use afterlink_core::{Error, Result};

use super::rehearsal::Rehearsed;
use crate::analyse::metric_logs;
use crate::record::{ExperimentRecord, MachineRecord, Plan, Program, Resumption};
use crate::stats::power::PILOT_BLOCKS;

/// The plan of an experiment that goes on for at most `layouts` more layouts and `seconds`.
pub fn goes_on(earlier: &ExperimentRecord, layouts: u32, seconds: Option<f64>) -> Plan {
    let after = metric_logs(&earlier.blocks, &earlier.plan, 0).len() as u32;
    let mut plan = earlier.plan.clone();
    plan.resumed.push(Resumption { after, max_layouts: after + layouts.max(1) });
    plan.max_seconds = seconds;
    plan
}

/// Whether the runs of a layout were chosen before the experiment ended.
pub fn is_past_pilot(plan: &Plan) -> bool {
    plan.resumed.last().is_some_and(|last| last.after >= PILOT_BLOCKS)
}

/// Only the same programs on the same machine add to what is known.
///
/// # Errors
/// Something is another than it was.
pub fn check(earlier: &ExperimentRecord, programs: [&Program; 2], machine: &MachineRecord) -> Result<()> {
    for (then, now) in [&earlier.a, &earlier.b].into_iter().zip(programs) {
        if then.sha1 != now.sha1 {
            return Err(Error::new("this is not the file that the record is of any more")
                .in_file(now.path.display())
                .next("put back what was compared, or begin a comparison of its own"));
        }
    }
    if !earlier.machine.description.is_empty() && earlier.machine.description != machine.description {
        return Err(Error::new(format!(
            "the record was made on another machine: {}; this is {}",
            earlier.machine.description, machine.description
        ))
        .next("go on there, or begin a comparison of its own here"));
    }
    Ok(())
}

/// The workload must still do what it did.
///
/// # Errors
/// It prints something else.
pub fn check_output(earlier: &ExperimentRecord, now: &Rehearsed) -> Result<()> {
    let Some(expected) = now.expected_output.as_ref().filter(|_| earlier.rehearsal.output_checked) else {
        return Ok(());
    };
    let mut runs = earlier.blocks.iter().flat_map(|block| &block.runs).filter(|run| run.failure.is_none());
    if runs.any(|run| run.output != *expected) {
        return Err(Error::new("the workload prints something else than when the record was made")
            .next("put its files back as they were, or begin a comparison of its own"));
    }
    Ok(())
}
