//! Where in their lines pieces of code start at best, which stand one behind the other.
//!
//! What a piece costs hangs on where it starts in a line, and what bytes in front of it cost on where the one before it ends there. So the cheapest
//! places of all pieces are found exactly, by dynamic programming over the 64 places at which the code so far may end.

use super::Piece;
use afterlink_core::limits::CACHE_LINE;
use afterlink_program::to_place;

const LINE: usize = CACHE_LINE as usize;

/// How often control steps from a byte to the next, in a piece.
pub(super) struct Steps {
    /// By the place of the second byte, from the start, in a line.
    by_place: [u128; LINE],
    /// Bytes so far.
    pub size: u64,
    /// How often control runs on from there.
    onward: u64,
}

impl Default for Steps {
    fn default() -> Self {
        Self { by_place: [0; LINE], size: 0, onward: 0 }
    }
}

impl Steps {
    /// Adds a block of so many bytes, which ran so often, and ran on into what is behind it.
    pub fn add(&mut self, size: u32, count: u64, onward: u64) {
        let end = self.size + u64::from(size);
        let into = std::mem::replace(&mut self.onward, onward);
        let mut step = |at: u64, count: u64| self.by_place[at as usize % LINE] += u128::from(count);
        step(self.size, into);
        (self.size + 1..end).for_each(|at| step(at, count));
        self.size = end;
    }

    /// How many lines control crosses, if the first byte stands at that place.
    fn at(&self, place: usize) -> u128 {
        self.by_place[(LINE - place) % LINE]
    }
}

pub(super) struct Places {
    byte_cost: u128,
    /// By where the code so far ends: what it costs at least.
    cost: [u128; LINE],
    /// For each piece, by where it starts: where the one before it then ends.
    before: Vec<[u8; LINE]>,
    /// Bytes of each piece.
    sizes: Vec<u64>,
}

impl Places {
    /// A byte that is left free costs so many 64ths of a step from line to line.
    pub fn new(byte_cost: u64) -> Self {
        let mut cost = [u128::MAX; LINE];
        cost[0] = 0;
        Self { byte_cost: byte_cost.into(), cost, before: Vec::new(), sizes: Vec::new() }
    }

    /// Adds the piece that stands behind the others.
    pub fn add(&mut self, piece: &Piece, steps: &Steps) {
        let alignment = piece.alignment.min(CACHE_LINE) as usize;
        let (mut cost, mut before) = ([u128::MAX; LINE], [0; LINE]);
        // The cheapest way to a place is that to the one in front of it and a byte more, or there is nothing in between. Twice around, as ways
        // lead over the line's end.
        let (mut cheapest, mut from) = (u128::MAX, 0);
        for place in (0..LINE).chain(0..LINE) {
            let end = to_place(piece.gap, place as u64) as usize;
            cheapest = cheapest.saturating_add(self.byte_cost);
            if self.cost[end] < cheapest {
                (cheapest, from) = (self.cost[end], end as u8);
            }
            if place % alignment == 0 {
                before[place] = from;
                let end = (place + piece.size as usize) % LINE;
                cost[end] = cheapest.saturating_add(LINE as u128 * steps.at(place));
            }
        }
        self.cost = cost;
        self.before.push(before);
        self.sizes.push(piece.size);
    }

    /// Where each piece starts.
    pub fn best(self) -> Vec<u64> {
        let ends = 0..CACHE_LINE;
        let mut end = ends.min_by_key(|&end| self.cost[end as usize]).unwrap_or(0);
        let mut starts = Vec::with_capacity(self.sizes.len());
        for (before, size) in self.before.iter().zip(&self.sizes).rev() {
            let start = to_place(*size, end);
            starts.push(start);
            end = before[start as usize].into();
        }
        starts.reverse();
        starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Pieces of one block with so many bytes, which ran so often, behind gaps and aligned as is said.
    fn pieces(drawn: &[(u32, u64, u64, u32)]) -> Vec<(Piece, Steps)> {
        let piece = |&(size, count, gap, alignment): &(u32, u64, u64, u32)| {
            let mut steps = Steps::default();
            steps.add(size, count, 0);
            let alignment = 1 << alignment;
            (Piece { fragment: 0, block: 0, size: size.into(), gap, alignment, place: 0 }, steps)
        };
        drawn.iter().map(piece).collect()
    }

    /// What it costs to start the pieces at these places, counted byte by byte; `None` if one may not start there.
    fn cost(
        pieces: &[(Piece, Steps)],
        drawn: &[(u32, u64, u64, u32)],
        places: &[u64],
        byte: u64,
    ) -> Option<u64> {
        let (mut at, mut cost) = (0, 0);
        for (((piece, _), &(size, count, ..)), &place) in pieces.iter().zip(drawn).zip(places) {
            at += piece.gap;
            while at % CACHE_LINE != place {
                (at, cost) = (at + 1, cost + byte);
            }
            if at % piece.alignment != 0 {
                return None;
            }
            let crossed = (at + 1..at + u64::from(size)).filter(|at| at % CACHE_LINE == 0).count() as u64;
            (at, cost) = (at + u64::from(size), cost + crossed * count * CACHE_LINE);
        }
        Some(cost)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn no_places_cost_less(drawn in prop::collection::vec((1u32..150, 0u64..9, 0u64..70, 0u32..5), 1..3), byte in 1u64..40) {
            let pieces = pieces(&drawn);
            let mut found = Places::new(byte);
            pieces.iter().for_each(|(piece, steps)| found.add(piece, steps));
            let found = found.best();
            let all = 0..CACHE_LINE;
            let least = match drawn.len() {
                1 => all.filter_map(|a| cost(&pieces, &drawn, &[a], byte)).min(),
                _ => all.flat_map(|a| (0..CACHE_LINE).map(move |b| [a, b])).filter_map(|places| cost(&pieces, &drawn, &places, byte)).min(),
            };
            prop_assert_eq!(cost(&pieces, &drawn, &found, byte), least);
        }
    }
}
