//! Code that the output has in addition, between instructions of the input: it counts, or brings moved code into the cache.

use crate::address_map::places::Places;
use crate::input::code::Code;
use afterlink_isa::judgement::{Counter, Effect};
use std::sync::atomic::Ordering::Relaxed;

impl Places<'_> {
    /// The added code that starts at an output address.
    pub fn added_at(&self, output: u64) -> Option<Counter> {
        let bytes = self.output_bytes(output);
        self.counters.as_ref().and_then(|counters| counters.parse(bytes, output)).or_else(|| {
            let (line, len) = self.judgement.code_prefetch(bytes, output)?;
            self.fragment_at(line).map(|_| Counter { len, effect: Effect::Cache })
        })
    }

    /// The same in front of the place of an instruction of the input, which may be such a one itself.
    pub fn added_before(&self, code: &Code, input: u64, output: u64) -> Option<Counter> {
        let added = self.added_at(output)?;
        if added.effect == Effect::Cache {
            if code.asks_for_code(input) {
                return None;
            }
            self.prefetches.store(true, Relaxed);
        }
        Some(added)
    }

    /// Whether there is any between instructions of the input.
    pub fn have_added(&self) -> bool {
        self.counters.is_some() || self.prefetches.load(Relaxed)
    }
}
