//! A simulated instruction cache.

use crate::LINE;
use crate::layout::Placed;
use crate::trace::Trace;

const WAYS: usize = 8;
/// Random places of all pages.
const PLACES: u64 = 6;

/// A cache with the least recently used line leaving its set.
struct Cache {
    place: u64,
    sets: u64,
    lines: Vec<u64>,
    misses: u64,
}

impl Cache {
    fn new(bytes: u64, place: u64) -> Self {
        let sets = bytes / LINE / WAYS as u64;
        Self { place, sets, lines: vec![u64::MAX; sets as usize * WAYS], misses: 0 }
    }

    fn fetch(&mut self, line: u64) {
        let page = line >> 6;
        let moved =
            if self.place == 0 { 0 } else { page.wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ self.place) >> 40 };
        let set = (line.wrapping_add(moved) % self.sets) as usize * WAYS;
        let lines = &mut self.lines[set..][..WAYS];
        match lines.iter().position(|&l| l == line) {
            Some(at) => lines[..=at].rotate_right(1),
            None => {
                lines.rotate_right(1);
                lines[0] = line;
                self.misses += 1;
            }
        }
    }
}

/// Misses of the caches, and jumps, behind the part of the run that is skipped.
pub fn fetched(trace: &Trace, placed: &[Placed]) -> [u64; 4] {
    let mut caches: Vec<Cache> =
        (0..=PLACES).map(|place| Cache::new(32 << 10, place.wrapping_mul(0xd134_2543_de82_ef95))).collect();
    caches.push(Cache::new(64 << 10, 0));
    let (mut jumps, mut at, mut last, mut around) = (0, 0, u64::MAX, false);
    for (i, &block) in trace.ran.iter().enumerate() {
        if i == trace.skipped {
            caches.iter_mut().for_each(|cache| cache.misses = 0);
            jumps = 0;
        }
        let block = &placed[block as usize];
        if std::mem::replace(&mut around, block.goes_around_stub) && block.is_stub {
            continue;
        }
        jumps += u64::from(block.start != at);
        at = block.end;
        for &line in block.lines.iter().filter(|&&line| std::mem::replace(&mut last, line) != line) {
            caches.iter_mut().for_each(|cache| cache.fetch(line));
        }
    }
    let mean = caches[1..=PLACES as usize].iter().map(|cache| cache.misses).sum::<u64>() / PLACES;
    [caches[0].misses, mean, caches[PLACES as usize + 1].misses, jumps]
}
