//! The counts that go with code in place of calls: of the callee's blocks each new block has the share of this call, and the callee keeps the rest.

use super::body::{Body, Part};
use super::rewrite::Rewritten;
use super::{Call, places};
use afterlink_core::index::Id;
use afterlink_isa::PlainCall;
use afterlink_program::{BlockId, Program, Target, Terminator};
use afterlink_weigh::{CallWeight, EdgeWeight, FunctionWeights, Weights};

/// A call that is gone, with what stands in its place.
pub(super) struct Gone<'g> {
    pub call: &'g Call,
    pub form: PlainCall,
    pub body: &'g Body,
    pub new: &'g Rewritten,
    /// The callee's counts, as they were before any call was gone.
    pub callee: &'g FunctionWeights,
    /// How often the call ran, without those runs that other code stands in place of.
    pub runs: u64,
}

/// Gives the caller's new blocks their counts.
pub(super) fn lead(program: &Program, weights: &mut Weights, gone: &Gone) {
    let function = &program.functions[gone.call.caller];
    let own = &mut weights.functions[gone.call.caller];
    if own.blocks.is_empty() {
        return;
    }
    own.blocks.resize(function.blocks.len(), 0);
    gone.cut(own);
    let mut exits = vec![0u64; gone.new.exits.len()];
    for (part, &id) in gone.body.parts.iter().zip(&gone.new.parts) {
        gone.part(program, own, (part, id), &mut exits);
    }
    for ((exit, &id), count) in gone.body.exits.iter().zip(&gone.new.exits).zip(exits) {
        own.blocks[id.index()] = count;
        own.edges.push(EdgeWeight { from: id, to: gone.new.rest, count });
        if let (Target::Code(callee, _), true) = (exit.to, count > 0 && exit.depth == 0) {
            let offset = function.code_size(&function.blocks[id]);
            own.calls.push(CallWeight { block: id, offset, callee, count });
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

impl Gone<'_> {
    /// What the call has of a count of the callee.
    fn share(&self, count: u64) -> u64 {
        let entries = u128::from(self.callee.entries.max(1));
        (u128::from(count) * u128::from(self.runs.min(self.callee.entries)) / entries) as u64
    }

    /// The block around the call is two now, with what leads in between.
    fn cut(&self, own: &mut FunctionWeights) {
        let (call, new) = (self.call, self.new);
        let around = own.blocks[call.block.index()];
        own.blocks[new.rest.index()] = around;
        own.blocks[new.entry.index()] = around;
        for edge in own.edges.iter_mut().filter(|edge| edge.from == call.block) {
            edge.from = new.rest;
        }
        let (behind, gone) = (call.at + self.form.size, places(call, self.form));
        own.calls.retain(|c| !gone.contains(&(c.block, c.offset, c.callee)));
        for c in own.calls.iter_mut().filter(|c| c.block == call.block && c.offset >= behind) {
            (c.block, c.offset) = (new.rest, c.offset - behind);
        }
        own.edges.push(EdgeWeight { from: call.block, to: new.entry, count: around });
        own.edges.push(EdgeWeight { from: new.entry, to: new.parts[0], count: around });
    }

    /// Where control goes from a part, and how often.
    fn ways(&self, part: &Part) -> Vec<(Target, u64)> {
        let of = |to: BlockId| {
            let edges = &self.callee.edges;
            let found = edges.binary_search_by_key(&(part.block, to), |e| (e.from, e.to));
            self.share(found.map_or(0, |i| edges[i].count))
        };
        let runs = self.share(self.callee.block(part.block));
        match part.terminator {
            Terminator::FallThrough(next) => vec![(Target::Block(next), of(next))],
            Terminator::Jump(Target::Block(to)) => vec![(Target::Block(to), of(to))],
            Terminator::Jump(target) => vec![(target, runs)],
            Terminator::Branch { taken: Target::Block(to), next, .. } if to == next => {
                vec![(Target::Block(next), of(next))]
            }
            Terminator::Branch { taken, next, .. } => {
                let on_taken = match taken {
                    Target::Block(to) => of(to),
                    _ => runs.saturating_sub(of(next)),
                };
                vec![(taken, on_taken), (Target::Block(next), of(next))]
            }
            _ => Vec::new(),
        }
    }

    fn part(
        &self,
        program: &Program,
        own: &mut FunctionWeights,
        (part, id): (&Part, BlockId),
        exits: &mut [u64],
    ) {
        let runs = self.share(self.callee.block(part.block));
        own.blocks[id.index()] = runs;
        let ways = self.ways(part);
        if ways.is_empty() {
            own.edges.push(EdgeWeight { from: id, to: self.new.rest, count: runs });
        }
        for (target, count) in ways {
            let inside = if let Target::Block(to) = target { self.body.part_of(to) } else { None };
            let to = match inside {
                Some(to) => self.new.parts[to],
                None => {
                    let exit = self.body.exit_to(target).expect("control leaves for what is known");
                    exits[exit] += count;
                    self.new.exits[exit]
                }
            };
            own.edges.push(EdgeWeight { from: id, to, count });
        }
        let first = program.functions[self.call.callee].blocks[part.block].input;
        let skipped = part.start.since(first) as u32;
        let calls = self.callee.calls.iter().filter(|c| c.block == part.block);
        let moved = calls.map(|c| CallWeight {
            block: id,
            offset: c.offset.saturating_sub(skipped),
            count: self.share(c.count),
            ..*c
        });
        own.calls.extend(moved.filter(|c| c.count > 0));
    }
}

/// So many calls of a function are gone, each with its share of all that ran `before`.
pub(super) fn forget(callee: &mut FunctionWeights, before: &FunctionWeights, calls: u64) {
    let (all, gone) = (u128::from(before.entries.max(1)), u128::from(calls.min(before.entries)));
    let share = |count: u64| (u128::from(count) * gone / all) as u64;
    for (count, before) in callee.blocks.iter_mut().zip(&before.blocks) {
        *count = count.saturating_sub(share(*before));
    }
    for edge in &mut callee.edges {
        let found = before.edges.binary_search_by_key(&(edge.from, edge.to), |e| (e.from, e.to));
        edge.count = edge.count.saturating_sub(found.map_or(0, |i| share(before.edges[i].count)));
    }
    for call in &mut callee.calls {
        let known = before
            .calls
            .iter()
            .find(|c| (c.block, c.offset, c.callee) == (call.block, call.offset, call.callee));
        call.count = call.count.saturating_sub(known.map_or(0, |c| share(c.count)));
    }
    callee.entries = callee.entries.saturating_sub(gone as u64);
}
