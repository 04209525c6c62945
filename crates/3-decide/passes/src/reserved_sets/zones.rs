//! Which groups of fragments stand where the sets are kept, and which in the rest.

use super::Group;
use crate::Cache;
use afterlink_core::limits::CACHE_LINE;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::Range;

/// How many groups are looked at for one that fits what is left of a zone: of what is hot, few, so that what runs together stands together.
const HOT_CHOICE: usize = 8;
const WARM_CHOICE: usize = 256;

/// A group, in the new order.
pub(super) struct Place {
    pub group: usize,
    /// Of the first one of a zone: bytes to leave free in front of it, and what its start is a multiple of then.
    pub zone: Option<(u64, u64)>,
}

/// The groups in their new order: of each round the kept part and the other one.
pub(super) fn arranged(groups: &[Group], cache: Cache, slack: u64) -> Vec<Place> {
    let (mut kept, mut rest, mut warm) = sorted(groups, cache, slack);
    let mut layout = Layout { groups, cache, slack, order: Vec::with_capacity(groups.len()), end: 0 };
    for _ in 0..cache.kept_rounds() {
        layout.add_round((&mut kept, HOT_CHOICE), &mut rest);
    }
    // What does not fit any more is hot like the rest.
    kept.append(&mut rest);
    while !kept.is_empty() && !warm.is_empty() {
        layout.add_round((&mut warm, WARM_CHOICE), &mut kept);
    }
    kept.into_iter().chain(warm).for_each(|group| layout.add(group, None));
    layout.order
}

/// What is entered most often for its bytes, as far as the kept parts have room; what else is hot; and what hardly runs.
fn sorted(groups: &[Group], cache: Cache, slack: u64) -> (VecDeque<usize>, VecDeque<usize>, VecDeque<usize>) {
    let mut by_worth: Vec<usize> = (0..groups.len()).filter(|&i| groups[i].is_hot).collect();
    // Bytes are fetched with those around them.
    let worth =
        |i: usize| (u128::from(groups[i].entered) << 32) / u128::from(groups[i].size + CACHE_LINE / 2);
    // Of equal ones not the first to stand: an order that was arranged once must come out again.
    by_worth.sort_by_key(|&i| (Reverse(worth(i)), groups[i].function));
    let zone = cache.kept() - slack;
    let mut room = cache.kept_rounds() * zone;
    let mut is_kept = vec![false; groups.len()];
    for i in by_worth {
        if let Some(left) = room.checked_sub(groups[i].size).filter(|_| groups[i].size <= zone) {
            (room, is_kept[i]) = (left, true);
        }
    }
    let of = |wanted: &dyn Fn(usize) -> bool| (0..groups.len()).filter(|&i| wanted(i)).collect();
    (of(&|i| is_kept[i]), of(&|i| groups[i].is_hot && !is_kept[i]), of(&|i| !groups[i].is_hot))
}

struct Layout<'g> {
    groups: &'g [Group],
    cache: Cache,
    /// Bytes at the end of each zone that nothing is planned for.
    slack: u64,
    order: Vec<Place>,
    /// Bytes so far.
    end: u64,
}

impl Layout<'_> {
    /// The next round: its kept part from one queue, the other part from another.
    fn add_round(&mut self, (kept, choice): (&mut VecDeque<usize>, usize), rest: &mut VecDeque<usize>) {
        let start = self.end.next_multiple_of(self.cache.round());
        let middle = start + self.cache.kept();
        self.add_zone(kept, choice, start..middle);
        if !self.add_zone(rest, HOT_CHOICE, middle..start + self.cache.round())
            && let Some(group) = rest.pop_front()
        {
            // It is larger than that: it goes over several.
            self.add(group, Some(middle));
        }
    }

    /// Fills the zone with what fits; whether anything does.
    fn add_zone(&mut self, queue: &mut VecDeque<usize>, choice: usize, zone: Range<u64>) -> bool {
        let limit = zone.end - self.slack;
        let mut first = Some(zone.start);
        loop {
            let fits = |&i: &usize| {
                let start = first.unwrap_or_else(|| self.groups[i].start_behind(self.end));
                start + self.groups[i].size <= limit
            };
            let found = queue.iter().take(choice).position(fits);
            let Some(next) = found.and_then(|at| queue.remove(at)) else { return first.is_none() };
            self.add(next, first.take());
        }
    }

    /// Puts a group behind the others, or at the start of a zone.
    fn add(&mut self, group: usize, zone: Option<u64>) {
        let own = &self.groups[group];
        let start = zone.unwrap_or_else(|| own.start_behind(self.end));
        let round = self.cache.round();
        let alignment = if start.is_multiple_of(round) { round } else { self.cache.kept() };
        // Where some more bytes than planned are left free in front of it, alignment alone leads there.
        let padding = (start - self.end + self.slack).saturating_sub(alignment).min(start - self.end);
        self.order.push(Place { group, zone: zone.map(|_| (padding, alignment)) });
        self.end = start + own.size;
    }
}
