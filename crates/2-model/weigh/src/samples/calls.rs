//! What functions know of each other by direct calls.

use super::likelihood::Fitted;
use super::pace::{Pace, Timed};
use afterlink_core::index::Id;
use afterlink_program::{BlockId, FuncId, Function, Program, Role, Target, Terminator};

/// How sure the number of calls is that callers give, in samples: where all are known, and where there may be others.
const SURE: f64 = 3.0;
const UNSURE: f64 = 0.6;
/// Of the time that a call of a function without samples should take, the share that counts: it may return early.
const UNSEEN: f64 = 0.5;
/// Called less often than this, in samples of an instruction, nothing runs.
const NEVER: f64 = 1e-6;

/// What is known of a function before it is fitted.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// By block: samples, and how many an execution gives on average.
    pub samples: Vec<f64>,
    pub time: Vec<f64>,
    /// How often its callers call it, and how sure that is, in samples.
    pub called: Option<(f64, f64)>,
}

impl Known {
    /// What its own samples say.
    pub fn of(blocks: &[Timed], pace: &Pace) -> Self {
        let samples = blocks.iter().map(|block| block.samples.iter().sum::<u64>() as f64).collect();
        Self { samples, time: blocks.iter().map(|block| pace.of(block)).collect(), called: None }
    }

    /// Whether nothing was looked at yet.
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    fn all_samples(&self) -> f64 {
        self.samples.iter().sum()
    }
}

/// A direct call or tail call of another function.
struct Call {
    block: usize,
    callee: usize,
    /// How often it is made when its block runs.
    share: f64,
}

/// Direct calls, by caller, and who may be called otherwise.
pub(super) struct Calls {
    from: Vec<Vec<Call>>,
    otherwise: Vec<bool>,
}

impl Calls {
    pub fn find(program: &Program) -> Self {
        let mut otherwise = vec![false; program.functions.len()];
        let mut note = |target: Target| {
            if let Target::Code(id, _) = target {
                otherwise[id.index()] = true;
            }
        };
        program.pointers.iter().for_each(|pointer| note(pointer.target));
        for (_, function) in program.functions.iter() {
            let mut operands = function.operands.iter();
            operands
                .by_ref()
                .filter(|o| !matches!(o.role, Role::Call | Role::Jump))
                .for_each(|o| note(o.target));
        }
        for &address in &program.known_places {
            program.function_at(address).into_iter().for_each(|id| note(Target::Code(id, BlockId(0))));
        }
        let from = program.functions.iter().map(|(id, function)| calls_of(id, function)).collect();
        Self { from, otherwise }
    }

    /// What all functions say of each other, from how they were fitted.
    pub fn exchange(&self, own: &[Known], fits: &[Option<Fitted>]) -> Said<'_> {
        let mut called = vec![0.0f64; own.len()];
        for (calls, fit) in self.from.iter().zip(fits) {
            let Some(fit) = fit else { continue };
            for call in calls {
                called[call.callee] += call.share * fit.blocks[call.block];
            }
        }
        let taking = |(own, fit): (&Known, &Option<Fitted>)| {
            let fit = fit.as_ref()?;
            let entries = fit.entries.max(1e-9);
            let all = own.all_samples();
            let time = || fit.blocks.iter().zip(&own.time).map(|(x, t)| x * t).sum::<f64>();
            Some((all, if all > 0.0 { all } else { UNSEEN * time() } / entries))
        };
        Said { calls: self, called, taking: own.iter().zip(fits).map(taking).collect() }
    }
}

fn calls_of(id: FuncId, function: &Function) -> Vec<Call> {
    let mut calls = Vec::new();
    for (block, b) in function.blocks.iter() {
        let mut add = |target: Target, share: f64| match target {
            Target::Code(callee, BlockId(0)) if callee != id => {
                calls.push(Call { block: block.index(), callee: callee.index(), share });
            }
            _ => {}
        };
        let operands = function.operands_of(b).iter().filter(|o| o.role == Role::Call);
        operands.for_each(|operand| add(operand.target, 1.0));
        match b.terminator {
            Terminator::Jump(target) => add(target, 1.0),
            Terminator::Branch { taken, .. } => add(taken, 0.5),
            _ => {}
        }
    }
    calls
}

/// What functions say of each other.
pub(super) struct Said<'c> {
    calls: &'c Calls,
    /// By function: how often its callers call it.
    called: Vec<f64>,
    /// By function that was fitted: its samples, and how many a call gives.
    taking: Vec<Option<(f64, f64)>>,
}

impl Said<'_> {
    /// Whether callers that ran call it.
    pub fn is_called(&self, id: FuncId) -> bool {
        self.called[id.index()] > NEVER
    }

    /// What a function knows of itself and from others; `None` if it never ran. The time that a callee takes is time of the block that
    /// calls it, and of a callee's samples it has as large a share as of its calls.
    pub fn to(&self, id: FuncId, own: &[Known], fits: &[Option<Fitted>]) -> Option<Known> {
        let f = id.index();
        let mut known = own[f].clone();
        if known.is_empty() || known.all_samples() == 0.0 && !self.is_called(id) {
            return None;
        }
        let calls = fits[f].iter().flat_map(|fit| self.calls.from[f].iter().map(move |call| (fit, call)));
        for (fit, call) in calls {
            let Some((all, each)) = self.taking[call.callee] else { continue };
            let times = call.share * fit.blocks[call.block];
            let mut share = all * times / self.called[call.callee].max(1e-12);
            if self.calls.otherwise[call.callee] {
                // What its callers have not called, others have.
                share = share.min(each * times);
            }
            known.samples[call.block] += share;
            known.time[call.block] += each * call.share;
        }
        let sure = if self.calls.otherwise[f] { UNSURE } else { SURE };
        known.called = self.is_called(id).then_some((self.called[f], sure));
        Some(known)
    }
}
