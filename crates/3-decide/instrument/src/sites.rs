//! Where in a block a counter may stand, and in which form it is cheapest there.

use afterlink_analyze::liveness::Liveness;
use afterlink_analyze::scan::{Scan, Step};
use afterlink_isa::{Arch, CounterForm, Places, StepKind};
use afterlink_program::{BlockId, Function, Terminator};

/// A place for a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    /// Bytes from the block's start.
    pub offset: u32,
    pub form: CounterForm,
}

/// The best places of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockSites {
    /// Before its first call that may not come back; anywhere if it has none. `None` if a handler of the signal which that raises, or an access to
    /// memory that ends the function, may know it as what a label names.
    pub start: Option<Site>,
    /// Behind its last such call.
    pub end: Option<Site>,
}

/// Finds the best places of a block; `stops` says which steps are calls that may not come back, `is_held` whether somebody has the
/// address of the function's entry.
pub(crate) fn of_block(
    function: &Function,
    scan: &Scan,
    liveness: &Liveness,
    is_held: bool,
    block: BlockId,
    stops: impl Fn(&Step) -> bool,
) -> BlockSites {
    let steps = scan.steps(block);
    let own = &function.blocks[block];
    let arch = scan.arch();
    let mut needed = vec![Places::NONE; steps.len() + 1];
    liveness.before_steps(function, scan, block, |i, places| needed[i] = places);
    let gaps = Gaps::new(function, scan, is_held, block);
    let allowed = |i: usize| gaps.may_have_code(i);
    let offset = |i: usize| steps.get(i).map_or(own.body, |s| s.at);
    let best = |range: std::ops::Range<usize>| {
        let points = || range.clone().filter(|&i| allowed(i));
        let free = points().find(|&i| !needed[i].meets(arch.flags()));
        if let Some(i) = free {
            return Some(Site { offset: offset(i), form: CounterForm::Increment });
        }
        let with_register = points().find_map(|i| Some((i, unneeded_register(arch, needed[i])?)));
        if let Some((i, register)) = with_register {
            return Some(Site { offset: offset(i), form: CounterForm::Register(register) });
        }
        points().next().map(|i| Site { offset: offset(i), form: CounterForm::Spill })
    };
    let first_stop = steps.iter().position(&stops);
    let last_stop = steps.iter().rposition(stops);
    let start = best(0..first_stop.map_or(steps.len(), |i| i) + 1);
    let end = last_stop.and_then(|i| best(i + 1..steps.len() + 1));
    BlockSites { start, end }
}

/// The places in front of a block's steps, and behind the last one. What holds for all of them is found once.
pub(crate) struct Gaps<'a> {
    steps: &'a [Step],
    /// The first step that faults, or as many as there are.
    fault: usize,
    ends_in_body: bool,
    /// Whether others may know the first step by its address.
    is_known: bool,
}

impl<'a> Gaps<'a> {
    /// `is_held` says whether somebody has the address of the function's entry.
    pub(crate) fn new(function: &Function, scan: &'a Scan, is_held: bool, block: BlockId) -> Self {
        let steps = scan.steps(block);
        let own = &function.blocks[block];
        let fault = steps.iter().position(|s| s.kind == StepKind::Fault).unwrap_or(steps.len());
        let ends_in_body = matches!(
            own.terminator,
            Terminator::Indirect { .. } | Terminator::Stop(_) | Terminator::LastCall(_)
        );
        // A handler of signals may know the instruction at a label, or at an entry, by its address, which is to name that and no counter.
        let is_label = function.labels.binary_search(&block).is_ok();
        let is_known = steps.first().is_some_and(|first| {
            let has_room = steps.len() > 1 || !ends_in_body;
            is_label && first.kind == StepKind::Plain && has_room
                || first.may_raise && (is_label || is_held && block == BlockId(0))
        });
        Self { steps, fault, ends_in_body, is_known }
    }

    /// Whether anything may stand in front of the step of that number, or behind the last one.
    pub(crate) fn may_have_code(&self, i: usize) -> bool {
        let steps = self.steps;
        let before = i.checked_sub(1).map(|i| steps[i].kind);
        let here = steps.get(i).map(|s| s.kind);
        here != Some(StepKind::Landing)
            && before != Some(StepKind::TlsAddress)
            && !(self.is_known && i == 0)
            && steps.get(i).is_none_or(|s| !s.is_probe)
            && !(self.ends_in_body && i == steps.len() && i > 0)
            // What stands behind a fault may be data, and is found by its distance.
            && (i <= self.fault || i == steps.len())
    }
}

/// Whether code may be put in that writes below the stack pointer.
pub(crate) fn has_stack(function: &Function, scan: &Scan) -> bool {
    !function.unwind.is_empty() && scan.keeps_stack()
}

/// The cheapest form where `needed` must be kept.
pub(crate) fn form(arch: Arch, needed: Places) -> CounterForm {
    if !needed.meets(arch.flags()) {
        return CounterForm::Increment;
    }
    unneeded_register(arch, needed).map_or(CounterForm::Spill, CounterForm::Register)
}

fn unneeded_register(arch: Arch, needed: Places) -> Option<u8> {
    arch.counter_registers().without(needed).first_register()
}

/// What a form costs, in increments.
pub(crate) fn cost(form: CounterForm) -> f64 {
    match form {
        CounterForm::Increment => 1.0,
        CounterForm::Register(_) => 1.3,
        CounterForm::Spill => 3.0,
        // Another jump is cheap beside a locked addition, and saving the flags takes as long once more.
        CounterForm::Locked => 10.0,
        CounterForm::LockedSaved => 20.0,
    }
}

#[cfg(test)]
mod tests;
