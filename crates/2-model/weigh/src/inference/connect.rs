//! Joins circles of flow to the entry.
//!
//! A loop may have been seen, and nothing of the way to it; a flow of minimum cost then goes round in the loop and never comes
//! from anywhere. But control did come, at least once, and left: a way there and a way out get one execution each, along
//! edges that run anyway where there are such (as in the paper that [`super`] names).

use super::{Flow, Observed};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Cost of an edge that runs, and of one that does not: a way along edges that run is taken as long as it is not absurdly longer.
const RUNS: u64 = 1;
const NEW: u64 = 1 << 20;

pub(super) fn join_circles(observed: &Observed, flow: &mut Flow) {
    let blocks = flow.blocks.len();
    let mut reached = vec![false; blocks];
    let mut work: Vec<usize> = (0..blocks).filter(|&b| flow.entries[b] > 0).collect();
    loop {
        while let Some(block) = work.pop() {
            if std::mem::replace(&mut reached[block], true) {
                continue;
            }
            let ways = observed.successors[block].iter().zip(&flow.edges[block]);
            work.extend(ways.filter(|(_, count)| **count > 0).map(|(to, _)| *to as usize));
        }
        let Some(circle) = (0..blocks).find(|&b| flow.blocks[b] > 0 && !reached[b]) else { return };
        if let Some(way) = way_through(observed, flow, circle) {
            work.extend(way.iter().map(|step| step.block));
            way.iter().for_each(|step| step.run_once(flow));
        }
        // Its way in, if it has one, is done; if not, the circle stays as it is.
        work.push(circle);
    }
}

/// A block that control passes, and the successor that it goes to.
#[derive(Clone, Copy)]
struct Step {
    block: usize,
    comes_in: bool,
    way: Option<usize>,
}

impl Step {
    fn run_once(self, flow: &mut Flow) {
        flow.blocks[self.block] += 1;
        flow.entries[self.block] += u64::from(self.comes_in);
        match self.way {
            Some(way) => flow.edges[self.block][way] += 1,
            None => flow.exits[self.block] += 1,
        }
    }
}

/// The cheapest way from outside to `circle` and out again. It passes `circle` once, which the flow round it does not need.
fn way_through(observed: &Observed, flow: &Flow, circle: usize) -> Option<Vec<Step>> {
    let entries = (0..flow.blocks.len()).filter(|&b| observed.entries[b].is_some());
    let there = search(observed, flow, entries.map(|b| (b, cost(flow.entries[b]))).collect(), |b| {
        (b == circle).then_some(0)
    })?;
    let out = search(observed, flow, vec![(circle, 0)], |b| observed.exits[b].map(|_| cost(flow.exits[b])))?;
    let mut steps: Vec<Step> = Vec::new();
    for pair in there.windows(2) {
        steps.push(Step { block: pair[0].0, comes_in: false, way: pair[1].1 });
    }
    for (i, &(block, _)) in out.iter().enumerate() {
        steps.push(Step { block, comes_in: false, way: out.get(i + 1).and_then(|next| next.1) });
    }
    steps.first_mut()?.comes_in = true;
    Some(steps)
}

fn cost(count: u64) -> u64 {
    if count > 0 { RUNS } else { NEW }
}

/// The cheapest way from one of `starts` to a block that `end` gives the last cost of: blocks, each with the number of the edge that
/// led to it (of its predecessor on the way).
fn search(
    observed: &Observed,
    flow: &Flow,
    starts: Vec<(usize, u64)>,
    end: impl Fn(usize) -> Option<u64>,
) -> Option<Vec<(usize, Option<usize>)>> {
    let blocks = flow.blocks.len();
    let mut best = vec![u64::MAX; blocks];
    let mut from: Vec<Option<(usize, usize)>> = vec![None; blocks];
    let mut heap = BinaryHeap::new();
    for (block, cost) in starts {
        best[block] = cost;
        heap.push((Reverse(cost), block));
    }
    let mut found: Option<(u64, usize)> = None;
    while let Some((Reverse(cost), block)) = heap.pop() {
        if cost > best[block] || found.is_some_and(|(least, _)| cost >= least) {
            continue;
        }
        if let Some(last) = end(block)
            && found.is_none_or(|(least, _)| cost + last < least)
        {
            found = Some((cost + last, block));
        }
        for (way, (&to, &count)) in observed.successors[block].iter().zip(&flow.edges[block]).enumerate() {
            let through = cost + self::cost(count);
            if through < best[to as usize] {
                best[to as usize] = through;
                from[to as usize] = Some((block, way));
                heap.push((Reverse(through), to as usize));
            }
        }
    }
    let mut way = Vec::new();
    let mut at = found?.1;
    loop {
        let before = from[at];
        way.push((at, before.map(|(_, edge)| edge)));
        match before {
            Some((block, _)) => at = block,
            None => break,
        }
    }
    way.reverse();
    Some(way)
}
