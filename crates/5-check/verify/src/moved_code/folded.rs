//! Rule for folded functions: that the code of another one does what theirs did is proven like any moved code, at the same
//! places. What is asked here is that nobody can tell them apart: a folded function has no address that the program, the
//! dynamic linker or the kernel could get hold of.

use crate::address_map::places::MovedFunction;
use crate::addresses::jumps::Jumps;
use crate::check::Check;
use crate::moved_code::callees::known;
use crate::verdict::finding::{Finding, FindingKind};

pub(crate) fn check(check: &Check, jumps: &Jumps) -> Vec<Finding> {
    let folded: Vec<&MovedFunction> =
        check.places.functions.iter().filter(|f| f.folded_into.is_some()).collect();
    if folded.is_empty() {
        return Vec::new();
    }
    let known = known(check, jumps);
    let held = |function: &MovedFunction| {
        let blocks = &check.places.blocks[function.blocks.clone()];
        blocks.iter().find_map(|block| {
            let first = known.partition_point(|&address| address < block.input);
            known.get(first).copied().filter(|&address| address < block.input_end())
        })
    };
    let faults = folded.iter().filter_map(|function| {
        let what = "the function was folded into another, though its address can be told from that one's";
        Some(Finding::new(FindingKind::Pointer, what).input(function.entry).names(held(function)?))
    });
    let traced = folded.iter().filter_map(|function| {
        let what = "the function was folded into one with a probe, whose tracer would count its calls, too";
        let probe = check.places.blocks[function.blocks.clone()].iter().find_map(|block| {
            let observed = &check.places.observed;
            let first = observed.partition_point(|&place| place < block.output);
            observed.get(first).copied().filter(|&place| place < block.output_end())
        });
        Some(Finding::new(FindingKind::Probe, what).input(function.entry).output(probe?))
    });
    faults.chain(traced).collect()
}
