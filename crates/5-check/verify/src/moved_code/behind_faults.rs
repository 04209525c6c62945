//! Behind an instruction that only raises a signal (`ud2`, `hlt`) a handler may find code or data, by its distance. So what
//! stands there stays there and as it was, up to the next place that something names.

use crate::address_map::places::MovedFunction;
use crate::addresses::indirect_targets;
use crate::addresses::jumps::Jumps;
use crate::addresses::relative_words::Named;
use crate::check::Check;
use crate::input::code::{Inst, Kind};
use crate::input::ranges::{holds, merged};
use crate::kept_bytes::expected::Layout;
use crate::verdict::finding::{Finding, FindingKind};
use rayon::prelude::*;
use std::collections::BTreeSet;

/// An instruction behind a fault, in one block with it: moving must not have changed it. Control may leave there only if `is_last`,
/// nothing of the function stood behind the block: what looks like a return may be the end of another instruction.
pub(crate) fn check_inst(
    check: &Check,
    inst: &Inst,
    address: u64,
    is_last: bool,
) -> Result<(), Box<Finding>> {
    let leaves = is_last && matches!(inst.kind, Kind::Return | Kind::IndirectJump);
    let is_fixed = inst.field().is_none() && check.references.fields_in(address, inst.len).is_empty();
    if is_fixed && (leaves || !inst.ends_block()) {
        return Ok(());
    }
    let what = "what stands behind a trap may be data, and depends on its place";
    Err(Box::new(Finding::new(FindingKind::Instruction, what).input(address)))
}

/// A function with faults.
struct Suspect {
    /// Its blocks' starts and ends, ascending.
    blocks: Vec<(u64, u64)>,
    /// Where instructions stand that only raise a signal, up to the next one, ascending.
    cuts: Vec<u64>,
    /// Where blocks start behind such.
    starts: Vec<u64>,
}

/// Blocks that start behind a fault are there because something names their start that is surely code.
pub(crate) fn check(check: &Check, layout: &Layout, named_words: &Named, jumps: &Jumps) -> Vec<Finding> {
    let suspects: Vec<Suspect> =
        check.places.functions.par_iter().filter_map(|function| suspect(check, function)).collect();
    if suspects.is_empty() {
        return Vec::new();
    }
    let edges = edges_into(check, &suspects);
    let mut named = indirect_targets::all(check, layout, named_words, jumps);
    named.extend(&check.pads.all);
    named.extend(check.input.symbols.iter().map(|s| s.address.get()));
    named.sort_unstable();
    let what = "the map separates a trap from what stands behind it and may be data";
    let finding = |start: &u64| Finding::new(FindingKind::Map, what).input(*start);
    let unnamed = suspects.par_iter().flat_map_iter(|suspect| {
        let sure = suspect.sure(&edges, &named);
        suspect.starts.iter().filter(move |start| sure.binary_search(start).is_err()).map(finding)
    });
    unnamed.collect()
}

/// All branches and calls into suspects, and where from. Ascending.
fn edges_into(check: &Check, suspects: &[Suspect]) -> Vec<(u64, u64)> {
    let blocks = merged(suspects.iter().flat_map(|suspect| &suspect.blocks).copied().collect());
    let mut edges: Vec<(u64, u64)> = Vec::new();
    for section in &check.code.sections {
        edges.par_extend(check.code.section_chunks(section).flat_map_iter(|chunk| {
            let direct = chunk.filter(|(_, _, inst)| inst.is_direct());
            let all = direct.map(|(_, address, inst)| (inst.target(&check.code, address), address));
            all.filter(|edge| holds(&blocks, edge.0))
        }));
    }
    edges.par_sort_unstable();
    edges
}

fn suspect(check: &Check, function: &MovedFunction) -> Option<Suspect> {
    let code = &check.code;
    let blocks = check.places.blocks[function.blocks.clone()].iter().filter(|b| !b.is_added());
    let mut blocks: Vec<(u64, u64)> = blocks.map(|b| (b.input, b.input_end())).collect();
    let (mut cuts, mut ends) = (Vec::new(), Vec::new());
    for &(start, end) in &blocks {
        let mut at = start;
        let before = cuts.len();
        for inst in &code.insts[code.range(start, end)] {
            at += u64::from(inst.len);
            if inst.kind == Kind::Fault {
                cuts.push(at);
            }
        }
        if cuts.len() > before {
            ends.push(end);
        }
    }
    if cuts.is_empty() {
        return None;
    }
    blocks.sort_unstable();
    cuts.sort_unstable();
    let is_start = |end: &u64| blocks.binary_search_by_key(end, |b| b.0).is_ok();
    let starts: Vec<u64> = ends.into_iter().filter(is_start).collect();
    Some(Suspect { blocks, cuts, starts })
}

impl Suspect {
    /// Places of the function that something outside of it names, or a branch that is surely code: there is no fault between it and
    /// such a place in front of it. Branches among data may name anything, themselves too. Ascending.
    fn sure(&self, edges: &[(u64, u64)], named: &[u64]) -> Vec<u64> {
        let mut sure: BTreeSet<u64> = BTreeSet::new();
        let mut open: Vec<(u64, u64)> = Vec::new();
        for &(start, end) in &self.blocks {
            let from = named.partition_point(|&n| n < start);
            sure.extend(named[from..].iter().take_while(|&&n| n < end));
            let from = edges.partition_point(|edge| edge.0 < start);
            for &(target, source) in edges[from..].iter().take_while(|edge| edge.0 < end) {
                if holds(&self.blocks, source) {
                    open.push((source, target));
                } else {
                    sure.insert(target);
                }
            }
        }
        open.sort_unstable();
        // A round for each branch at most; code mostly goes forward.
        loop {
            let before = open.len();
            open.retain(|&(source, target)| {
                let nearest = sure.range(..=source).next_back();
                let cut =
                    self.cuts.partition_point(|&cut| cut <= source).checked_sub(1).map(|i| self.cuts[i]);
                let is_sure = nearest.is_some_and(|&start| cut.is_none_or(|cut| cut <= start));
                if is_sure {
                    sure.insert(target);
                }
                !is_sure
            });
            if open.len() == before {
                return sure.into_iter().collect();
            }
        }
    }
}
