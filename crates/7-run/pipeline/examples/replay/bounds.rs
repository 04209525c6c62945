//! What an order could reach that knew the run itself.

use crate::LINE;
use crate::layout::{Layout, Piece};
use crate::trace::{Block, Trace};
use std::collections::{BTreeSet, HashMap};

/// The parts that ran behind what is skipped, side by side in the order in which they first did, far from all else. A program that does one thing again and again
/// then has next to each other what it executes one after the other. Parts that stood at a multiple of `alignment` do so again.
pub fn by_first_use(layout: &Layout, trace: &Trace, alignment: u64) -> Layout {
    let parts: Vec<Vec<usize>> = trace.blocks.iter().map(|block| parts_of(layout, block)).collect();
    let mut extents: HashMap<usize, (u64, u64)> = HashMap::new();
    for piece in &layout.pieces {
        let extent = extents.entry(piece.part).or_insert((u64::MAX, 0));
        *extent = (extent.0.min(piece.output.start), extent.1.max(piece.output.end));
    }
    let mut at =
        layout.pieces.iter().map(|piece| piece.output.end).max().unwrap_or(0).next_multiple_of(1 << 20);
    let mut moved_by: HashMap<usize, u64> = HashMap::new();
    for &part in trace.ran[trace.skipped..].iter().flat_map(|&block| &parts[block as usize]) {
        if moved_by.contains_key(&part) {
            continue;
        }
        let (start, end) = extents[&part];
        at = at.next_multiple_of(if start.is_multiple_of(alignment) { alignment } else { 1 });
        moved_by.insert(part, at - start);
        at += end - start;
    }
    let moved = |piece: &Piece| {
        let by = moved_by.get(&piece.part).copied().unwrap_or(0);
        Piece { output: piece.output.start + by..piece.output.end + by, ..piece.clone() }
    };
    Layout { pieces: layout.pieces.iter().map(moved).collect() }
}

/// The parts in which a block stands.
fn parts_of(layout: &Layout, block: &Block) -> Vec<usize> {
    if !block.is_own {
        return Vec::new();
    }
    let first = layout.pieces.partition_point(|piece| piece.input.end <= block.range.start);
    let pieces = layout.pieces[first..].iter().take_while(|piece| piece.input.start < block.range.end);
    pieces.map(|piece| piece.part).collect()
}

/// Bytes that had to be fetched again in caches of these sizes, in lines: each byte by itself, the least recently used leaving, so that neither sets nor
/// what else stands in a line cost anything. No order does better with as many bytes, unless by what a cache of lines and sets keeps by accident.
pub fn least(trace: &Trace, sizes: [u64; 2]) -> [u64; 2] {
    let (atoms, atoms_of) = atoms(trace);
    let fetches: usize = trace.ran.iter().map(|&block| atoms_of[block as usize].len()).sum();
    // Bytes by the time at which they were last fetched.
    let mut recent = Sums(vec![0; fetches + 1]);
    let mut last: Vec<Option<usize>> = vec![None; atoms.len()];
    let (mut now, mut all, mut missed) = (0, 0, [0; 2]);
    for (i, &block) in trace.ran.iter().enumerate() {
        if i == trace.skipped {
            missed = [0; 2];
        }
        for &atom in &atoms_of[block as usize] {
            let size = atoms[atom];
            let since = last[atom].replace(now).map(|then| {
                let since = all - recent.upto(then);
                recent.add(then, size.wrapping_neg());
                all -= size;
                since
            });
            for (missed, capacity) in missed.iter_mut().zip(sizes) {
                *missed += if since.is_some_and(|since| since + size <= capacity) { 0 } else { size };
            }
            recent.add(now, size);
            all += size;
            now += 1;
        }
    }
    missed.map(|bytes| bytes / LINE)
}

/// The longest runs of bytes that were always executed together: their sizes, and those of each block.
fn atoms(trace: &Trace) -> (Vec<u64>, Vec<Vec<usize>>) {
    let ends: BTreeSet<u64> = trace.blocks.iter().flat_map(|b| [b.range.start, b.range.end]).collect();
    let (mut sizes, mut numbers) = (Vec::new(), HashMap::new());
    let mut atoms_of = |block: &Block| {
        let cuts: Vec<u64> = ends.range(block.range.start..=block.range.end).copied().collect();
        let number = |ends: &[u64]| {
            *numbers.entry(ends[0]).or_insert_with(|| {
                sizes.push(ends[1] - ends[0]);
                sizes.len() - 1
            })
        };
        cuts.windows(2).map(number).collect()
    };
    let of_blocks = trace.blocks.iter().map(&mut atoms_of).collect();
    (sizes, of_blocks)
}

/// Sums of prefixes (a Fenwick tree).
struct Sums(Vec<u64>);

impl Sums {
    fn add(&mut self, at: usize, value: u64) {
        let mut i = at + 1;
        while let Some(sum) = self.0.get_mut(i) {
            *sum = sum.wrapping_add(value);
            i += i & i.wrapping_neg();
        }
    }

    /// Of all up to this one, with it.
    fn upto(&self, at: usize) -> u64 {
        let (mut i, mut sum) = (at + 1, 0u64);
        while i > 0 {
            sum = sum.wrapping_add(self.0[i]);
            i &= i - 1;
        }
        sum
    }
}
