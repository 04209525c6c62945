//! The calls that lead over a function: from before it to behind it, or from behind it to its
//! start or before. They get shorter by what the function's hot part loses.
//!
//! One sweep over the functions in order; each call enters and leaves a bucket of calls of like
//! length. Sums are whole numbers, so nothing is left behind when all calls of a bucket are gone.

use super::{HotFunction, running_sum};

/// Buckets from one power of two to the next, as a power of two.
const STEPS_LOG: u32 = 3;
const BUCKETS: usize = 64 << STEPS_LOG;

#[derive(Clone, Copy, Default)]
struct Bucket {
    count: u128,
    /// Sum of count times length.
    length: u128,
}

/// A call that begins or stops to lead over functions at function `at`.
struct Event {
    at: u32,
    enters: bool,
    length: u64,
    count: u64,
}

pub(super) struct CoverCalls {
    events: Vec<Event>,
    next_event: usize,
    buckets: Vec<Bucket>,
    /// Mean length and count of each bucket that is not empty.
    present: Vec<(u64, f64)>,
}

impl CoverCalls {
    pub(super) fn new(functions: &[HotFunction], starts: &[u64]) -> Self {
        let mut events = Vec::new();
        for (function, caller) in functions.iter().zip(0u32..) {
            let ends = running_sum(function.sizes.iter().map(|&size| u64::from(size)));
            for call in function.calls.iter().filter(|call| call.count > 0 && call.callee != caller) {
                let (first, behind) =
                    if caller < call.callee { (caller + 1, call.callee) } else { (call.callee, caller) };
                let from = starts[caller as usize] + ends[call.block as usize + 1];
                let length = from.abs_diff(starts[call.callee as usize]);
                if first < behind {
                    events.push(Event { at: first, enters: true, length, count: call.count });
                    events.push(Event { at: behind, enters: false, length, count: call.count });
                }
            }
        }
        events.sort_by_key(|event| event.at);
        Self { events, next_event: 0, buckets: vec![Bucket::default(); BUCKETS], present: Vec::new() }
    }

    /// Length in bytes and count of the calls over function `index`. Ask for 0, 1, 2 and so on.
    pub(super) fn over(&mut self, index: u32) -> &[(u64, f64)] {
        let first = self.next_event;
        while let Some(event) = self.events.get(self.next_event).filter(|event| event.at <= index) {
            let bucket = &mut self.buckets[bucket_of(event.length)];
            let (count, length) = (u128::from(event.count), u128::from(event.length));
            if event.enters {
                bucket.count += count;
                bucket.length += count * length;
            } else {
                bucket.count -= count;
                bucket.length -= count * length;
            }
            self.next_event += 1;
        }
        if self.next_event > first {
            self.present.clear();
            let full = self.buckets.iter().filter(|bucket| bucket.count > 0);
            self.present.extend(full.map(|full| ((full.length / full.count) as u64, full.count as f64)));
        }
        &self.present
    }
}

fn bucket_of(length: u64) -> usize {
    let octave = length.max(1).ilog2();
    let within = (length << (63 - octave)) >> (63 - STEPS_LOG);
    ((octave << STEPS_LOG) as usize) + (within as usize & ((1 << STEPS_LOG) - 1))
}
