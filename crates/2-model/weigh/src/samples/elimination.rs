//! How often each block runs where the chances of all ways are known, and what a visit to it is worth: two systems of linear equations
//! with the same matrix, solved by taking out one block after the other.
//!
//! Taking out a block joins each way to it with each way from it. Which ways arise is found out once, with the block that makes the
//! fewest taken out first; numbers are then put through again and again. Nothing is ever subtracted, so that nothing is lost in
//! loops that hardly ever end (Grassmann, Taksar and Heyman, "Regenerative analysis and steady state distributions for Markov chains", 1985).

use std::collections::{BTreeMap, BTreeSet};

/// A way, by where its chance is kept.
type Slot = u32;

/// A block that is taken out.
struct Step {
    block: u32,
    /// Ways to and from blocks that are left.
    from: Vec<(u32, Slot)>,
    to: Vec<(u32, Slot)>,
    /// For each of `from`, then for each of `to`: the way that joins them; `NONE` where it leads back to the block itself.
    joined: Vec<Slot>,
}

const NONE: Slot = Slot::MAX;
/// The least chance of not coming back at once: what never ends, ends.
const LEAST: f64 = 1e-7;
/// The same of a loop that has no way out.
const ENDLESS: f64 = 0.1;

/// The ways between blocks that are left.
struct Ways {
    to: Vec<BTreeMap<u32, Slot>>,
    from: Vec<BTreeMap<u32, Slot>>,
    count: Slot,
}

impl Ways {
    /// Also the slot of each way that was given, by block.
    fn of(successors: &[Vec<u32>]) -> (Self, Vec<Vec<Slot>>) {
        let none = || vec![BTreeMap::new(); successors.len()];
        let mut ways = Self { to: none(), from: none(), count: 0 };
        let mut slots = Vec::with_capacity(successors.len());
        for (b, to) in (0u32..).zip(successors) {
            slots.push(to.iter().map(|&to| if to == b { NONE } else { ways.slot(b, to) }).collect());
        }
        (ways, slots)
    }

    fn slot(&mut self, from: u32, to: u32) -> Slot {
        let slot = *self.to[from as usize].entry(to).or_insert(self.count);
        self.from[to as usize].insert(from, slot);
        self.count = self.count.max(slot + 1);
        slot
    }

    /// How many ways taking out `block` would join.
    fn joins(&self, block: u32) -> usize {
        self.from[block as usize].len() * self.to[block as usize].len()
    }

    fn around(&self, block: u32) -> BTreeSet<u32> {
        self.from[block as usize].keys().chain(self.to[block as usize].keys()).copied().collect()
    }

    fn take_out(&mut self, block: u32) -> Step {
        let from: Vec<(u32, Slot)> = std::mem::take(&mut self.from[block as usize]).into_iter().collect();
        let to: Vec<(u32, Slot)> = std::mem::take(&mut self.to[block as usize]).into_iter().collect();
        for &(f, _) in &from {
            self.to[f as usize].remove(&block);
        }
        for &(t, _) in &to {
            self.from[t as usize].remove(&block);
        }
        let mut joined = Vec::with_capacity(from.len() * to.len());
        for &(f, _) in &from {
            joined.extend(to.iter().map(|&(t, _)| if f == t { NONE } else { self.slot(f, t) }));
        }
        Step { block, from, to, joined }
    }
}

pub(super) struct Elimination {
    steps: Vec<Step>,
    /// By block and way out of it; none where it leads to the block itself.
    slots: Vec<Vec<Slot>>,
    chances: Vec<f64>,
    /// By block: of leaving for good, and of leaving it for another block or for good.
    leaving: Vec<f64>,
    going: Vec<f64>,
}

impl Elimination {
    /// `None` if more than `most` ways would have to be joined.
    pub fn of(successors: &[Vec<u32>], most: usize) -> Option<Self> {
        let blocks = successors.len();
        let (mut ways, slots) = Ways::of(successors);
        let mut queue: BTreeSet<(usize, u32)> = (0..blocks as u32).map(|b| (ways.joins(b), b)).collect();
        let (mut steps, mut joins) = (Vec::with_capacity(blocks), 0);
        while let Some((cost, block)) = queue.pop_first() {
            joins += cost;
            if joins > most {
                return None;
            }
            let around: BTreeSet<u32> = ways.around(block);
            for &b in &around {
                queue.remove(&(ways.joins(b), b));
            }
            steps.push(ways.take_out(block));
            for &b in &around {
                queue.insert((ways.joins(b), b));
            }
        }
        let count = ways.count;
        let chances = vec![0.0; count as usize];
        Some(Self { steps, slots, chances, leaving: vec![0.0; blocks], going: vec![0.0; blocks] })
    }

    /// Takes over chances by block and way out, and by block that of leaving for good.
    pub fn set(&mut self, chances: &[Vec<f64>], leaving: &[f64]) {
        self.chances.fill(0.0);
        for (slots, chances) in self.slots.iter().zip(chances) {
            for (&slot, &chance) in slots.iter().zip(chances).filter(|(slot, _)| **slot != NONE) {
                self.chances[slot as usize] = chance;
            }
        }
        self.leaving.copy_from_slice(leaving);
        for step in &self.steps {
            let k = step.block as usize;
            let out: f64 = step.to.iter().map(|&(_, slot)| self.chances[slot as usize]).sum();
            let ends = out + self.leaving[k] > 0.0;
            let going = if ends { (out + self.leaving[k]).max(LEAST) } else { ENDLESS };
            self.going[k] = going;
            let mut joined = step.joined.iter();
            for &(f, way_in) in &step.from {
                let through = self.chances[way_in as usize] / going;
                self.leaving[f as usize] += through * self.leaving[k];
                for &(_, way_out) in &step.to {
                    // Invariant: one for each pair.
                    let &slot = joined.next().expect("a way for each pair");
                    if slot != NONE {
                        self.chances[slot as usize] += through * self.chances[way_out as usize];
                    }
                }
            }
        }
    }

    /// From how often control comes to each block from outside, how often it runs.
    pub fn executions(&self, from_outside: &mut [f64]) {
        for step in &self.steps {
            let each = from_outside[step.block as usize] / self.going[step.block as usize];
            for &(t, slot) in &step.to {
                from_outside[t as usize] += each * self.chances[slot as usize];
            }
        }
        for step in self.steps.iter().rev() {
            let k = step.block as usize;
            let more: f64 = step
                .from
                .iter()
                .map(|&(f, slot)| from_outside[f as usize] * self.chances[slot as usize])
                .sum();
            from_outside[k] = (from_outside[k] + more) / self.going[k];
        }
    }

    /// From what each execution of a block gives, what coming to it gives, with all that follows.
    pub fn values(&self, gives: &mut [f64]) {
        for step in &self.steps {
            let each = gives[step.block as usize] / self.going[step.block as usize];
            for &(f, slot) in &step.from {
                gives[f as usize] += each * self.chances[slot as usize];
            }
        }
        for step in self.steps.iter().rev() {
            let k = step.block as usize;
            let more: f64 =
                step.to.iter().map(|&(t, slot)| gives[t as usize] * self.chances[slot as usize]).sum();
            gives[k] = (gives[k] + more) / self.going[k];
        }
    }
}

#[cfg(test)]
mod tests;
