//! Decides for one function which edges of its network are counted, and where each counter stands.

use crate::Counting;
use crate::context::Context;
use crate::network;
use crate::sites::{self, BlockSites, Site};
use crate::targets::{self, Code, TargetPlace};
use crate::tree;
use afterlink_analyze::flow::FlowGraph;
use afterlink_analyze::frequency::{self, Frequencies};
use afterlink_analyze::liveness::{Convention, Liveness};
use afterlink_analyze::scan::Scan;
use afterlink_core::counter_description::{Edge, EdgeKind, Function as Network};
use afterlink_core::index::Id;
use afterlink_isa::{Arch, CounterForm, StepKind};
use afterlink_program::{BlockId, Function, Target, Terminator};

/// What is to be done to a function.
pub(crate) struct FunctionPlan {
    /// Its network, with the counted edges marked.
    pub network: Network,
    /// One a counted edge, in their order.
    pub counters: Vec<CounterPlace>,
    /// Indirect calls and jumps with counted targets, in order, and how many have none.
    pub targets: Vec<TargetPlace>,
    pub targets_left: usize,
}

/// Where a counter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CounterPlace {
    Block(BlockId, Site),
    /// In a block that is added between the two.
    Between {
        from: BlockId,
        to: BlockId,
        form: CounterForm,
    },
}

impl CounterPlace {
    pub fn form(&self) -> CounterForm {
        match self {
            Self::Block(_, site) => site.form,
            Self::Between { form, .. } => *form,
        }
    }

    /// The same place, with the form that `counting` wants there.
    fn counted(mut self, counting: Counting) -> Self {
        if counting == Counting::Exact {
            let form = match &mut self {
                Self::Block(_, site) => &mut site.form,
                Self::Between { form, .. } => form,
            };
            *form = form.exact();
        }
        self
    }
}

/// Plans the counters of a function. `None` if a counter would have to use the stack of code that is not known to have
/// one, or stand where a handler of signals knows the instruction.
pub(crate) fn plan(
    function: &Function,
    scan: &Scan,
    convention: Convention,
    context: &Context,
) -> Option<FunctionPlan> {
    let liveness = Liveness::new(function, scan, convention);
    let site = |block| sites::of_block(function, scan, &liveness, context.is_held, block, context.stops);
    let sites: Vec<BlockSites> = function.blocks.ids().map(site).collect();
    let mut network = network::draw(function, scan, &sites, context);
    let frequencies = frequency::estimate(&graph(&network), &unlikely(function, scan));
    let places = Places {
        arch: scan.arch(),
        function,
        network: &network,
        liveness: &liveness,
        sites: &sites,
        entries: entries(&network),
    };
    let edges = network.edges();
    let place_of = |edge| places.of(edge).map(|place| place.counted(context.counting));
    let candidates: Vec<Option<CounterPlace>> = edges.iter().map(place_of).collect();
    let has_stack = sites::has_stack(function, scan);
    let allowed = |place: &CounterPlace| has_stack || !place.form().uses_stack();
    let weights: Vec<f64> = edges
        .iter()
        .zip(&candidates)
        .map(|(edge, place)| match place {
            None => f64::INFINITY,
            Some(place) if !allowed(place) => f64::MAX,
            Some(place) => places.cost(place) * frequency(edge, &frequencies),
        })
        .collect();
    let counted = tree::choose_counted(&edges, network.node_count(), &weights);
    let mut counters = Vec::new();
    for ((edge, place), _) in edges.iter().zip(candidates).zip(counted).filter(|(_, counted)| *counted) {
        // Edges without a place form a circle only where a held instruction is all of a block.
        counters.push(place?);
        mark(&mut network, edge.kind);
    }
    let (targets, targets_left) =
        targets::of_function(&Code { function, scan, liveness: &liveness, context });
    for place in &targets {
        network.blocks[place.block.index()].sites.push(place.call);
    }
    counters.iter().all(allowed).then_some(FunctionPlan { network, counters, targets, targets_left })
}

fn mark(network: &mut Network, kind: EdgeKind) {
    match kind {
        EdgeKind::Executed(block) => network.blocks[block as usize].counted = true,
        EdgeKind::Tail(block) => network.blocks[block as usize].tail_counted = true,
        EdgeKind::Flow(block, i) => network.blocks[block as usize].successors[i as usize].counted = true,
        EdgeKind::Entered(_) | EdgeKind::Leaves(_) => {}
    }
}

fn frequency(edge: &Edge, frequencies: &Frequencies) -> f64 {
    match edge.kind {
        EdgeKind::Flow(block, i) => frequencies.edges[block as usize][i as usize],
        EdgeKind::Executed(block)
        | EdgeKind::Tail(block)
        | EdgeKind::Entered(block)
        | EdgeKind::Leaves(block) => frequencies.blocks[block as usize],
    }
}

/// The direct edges. Where an indirect jump leads, control has "entered" for the network, too.
fn graph(network: &Network) -> FlowGraph {
    FlowGraph {
        successors: network.blocks.iter().map(|b| b.successors.iter().map(|s| s.block).collect()).collect(),
        entered: network.blocks.iter().map(|b| b.entered).collect(),
    }
}

/// Blocks that the compiler has put aside, and those that end the program.
fn unlikely(function: &Function, scan: &Scan) -> Vec<bool> {
    let of = |(id, block): (BlockId, &afterlink_program::Block)| {
        let aside = !function.ranges[0].contains(block.input);
        let last = scan.steps(id).last().map(|s| s.kind);
        let ends = match block.terminator {
            Terminator::Stop(_) => {
                matches!(last, Some(StepKind::System | StepKind::Breakpoint | StepKind::Fault))
            }
            Terminator::LastCall(_) => true,
            _ => last == Some(StepKind::Fault),
        };
        aside || ends
    };
    function.blocks.iter().map(of).collect()
}

/// In how many ways each block is entered.
fn entries(network: &Network) -> Vec<usize> {
    let mut entries: Vec<usize> = network.blocks.iter().map(|b| usize::from(b.entered)).collect();
    for successor in network.blocks.iter().flat_map(|b| &b.successors) {
        entries[successor.block as usize] += 1;
    }
    entries
}

struct Places<'p, 'a> {
    arch: Arch,
    function: &'p Function<'a>,
    network: &'p Network,
    liveness: &'p Liveness,
    sites: &'p [BlockSites],
    entries: Vec<usize>,
}

impl Places<'_, '_> {
    /// Where a counter of the edge would stand.
    fn of(&self, edge: &Edge) -> Option<CounterPlace> {
        let start = |block: u32| {
            let site = self.sites[block as usize].start?;
            Some(CounterPlace::Block(BlockId(block), site))
        };
        let end = |block: u32| {
            let site = self.sites[block as usize].end;
            // Invariant: behind a call that control goes on from there is a place.
            CounterPlace::Block(BlockId(block), site.expect("a block that goes on has an end"))
        };
        match edge.kind {
            EdgeKind::Entered(_) | EdgeKind::Leaves(_) => None,
            EdgeKind::Executed(block) => start(block),
            EdgeKind::Tail(block) => Some(end(block)),
            EdgeKind::Flow(block, i) => {
                let from = &self.network.blocks[block as usize];
                let to = from.successors[i as usize].block;
                let only_way = from.successors.len() == 1 && !from.leaves;
                let source = || if from.may_stop { Some(end(block)) } else { start(block) };
                let at_source = if only_way { source() } else { None };
                let at_target = if self.entries[to as usize] == 1 { start(to) } else { None };
                let form = sites::form(self.arch, self.liveness.at_start(BlockId(to)));
                let between = CounterPlace::Between { from: BlockId(block), to: BlockId(to), form };
                let choices = [at_source, at_target, Some(between)].into_iter().flatten();
                choices.min_by(|a, b| self.cost(a).total_cmp(&self.cost(b)))
            }
        }
    }

    fn cost(&self, place: &CounterPlace) -> f64 {
        /// Of a block that control falls into and out of, and of one that must be jumped to.
        const BETWEEN: f64 = 0.1;
        const ASIDE: f64 = 1.0;
        let form = sites::cost(place.form());
        match *place {
            CounterPlace::Block(..) => form,
            CounterPlace::Between { from, to, .. } => {
                form + if falls_into(self.function, from, to) { BETWEEN } else { ASIDE }
            }
        }
    }
}

/// Whether control falls through from one block into the other.
pub(crate) fn falls_into(function: &Function, from: BlockId, to: BlockId) -> bool {
    match function.blocks[from].terminator {
        Terminator::FallThrough(_) => true,
        Terminator::Branch { taken, next, .. } | Terminator::ShortBranch { taken, next, .. } => {
            next == to && taken != Target::Block(to)
        }
        Terminator::Jump(_) | Terminator::Indirect { .. } | Terminator::Stop(_) | Terminator::LastCall(_) => {
            false
        }
    }
}

#[cfg(test)]
mod tests;
