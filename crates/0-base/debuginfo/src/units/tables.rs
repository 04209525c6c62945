//! What units say of tables beside them, before they are led.

use super::{Head, first};
use crate::Sections;
use crate::bytes::Reader;
use crate::forms::Abbreviations;
use crate::indices::Tables;
use gimli::constants::*;
use std::collections::BTreeSet;

/// The tables of `.debug_addr` as the units have them, and whether any unit's entries stand in another file.
pub fn tables(sections: &Sections) -> (Tables, bool) {
    let (mut bare, mut others, mut has_split) = (BTreeSet::new(), BTreeSet::new(), false);
    let named = [(sections.info, false), (sections.types, true)];
    for (section, is_types) in named.into_iter().filter(|_| !sections.addr.is_empty()) {
        for (start, end) in crate::starts(section).0 {
            let bytes = &section[start..end];
            let Ok(head) = Head::read(bytes, is_types) else { continue };
            let Ok(abbreviations) = Abbreviations::read(sections.abbrev, head.table) else { continue };
            let Ok(attributes) = first(bytes, head.entries, (head.offset_size, head.version), &abbreviations)
            else {
                continue;
            };
            has_split |= head.skeleton_id.is_some();
            for attribute in attributes {
                let size = attribute.end - attribute.at;
                let Ok(base) = Reader::new(bytes, attribute.at).number(size.min(8)) else { continue };
                let base = base as usize;
                match attribute.name {
                    DW_AT_GNU_addr_base => drop(bare.insert(base)),
                    DW_AT_addr_base => {
                        let head = if head.offset_size == 8 { 16 } else { 8 };
                        others.extend(base.checked_sub(head));
                    }
                    DW_AT_GNU_dwo_id => has_split = true,
                    _ => {}
                }
            }
        }
    }
    (Tables::read(sections.addr, &bare, &others), has_split)
}
