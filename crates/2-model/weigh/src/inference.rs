//! From counts that do not fit together to a flow that does.
//!
//! Samples are few, hit the wrong instruction now and then, and measure time; counters of several threads lose some; a profile of
//! another build knows a part. What control does is a flow: a block runs as often as control comes to it, and as often as it
//! leaves. Of all flows this finds the one that contradicts the evidence least, with a cost for each execution
//! that was seen and is not in the flow, and for each that is in the flow and was not seen. It is a flow of minimum cost (He, Mestre, Pupyrev,
//! Wang, Yu, "Profile inference revisited", POPL 2022; costs are the caller's).

mod connect;
mod min_cost_flow;

use min_cost_flow::{ArcId, Network, Node, UNBOUNDED};

/// How often something probably ran, and what it costs to think otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    pub count: u64,
    /// Cost of each execution above `count`, and of each below it; not negative.
    pub more: i64,
    pub fewer: i64,
}

/// What is known of a function.
pub(crate) struct Observed<'a> {
    /// By block: where control may go from it, each once.
    pub successors: &'a [Vec<u32>],
    /// By block, and by block and successor.
    pub blocks: &'a [Evidence],
    pub edges: &'a [Vec<Evidence>],
    /// By block: that control comes from outside. `None` where it cannot.
    pub entries: &'a [Option<Evidence>],
    /// By block: that control leaves the function there.
    pub exits: &'a [Option<Evidence>],
}

/// Executions that fit together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flow {
    pub blocks: Vec<u64>,
    pub edges: Vec<Vec<u64>>,
    /// By block: how often control came from outside, and left.
    pub entries: Vec<u64>,
    pub exits: Vec<u64>,
}

/// The flow that contradicts `observed` least, made one: what it has in circles that nothing leads to is joined to the entry.
pub(crate) fn infer(observed: &Observed) -> Flow {
    let mut flow = cheapest(observed);
    connect::join_circles(observed, &mut flow);
    flow
}

/// Something with a count: an arc for what is added to the evidence, and one for what is taken back.
struct Counted {
    count: u64,
    added: ArcId,
    taken: ArcId,
}

/// The function as a network: each block is an arc between two nodes, one of which control comes to and one of which it leaves; one more
/// node is the world outside. A unit that flows along `added` is an execution more than was seen, along `taken` one less.
struct Balance {
    network: Network,
    counted: Vec<Counted>,
}

impl Balance {
    fn add(&mut self, from: Node, to: Node, evidence: Evidence) {
        let added = self.network.add_arc(from, to, UNBOUNDED, evidence.more);
        let taken = self.network.add_arc(to, from, evidence.count, evidence.fewer);
        self.network.add_supply(from, -(evidence.count as i64));
        self.network.add_supply(to, evidence.count as i64);
        self.counted.push(Counted { count: evidence.count, added, taken });
    }
}

fn cheapest(observed: &Observed) -> Flow {
    let blocks = observed.blocks.len();
    let (into, out_of) = (|block: usize| 2 * block as Node, |block: usize| 2 * block as Node + 1);
    let outside = 2 * blocks as Node;
    let mut balance = Balance { network: Network::new(2 * blocks + 1), counted: Vec::new() };
    for block in 0..blocks {
        balance.add(into(block), out_of(block), observed.blocks[block]);
        for (&to, &edge) in observed.successors[block].iter().zip(&observed.edges[block]) {
            balance.add(out_of(block), into(to as usize), edge);
        }
        if let Some(entry) = observed.entries[block] {
            balance.add(outside, into(block), entry);
        }
        if let Some(exit) = observed.exits[block] {
            balance.add(out_of(block), outside, exit);
        }
    }
    // Whatever was seen can be taken back, so that nothing is left over.
    balance.network.solve();
    let mut counts = balance
        .counted
        .iter()
        .map(|c| c.count + balance.network.flow(c.added) - balance.network.flow(c.taken));
    let mut next = || counts.next().expect("as many as were added");
    let mut flow = Flow::default();
    for block in 0..blocks {
        flow.blocks.push(next());
        flow.edges.push(observed.successors[block].iter().map(|_| next()).collect());
        flow.entries.push(observed.entries[block].map_or(0, |_| next()));
        flow.exits.push(observed.exits[block].map_or(0, |_| next()));
    }
    flow
}

#[cfg(test)]
mod tests;
