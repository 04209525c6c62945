//! Several pieces in place of a call, as seen in an output: blocks of the callee, and what leads in and out, which is none of the input's.
//!
//! Of the input is the call, which whoever comes in from outside has made (of an indirect call, whoever goes on from what asks where it leads), and each way
//! from one of the callee's blocks to another, also if that is not among the pieces: then a piece that leads out stands for it. Ways out to behind the call are returns, which profiles do not have.

use afterlink_core::address_map::{Lookup, Source};
use afterlink_core::{AddressMap, BlockMap, FragmentMap, InputAddr, OutputAddr, Reason};
use rustc_hash::{FxHashMap, FxHashSet};

/// Calls that have several pieces in their place, with the entries of their callees.
pub(super) struct InPlace {
    callees: FxHashMap<InputAddr, Site>,
}

/// A callee's entry, and where the call ends.
#[derive(Clone, Copy)]
struct Site {
    callee: InputAddr,
    call_end: InputAddr,
    /// The call is an indirect one: what leads in asks whether it leads to the callee.
    is_asked: bool,
}

impl InPlace {
    pub fn of(map: &AddressMap) -> Self {
        // One of the pieces stands for the call itself.
        let replaced = rows(map).filter(|(_, block)| block.reason == Reason::Replaced);
        let replaced: FxHashMap<InputAddr, u32> =
            replaced.filter_map(|(_, block)| Some((block.input?, block.input_size))).collect();
        let inlined = rows(map).filter_map(|(_, block)| {
            let call = call_of_part(map, block).filter(|call| replaced.contains_key(call))?;
            Some((call, block.input?))
        });
        let inlined: Vec<(InputAddr, InputAddr)> = inlined.collect();
        if inlined.is_empty() {
            return Self { callees: FxHashMap::default() };
        }
        // The callee is there as well.
        let own = rows(map).filter(|(_, block)| !matches!(block.reason, Reason::Inlined(_)));
        let own: FxHashMap<InputAddr, InputAddr> =
            own.filter_map(|(entry, block)| Some((block.input?, entry))).collect();
        let others = rows(map).filter(|(_, block)| block.input_size == 0);
        let asked: FxHashSet<InputAddr> = others
            .filter_map(|(_, block)| call_of(map, block).filter(|call| block.input == Some(*call)))
            .collect();
        let callees = inlined.iter().filter_map(|(call, input)| {
            let call_end = *call + u64::from(replaced[call]);
            let site = Site { callee: *own.get(input)?, call_end, is_asked: asked.contains(call) };
            Some((*call, site))
        });
        Self { callees: callees.collect() }
    }

    /// Which blocks of a fragment are callees', with the callees' entries.
    pub fn parts(&self, map: &AddressMap, fragment: &FragmentMap) -> Vec<(usize, InputAddr)> {
        let callee = |(at, block): (usize, &BlockMap)| {
            Some((at, self.callees.get(&call_of_part(map, block)?)?.callee))
        };
        fragment.blocks.iter().enumerate().filter_map(callee).collect()
    }

    /// Whether a piece is one of several in place of a call.
    pub fn holds(&self, source: &Source) -> bool {
        self.call(source).is_some()
    }

    fn call(&self, source: &Source) -> Option<InputAddr> {
        let call =
            if source.reason == Reason::Replaced { source.input } else { source.calls.first().copied() };
        call.filter(|call| self.callees.contains_key(call))
    }

    /// Whether a piece makes an indirect call as it was, of whom else it leads to.
    pub fn calls_others(&self, source: &Source) -> bool {
        let is_at = |call| source.input == Some(call);
        !is_entry(source) && source.input_size == 0 && self.call(source).is_some_and(is_at)
    }

    /// Whether a piece is a block of the callee.
    pub fn is_part(&self, source: &Source) -> bool {
        !is_entry(source) && source.input_size > 0 && self.holds(source)
    }

    /// The piece by which the code in place of a call is entered, if it starts here.
    pub fn entry_at<'m>(&self, lookup: &'m Lookup, at: OutputAddr) -> Option<Source<'m>> {
        if self.callees.is_empty() {
            return None;
        }
        lookup.starting_at(at).find(|source| self.holds(source) && is_entry(source))
    }

    /// Where control goes in the callee that leaves the block `source` for `to`; `None` if it leaves no block of the callee, or the callee.
    pub fn next(&self, lookup: &Lookup, source: &Source, to: OutputAddr) -> Option<InputAddr> {
        let call = self.call(source).filter(|_| self.is_part(source))?;
        let mut pieces = lookup.starting_at(to);
        let to = pieces.find(|piece| self.call(piece) == Some(call) && !is_entry(piece))?;
        to.input.filter(|input| to.input_size > 0 || *input != self.callees[&call].call_end)
    }

    /// The indirect call and its callee, where control goes on to `at` from what asks whether that is the one.
    pub fn answered(&self, lookup: &Lookup, asks: &Source, at: OutputAddr) -> Option<(InputAddr, InputAddr)> {
        let call = self.call(asks).filter(|call| is_entry(asks) && self.callees[call].is_asked)?;
        let mut pieces = lookup.starting_at(at);
        let goes_in = pieces.any(|piece| self.call(&piece) == Some(call) && self.is_part(&piece));
        goes_in.then_some((call, self.callees[&call].callee))
    }

    /// The call and its callee, where control comes to `at` from `before` without a jump, or by one.
    pub fn called(
        &self,
        lookup: &Lookup,
        before: Option<&Source>,
        at: OutputAddr,
    ) -> Option<(InputAddr, InputAddr)> {
        if let Some(asked) = before.and_then(|before| self.answered(lookup, before, at)) {
            return Some(asked);
        }
        let entry = self.entry_at(lookup, at)?;
        let call = self.call(&entry).filter(|call| !self.callees[call].is_asked)?;
        // Where nothing leads in, the callee's first block may be a loop; and the block in front of the call goes straight on.
        let comes_in = match before {
            _ if entry.end > at => true,
            Some(before) => self.call(before) != Some(call),
            None => false,
        };
        comes_in.then_some((call, self.callees[&call].callee))
    }
}

/// All pieces, with the entries of the functions that they were written for.
fn rows(map: &AddressMap) -> impl Iterator<Item = (InputAddr, &BlockMap)> {
    let fragments = map.functions.iter().flat_map(|f| f.fragments.iter().map(|fragment| (f.entry, fragment)));
    fragments.flat_map(|(entry, fragment)| fragment.blocks.iter().map(move |block| (entry, block)))
}

/// The call that a piece with code of the callee stands in place of.
fn call_of_part(map: &AddressMap, block: &BlockMap) -> Option<InputAddr> {
    call_of(map, block).filter(|_| block.input_size > 0)
}

/// The call that a piece is one of several in place of.
fn call_of(map: &AddressMap, block: &BlockMap) -> Option<InputAddr> {
    let Reason::Inlined(chain) = block.reason else { return None };
    map.chains.get(chain.0 as usize)?.first().copied()
}

/// What leads in stands for the call.
fn is_entry(source: &Source) -> bool {
    source.reason == Reason::Replaced
}
