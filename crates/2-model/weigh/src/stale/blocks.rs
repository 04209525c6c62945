//! Which block of the new function is which of the old one.
//!
//! Hashes that are unique on both sides say it surely, the stricter and the more of the neighbourhood they hold the more. From what is paired, the ways that
//! control takes lead to the next pairs; and what is left is [aligned](alignment) between pairs in the order in which it stands, as compilers keep the
//! order of the source. Each step only takes blocks that have enough in common.

use super::alignment;
use super::features::{Content, Features, similarity};
use afterlink_program::BlockId;
use rustc_hash::FxHashMap;

/// What two blocks must have in common if the way to them, or where they stand, speaks for them.
const ALIKE: f64 = 0.7;
const SOMEWHAT: f64 = 0.4;
const HARDLY: f64 = 0.2;

/// A number for a block that is the same for what is alike.
type Kind = fn(&Features) -> u64;
const EXACT: Kind = |block| block.exact;
const SHAPE: Kind = |block| block.shape;
const OPERATIONS: Kind = |block| block.operations;
/// From strict to loose, with so many steps around.
const LEVELS: [(Kind, usize); 7] =
    [(EXACT, 2), (EXACT, 1), (SHAPE, 2), (SHAPE, 1), (EXACT, 0), (SHAPE, 0), (OPERATIONS, 1)];

/// By block of `old`, its pair.
pub(super) fn pair(old: &Content, new: &Content) -> Vec<Option<BlockId>> {
    let mut pairing = Pairing::new(old, new);
    if old.len() == 0 || new.len() == 0 {
        return Vec::new();
    }
    pairing.add(0, 0);
    for (kind, steps) in LEVELS {
        pairing.add_unique(&old.hashes(kind, steps), &new.hashes(kind, steps));
        pairing.follow(ALIKE);
    }
    for least in [SOMEWHAT, HARDLY] {
        pairing.follow(least);
        for (from, to) in alignment::align(&pairing.new_of, old, new, least, |to| pairing.is_taken(to)) {
            pairing.add(from, to);
        }
        pairing.follow(least);
    }
    pairing.new_of.iter().map(|new| new.map(BlockId)).collect()
}

struct Pairing<'c> {
    old: &'c Content,
    new: &'c Content,
    new_of: Vec<Option<u32>>,
    old_of: Vec<Option<u32>>,
}

impl<'c> Pairing<'c> {
    fn new(old: &'c Content, new: &'c Content) -> Self {
        Self { old, new, new_of: vec![None; old.len()], old_of: vec![None; new.len()] }
    }

    fn is_taken(&self, new: u32) -> bool {
        self.old_of[new as usize].is_some()
    }

    fn is_free(&self, old: u32, new: u32) -> bool {
        self.new_of[old as usize].is_none() && !self.is_taken(new)
    }

    fn add(&mut self, old: u32, new: u32) {
        if self.is_free(old, new) {
            self.new_of[old as usize] = Some(new);
            self.old_of[new as usize] = Some(old);
        }
    }

    /// Pairs blocks without a pair whose hash no other one of those has.
    fn add_unique(&mut self, old: &[u64], new: &[u64]) {
        let mut seen: FxHashMap<u64, [Vec<u32>; 2]> = FxHashMap::default();
        for (block, hash) in (0u32..).zip(old).filter(|&(block, _)| self.new_of[block as usize].is_none()) {
            seen.entry(*hash).or_default()[0].push(block);
        }
        for (block, hash) in (0u32..).zip(new).filter(|&(block, _)| !self.is_taken(block)) {
            if let Some(of) = seen.get_mut(hash) {
                of[1].push(block);
            }
        }
        for [old, new] in seen.into_values() {
            if let (&[old], &[new]) = (&old[..], &new[..]) {
                self.add(old, new);
            }
        }
    }

    /// Pairs what pairs lead to, and what leads to them alone, as long as there is something that has `least` in common.
    fn follow(&mut self, least: f64) {
        let mut open: Vec<u32> = (0..self.old.len() as u32).rev().collect();
        while let Some(old) = open.pop() {
            let Some(new) = self.new_of[old as usize] else { continue };
            let (old_ways, new_ways) = (&self.old.ways[old as usize], &self.new.ways[new as usize]);
            let mut found: Vec<(u32, u32)> = Vec::new();
            if old_ways.len() == new_ways.len() {
                found.extend(old_ways.iter().copied().zip(new_ways.iter().copied()));
            }
            let free_before = |before: &[u32], is_free: &dyn Fn(u32) -> bool| {
                let mut free = before.iter().copied().filter(|&block| is_free(block));
                let first = free.next();
                first.filter(|_| free.next().is_none())
            };
            let old_before =
                free_before(&self.old.before[old as usize], &|b| self.new_of[b as usize].is_none());
            let new_before = free_before(&self.new.before[new as usize], &|b| !self.is_taken(b));
            found.extend(old_before.zip(new_before));
            for (a, b) in found {
                if self.is_free(a, b) && self.alike(a, b) >= least {
                    self.add(a, b);
                    open.push(a);
                }
            }
        }
    }

    fn alike(&self, old: u32, new: u32) -> f64 {
        similarity(&self.old.blocks[old as usize].bag, &self.new.blocks[new as usize].bag)
    }
}

#[cfg(test)]
mod tests;
