//! The global offset table: words that the loader fills with addresses, from which code loads them and through which the
//! linker's stubs jump.

use afterlink_core::InputAddr;
use afterlink_image::Image;
use afterlink_isa::Named;

/// The longest stub: a mark and a jump with a prefix.
const LONGEST_STUB: usize = 16;

/// Slots that the loader fills with an address of this file.
pub(crate) struct Slots {
    /// Each with what it will hold, ascending.
    rows: Vec<(InputAddr, InputAddr)>,
}

impl Slots {
    pub fn read(image: &Image) -> Self {
        let tables = image.sections.iter().filter(|(_, s)| matches!(s.name, ".got" | ".got.plt"));
        let tables: Vec<_> = tables.map(|(_, s)| (s.address, s.end())).collect();
        let filled = image.dynamic.relocations.iter().filter_map(|r| {
            let is_slot = tables.iter().any(|(start, end)| r.address >= *start && r.address < *end);
            let address = match image.arch.relocation(r.kind).filter(|_| is_slot)?.names {
                Named::Loaded => InputAddr(r.addend as u64),
                // Another object may come first; if none does, it is this one's.
                Named::Symbol | Named::Address => {
                    let symbol = image.dynamic_symbols.get(r.symbol).filter(|s| s.is_defined())?;
                    symbol.address + r.addend as u64
                }
                _ => return None,
            };
            Some((r.address, address))
        });
        let mut rows: Vec<_> = filled.collect();
        rows.sort_unstable();
        Self { rows }
    }

    /// What the slot at `place` will hold; `None` if it is no slot, or is not filled from this file.
    pub fn address_in(&self, place: InputAddr) -> Option<InputAddr> {
        self.rows.binary_search_by_key(&place, |row| row.0).ok().map(|row| self.rows[row].1)
    }
}

/// The slot that the linker's stub at `address` jumps through.
pub(crate) fn slot_of_stub(image: &Image, address: InputAddr) -> Option<InputAddr> {
    let section = &image.sections[image.section_at(address)?];
    let is_table = section.name == ".plt" || section.name.starts_with(".plt.");
    let rest = section.end().since(address).min(LONGEST_STUB as u64) as usize;
    let bytes = image.bytes_at(address, rest).filter(|_| is_table)?;
    image.arch.slot_of_stub(bytes, address.get()).map(InputAddr)
}
