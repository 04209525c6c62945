//! Words of the global offset table that the loader fills with addresses of this file: code loads functions' addresses from
//! them, and the linker's stubs jump through them. And which calls never come back.

use super::code::Code;
use afterlink_core::InputAddr;
use afterlink_image::Image;
use afterlink_isa::judgement::{Judgement, StartUpRelocation};
use rustc_hash::{FxHashMap, FxHashSet};

/// Functions that by their contract never return (ISO C 7.22.4, POSIX, Itanium C++ ABI 2.4 and 3.2, LSB 5.0): all names are
/// reserved, so that whoever defines one means it.
const NEVER_RETURN: [&str; 14] = [
    "abort",
    "exit",
    "_exit",
    "_Exit",
    "__assert_fail",
    "__chk_fail",
    "__stack_chk_fail",
    "__cxa_bad_cast",
    "__cxa_bad_typeid",
    "__cxa_pure_virtual",
    "__cxa_rethrow",
    "__cxa_throw",
    "__cxa_throw_bad_array_new_length",
    "_Unwind_Resume",
];

pub(crate) struct Slots {
    /// What each slot will hold.
    held: FxHashMap<u64, u64>,
    /// Sections with stubs.
    stubs: Vec<(u64, u64)>,
    /// Slots and addresses of functions that never return.
    ends: FxHashSet<u64>,
}

impl Slots {
    pub fn read(image: &Image) -> Self {
        let is_slot = |address| {
            let section = image.section_at(address).map(|id| image.sections[id].name);
            section.is_some_and(|name| name == ".got" || name == ".got.plt")
        };
        let filled = filled_at_start_up(image).filter(|&(word, _)| is_slot(InputAddr(word)));
        let stubs = image.sections.iter().filter(|(_, s)| s.is_code() && s.name.starts_with(".plt"));
        let stubs = stubs.map(|(_, s)| (s.address.get(), s.end().get())).collect();
        Self { held: filled.collect(), stubs, ends: ends(image) }
    }

    /// Whether a call of `target` never comes back.
    pub fn never_returns(&self, code: &Code, target: u64) -> bool {
        let slot = || code.slot_of_stub(target).filter(|_| self.is_stub(target));
        self.ends.contains(&target) || slot().is_some_and(|slot| self.ends.contains(&slot))
    }

    fn is_stub(&self, address: u64) -> bool {
        self.stubs.iter().any(|&(start, end)| address >= start && address < end)
    }

    /// What the slot at `address` will hold, if it is one.
    pub fn get(&self, address: u64) -> Option<u64> {
        self.held.get(&address).copied()
    }

    /// Where a call of `target` goes: a stub leads on to what its slot holds.
    pub fn callee(&self, code: &Code, target: u64) -> u64 {
        if !self.is_stub(target) {
            return target;
        }
        code.slot_of_stub(target).and_then(|slot| self.get(slot)).unwrap_or(target)
    }
}

/// The words that the dynamic linker fills when the program starts, and the addresses that they hold then.
pub(crate) fn filled_at_start_up(image: &Image) -> impl Iterator<Item = (u64, u64)> {
    let judgement = Judgement::of(image.arch);
    image.dynamic.relocations.iter().filter_map(move |r| {
        let symbol = || image.dynamic_symbols.get(r.symbol).filter(|s| s.is_defined());
        let base = match judgement.start_up_relocation(r.kind)? {
            StartUpRelocation::FromBase => 0,
            // Another object may come first; if none does, it is this one's.
            StartUpRelocation::Symbol => symbol()?.address.get(),
            StartUpRelocation::Resolved => return None,
        };
        Some((r.address.get(), base.wrapping_add(r.addend as u64)))
    })
}

fn ends(image: &Image) -> FxHashSet<u64> {
    let never_returns = |name: &str| NEVER_RETURN.contains(&name);
    let own = image.symbols.iter().filter(|s| s.is_function() && !s.is_local() && s.is_defined());
    let own = own.filter(|s| never_returns(s.name())).map(|s| s.address.get());
    let slots = image.dynamic.relocations.iter().filter(|r| {
        let symbol = image.dynamic_symbols.get(r.symbol);
        r.symbol != 0 && symbol.is_some_and(|s| never_returns(s.name()))
    });
    own.chain(slots.map(|r| r.address.get())).collect()
}
