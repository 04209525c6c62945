//! The flow along every edge, from the counted ones.
//!
//! Edges without a counter form a forest, so some node has only one of them; what flows along that one is what
//! the others leave over. Take it out, and go on. A program that is still running, or that loses increments because
//! its threads share counters, gives counts that do not add up; nothing is less than zero then.

use afterlink_core::counter_description::{Description, Edge, Function};
use afterlink_core::{Error, Result};

/// For each function, the flow along each of its [`edges`](Function::edges).
pub(super) fn flows(description: &Description, counters: &[u64]) -> Result<Vec<Vec<u64>>> {
    let mut rest = counters.iter().copied();
    let flows: Option<Vec<_>> = description.functions.iter().map(|f| of_function(f, &mut rest)).collect();
    flows.filter(|_| rest.len() == 0).ok_or_else(|| {
        Error::new("the counters do not match their description").next("run the instrumented program again")
    })
}

/// Takes the function's counters off `counters`. `None`: there are too few, or too few edges are counted.
fn of_function(function: &Function, counters: &mut impl Iterator<Item = u64>) -> Option<Vec<u64>> {
    let edges = function.edges();
    let mut network = Network::new(&edges, function.node_count());
    for (id, edge) in edges.iter().enumerate() {
        if edge.counted {
            network.settle(id, i128::from(counters.next()?));
        }
    }
    network.solve()
}

struct Network<'a> {
    edges: &'a [Edge],
    flows: Vec<Option<i128>>,
    /// For each node, what flows in less what flows out along the edges that are known.
    balance: Vec<i128>,
    /// For each node, the number of edges that are not known, and all their numbers combined by exclusive or: of the
    /// last one it is that one's number.
    unknown: Vec<(u32, usize)>,
}

impl<'a> Network<'a> {
    fn new(edges: &'a [Edge], nodes: usize) -> Self {
        let mut unknown = vec![(0, 0); nodes];
        for (id, edge) in edges.iter().enumerate() {
            for node in [edge.from, edge.to] {
                let (count, combined) = &mut unknown[node as usize];
                *count += 1;
                *combined ^= id;
            }
        }
        Self { edges, flows: vec![None; edges.len()], balance: vec![0; nodes], unknown }
    }

    fn settle(&mut self, id: usize, flow: i128) {
        let edge = &self.edges[id];
        self.flows[id] = Some(flow);
        self.balance[edge.from as usize] -= flow;
        self.balance[edge.to as usize] += flow;
        for node in [edge.from, edge.to] {
            let (count, combined) = &mut self.unknown[node as usize];
            *count -= 1;
            *combined ^= id;
        }
    }

    fn solve(mut self) -> Option<Vec<u64>> {
        let mut ready: Vec<usize> = (0..self.balance.len()).filter(|&n| self.unknown[n].0 == 1).collect();
        while let Some(node) = ready.pop() {
            let (count, id) = self.unknown[node];
            if count != 1 {
                continue;
            }
            let edge = self.edges[id];
            let balance = self.balance[node];
            self.settle(id, if edge.to as usize == node { -balance } else { balance });
            let other = edge.from as usize ^ edge.to as usize ^ node;
            if self.unknown[other].0 == 1 {
                ready.push(other);
            }
        }
        self.flows.into_iter().map(|flow| Some(u64::try_from(flow?.max(0)).unwrap_or(u64::MAX))).collect()
    }
}
