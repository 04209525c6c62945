//! Behind an instruction that only raises a signal (`ud2`, `hlt`) a handler may find code or data, by its distance. So what
//! stands there stays there and as it was, up to the next place that something names.

use crate::addresses::indirect_targets;
use crate::addresses::jumps::Jumps;
use crate::addresses::relative_words::Named;
use crate::check::Check;
use crate::input::code::{Inst, Kind};
use crate::kept_bytes::expected::Layout;
use crate::verdict::finding::{Finding, FindingKind};
use rayon::prelude::*;

/// An instruction behind a fault, in one block with it: moving must not have changed it.
pub(crate) fn check_inst(check: &Check, inst: &Inst, address: u64) -> Result<(), Box<Finding>> {
    let leaves = matches!(inst.kind, Kind::Return | Kind::IndirectJump);
    let is_fixed = inst.field().is_none() && check.references.fields_in(address, inst.len).is_empty();
    if is_fixed && (leaves || !inst.ends_block()) {
        return Ok(());
    }
    let what = "what stands behind a trap may be data, and depends on its place";
    Err(Box::new(Finding::new(FindingKind::Instruction, what).input(address)))
}

/// Blocks that start behind a fault are there because something names their start.
pub(crate) fn check(check: &Check, layout: &Layout, named_words: &Named, jumps: &Jumps) -> Vec<Finding> {
    let mut starts: Vec<u64> = check
        .places
        .functions
        .par_iter()
        .flat_map_iter(|f| {
            let blocks = &check.places.blocks[f.blocks.clone()];
            behind_faults(
                check,
                blocks.iter().filter(|b| !b.is_added()).map(|b| (b.input, b.input_end())).collect(),
            )
        })
        .collect();
    if starts.is_empty() {
        return Vec::new();
    }
    starts.sort_unstable();
    let mut named = vec![false; starts.len()];
    let mut name = |address: u64| {
        if let Ok(i) = starts.binary_search(&address) {
            named[i] = true;
        }
    };
    for section in &check.code.sections {
        let direct = check.code.section_insts(section).filter(|(_, _, inst)| inst.is_direct());
        direct.for_each(|(_, address, inst)| name(inst.target(&check.code, address)));
    }
    indirect_targets::all(check, layout, named_words, jumps).into_iter().for_each(&mut name);
    check.pads.all.iter().for_each(|&pad| name(pad));
    check.input.symbols.iter().for_each(|s| name(s.address.get()));
    let what = "the map separates a trap from what stands behind it and may be data";
    let unnamed = starts.iter().zip(named).filter(|(_, named)| !named);
    unnamed.map(|(&start, _)| Finding::new(FindingKind::Map, what).input(start)).collect()
}

/// The blocks that start where one with a fault ends. `blocks` are the starts and ends of a function's.
fn behind_faults(check: &Check, mut blocks: Vec<(u64, u64)>) -> Vec<u64> {
    let code = &check.code;
    let has_fault =
        |&(start, end): &(u64, u64)| code.insts[code.range(start, end)].iter().any(|i| i.kind == Kind::Fault);
    let ends: Vec<u64> = blocks.iter().filter(|b| has_fault(b)).map(|b| b.1).collect();
    if ends.is_empty() {
        return ends;
    }
    blocks.sort_unstable();
    ends.into_iter().filter(|end| blocks.binary_search_by_key(end, |b| b.0).is_ok()).collect()
}
