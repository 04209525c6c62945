//! Whose blocks may stand in place of calls, and of which calls: what is asked here is that nobody can tell where they run.
//!
//! A function that somebody may look for where it stands has not moved (`addresses`), so a callee has to have moved. If somebody holds a
//! place inside of it (a table of where accesses may fault, a label that a handler goes on at), its code is looked for there, instruction by
//! instruction; and at its entry, if that is held and the instruction there may raise a signal. A landing pad finds the stack and the registers as they are at the call, so neither function may say anything of exceptions.

use crate::address_map::contexts::Context;
use crate::address_map::places::{MovedFunction, Reason};
use crate::addresses::jump_tables;
use crate::addresses::jumps::Jumps;
use crate::check::Check;
use crate::input::code::Kind;
use crate::kept_bytes::expected::Layout;
use crate::moved_code::asked::{self, Passed};
use crate::moved_code::looked_up;
use crate::unwind::rows::UnwindRows;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::elf;
use rustc_hash::FxHashMap;
use std::cell::OnceCell;

/// Checks all calls in place of which several pieces stand. `rows` are the input's.
pub(crate) fn check(check: &Check, layout: &Layout, jumps: &Jumps, rows: &UnwindRows) -> Vec<Finding> {
    let contexts = &check.places.contexts.all;
    if contexts.is_empty() {
        return Vec::new();
    }
    let mut held = held(check, layout, jumps);
    held.extend(&check.pads.all);
    held.sort_unstable();
    let callees = Callees {
        check,
        rows,
        held,
        looked_up: looked_up::places(check, layout, jumps),
        moved: check.places.functions.iter().map(|function| (function.entry, function)).collect(),
        passed: OnceCell::new(),
        around: OnceCell::new(),
        jumps,
    };
    contexts.iter().filter_map(|context| callees.fault(context)).collect()
}

/// Places in code that somebody has the address of, or the distance to, ascending. The words of tables that jumps go through are left out: those
/// jumps are all that is done with them, and landing pads.
pub(super) fn held(check: &Check, layout: &Layout, jumps: &Jumps) -> Vec<u64> {
    let mut held = known(check, jumps);
    held.extend(jump_tables::unclaimed(check, layout, jumps));
    held.sort_unstable();
    held
}

/// Places in code that the program, the dynamic linker, the kernel or a tracer has the address of, ascending.
pub(super) fn known(check: &Check, jumps: &Jumps) -> Vec<u64> {
    let mut known = jumps.taken.clone();
    known.extend(check.input.dynamic_symbols.iter().filter(|s| s.is_defined()).map(|s| s.address.get()));
    let hooks = [elf::DT_INIT.0, elf::DT_FINI.0];
    known.extend(check.input.dynamic.entries.iter().filter(|e| hooks.contains(&e.tag)).map(|e| e.value));
    known.push(check.input.entry.get());
    known.extend(&check.code.observed);
    known.sort_unstable();
    known
}

/// A place that somebody holds inside of a moved function, behind its entry.
pub(super) fn held_inside(check: &Check, held: &[u64], function: &MovedFunction) -> Option<u64> {
    let blocks = &check.places.blocks[function.blocks.clone()];
    blocks.iter().filter(|block| !block.is_added()).find_map(|block| {
        let first = held.partition_point(|&place| place < block.input);
        let within = held[first..].iter().take_while(|&&place| place < block.input_end());
        within.copied().find(|&place| place != function.entry)
    })
}

/// The functions around code that something else stands for, by where that starts.
fn around<'c>(check: &'c Check) -> FxHashMap<u64, &'c MovedFunction> {
    let functions = check.places.functions.iter().filter(|function| function.folded_into.is_none());
    let replaced = functions.flat_map(|function| {
        let own = check.places.blocks[function.blocks.clone()].iter();
        own.filter(|block| block.reason == Reason::Replaced).map(move |block| (block.input, function))
    });
    replaced.collect()
}

struct Callees<'c, 'a> {
    check: &'c Check<'c, 'a>,
    rows: &'c UnwindRows,
    held: Vec<u64>,
    looked_up: Vec<u64>,
    /// By entry.
    moved: FxHashMap<u64, &'c MovedFunction>,
    /// Asked of few.
    passed: OnceCell<Passed>,
    around: OnceCell<FxHashMap<u64, &'c MovedFunction>>,
    jumps: &'c Jumps,
}

impl Callees<'_, '_> {
    fn fault(&self, context: &Context) -> Option<Finding> {
        let finding = |kind, what: &str| Some(Finding::new(kind, what).input(context.call));
        if self.check.places.counters.is_some() {
            return finding(
                FindingKind::Counter,
                "code stands in place of a call where something is counted",
            );
        }
        if self.says_of_exceptions(context.call) {
            let what = "code stands in place of a call in a function that says where exceptions lead";
            return finding(FindingKind::Unwind, what);
        }
        let callee = self.check.callee(context).and_then(|callee| self.moved.get(&callee));
        let Some(callee) = callee.filter(|callee| callee.folded_into.is_none()) else {
            let what = "code stands in place of a call of what has not moved, as somebody may look for it";
            return finding(FindingKind::Pointer, what);
        };
        if let Some(what) = self.question_fault(context, callee) {
            return finding(FindingKind::Instruction, what);
        }
        let blocks = &self.check.places.blocks[callee.blocks.clone()];
        let own = || blocks.iter().filter(|block| !block.is_added());
        if own().any(|block| self.says_of_exceptions(block.input)) {
            let what = "code of a function that says where exceptions lead stands in place of a call";
            return finding(FindingKind::Unwind, what);
        }
        if looked_up::is_at(self.check, &self.looked_up, callee.entry) {
            let what = "code stands in place of a call of a function, at whose entry a handler of signals may look an instruction up";
            return Some(Finding::new(FindingKind::Pointer, what).input(context.call).names(callee.entry));
        }
        let inside = held_inside(self.check, &self.held, callee);
        let what = "code stands in place of a call of a function, inside of which somebody knows a place";
        Some(Finding::new(FindingKind::Pointer, what).input(context.call).names(inside?))
    }

    /// What is wrong with a question in front of an indirect call.
    fn question_fault(&self, context: &Context, callee: &MovedFunction) -> Option<&'static str> {
        let check = self.check;
        check.code.at(context.call).filter(|call| call.kind == Kind::IndirectCall)?;
        if looked_up::is_at(check, &self.looked_up, context.call) {
            return Some("a handler of signals may look a call up in front of which its word is read");
        }
        let passed = self.passed.get_or_init(|| Passed::find(check, self.jumps));
        let around = self.around.get_or_init(|| around(check)).get(&context.call)?;
        asked::fault(check, passed, context, (around, callee))
    }

    fn says_of_exceptions(&self, address: u64) -> bool {
        self.rows.entry(address).is_some_and(|entry| entry.area.is_some() || entry.has_unknown_data)
    }
}
