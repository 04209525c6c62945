//! The counts that go with code in place of calls: each new block has what the callee's chances make of the calls that are gone ([`flow`]), and the
//! callee keeps the rest.

use super::body::{Body, Part};
use super::rewrite::Rewritten;
use super::{Call, flow, places};
use afterlink_core::index::Id;
use afterlink_isa::Encoding;
use afterlink_program::{BlockId, FuncId, Function, Program, Role, Target};
use afterlink_weigh::{CallWeight, EdgeWeight, FunctionWeights, Weights};
use rustc_hash::FxHashMap;

/// Callers of callers of callers are followed up to here.
const LONGEST_CHAIN: usize = 16;

/// A call that is gone, with what stands in its place.
struct Gone<'g> {
    call: &'g Call,
    body: &'g Body,
    new: &'g Rewritten,
    /// The callee's counts, as they were before any call was gone.
    callee: &'g FunctionWeights,
    /// How often each part runs for each time that the call did.
    per_entry: &'g [f64],
    /// How often the call ran, without those runs that other code stands in place of.
    runs: u64,
}

/// Takes the runs of these calls from their callees, and gives them to what stands in their place.
pub(super) fn lead_all(program: &Program, weights: &mut Weights, all: &[(Call, Body, Rewritten)]) {
    if weights.functions.is_empty() {
        return;
    }
    let before = weights.functions.clone();
    let per_entry: Vec<Vec<f64>> =
        all.iter().map(|(call, body, _)| flow::per_entry(body, &before[call.callee])).collect();
    let runs = runs(weights, all, &per_entry);
    let gone = all.iter().zip(&per_entry).zip(runs).map(|(((call, body, new), per_entry), runs)| Gone {
        call,
        body,
        new,
        callee: &before[call.callee],
        per_entry,
        runs,
    });
    let gone: Vec<Gone> = gone.collect();
    gone.iter().for_each(|gone| gone.forget(&mut weights.functions[gone.call.callee]));
    for gone in &gone {
        lead(program, weights, gone);
    }
}

/// How often each call still runs where it stood. What stands in place of a call of its caller calls as before: those runs stay the callee's.
fn runs(weights: &Weights, all: &[(Call, Body, Rewritten)], per_entry: &[Vec<f64>]) -> Vec<u64> {
    let mut runs: Vec<u64> = all.iter().map(|(call, ..)| call.count).collect();
    for _ in 0..LONGEST_CHAIN {
        let mut elsewhere: FxHashMap<(FuncId, BlockId), f64> = FxHashMap::default();
        for (((call, body, _), per_entry), &runs) in all.iter().zip(per_entry).zip(&runs) {
            for (part, times) in body.parts.iter().zip(per_entry) {
                *elsewhere.entry((call.callee, part.block)).or_default() += runs as f64 * times;
            }
        }
        let left = |(call, ..): &(Call, Body, Rewritten)| {
            let Some(elsewhere) = elsewhere.get(&(call.caller, call.block)) else { return call.count };
            let around = weights.functions[call.caller].block(call.block).max(1) as f64;
            (call.count as f64 * (1.0 - elsewhere / around)).max(0.0) as u64
        };
        let next: Vec<u64> = all.iter().map(left).collect();
        if next == runs {
            break;
        }
        runs = next;
    }
    runs
}

/// Gives the caller's new blocks their counts.
fn lead(program: &Program, weights: &mut Weights, gone: &Gone) {
    let function = &program.functions[gone.call.caller];
    let own = &mut weights.functions[gone.call.caller];
    if own.blocks.is_empty() {
        return;
    }
    own.blocks.resize(function.blocks.len(), 0);
    gone.cut(function, own);
    let mut exits = vec![0u64; gone.new.exits.len()];
    for (at, part) in gone.body.parts.iter().enumerate() {
        gone.part(program, own, (part, at), &mut exits);
    }
    for (((exit, &id), crossing), count) in
        gone.body.exits.iter().zip(&gone.new.exits).zip(&gone.new.crossings).zip(exits)
    {
        own.blocks[id.index()] = count;
        own.edges.push(EdgeWeight { from: id, to: gone.new.rest, count });
        if let Some(crossing) = crossing {
            own.blocks[crossing.index()] = count;
        }
        if let (Target::Code(callee, _), true) = (exit.to, count > 0) {
            let (block, offset) = match crossing {
                Some(crossing) => (*crossing, function.code_size(&function.blocks[*crossing])),
                None => (id, behind_call(function, id)),
            };
            own.calls.push(CallWeight { block, offset, callee, count });
        }
    }
    own.edges.sort_unstable_by_key(|e| (e.from, e.to));
    own.edges.dedup_by(|next, last| {
        let same = (next.from, next.to) == (last.from, last.to);
        last.count += if same { next.count } else { 0 };
        same
    });
    own.calls.sort_unstable();
}

/// Where the call ends by which control leaves.
fn behind_call(function: &Function, exit: BlockId) -> u32 {
    let code = function.in_place_of(&function.blocks[exit]);
    let operands = code.map_or(&[][..], |code| &function.operands[code.operands.range()]);
    let call = operands.iter().find(|operand| operand.role == Role::Call);
    call.map_or(0, |operand| match operand.encoding {
        Encoding::Relative32 { end } => operand.at + u32::from(end),
        _ => 0,
    })
}

fn times(count: u64, chance: f64) -> u64 {
    (count as f64 * chance).round() as u64
}

impl Gone<'_> {
    /// How often a part runs in place of the call.
    fn of_part(&self, at: usize) -> u64 {
        times(self.runs, self.per_entry[at])
    }

    /// Of so many runs of a part, how often each of its calls.
    fn calls(&self, block: BlockId, runs: u64) -> impl Iterator<Item = CallWeight> {
        let all = self.callee.block(block).max(1) as f64;
        let calls = self.callee.calls.iter().filter(move |c| c.block == block);
        calls.map(move |c| CallWeight { count: times(runs, c.count as f64 / all), ..*c })
    }

    /// Takes from the callee what runs in place of the call.
    fn forget(&self, callee: &mut FunctionWeights) {
        for (at, part) in self.body.parts.iter().enumerate() {
            let (block, runs) = (part.block, self.of_part(at));
            if let Some(count) = callee.blocks.get_mut(block.index()) {
                if *count > 0 && runs >= *count {
                    callee.elsewhere.push(block);
                }
                *count = count.saturating_sub(runs);
            }
            for (target, chance) in flow::ways(part, self.callee) {
                let Target::Block(to) = target else { continue };
                if let Ok(i) = callee.edges.binary_search_by_key(&(block, to), |e| (e.from, e.to)) {
                    let edge = &mut callee.edges[i];
                    edge.count = edge.count.saturating_sub(times(runs, chance));
                }
            }
            for gone in self.calls(block, runs) {
                let is_it = |c: &&mut CallWeight| {
                    (c.block, c.offset, c.callee) == (gone.block, gone.offset, gone.callee)
                };
                if let Some(call) = callee.calls.iter_mut().find(is_it) {
                    call.count = call.count.saturating_sub(gone.count);
                }
            }
        }
        callee.entries = callee.entries.saturating_sub(self.runs);
    }

    /// The block around the call is two now, with what leads in between, and of an indirect call what calls all others.
    fn cut(&self, function: &Function, own: &mut FunctionWeights) {
        let (call, new) = (self.call, self.new);
        let around = own.blocks[call.block.index()];
        own.blocks[new.rest.index()] = around;
        own.blocks[new.entry.index()] = around;
        for edge in own.edges.iter_mut().filter(|edge| edge.from == call.block) {
            edge.from = new.rest;
        }
        let (behind, gone) = (call.at + call.size, places(call));
        own.calls.retain(|c| !gone.contains(&(c.block, c.offset, c.callee)));
        let mut enters = around;
        if let Some(others) = new.others {
            enters = around.min(self.runs);
            own.blocks[others.index()] = around - enters;
            own.edges.push(EdgeWeight { from: new.entry, to: others, count: around - enters });
            own.edges.push(EdgeWeight { from: others, to: new.rest, count: around - enters });
            let offset = function.code_size(&function.blocks[others]);
            let is_of_it =
                |c: &&mut CallWeight| c.block == call.block && [call.at, behind].contains(&c.offset);
            for c in own.calls.iter_mut().filter(is_of_it) {
                (c.block, c.offset) = (others, offset);
            }
        }
        for c in own.calls.iter_mut().filter(|c| c.block == call.block && c.offset >= behind) {
            (c.block, c.offset) = (new.rest, c.offset - behind);
        }
        own.edges.push(EdgeWeight { from: call.block, to: new.entry, count: around });
        own.edges.push(EdgeWeight { from: new.entry, to: new.parts[0], count: enters });
    }

    fn part(
        &self,
        program: &Program,
        own: &mut FunctionWeights,
        (part, at): (&Part, usize),
        exits: &mut [u64],
    ) {
        let (id, runs) = (self.new.parts[at], self.of_part(at));
        own.blocks[id.index()] = runs;
        // Of a part in two, the second one ends as the part does.
        let second = self.new.framed[at].zip(part.frame);
        let last = second.map_or(id, |(second, _)| second);
        if let Some((second, _)) = second {
            own.blocks[second.index()] = runs;
            own.edges.push(EdgeWeight { from: id, to: second, count: runs });
        }
        let ways = flow::ways(part, self.callee);
        if ways.is_empty() {
            own.edges.push(EdgeWeight { from: last, to: self.new.rest, count: runs });
        }
        for (target, chance) in ways {
            let count = times(runs, chance);
            let inside = if let Target::Block(to) = target { self.body.part_of(to) } else { None };
            let to = match inside {
                Some(to) => self.new.parts[to],
                None => {
                    let exit = self.body.exit_to(target).expect("control leaves for what is known");
                    exits[exit] += count;
                    self.new.exits[exit]
                }
            };
            own.edges.push(EdgeWeight { from: last, to, count });
        }
        let first = program.functions[self.call.callee].blocks[part.block].input;
        let skipped = part.start.since(first) as u32;
        let moved = self.calls(part.block, runs).map(|c| {
            let offset = c.offset.saturating_sub(skipped);
            let (block, offset) = match second {
                Some((second, start)) if offset >= start.at => (second, offset - start.at),
                _ => (id, offset),
            };
            CallWeight { block, offset, ..c }
        });
        own.calls.extend(moved.filter(|c| c.count > 0));
    }
}
