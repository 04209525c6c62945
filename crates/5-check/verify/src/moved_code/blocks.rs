//! Moved code: each block of the map has the input's instructions, with operands that mean the same, and
//! control leaves it for the corresponding places.

use crate::address_map::places::{MovedFunction, Reason};
use crate::addresses::indirect_targets;
use crate::addresses::jumps::Jumps;
use crate::addresses::relative_words::Named;
use crate::check::Check;
use crate::kept_bytes::expected::Layout;
use crate::moved_code::depths::Depths;
use crate::moved_code::duplicates;
use crate::moved_code::entry_marks;
use crate::moved_code::liveness::Liveness;
use crate::moved_code::looked_up;
use crate::moved_code::walk::Walk;
use crate::unwind::rows::UnwindRows;
use crate::verdict::finding::{Finding, FindingKind};
use rayon::prelude::*;

/// Findings in one function after which the rest of it is not looked at.
const ENOUGH: usize = 4;

/// Checks all moved functions and the padding between them.
/// `rows` are the input's.
pub(crate) fn check(
    check: &Check,
    rows: &UnwindRows,
    layout: &Layout,
    named: &Named,
    jumps: &Jumps,
) -> Vec<Finding> {
    let functions = &check.places.functions;
    let known = Known::of(check, layout, named, jumps);
    let of_function = |function| check_function(check, rows, function, &known);
    let mut findings: Vec<Finding> = functions.par_iter().flat_map_iter(of_function).collect();
    findings.extend(check_gaps(check));
    findings
}

/// Places that matter to what is added in front of them.
#[derive(Default)]
struct Known<'j> {
    /// Those that an indirect jump may lead to, ascending.
    taken: Vec<u64>,
    /// Those at which [somebody may look an instruction up](looked_up), ascending.
    held: Vec<u64>,
    /// Indirect jumps that lead to none of them in their own function, ascending.
    leaving: &'j [u64],
}

impl<'j> Known<'j> {
    fn of(check: &Check, layout: &Layout, named: &Named, jumps: &'j Jumps) -> Self {
        if !check.places.have_added() {
            return Self::default();
        }
        let is_counted = check.places.counters.is_some();
        let taken = if is_counted { indirect_targets::all(check, layout, named, jumps) } else { Vec::new() };
        Self { taken, held: looked_up::places(check, layout, jumps), leaving: &jumps.leaving }
    }
}

fn check_function(check: &Check, rows: &UnwindRows, function: &MovedFunction, known: &Known) -> Vec<Finding> {
    let blocks = &check.places.blocks[function.blocks.clone()];
    let mut findings = Vec::new();
    if blocks.first().is_none_or(|b| b.is_added() || b.input != function.entry) {
        let what = "the function's first block is not its entry";
        findings.push(Finding::new(FindingKind::Map, what).input(function.entry));
    }
    let liveness = check.places.counters.map(|_| Liveness::of(check, function, &known.taken, known.leaving));
    let liveness = liveness.as_ref();
    let depths = Depths::of(check, rows, blocks);
    let duplicates = &duplicates::places(blocks);
    let faults = blocks.iter().filter_map(|block| {
        let (input, output, end) = (block.input, block.output, block.output_end());
        let held = &known.held;
        let walk = Walk { check, liveness, held, own: blocks, context: None, duplicates, input, output, end };
        let fault = match block.reason {
            Reason::Inserted => walk.padding(true),
            Reason::Copied => walk.block(block),
            Reason::Duplicated => walk.duplicate(block, function.entry),
            Reason::Replaced => match check.places.contexts.of_call(block.input) {
                Some(context) => walk.leads_in(block, context),
                None if entry_marks::is_mark(check, block) => walk.unmarked(block, function.entry),
                None => walk.replaced(block),
            },
            Reason::InPlace(context) => walk.in_place(block, context, &depths),
            Reason::Inlined(row) => {
                walk.inlined(block, check.places.inlined[row as usize], function.folded_into.is_some())
            }
        };
        fault.err()
    });
    findings.extend(faults.take(ENOUGH).map(|fault| *fault));
    findings
}

/// Between fragments only padding may stand.
fn check_gaps(check: &Check) -> Vec<Finding> {
    let places = &check.places;
    let gaps = places.fragments.windows(2).filter(|pair| pair[0].1 < pair[1].0).filter_map(|pair| {
        let (start, end) = (pair[0].1, pair[1].0);
        let bytes = places.output_bytes(start).get(..(end - start) as usize)?;
        // Between sections of code the file is filled with zeroes; then the next section may begin with padding.
        let zeroes = bytes.iter().take_while(|&&byte| byte == 0).count() as u64;
        let walk = Walk {
            check,
            liveness: None,
            held: &[],
            own: &[],
            context: None,
            duplicates: &[],
            input: 0,
            output: start + zeroes,
            end,
        };
        walk.padding(false).err().map(|finding| Finding { input: None, ..*finding })
    });
    gaps.take(ENOUGH).collect()
}
