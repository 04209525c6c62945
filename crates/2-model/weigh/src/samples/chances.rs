//! Which way branches probably go, before anything was seen.
//!
//! What the graph says of loops is joined with what each branch asks and where it leads (after Ball and Larus, "Branch prediction for free",
//! 1993), by adding logarithms of odds. The figures are those of SQLite's branches, rounded.

use afterlink_analyze::flow::FlowGraph;
use afterlink_analyze::frequency;
use afterlink_core::index::Id;
use afterlink_program::{Block, BlockId, Function, Program, Role, Stop, Target, Terminator};

/// Odds that a branch is taken for which nothing else speaks: compilers let fall through what they think is likelier.
const TAKEN: f64 = -0.8;
/// Odds of going to a block that returns, ends in another function, jumps back, calls something, is a single instruction.
const RETURNS: f64 = -0.6;
const LEAVES: f64 = -0.3;
const JUMPS_BACK: f64 = -0.3;
const CALLS: f64 = -0.2;
const SHORT: f64 = -0.3;
/// Bytes of a block that counts as short.
const SHORT_BYTES: u32 = 6;
/// Chance of an exception.
const THROWN: f64 = 1e-4;
/// Chances that control leaves the function at a conditional jump out of it, and at an indirect jump, whose targets are known, as far as anybody knows.
const BRANCHES_OUT: f64 = 0.3;
const JUMPS_OUT: f64 = 0.05;

/// Chances, by block.
pub(super) struct Chances {
    /// Of each way out of it, of those that stay in the function.
    pub ways: Vec<Vec<f64>>,
    /// Of leaving the function, where it might as well stay.
    pub leaving: Vec<f64>,
}

pub(super) fn of(program: &Program, function: &Function, graph: &FlowGraph) -> Chances {
    let aside: Vec<bool> = function.blocks.iter().map(|(_, block)| is_aside(function, block)).collect();
    let mut ways = frequency::estimate(graph, &aside).edges;
    let odds: Vec<f64> =
        function.blocks.iter().map(|(id, block)| odds_of_going_to(function, id, block)).collect();
    let mut leaving = Vec::with_capacity(ways.len());
    for ((id, block), chances) in function.blocks.iter().zip(&mut ways) {
        normalize(chances);
        let to = &graph.successors[id.index()];
        lean(program, block, to, &odds, chances);
        function.for_each_landing_pad(id, |pad| {
            if let Some(way) = to.iter().position(|&to| to == pad.0) {
                chances[way] = THROWN;
            }
        });
        normalize(chances);
        leaving.push(chance_of_leaving(block));
    }
    Chances { ways, leaving }
}

fn is_aside(function: &Function, block: &Block) -> bool {
    let ends = matches!(block.terminator, Terminator::Stop(Stop::Trap) | Terminator::LastCall(_));
    ends || !function.ranges[0].contains(block.input)
}

fn normalize(chances: &mut [f64]) {
    let all: f64 = chances.iter().sum();
    chances.iter_mut().for_each(|chance| *chance /= all.max(f64::MIN_POSITIVE));
}

fn odds_of_going_to(function: &Function, id: BlockId, block: &Block) -> f64 {
    let ends = match block.terminator {
        Terminator::Stop(Stop::Return | Stop::TailCall) => RETURNS,
        Terminator::Jump(Target::Block(to)) if to < id => JUMPS_BACK,
        Terminator::Jump(Target::Block(_)) => 0.0,
        Terminator::Jump(_) => LEAVES,
        _ => 0.0,
    };
    let calls = function.operands_of(block).iter().any(|o| o.role == Role::Call);
    let short = block.body < SHORT_BYTES;
    ends + if calls { CALLS } else { 0.0 } + if short { SHORT } else { 0.0 }
}

/// Shifts the chances of a branch with two ways.
fn lean(program: &Program, block: &Block, to: &[u32], odds: &[f64], chances: &mut [f64]) {
    let (Terminator::Branch { taken: Target::Block(taken), next, .. }
    | Terminator::ShortBranch { taken: Target::Block(taken), next, .. }) = block.terminator
    else {
        return;
    };
    let way = |block: BlockId| to.iter().position(|&to| to == block.0);
    let (Some(t), Some(n)) = (way(taken), way(next)) else { return };
    if t == n {
        return;
    }
    let code = program.code.at(block.input, block.size as usize).unwrap_or_default();
    let asked = program.arch.leaning(code) + odds[taken.index()] - odds[next.index()] + TAKEN;
    let both = chances[t] + chances[n];
    let log_odds = (chances[t].max(1e-9) / chances[n].max(1e-9)).ln() + asked;
    chances[t] = both / (1.0 + (-log_odds).exp());
    chances[n] = both - chances[t];
}

fn chance_of_leaving(block: &Block) -> f64 {
    match block.terminator {
        Terminator::Branch { taken, .. } | Terminator::ShortBranch { taken, .. }
            if !matches!(taken, Target::Block(_)) =>
        {
            BRANCHES_OUT
        }
        Terminator::Indirect { .. } => JUMPS_OUT,
        _ => 0.0,
    }
}
