//! Words of the global offset table that the loader fills with addresses of this file: code loads functions' addresses from
//! them, and the linker's stubs jump through them.

use super::code::Code;
use afterlink_image::Image;
use afterlink_isa::judgement::{Judgement, StartUpRelocation};
use rustc_hash::FxHashMap;

pub(crate) struct Slots {
    /// What each slot will hold.
    held: FxHashMap<u64, u64>,
    /// Sections with stubs.
    stubs: Vec<(u64, u64)>,
}

impl Slots {
    pub fn read(image: &Image) -> Self {
        let judgement = Judgement::of(image.arch);
        let is_slot = |address| {
            let section = image.section_at(address).map(|id| image.sections[id].name);
            section.is_some_and(|name| name == ".got" || name == ".got.plt")
        };
        let filled = image.dynamic.relocations.iter().filter(|r| is_slot(r.address)).filter_map(|r| {
            let symbol = || image.dynamic_symbols.get(r.symbol).filter(|s| s.is_defined());
            let base = match judgement.start_up_relocation(r.kind)? {
                StartUpRelocation::FromBase => 0,
                // Another object may come first; if none does, it is this one's.
                StartUpRelocation::Symbol => symbol()?.address.get(),
                StartUpRelocation::Resolved => return None,
            };
            Some((r.address.get(), base.wrapping_add(r.addend as u64)))
        });
        let stubs = image.sections.iter().filter(|(_, s)| s.is_code() && s.name.starts_with(".plt"));
        let stubs = stubs.map(|(_, s)| (s.address.get(), s.end().get())).collect();
        Self { held: filled.collect(), stubs }
    }

    /// What the slot at `address` will hold, if it is one.
    pub fn get(&self, address: u64) -> Option<u64> {
        self.held.get(&address).copied()
    }

    /// Where a call of `target` goes: a stub leads on to what its slot holds.
    pub fn callee(&self, code: &Code, target: u64) -> u64 {
        if !self.stubs.iter().any(|&(start, end)| target >= start && target < end) {
            return target;
        }
        code.slot_of_stub(target).and_then(|slot| self.get(slot)).unwrap_or(target)
    }
}
