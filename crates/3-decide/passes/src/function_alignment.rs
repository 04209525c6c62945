//! Where little code runs, hot functions start at cache lines.
//!
//! A processor fetches code in blocks of 16 to 64 bytes, and from a call on only what stands behind the call's target in its block. Code that does not fit into the
//! instruction cache is packed all the same: there each line more costs more than a short first fetch (`docs/decisions/0016-what-a-zen-5-says.md`).

use crate::Parts;
use crate::growth::LITTLE;
use crate::pass::{OrderJob, Pass, Run};
use afterlink_core::limits::CACHE_LINE;

pub(crate) const PASS: Pass = Pass {
    name: "function-alignment",
    what: "starts hot functions at cache lines where code that ran has 128 KiB at most",
    by_default: true,
    off: None,
    has_work: |options| options.function_alignment.is_none(),
    run: Run::Order(|job, parts| align(job, parts)),
};

fn align(job: &OrderJob, parts: &mut [Parts]) {
    let ran = |parts: &Parts| job.weights.functions.get(parts.function).is_some_and(|w| w.is_hot());
    let size = |parts: &Parts| {
        let blocks = &job.program.functions[parts.function].blocks;
        parts.hot.iter().chain(&parts.warm).map(|&block| u64::from(blocks[block].size)).sum::<u64>()
    };
    if parts.iter().filter(|parts| ran(parts)).map(size).sum::<u64>() > LITTLE {
        return;
    }
    let mut is_run_into = false;
    for parts in parts.iter_mut().filter(|parts| !parts.hot.is_empty()) {
        // What fills up to a function that control runs into would be executed.
        if ran(parts) && !is_run_into {
            parts.alignment = CACHE_LINE as u32;
        }
        is_run_into = parts.runs_on;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LayoutOptions;
    use afterlink_program::{BlockId, FuncId, text};

    #[test]
    fn what_does_not_fit_into_a_cache_stays_packed() {
        let text =
            "program x86-64 counted\nfunction main 0x1000+0x1\nblock b0 0x1000:\n  c3\n  return\nran 9: 9\n";
        let text::Listing { mut program, weights, .. } = text::read(text).expect("a program");
        let mut alignment = |size: u64| {
            program.functions[FuncId(0)].blocks[BlockId(0)].size = size as u32;
            let mut parts = Parts::of_input(&program, &[FuncId(0)]);
            let options = LayoutOptions::default();
            align(&OrderJob { program: &program, weights: &weights, options: &options }, &mut parts);
            parts[0].alignment
        };
        assert_eq!([alignment(1), alignment(128 << 10), alignment((128 << 10) + 1)], [64, 64, 1]);
    }
}
