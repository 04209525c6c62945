//! Flows of minimum cost through a network with supplies, by the primal-dual method: as much as possible is sent along all cheapest
//! ways at once, then along the next dearer ones (Ford and Fulkerson, "Flows in Networks", 1962, chapter III; the ways
//! of one cost are filled as by Dinic, 1970; potentials keep reduced costs from going below zero, Edmonds and Karp, 1972).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Node of a [`Network`], by number.
pub(crate) type Node = u32;

/// An arc that was added to a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArcId(u32);

/// More than any flow: an arc with this capacity is never full.
pub(crate) const UNBOUNDED: u64 = 1 << 60;

/// One direction of an arc: what more can be sent. Its opposite is the one with the other lowest bit.
#[derive(Clone, Copy, Debug)]
struct Residual {
    to: Node,
    /// The next one that leaves the same node.
    next: u32,
    capacity: u64,
    cost: i64,
}

const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Network {
    first: Vec<u32>,
    arcs: Vec<Residual>,
    /// What comes into the network at each node, or leaves it.
    supply: Vec<i64>,
}

impl Network {
    pub fn new(nodes: usize) -> Self {
        Self { first: vec![NONE; nodes], arcs: Vec::new(), supply: vec![0; nodes] }
    }

    /// An arc on which each unit costs `cost`, which is not negative.
    pub fn add_arc(&mut self, from: Node, to: Node, capacity: u64, cost: i64) -> ArcId {
        debug_assert!(cost >= 0, "only costs of taking back are negative");
        let id = self.arcs.len() as u32;
        for (from, to, capacity, cost) in [(from, to, capacity, cost), (to, from, 0, -cost)] {
            let next = std::mem::replace(&mut self.first[from as usize], self.arcs.len() as u32);
            self.arcs.push(Residual { to, next, capacity, cost });
        }
        ArcId(id)
    }

    /// Lets `amount` more come in at a node, or, below zero, leave.
    pub fn add_supply(&mut self, node: Node, amount: i64) {
        self.supply[node as usize] += amount;
    }

    /// What flows along an arc once the network is solved.
    pub fn flow(&self, arc: ArcId) -> u64 {
        self.arcs[arc.0 as usize ^ 1].capacity
    }

    /// Sends what comes in to where it leaves, at the lowest cost. What nothing can take is left over: returned.
    pub fn solve(&mut self) -> u64 {
        let (source, sink) = self.add_ends();
        let mut search = Search::new(self.first.len());
        while search.cheapest_ways(self, source, sink) {
            while search.levels(self, source, sink) {
                search.fill(self, source, sink);
            }
        }
        let mut left = 0;
        let mut arc = self.first[source as usize];
        while arc != NONE {
            left += self.arcs[arc as usize].capacity;
            arc = self.arcs[arc as usize].next;
        }
        left
    }

    fn add_ends(&mut self) -> (Node, Node) {
        let nodes = self.first.len() as Node;
        let (source, sink) = (nodes, nodes + 1);
        self.first.extend([NONE; 2]);
        for node in 0..nodes {
            let supply = self.supply[node as usize];
            match supply {
                1.. => drop(self.add_arc(source, node, supply as u64, 0)),
                0 => {}
                _ => drop(self.add_arc(node, sink, supply.unsigned_abs(), 0)),
            }
        }
        (source, sink)
    }
}

/// What the method keeps by node.
struct Search {
    potential: Vec<i64>,
    distance: Vec<i64>,
    level: Vec<u32>,
    /// The arc to try next.
    current: Vec<u32>,
    heap: BinaryHeap<(Reverse<i64>, Node)>,
    queue: VecDeque<Node>,
}

impl Search {
    fn new(nodes: usize) -> Self {
        Self {
            potential: vec![0; nodes],
            distance: vec![0; nodes],
            level: vec![0; nodes],
            current: vec![0; nodes],
            heap: BinaryHeap::new(),
            queue: VecDeque::new(),
        }
    }

    fn reduced(&self, from: Node, arc: Residual) -> i64 {
        arc.cost + self.potential[from as usize] - self.potential[arc.to as usize]
    }

    /// Changes potentials so that the cheapest ways from `source` to `sink` cost nothing; whether there is one.
    fn cheapest_ways(&mut self, network: &Network, source: Node, sink: Node) -> bool {
        const FAR: i64 = i64::MAX;
        self.distance.fill(FAR);
        self.distance[source as usize] = 0;
        self.heap.clear();
        self.heap.push((Reverse(0), source));
        while let Some((Reverse(distance), node)) = self.heap.pop() {
            if distance > self.distance[node as usize] {
                continue;
            }
            if node == sink {
                break;
            }
            let mut next = network.first[node as usize];
            while next != NONE {
                let arc = network.arcs[next as usize];
                next = arc.next;
                let through = distance + self.reduced(node, arc);
                if arc.capacity > 0 && through < self.distance[arc.to as usize] {
                    self.distance[arc.to as usize] = through;
                    self.heap.push((Reverse(through), arc.to));
                }
            }
        }
        let shortest = self.distance[sink as usize];
        if shortest == FAR {
            return false;
        }
        for (potential, &distance) in self.potential.iter_mut().zip(&self.distance) {
            *potential += distance.min(shortest);
        }
        true
    }

    /// How far each node is from `source` by arcs that cost nothing; whether `sink` is reached.
    fn levels(&mut self, network: &Network, source: Node, sink: Node) -> bool {
        self.level.fill(NONE);
        self.level[source as usize] = 0;
        self.current.copy_from_slice(&network.first);
        self.queue.clear();
        self.queue.push_back(source);
        while let Some(node) = self.queue.pop_front() {
            let mut next = network.first[node as usize];
            while next != NONE {
                let arc = network.arcs[next as usize];
                next = arc.next;
                let is_new = self.level[arc.to as usize] == NONE;
                if arc.capacity > 0 && is_new && self.reduced(node, arc) == 0 {
                    self.level[arc.to as usize] = self.level[node as usize] + 1;
                    self.queue.push_back(arc.to);
                }
            }
        }
        self.level[sink as usize] != NONE
    }

    /// Sends what it can along ways on which each step is one level further.
    fn fill(&mut self, network: &mut Network, source: Node, sink: Node) {
        let mut path: Vec<u32> = Vec::new();
        loop {
            let node = path.last().map_or(source, |&arc| network.arcs[arc as usize].to);
            if node == sink {
                self.send(network, &mut path);
                continue;
            }
            match self.step(network, node) {
                Some(arc) => path.push(arc),
                // A dead end: the way that led here is not tried again.
                None => match path.pop() {
                    Some(arc) => {
                        let from = network.arcs[arc as usize ^ 1].to;
                        self.current[from as usize] = network.arcs[arc as usize].next;
                    }
                    None => return,
                },
            }
        }
    }

    /// The next arc by which one gets from `node` to the next level.
    fn step(&mut self, network: &Network, node: Node) -> Option<u32> {
        loop {
            let next = self.current[node as usize];
            let arc = *network.arcs.get(next as usize)?;
            let is_further = self.level[arc.to as usize] == self.level[node as usize] + 1;
            if arc.capacity > 0 && is_further && self.reduced(node, arc) == 0 {
                return Some(next);
            }
            self.current[node as usize] = arc.next;
        }
    }

    /// Fills the narrowest arc of `path`, and cuts the path off in front of it.
    fn send(&mut self, network: &mut Network, path: &mut Vec<u32>) {
        let capacity = |&arc: &u32| network.arcs[arc as usize].capacity;
        let amount = path.iter().map(capacity).min().unwrap_or(0);
        let mut keep = path.len();
        for (i, &arc) in path.iter().enumerate().rev() {
            network.arcs[arc as usize].capacity -= amount;
            network.arcs[arc as usize ^ 1].capacity += amount;
            if network.arcs[arc as usize].capacity == 0 {
                keep = i;
            }
        }
        path.truncate(keep);
    }
}

#[cfg(test)]
mod tests;
