//! New sections of data, and the jump tables that are written into them.

use crate::addresses::Addresses;
use crate::patch::write_table;
use afterlink_elf::NewSection;
use afterlink_image::elf;
use afterlink_program::{Placement, Program};

/// The new data that can be written to, or those that cannot.
pub(crate) fn sections(
    program: &Program,
    placement: &Placement,
    addresses: &Addresses,
    writable: bool,
) -> Vec<NewSection> {
    let wanted = placement.data.iter().filter(|(_, data)| data.writable == writable);
    let mut sections = Vec::new();
    for (id, data) in wanted {
        let mut bytes = data.bytes.clone();
        for (function, own) in program.functions.iter().filter(|(id, _)| addresses.is_moved(*id)) {
            for table in &own.jump_tables {
                if let Some((_, offset)) = table.place.filter(|(place, _)| *place == id) {
                    write_table(function, table, addresses, &mut bytes[offset as usize..]);
                }
            }
        }
        let write = if writable { elf::SHF_WRITE.0 } else { 0 };
        sections.push(NewSection {
            name: data.name.clone(),
            kind: elf::SHT_PROGBITS.0,
            flags: elf::SHF_ALLOC.0 | write,
            alignment: data.alignment,
            address: addresses.data[id],
            bytes,
        });
    }
    sections
}

/// How many new sections stand in front of those of code.
pub(crate) fn in_front(placement: &Placement) -> usize {
    placement.data.iter().filter(|(_, data)| data.writable).count()
}
