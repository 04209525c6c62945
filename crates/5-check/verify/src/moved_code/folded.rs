//! Rule for folded functions: that the code of another one does what theirs did is proven like any moved code, at the same
//! places. What is asked here is that nobody can tell them apart: a folded function has no address that the program, the
//! dynamic linker or the kernel could get hold of.

use crate::address_map::places::MovedFunction;
use crate::addresses::taken;
use crate::check::Check;
use crate::kept_bytes::expected::Layout;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::elf;

pub(crate) fn check(check: &Check, layout: &Layout) -> Vec<Finding> {
    let folded: Vec<&MovedFunction> =
        check.places.functions.iter().filter(|f| f.folded_into.is_some()).collect();
    if folded.is_empty() {
        return Vec::new();
    }
    let mut known = taken::pointers(check, layout);
    let dynamic = check.input.dynamic_symbols.iter().filter(|s| s.is_defined()).map(|s| s.address.get());
    let hooks = [elf::DT_INIT.0, elf::DT_FINI.0];
    let hooks = check.input.dynamic.entries.iter().filter(|e| hooks.contains(&e.tag)).map(|e| e.value);
    known.extend(dynamic.chain(hooks).chain([check.input.entry.get()]));
    known.extend(&check.code.observed);
    known.sort_unstable();
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
