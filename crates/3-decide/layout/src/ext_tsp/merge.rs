//! The best way to merge a chain Y into a chain X, where X may be cut into X1 and X2.
//!
//! The losses inside X come from [`cuts`](super::cuts); only the few jumps between
//! X and Y are scored cut by cut, and only where a bound leaves hope.

use super::ExtTspParams;
use super::arrangement::{Merge, MergeKind};
use super::chains::{Chain, ChainGraph};
use super::cuts::insertion_losses;
use super::jumps::{Flow, Jump};

/// A jump between X and Y, with the one point of each chain that its length depends on.
struct Crossing<'a> {
    jump: &'a Jump,
    leaves_x: bool,
    x_position: u32,
    /// Bytes from the start of X: the end of the source, or the start of the target.
    x_address: i64,
    y_address: i64,
}

/// Where the parts of a merged chain start, less where they started in X and in Y.
struct Shift {
    x1: i64,
    x2: i64,
    y: i64,
}

/// Scores merges; owns the scratch memory that they share.
pub struct MergeEvaluator<'a> {
    flow: &'a Flow,
    split_threshold: usize,
    crossings: Vec<Crossing<'a>>,
    /// By block of X: what the jump from it to the head of Y, and the one to it from the tail of
    /// Y, earn as fall-throughs beyond a short jump.
    into_head: Vec<i64>,
    out_of_tail: Vec<i64>,
    insertion_loss: Vec<i64>,
}

/// The best merge so far; the first one found wins a tie.
struct Best(Option<(i64, Merge)>);

impl Best {
    fn can_improve(&self, gain: i64) -> bool {
        gain > self.0.map_or(0, |(best, _)| best)
    }

    fn offer(&mut self, gain: i64, merge: Merge) {
        if self.can_improve(gain) {
            self.0 = Some((gain, merge));
        }
    }
}

impl<'a> MergeEvaluator<'a> {
    pub fn new(flow: &'a Flow, params: &ExtTspParams) -> Self {
        Self {
            flow,
            split_threshold: params.chain_split_threshold,
            crossings: Vec::new(),
            into_head: Vec::new(),
            out_of_tail: Vec::new(),
            insertion_loss: Vec::new(),
        }
    }

    /// The merge of `from` into `into` that gains most, and its gain in units, if any gains.
    pub fn best_merge(
        &mut self,
        chains: &ChainGraph,
        into: u32,
        from: u32,
        link: u32,
    ) -> Option<(i64, Merge)> {
        let [x, y] = [into, from].map(|chain| &chains.chains[chain as usize]);
        self.collect_crossings(chains, into, link);
        let mut best = Best(None);
        if !y.is_entry() {
            let merge = Merge { kind: MergeKind::XY, cut: 0 };
            best.offer(self.crossing_score(merge, 0, x.size, y.size), merge);
        }
        if x.nodes.len() > 1 {
            self.try_cuts(chains, x, y, chains.links.links[link as usize].worth.short(), &mut best);
        }
        best.0
    }

    /// Tries the cuts of X: first beside the jumps into the head of Y and out of its tail, as
    /// published, then all of them. `short` is what the jumps between X and Y earn at most
    /// without a fall-through.
    fn try_cuts(&mut self, chains: &ChainGraph, x: &Chain, y: &Chain, short: i64, best: &mut Best) {
        use MergeKind::{X1YX2, X2X1Y, YX2X1};
        let head_and_tail = (y.nodes[0], y.nodes[y.nodes.len() - 1]);
        self.collect_fallthroughs(x.nodes.len(), head_and_tail);
        self.insertion_loss.clear();
        for at in 0..self.crossings.len() {
            let Crossing { jump, x_position, .. } = self.crossings[at];
            if jump.to == head_and_tail.0 {
                self.try_cut(chains, (x, y), x_position + 1, &[X1YX2, X2X1Y], short, best);
            }
            if jump.from == head_and_tail.1 {
                self.try_cut(chains, (x, y), x_position, &[X1YX2, YX2X1], short, best);
            }
        }
        if x.nodes.len() <= self.split_threshold {
            for cut in 1..x.nodes.len() as u32 {
                self.try_cut(chains, (x, y), cut, &[X1YX2, YX2X1, X2X1Y], short, best);
            }
        }
    }

    fn try_cut(
        &mut self,
        chains: &ChainGraph,
        (x, y): (&Chain, &Chain),
        cut: u32,
        kinds: &[MergeKind],
        short: i64,
        best: &mut Best,
    ) {
        let at = cut as usize;
        if at == 0 || at == x.nodes.len() || chains.is_glued[x.nodes[at - 1] as usize] {
            return;
        }
        for &kind in kinds {
            let (keeps_entry, fallthrough, loss) = match kind {
                MergeKind::XY => continue,
                MergeKind::X1YX2 => {
                    let fallthrough = self.into_head[at - 1] + self.out_of_tail[at];
                    (!y.is_entry(), fallthrough, x.cuts.least_insertion[at])
                }
                MergeKind::YX2X1 => (!x.is_entry(), self.out_of_tail[at], x.cuts.rotation[at]),
                MergeKind::X2X1Y => {
                    (!x.is_entry() && !y.is_entry(), self.into_head[at - 1], x.cuts.rotation[at])
                }
            };
            if !keeps_entry || !best.can_improve(short + fallthrough - loss) {
                continue;
            }
            let mut exact_loss = loss;
            if kind == MergeKind::X1YX2 {
                if self.insertion_loss.is_empty() {
                    insertion_losses(&mut self.insertion_loss, self.flow, chains, x, y.size);
                }
                exact_loss = self.insertion_loss[at];
                if !best.can_improve(short + fallthrough - exact_loss) {
                    continue;
                }
            }
            let merge = Merge { kind, cut };
            let cut_address = chains.place[x.nodes[at] as usize].address;
            best.offer(self.crossing_score(merge, cut_address, x.size, y.size) - exact_loss, merge);
        }
    }

    fn collect_crossings(&mut self, chains: &ChainGraph, into: u32, link: u32) {
        self.crossings.clear();
        for id in chains.links.arcs(chains.links.links[link as usize].arcs) {
            let jump = &self.flow.jumps[id as usize];
            let (from, to) = (chains.place[jump.from as usize], chains.place[jump.to as usize]);
            let from_end = from.address + self.flow.sizes[jump.from as usize];
            let leaves_x = from.chain == into;
            let x_position = if leaves_x { from.position } else { to.position };
            let (x_address, y_address) =
                if leaves_x { (from_end, to.address) } else { (to.address, from_end) };
            self.crossings.push(Crossing { jump, leaves_x, x_position, x_address, y_address });
        }
    }

    fn collect_fallthroughs(&mut self, x_blocks: usize, (head, tail): (u32, u32)) {
        for table in [&mut self.into_head, &mut self.out_of_tail] {
            table.clear();
            table.resize(x_blocks, 0);
        }
        for crossing in &self.crossings {
            let extra = self.flow.most_earned(crossing.jump).fallthroughs();
            if crossing.jump.to == head {
                self.into_head[crossing.x_position as usize] += extra;
            }
            if crossing.jump.from == tail {
                self.out_of_tail[crossing.x_position as usize] += extra;
            }
        }
    }

    /// What the jumps between X and Y earn in a merge.
    fn crossing_score(&self, merge: Merge, cut_address: i64, x_size: i64, y_size: i64) -> i64 {
        let shift = match merge.kind {
            MergeKind::XY => Shift { x1: 0, x2: 0, y: x_size },
            MergeKind::X1YX2 => Shift { x1: 0, x2: y_size, y: cut_address },
            MergeKind::YX2X1 => Shift { x1: y_size + x_size - cut_address, x2: y_size - cut_address, y: 0 },
            MergeKind::X2X1Y => Shift { x1: x_size - cut_address, x2: -cut_address, y: x_size },
        };
        let score = |crossing: &Crossing| {
            let x = crossing.x_address + if crossing.x_position < merge.cut { shift.x1 } else { shift.x2 };
            let y = crossing.y_address + shift.y;
            self.flow.jump_score(crossing.jump, if crossing.leaves_x { y - x } else { x - y })
        };
        self.crossings.iter().map(score).sum()
    }
}
