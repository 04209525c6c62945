//! The counters of an instrumented output, and what is wrong where their code disturbs the program.

use crate::moved_code::counter_sections;
use afterlink_image::Image;
use afterlink_isa::judgement::{Counters, Effect, Routine};

/// The counters themselves, without the header and the description that will stand in front of them.
pub(crate) fn find(output: &Image) -> Option<Counters> {
    let (start, end) = counter_sections::memory(output)?;
    let header = counter_sections::header(output)?;
    let first = start.checked_add(header.counters_offset())?;
    let end = first.checked_add(header.counter_count * 8).filter(|&last| last <= end)?;
    let routine = counter_sections::section(output, counter_sections::TARGETS);
    let routine = routine.and_then(|(section, code)| Routine::read(output.arch, code, section.address.get()));
    Some(Counters { arch: output.arch, start: first, end, routine })
}

/// What is wrong where the effect disturbs the program.
pub(crate) fn fault(effect: Effect) -> &'static str {
    match effect {
        Effect::Flags => "counter code changes flags that are still read",
        Effect::Register(_) => "counter code changes a register that may still be read",
        Effect::Nothing(_) | Effect::Cache => "counter code disturbs the program",
        Effect::Targets(_) => "code that counts targets changes flags that may still be read",
    }
}
