//! Instructions that a handler of signals may look up by their address.
//!
//! A signal that an instruction raises tells where it stands, and the handler may know what to do there: from a table in data, or as it compares the
//! place with an address that code takes (`if (ip == safe_load) ip = safe_load_failed`). The address of such an instruction leads to what
//! corresponds to it, so that must be the instruction itself, with nothing in front that is counted; and the instruction stands nowhere else.
//!
//! That a function is exported does not count: who asks for it by its name gets the address to call it.

use crate::addresses::jump_tables;
use crate::addresses::jumps::Jumps;
use crate::addresses::taken;
use crate::check::Check;
use crate::input::slots;
use crate::kept_bytes::expected::Layout;
use afterlink_isa::judgement::{LONGEST, Reader};

/// Places in code of which a word holds the address, or an instruction takes it, and exported ones at which no function starts. Ascending.
pub(super) fn places(check: &Check, layout: &Layout, jumps: &Jumps) -> Vec<u64> {
    let mut places = jumps.taken.clone();
    places.extend(jump_tables::unclaimed(check, layout, jumps));
    places.extend(slots::filled_at_start_up(check.input).map(|(_, address)| address));
    places.extend(linked_slots(check));
    let exported = check.input.dynamic_symbols.iter().filter(|symbol| symbol.is_defined());
    let exported = exported.map(|symbol| symbol.address.get());
    places.extend(exported.filter(|&place| !check.functions.starts_at(place)));
    taken::in_order(check, places)
}

/// What words of the global offset table hold that the linker filled: no relocation tells of them.
fn linked_slots<'c>(check: &'c Check) -> impl Iterator<Item = u64> + 'c {
    let is_filled = !check.input.link_kind.is_position_independent();
    let tables = check.input.sections.iter().filter(move |(_, s)| is_filled && s.name == ".got");
    tables.flat_map(|(id, _)| {
        let (words, _) = check.input.section_bytes(id).as_chunks::<8>();
        words.iter().map(|word| u64::from_le_bytes(*word))
    })
}

/// Whether a handler may look up the instruction at an address, which is one of these places or not.
pub(super) fn is_at(check: &Check, places: &[u64], address: u64) -> bool {
    if places.binary_search(&address).is_err() {
        return false;
    }
    let bytes = check.code.at(address).and_then(|inst| {
        let len = usize::from(inst.len).min(LONGEST);
        check.code.bytes(address, len).filter(|_| !inst.is_prefix())
    });
    bytes.is_none_or(|bytes| Reader::new(check.code.judgement).may_raise(bytes))
}
