//! The best way to merge a chain Y into a chain X, where X may be cut into X1 and X2.
//!
//! The gain of a merge is what the jumps between X and Y earn, less what the jumps from X1 to X2
//! and back lose. A jump that crosses the cut loses the same wherever the cut lies: with Y in
//! between it grows by the size of Y; with X2 before X1 a jump of length d turns round and has
//! length size(X) - d. So one pass over the jumps of X gives the loss of every cut as a prefix
//! sum, and only the few jumps between X and Y are scored cut by cut.

use super::ExtTspParams;
use super::chains::{ChainGraph, Place};
use super::jumps::Flow;

/// The order of the parts. (X2_Y_X1 has never been found to help, and Y_X is X_Y the other way.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MergeKind {
    XY,
    X1YX2,
    YX2X1,
    X2X1Y,
}

/// How to put two chains together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Merge {
    pub kind: MergeKind,
    /// The number of blocks of X1.
    pub cut: u32,
}

impl Merge {
    /// Turns the blocks of X into those of the merged chain.
    pub fn arrange(self, x: &mut Vec<u32>, y: &[u32]) {
        let cut = self.cut as usize;
        match self.kind {
            MergeKind::XY => x.extend_from_slice(y),
            MergeKind::X1YX2 => {
                x.splice(cut..cut, y.iter().copied());
            }
            MergeKind::YX2X1 => *x = [y, &x[cut..], &x[..cut]].concat(),
            MergeKind::X2X1Y => *x = [&x[cut..], &x[..cut], y].concat(),
        }
    }
}

/// A jump between X and Y, with the one point of each chain that its length depends on.
struct Crossing {
    jump: u32,
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
    crossings: Vec<Crossing>,
    /// What cutting X before its block i loses with something in between, and by rotation.
    insertion_loss: Vec<i64>,
    rotation_loss: Vec<i64>,
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
            insertion_loss: Vec::new(),
            rotation_loss: Vec::new(),
        }
    }

    /// The most that the jumps of a chain could earn by swapping a head and a tail of it.
    pub fn rotation_gain(&mut self, chains: &ChainGraph, chain: u32) -> i64 {
        let chain = &chains.chains[chain as usize];
        if chain.is_entry() || chain.jumps.is_empty() {
            return 0;
        }
        self.losses_of_cuts(chains, &chain.jumps, chain.nodes.len(), chain.size, 0);
        -self.rotation_loss[1..chain.nodes.len()].iter().copied().min().unwrap_or(0).min(0)
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
        let most: i64 =
            self.crossings.iter().map(|crossing| self.flow.jumps[crossing.jump as usize].fallthrough).sum();
        let mut best = Best(None);
        if !y.is_entry() {
            let merge = Merge { kind: MergeKind::XY, cut: 0 };
            best.offer(self.crossing_score(merge, 0, x.size, y.size), merge);
        }
        if x.nodes.len() > 1 {
            self.losses_of_cuts(chains, &x.jumps, x.nodes.len(), x.size, y.size);
            let kinds_of_all = [MergeKind::X1YX2, MergeKind::YX2X1, MergeKind::X2X1Y];
            let mut offer = |cut: u32, kinds: &[MergeKind]| {
                let (Some(&before), Some(&after)) =
                    (x.nodes.get(cut as usize - 1), x.nodes.get(cut as usize))
                else {
                    return;
                };
                if chains.is_glued[before as usize] {
                    return;
                }
                let (insertion, rotation) =
                    (self.insertion_loss[cut as usize], self.rotation_loss[cut as usize]);
                if !best.can_improve(most - insertion.min(rotation)) {
                    return;
                }
                let cut_address = chains.place[after as usize].address;
                for &kind in kinds {
                    let keeps_entry = match kind {
                        MergeKind::XY | MergeKind::X1YX2 => !y.is_entry(),
                        MergeKind::YX2X1 => !x.is_entry(),
                        MergeKind::X2X1Y => !x.is_entry() && !y.is_entry(),
                    };
                    if keeps_entry {
                        let merge = Merge { kind, cut };
                        let loss = if kind == MergeKind::X1YX2 { insertion } else { rotation };
                        best.offer(self.crossing_score(merge, cut_address, x.size, y.size) - loss, merge);
                    }
                }
            };
            // Beside the jumps into the head of Y and out of its tail first, as published.
            let (head, tail) = (y.nodes[0], y.nodes[y.nodes.len() - 1]);
            for crossing in &self.crossings {
                let jump = &self.flow.jumps[crossing.jump as usize];
                if jump.to == head {
                    offer(crossing.x_position + 1, &[MergeKind::X1YX2, MergeKind::X2X1Y]);
                }
                if jump.from == tail && crossing.x_position > 0 {
                    offer(crossing.x_position, &[MergeKind::X1YX2, MergeKind::YX2X1]);
                }
            }
            if x.nodes.len() <= self.split_threshold {
                for cut in 1..x.nodes.len() as u32 {
                    offer(cut, &kinds_of_all);
                }
            }
        }
        best.0
    }

    fn collect_crossings(&mut self, chains: &ChainGraph, into: u32, link: u32) {
        self.crossings.clear();
        for &id in &chains.links.links[link as usize].arcs {
            let jump = &self.flow.jumps[id as usize];
            let (from, to) = (chains.place[jump.from as usize], chains.place[jump.to as usize]);
            let from_end = from.address + self.flow.sizes[jump.from as usize];
            let leaves_x = from.chain == into;
            let x_position = if leaves_x { from.position } else { to.position };
            let (x_address, y_address) =
                if leaves_x { (from_end, to.address) } else { (to.address, from_end) };
            self.crossings.push(Crossing { jump: id, leaves_x, x_position, x_address, y_address });
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
            let length = if crossing.leaves_x { y - x } else { x - y };
            self.flow.jump_score(&self.flow.jumps[crossing.jump as usize], length)
        };
        self.crossings.iter().map(score).sum()
    }

    /// Fills both loss tables for a chain of `blocks` blocks and `size` bytes with these jumps.
    fn losses_of_cuts(
        &mut self,
        chains: &ChainGraph,
        jumps: &[u32],
        blocks: usize,
        size: i64,
        inserted: i64,
    ) {
        for table in [&mut self.insertion_loss, &mut self.rotation_loss] {
            table.clear();
            table.resize(blocks + 1, 0);
        }
        for &id in jumps {
            let jump = &self.flow.jumps[id as usize];
            let (from, to): (Place, Place) =
                (chains.place[jump.from as usize], chains.place[jump.to as usize]);
            let length = to.address - from.address - self.flow.sizes[jump.from as usize];
            let (stretched, turned) = if length >= 0 {
                (length + inserted, length - size)
            } else {
                (length - inserted, length + size)
            };
            let now = self.flow.jump_score(jump, length);
            let insertion = now - self.flow.jump_score(jump, stretched);
            let rotation = now - self.flow.jump_score(jump, turned);
            // The cuts that this jump crosses: after its first block, up to before its last.
            let (first, last) = (from.position.min(to.position), from.position.max(to.position));
            self.insertion_loss[first as usize + 1] += insertion;
            self.insertion_loss[last as usize + 1] -= insertion;
            self.rotation_loss[first as usize + 1] += rotation;
            self.rotation_loss[last as usize + 1] -= rotation;
        }
        for table in [&mut self.insertion_loss, &mut self.rotation_loss] {
            let mut sum = 0;
            for loss in table {
                sum += *loss;
                *loss = sum;
            }
        }
    }
}
